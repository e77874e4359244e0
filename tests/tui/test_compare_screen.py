"""Every key of the compare screen, at both sizes, against what it changes."""

import threading

import pytest

from ragaudit.tui.comparing import Comparing
from ragaudit.tui.screens.compare import CompareScreen
from ragaudit.tui.screens.export import ExportDialog
from ragaudit.tui.screens.freezing import FreezeDialog
from tests.tui.builders import bare
from tests.tui.compare_audits import BAD, GOOD, TWICE, after, before, drive_both, frozen, pair, reranked, settled
from tests.tui.conftest import NARROW, WIDE, pane, screen_text, status
from tests.tui.test_hostile import ACTING, HOSTILE

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])


@pytest.fixture
def both(tmp_path):
    a, b = pair(tmp_path)
    return b, a


def shown(app):
    """Panes that have a place on the screen."""
    names = ("changes", "transitions", "a", "b", "difference", "verdict")
    return [name for name in names if pane(app, name).region.area]


@SIZES
def test_c_compares_on_the_query_one_comes_from(both, size):
    async def steps(app, pilot):
        app.session.show("q3")
        await pilot.press("c")
        await settled(app, pilot)
        assert isinstance(app.screen, CompareScreen)
        assert app.screen.here == "q3"
        assert pane(app, "query").text() == " q3 [3 of 3 changed]  who pays?"
        assert pane(app, "change").text() == " + better in B   Rerank/pack -> pass   Recall +1.000  MRR +1.000"
        assert pane(app, "headline").text() == " NOT DISTINGUISHABLE from no change in any of 2 metrics"

    drive_both(*both, size, steps, first="review")


@SIZES
def test_c_shows_an_unchanged_query_among_all_of_them(both, size):
    async def steps(app, pilot):
        assert pane(app, "query").text() == " q2 [4 of 5]  gift cards?"
        assert pane(app, "change").text() == "   same outcome and metrics   pass"
        assert pane(app, "difference").title == "No list differs"
        await pilot.press("r")
        app.session.show("q1")
        await pilot.press("c")
        await settled(app, pilot)
        assert app.screen.here == "q1", "another query of the review, another one here"

    drive_both(*both, size, steps, query_id="q2")


@SIZES
def test_c_without_another_audit_says_how_to_start(both, size):
    async def steps(app, pilot):
        await pilot.press("c")
        assert app.main_screen.NAME == "review"
        assert status(app) == "nothing to compare with: start with --against BASE.audit"

    drive_both(both[0], None, size, steps, first="review")


@SIZES
def test_n_and_p_step_through_the_changed_queries_from_any_pane(both, size):
    async def steps(app, pilot):
        for key, expected in (("n", "q5"), ("n", "q3"), ("p", "q5")):
            await pilot.press("tab", key)
            assert app.screen.here == expected
        await pilot.press("p", "p")
        assert status(app) == "the first changed query: the worst"
        await pilot.press("n", "n", "n")
        assert status(app) == "the last changed query"

    drive_both(*both, size, steps)


@SIZES
def test_the_cursor_of_the_list_moves_and_enter_reviews_the_query(both, size):
    async def steps(app, pilot):
        app.screen.show_pane("changes")
        await pilot.pause()
        await pilot.press("j", "j")
        assert (app.screen.here, pane(app, "changes").cursor) == ("q3", 2)
        await pilot.press("k", "enter")
        await pilot.pause()
        assert (app.main_screen.NAME, app.session.here) == ("review", "q5")

    drive_both(*both, size, steps)


@SIZES
def test_tilde_swaps_a_and_b_and_stays_on_the_query(both, size):
    async def steps(app, pilot):
        await pilot.press("tilde")
        await settled(app, pilot)
        assert (app.screen.here, app.comparing.swapped) == ("q1", True)
        assert status(app) == "swapped: the open audit is A now"
        assert pane(app, "change").text() == " + better in B   Rerank/pack -> pass   Recall +1.000  MRR +1.000"
        assert pane(app, "a").title == "A cand   FAIL at Rerank/pack"
        assert "changed  pipeline.rerank.model r2 -> r1" in pane(app, "verdict").text()
        await pilot.press("tilde")
        await pilot.pause()
        assert pane(app, "a").title == "A base   PASS"
        assert status(app) == "swapped: the open audit is B again"

    drive_both(*both, size, steps)


@SIZES
def test_equals_lists_every_query_and_again_only_what_changed(both, size):
    async def steps(app, pilot):
        await pilot.press("equals_sign")
        assert pane(app, "changes").text().split("\n")[3].startswith("   q2 ")
        assert (pane(app, "changes").title, pane(app, "changes").count) == ("All queries", 5)
        assert status(app) == "every query, those that changed first"
        await pilot.press("equals_sign")
        assert (pane(app, "changes").title, pane(app, "changes").count) == ("Changed", 3)
        assert status(app) == "only the queries that changed"

    drive_both(*both, size, steps)


@SIZES
def test_brackets_move_both_sides_to_another_list(both, size):
    async def steps(app, pilot):
        assert pane(app, "difference").title == "First difference: after rerank"
        await pilot.press("right_square_bracket")
        assert pane(app, "difference").title == "List: packed"
        assert [">" in pane(app, side).text().split("\n")[4] for side in "ab"] == [True, True]
        await pilot.press("right_square_bracket", "left_square_bracket", "left_square_bracket")
        assert pane(app, "difference").title == "List: arm dense"
        await pilot.press("left_square_bracket")
        assert app.screen.list_name == "arm:dense"
        await pilot.press("n")
        assert pane(app, "difference").title == "First difference: after rerank", "the next query at its own"

    drive_both(*both, size, steps)


@SIZES
def test_brackets_start_somewhere_when_no_list_differs(both, size):
    async def steps(app, pilot):
        await pilot.press("left_square_bracket")
        assert app.screen.list_name == "packed"

    drive_both(*both, size, steps, query_id="q2")


@SIZES
def test_parentheses_choose_the_gold_id_on_both_sides(tmp_path, size):
    a, b = pair(
        tmp_path,
        a=[reranked("q1", GOOD, gold_ids=("c9", "c7"))],
        b=[reranked("q1", BAD, gold_ids=("c9", "c7"))],
    )

    async def steps(app, pilot):
        assert app.screen.gold_id == "c9"
        await pilot.press("right_parenthesis")
        assert (app.screen.gold_id, status(app)) == ("c7", "gold 2 of 2: c7")
        await pilot.press("left_parenthesis")
        assert app.screen.gold_id == "c9"

    drive_both(b, a, size, steps)


@SIZES
def test_tab_goes_through_the_panes_and_z_gives_one_the_whole_room(both, size):
    async def steps(app, pilot):
        app.screen.show_pane("changes")
        await pilot.pause()
        seen = []
        for _ in range(6):
            seen.append((app.screen.pane_shown, shown(app)))
            await pilot.press("tab")
            await pilot.pause()
        assert [name for name, _ in seen] == ["changes", "a", "b", "difference", "verdict", "transitions"]
        assert app.focused is pane(app, "changes")
        if size == NARROW:
            groups = (["changes", "transitions"], ["a", "b", "difference"], ["verdict"])
            assert [names for _, names in seen] == [groups[n] for n in (0, 1, 1, 1, 2, 0)]
        else:
            assert {len(names) for _, names in seen} == {6}
        await pilot.press("shift+tab")
        assert app.screen.pane_shown == "transitions"
        for name in ("changes", "a", "b", "difference", "verdict", "transitions"):
            app.screen.show_pane(name)
            await pilot.press("z")
            await pilot.pause()
            assert shown(app) == [name]
            await pilot.press("escape")
            await pilot.pause()
            assert len(shown(app)) > 1 or name == "verdict"

    drive_both(*both, size, steps)


@SIZES
def test_escape_goes_back_to_the_review_where_one_was(both, size):
    async def steps(app, pilot):
        await pilot.press("n", "n", "escape")
        await pilot.pause()
        assert (app.main_screen.NAME, app.session.here) == ("review", "q1")
        await pilot.press("c")
        await pilot.pause()
        assert app.screen.here == "q3", "and here one is where one was, too"

    drive_both(*both, size, steps)


@SIZES
def test_b_asks_and_keeps_b_as_a_baseline(both, size, tmp_path):
    kept = tmp_path / "baselines" / "main.json"

    async def steps(app, pilot):
        await pilot.press("b")
        await pilot.pause()
        assert isinstance(app.screen, FreezeDialog)
        await pilot.press("escape")
        await pilot.pause()
        assert (status(app), kept.parent.exists()) == ("nothing was written", False)
        await pilot.press("b")
        await pilot.pause()
        app.screen.query_one("#name").value = "not a name"
        await pilot.press("enter")
        await pilot.pause()
        assert "is no file name" in pane(app, "place").text()
        app.screen.query_one("#name").value = "main"
        await pilot.press("enter")
        await pilot.pause()
        assert status(app) == f"wrote {kept}: compare with it by --against main"[: len(status(app))]
        assert kept.is_file()

    drive_both(*both, size, steps)


@SIZES
def test_b_replaces_a_baseline_on_the_second_enter_only(both, size, tmp_path):
    kept = tmp_path / "baselines" / "cand.json"

    async def steps(app, pilot):
        await pilot.press("b", "enter")
        await pilot.pause()
        first = kept.stat().st_ino
        await pilot.press("b", "enter")
        await pilot.pause()
        assert isinstance(app.screen, FreezeDialog)
        assert "enter once more replaces it" in pane(app, "place").text()
        assert kept.stat().st_ino == first
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, CompareScreen)
        assert kept.stat().st_ino != first

    drive_both(*both, size, steps)


@SIZES
def test_y_copies_the_query_that_is_compared(both, size, monkeypatch):
    copied = []
    monkeypatch.setattr("ragaudit.tui.app.copy", lambda text, by: copied.append(text) or "somehow")

    async def steps(app, pilot):
        await pilot.press("n", "y", "Y")
        assert copied[0] == "q5"
        assert '"query_id": "q5"' in copied[1]

    drive_both(*both, size, steps)


@SIZES
def test_e_offers_the_query_that_is_compared(both, size):
    async def steps(app, pilot):
        await pilot.press("n", "e")
        await pilot.pause()
        assert isinstance(app.screen, ExportDialog)
        assert "q5" in screen_text(app)

    drive_both(*both, size, steps)


@SIZES
def test_question_mark_says_what_the_keys_do_here(both, size):
    async def steps(app, pilot):
        app.screen.show_pane("difference")
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        text = pane(app, "help").text()
        assert "Swap A and B" in text and "Keep B as a baseline; asks first" in text
        assert "overlap@K: share of the first K that both have" in text.replace("\n", " ")

    drive_both(*both, size, steps)


@SIZES
def test_the_footer_fits(both, size):
    async def steps(app, pilot):
        footer = screen_text(app).split("\n")[-1]
        assert footer.endswith("q quit")
        assert all(label in footer for label in ("n next", "~ swap", "= only diff", "/ find", "? help"))

    drive_both(*both, size, steps)


# --- while it works --------------------------------------------------------------------------------------------------


class Slow:
    """Work that goes on until the test lets it, and says whether it was ended."""

    def __init__(self, monkeypatch):
        self.go, self.ended = threading.Event(), threading.Event()
        original = Comparing.work

        def work(comparing, *, swapped, told):
            told("reading A: 200 queries")
            self.go.wait(30)
            try:
                return original(comparing, swapped=swapped, told=told)
            finally:
                self.ended.set()

        monkeypatch.setattr(Comparing, "work", work)


@SIZES
def test_keys_work_while_two_audits_are_compared(both, size, monkeypatch):
    slow = Slow(monkeypatch)

    async def steps(app, pilot):
        await pilot.press("c")
        await pilot.pause()
        assert pane(app, "query").text() == " reading A: 200 queries   esc stops it"
        for key in ("n", "equals_sign", "tilde", "b", "right_square_bracket", "right_parenthesis", "tab", "z"):
            await pilot.press(key)
        await pilot.press("z")
        assert app.main_screen.NAME == "compare"
        await pilot.press("n")
        assert status(app) == "not compared yet"
        await pilot.press("r")
        assert app.main_screen.NAME == "review"
        await pilot.press("n")
        assert app.session.here == "q2"
        slow.go.set()
        await settled(app, pilot)
        await pilot.press("c")
        await pilot.pause()
        assert app.screen.here == "q2"

    drive_both(*both, size, steps, first="review", filter_text="q")


@SIZES
def test_escape_stops_the_comparing_and_c_starts_again(both, size, monkeypatch):
    slow = Slow(monkeypatch)

    async def steps(app, pilot):
        await pilot.press("c")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert (app.main_screen.NAME, status(app)) == ("review", "stopped comparing; c starts again")
        slow.go.set()
        assert slow.ended.wait(30)
        assert app.comparing.found is None
        await pilot.press("c")
        await settled(app, pilot)
        assert app.screen.here == "q1"

    drive_both(*both, size, steps, first="review")


def test_a_file_that_went_away_is_said_to_be_gone(both):
    audit, other = both

    async def steps(app, pilot):
        other.unlink()
        await pilot.press("c")
        await settled(app, pilot)
        assert pane(app, "query").text() == " nothing is compared"
        assert "no such audit file" in status(app)
        assert "no such audit file" in pane(app, "verdict").text()

    drive_both(audit, other, WIDE, steps, first="review")


def test_an_audit_that_is_another_one_now_is_compared_anew(both):
    async def steps(app, pilot):
        first = app.comparing.found
        await pilot.press("r", "c")
        await settled(app, pilot)
        assert app.comparing.found is first
        await pilot.press("r")
        app.session.summary = app.session.summary.model_copy(update={"canary": None})
        await pilot.press("c")
        await settled(app, pilot)
        assert app.comparing.found is not None and app.comparing.found is not first

    drive_both(*both, WIDE, steps)


# --- what cannot be compared, or shown -------------------------------------------------------------------------------


@SIZES
def test_a_refused_comparison_still_shows_each_query(tmp_path, size):
    a, b = pair(tmp_path, pipeline=TWICE)

    async def steps(app, pilot):
        assert pane(app, "headline").text().startswith(" NOT COMPARED: 2 pipeline variables changed")
        assert "Each query can still be looked at." in pane(app, "verdict").text()
        await pilot.press("n")
        assert app.screen.here == "q5"
        assert pane(app, "difference").title == "First difference: after rerank"

    drive_both(b, a, size, steps)


def test_what_allow_names_is_compared(tmp_path):
    a, b = pair(tmp_path, pipeline=TWICE)

    async def steps(app, pilot):
        assert "NOT DISTINGUISHABLE" in pane(app, "headline").text()

    drive_both(b, a, WIDE, steps, allow=("rerank.top_n",))


@SIZES
def test_a_frozen_baseline_has_figures_and_no_funnel(tmp_path, size):
    a, b = pair(tmp_path)

    async def steps(app, pilot):
        assert "a frozen baseline holds no lists" in pane(app, "a").text().replace("\n", " ")
        assert pane(app, "b").title == "B cand   FAIL at Rerank/pack"
        assert pane(app, "difference").title == "List: packed"
        await pilot.press("right_square_bracket", "tilde")
        await settled(app, pilot)
        assert pane(app, "b").title == "B base   PASS"

    drive_both(b, frozen(a, tmp_path), size, steps)


@SIZES
def test_runs_without_a_common_or_a_changed_query_open_empty(tmp_path, size):
    a, b = pair(tmp_path, b=[reranked("other", GOOD)])

    async def nothing_common(app, pilot):
        assert pane(app, "query").text() == " No query to show."
        assert pane(app, "changes").text() == "No query is in both runs."
        assert status(app) == "other is not in both runs"
        for key in ("n", "p", "tilde", "equals_sign", "right_square_bracket", "right_parenthesis", "enter"):
            await pilot.press(key)
            await settled(app, pilot)
        assert app.main_screen.NAME == "compare"

    drive_both(b, a, size, nothing_common)
    (tmp_path / "same").mkdir()
    a, b = pair(tmp_path / "same", b=before())

    async def nothing_changed(app, pilot):
        await pilot.press("equals_sign")
        assert pane(app, "changes").text().split("\n")[0].startswith("No query came out otherwise")
        await pilot.press("n")
        assert status(app) == "no query changed; = lists all of them"

    drive_both(b, a, size, nothing_changed)


@pytest.mark.parametrize(("name", "size"), [*((name, WIDE) for name in HOSTILE), ("all", NARROW)])
def test_hostile_text_acts_on_nothing(tmp_path, name, size):
    text = HOSTILE.get(name, " ".join(HOSTILE.values())).encode("utf-8", "replace").decode()
    query_id, gold = text[:200], f"c9 {text[:60]}"

    def row(order, answer):
        return reranked(query_id, [i.replace("c9", gold) for i in order], text=text, gold=gold, answer=answer)

    a, b = pair(tmp_path, a=[row(GOOD, text)], b=[row(BAD, f"no {text}"), bare("q2", text)])

    async def steps(app, pilot):
        seen = []
        tabs = ["tab"] * 6 if size == NARROW else []
        for key in (*tabs, "z", "z", "n", "b", "escape", "tilde", "y"):
            await pilot.press(key)
            await settled(app, pilot)
            seen.append(screen_text(app))
        assert not ACTING & set("".join(seen))
        assert app.screen.here == query_id

    drive_both(b, a, size, steps)


def test_a_live_resize_keeps_the_query_and_lays_out_anew(both):
    async def steps(app, pilot):
        await pilot.press("n")
        await pilot.resize_terminal(*WIDE)
        await pilot.pause()
        assert (app.screen.here, len(shown(app))) == ("q5", 6)
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert (app.screen.here, shown(app)) == ("q5", ["a", "b", "difference"])

    drive_both(*both, NARROW, steps)


def test_after_is_not_before():
    assert [row[0].diagnosis.outcome for row in before()] != [row[0].diagnosis.outcome for row in after()]


def test_the_answer_of_the_side_that_leaked_is_not_shown(tmp_path):
    a, b = pair(
        tmp_path,
        a=[reranked("q1", GOOD, answer="30 days")],
        b=[reranked("q1", BAD, answer="SECRET as the leak has it", leaks=(BAD[0],))],
    )

    async def steps(app, pilot):
        await pilot.press("c")
        await settled(app, pilot)
        text = screen_text(app)
        assert "B answer not shown: a leak stood in the prompt" in text
        assert "30 days" in text and "SECRET" not in text

    drive_both(b, a, WIDE, steps)
