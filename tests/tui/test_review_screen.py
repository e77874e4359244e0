"""Every key of the review screen, at both sizes, against what it changes."""

import pytest

from ragaudit.model.diagnosis import Stage
from ragaudit.model.review import ReviewVerdict
from ragaudit.store import Reviews
from ragaudit.tui.screens.dialogs import FilterDialog, FindDialog, HelpDialog, NoteDialog, ReadDialog
from tests.tui.builders import bare, inventory, lost_at_pack, passed, write
from tests.tui.conftest import NARROW, WIDE, drive, pane, screen_text, status, until

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
TEXTS = {
    "c9": "Refunds. Customers may ask within 30\n days of renewal. Then credit.",
    "c1": "Renewal is yearly.",
    "c4": "Old policy: 14 days.",
}


@pytest.fixture
def audit(tmp_path):
    rows = [lost_at_pack("q1"), passed("q2"), lost_at_pack("q3", text="second refund?"), bare("q4", "who?")]
    rows.append(lost_at_pack("q5", text="gold of many"))
    return write(tmp_path / "run.audit", rows, inventory(TEXTS))


def said(path, query_id):
    with Reviews.open(path) as reviews:
        return reviews.of(query_id)


@SIZES
def test_n_and_p_step_through_the_queue_from_any_pane(audit, size):
    async def steps(app, pilot):
        assert app.session.here == "q1"
        for key, expected in (("n", "q3"), ("n", "q5"), ("p", "q3")):
            await pilot.press("tab", key)
            assert app.session.here == expected
            assert app.screen.view.query_id == expected
        await pilot.press("p", "p")
        assert status(app) == "the first query of the queue"

    drive(audit, size, steps)


@SIZES
@pytest.mark.parametrize(
    ("key", "verdict"),
    [
        ("1", ReviewVerdict.AGREE),
        ("2", ReviewVerdict.DISAGREE),
        ("3", ReviewVerdict.GOLD_WRONG),
        ("4", ReviewVerdict.UNSURE),
    ],
)
def test_a_digit_saves_a_verdict_and_goes_on(audit, size, key, verdict):
    async def steps(app, pilot):
        await pilot.press(key)
        assert said(audit, "q1").verdict is verdict, "on the disk before the screen says so"
        assert app.session.here == "q3"
        assert status(app) == f"saved: q1 {verdict.value.replace('_', ' ')}. 1 reviewed"

    drive(audit, size, steps)


@SIZES
def test_u_takes_the_last_verdict_back_and_returns_to_its_query(audit, size):
    async def steps(app, pilot):
        await pilot.press("1", "2", "u")
        assert (said(audit, "q3"), app.session.here, status(app)) == (None, "q3", "undone: q3")
        await pilot.press("u", "u")
        assert said(audit, "q1") is None
        assert status(app) == "nothing to undo: this terminal has said nothing yet"

    drive(audit, size, steps)


@SIZES
def test_a_verdict_that_takes_the_query_out_of_the_filter_leaves_one_on_the_next(audit, size):
    async def steps(app, pilot):
        await pilot.press("1")
        assert (app.session.here, app.session.count) == ("q3", 2)
        await pilot.press("1", "1")
        assert app.session.count == 0
        assert "The filter matches no query" in pane(app, "query").text()
        await pilot.press("1")
        assert status(app) == "the queue is empty: there is nothing to give a verdict on"
        await pilot.press("a")
        assert status(app) == "the queue is empty: there is nothing to note"

    drive(audit, size, steps, filter_text="is:failing is:unreviewed")


@SIZES
def test_a_verdict_on_the_last_query_says_that_it_is_the_last(audit, size):
    async def steps(app, pilot):
        await pilot.press("1", "1")
        assert status(app) == "saved: q3 agree. 2 reviewed"
        await pilot.press("1")
        assert status(app) == "saved: q5 agree. 3 reviewed. The last query of the queue: e exports, o shows the stages"

    drive(audit, size, steps, filter_text="is:failing")


@SIZES
def test_m_marks_and_a_verdict_is_then_about_all_marked(audit, size):
    async def steps(app, pilot):
        await pilot.press("m", "m")
        assert app.session.marks == {"q1", "q3"}
        await pilot.press("2")
        assert {q: said(audit, q).verdict for q in ("q1", "q3")} == {
            "q1": ReviewVerdict.DISAGREE,
            "q3": ReviewVerdict.DISAGREE,
        }
        assert said(audit, "q5") is None
        assert status(app) == "saved: 2 queries disagree. 2 reviewed"
        await pilot.press("u")
        assert said(audit, "q1") is None and said(audit, "q3") is None

    drive(audit, size, steps)


@SIZES
def test_capital_m_marks_the_whole_queue_and_takes_the_marks_off_again(audit, size):
    async def steps(app, pilot):
        await pilot.press("M")
        assert app.session.marks == {"q1", "q3", "q5"}
        await pilot.press("M")
        assert app.session.marks == set()

    drive(audit, size, steps)


@SIZES
def test_brackets_move_the_stage_of_the_hits_and_the_pointer_of_the_funnel(audit, size):
    async def steps(app, pilot):
        assert app.screen.list_name == "packed", "where the gold was lost"
        assert "CUT !" in pane(app, "funnel").text()
        await pilot.press("left_square_bracket")
        assert app.screen.list_name == "fused"
        assert pane(app, "hits").title == "Hits: fused"
        assert "> fused" in pane(app, "funnel").text()
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert app.screen.list_name == "arm:dense"
        await pilot.press("right_square_bracket")
        assert app.screen.list_name == "fused"

    drive(audit, size, steps)


@SIZES
def test_parentheses_choose_the_gold_id(tmp_path, size):
    result, trace = lost_at_pack("q1")
    second = result.diagnosis.gold[0].model_copy(update={"id": "c4"})
    diagnosis = result.diagnosis.model_copy(update={"gold": (*result.diagnosis.gold, second)})
    path = write(tmp_path / "r.audit", [(result.model_copy(update={"diagnosis": diagnosis}), trace)], inventory(TEXTS))

    async def steps(app, pilot):
        assert app.screen.gold_id == "c9"
        await pilot.press("right_parenthesis")
        assert (app.screen.gold_id, app.screen.chunk_id) == ("c4", "c4")
        assert status(app) == "gold 2 of 2: c4"
        await pilot.press("left_parenthesis")
        assert app.screen.gold_id == "c9"

    drive(path, size, steps)


@SIZES
def test_tab_gives_the_next_pane_the_floor_and_it_is_remembered(audit, size):
    async def steps(app, pilot):
        start = app.screen.pane_shown
        await pilot.press("tab")
        after = app.screen.pane_shown
        assert app.focused is pane(app, after) and pane(app, after).display
        if size == NARROW:
            assert not pane(app, start).display
            assert f"[{after.capitalize()}]" in pane(app, "top").text()
        await pilot.press("shift+tab")
        assert app.screen.pane_shown == start
        await pilot.press("tab", "tab")

    drive(audit, size, steps)

    async def again(app, pilot):
        assert app.screen.pane_shown == {NARROW: "chunk", WIDE: "hits"}[size]

    drive(audit, size, again)


@SIZES
def test_z_zooms_a_pane_and_escape_returns(audit, size):
    async def steps(app, pilot):
        await pilot.press("z")
        shown = [
            name for name in ("queue", "funnel", "hits", "chunk", "answer", "diagnosis") if pane(app, name).display
        ]
        assert shown == [app.screen.pane_shown]
        await pilot.press("escape")
        assert not app.screen.has_class("-zoom")
        assert app.session.filter.text == "is:failing", "the filter is still there"
        await pilot.press("z", "z")
        assert not app.screen.has_class("-zoom")

    drive(audit, size, steps)


@SIZES
def test_escape_clears_the_filter(audit, size):
    async def steps(app, pilot):
        await pilot.press("escape")
        assert app.session.count == 5
        assert status(app) == "all queries are shown; f filters them again"

    drive(audit, size, steps)


@SIZES
def test_s_changes_the_order_and_keeps_the_query(audit, size):
    async def steps(app, pilot):
        await pilot.press("n", "s")
        assert (app.session.sort.value, app.session.here) == ("stage", "q3")
        assert status(app) == "sorted by stage"

    drive(audit, size, steps)


@SIZES
def test_w_wraps_the_chunk_or_not(tmp_path, size):
    path = write(tmp_path / "r.audit", [lost_at_pack("q1")], inventory({"c9": "word " * 100}))

    async def steps(app, pilot):
        app.screen.show_pane("chunk")
        await pilot.pause()
        assert max(map(len, pane(app, "chunk").text().splitlines())) <= size[0]
        await pilot.press("w")
        assert max(map(len, pane(app, "chunk").text().splitlines())) == 499
        await pilot.press("right")
        assert pane(app, "chunk").scroll_offset.x == 8
        await pilot.press("w")
        assert status(app) == "lines are wrapped"

    drive(path, size, steps)


@SIZES
def test_j_and_k_move_in_the_queue_and_enter_opens_the_funnel(audit, size):
    async def steps(app, pilot):
        app.screen.show_pane("queue")
        await pilot.pause()
        await pilot.press("j", "j")
        assert app.session.here == "q5"
        await pilot.press("k")
        assert app.session.here == "q3"
        await pilot.press("G")
        assert app.session.here == "q5"
        await pilot.press("g")
        assert app.session.here == "q1"
        await pilot.press("enter")
        assert app.screen.pane_shown == "funnel"

    drive(audit, size, steps)


@SIZES
def test_a_hit_under_the_cursor_is_the_chunk_that_is_shown_and_enter_opens_it(audit, size):
    async def steps(app, pilot):
        app.screen.show_pane("hits")
        await pilot.pause()
        assert app.screen.chunk_id == "c9"
        await pilot.press("g", "j")
        assert app.screen.chunk_id == "c1"
        assert "Renewal is yearly." in pane(app, "chunk").text()
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ReadDialog)
        assert "Renewal is yearly." in screen_text(app)
        await pilot.press("escape")
        assert app.screen is app.main_screen

    drive(audit, size, steps)


@SIZES
def test_the_gold_span_is_marked_and_what_took_its_place_is_beside_it(audit, size):
    async def steps(app, pilot):
        app.screen.show_pane("chunk")
        await pilot.pause()
        text = pane(app, "chunk").text()
        assert "within >>30\ndays<< of renewal" in text.replace(" \n", "\n") or ">>30 days<<" in text.replace("\n", " ")
        assert "-- took its place: c4" in text
        assert "Old policy: 14 days." in text

    drive(audit, size, steps)


@SIZES
def test_a_note_is_kept_with_tags_stage_and_gold_and_one_stays_for_the_verdict(audit, size):
    async def steps(app, pilot):
        await pilot.press("a")
        assert isinstance(app.screen, NoteDialog)
        await pilot.press(*"looks odd", "tab", *"short old", "tab", *"fus", "tab", *"c1 c4", "enter")
        await pilot.pause()
        review = said(audit, "q1")
        assert (review.tags, review.note, review.stage, review.gold) == (
            ("short", "old"),
            "looks odd",
            Stage.FUSE,
            ("c1", "c4"),
        )
        assert (app.session.here, status(app)) == ("q1", "saved: q1 noted. 0 reviewed")
        assert " q1 [1 of 3] noted   0 reviewed" in pane(app, "top").text()
        await pilot.press("1", "p")
        assert " q1 [1 of 3] agree +note   1 reviewed" in pane(app, "top").text()
        await pilot.press("a")
        assert [app.screen.query_one(f"#{name}").value for name in ("note", "tags", "stage", "gold")] == [
            "looks odd",
            "short old",
            "fuse",
            "c1 c4",
        ]
        await pilot.press("tab", "tab", *["backspace"] * 4, "tab", *["backspace"] * 5, "-", "enter")
        await pilot.pause()
        assert (said(audit, "q1").stage, said(audit, "q1").gold) == (None, ())

    drive(audit, size, steps)


@SIZES
def test_a_note_with_an_unknown_stage_says_so_and_saves_nothing(audit, size):
    async def steps(app, pilot):
        await pilot.press("a", "tab", "tab", *"re", "enter")
        await pilot.pause()
        assert "stage: 're' is not one of the nine, nor none." in app.screen.query_one("#hint").text()
        await pilot.press("escape")
        assert said(audit, "q1") is None

    drive(audit, size, steps)


@SIZES
def test_a_note_on_marked_queries_adds_tags_and_leaves_their_own(audit, size):
    async def steps(app, pilot):
        await pilot.press("a", "tab", *"mine", "enter")
        await pilot.pause()
        await pilot.press("M", "a", "tab", *"all", "enter")
        await pilot.pause()
        assert said(audit, "q1").tags == ("mine", "all")
        assert said(audit, "q5").tags == ("all",)

    drive(audit, size, steps)


@SIZES
def test_keys_are_text_while_a_field_has_focus(audit, size):
    async def steps(app, pilot):
        await pilot.press("a", "1", "q", "u")
        assert app.screen.query_one("#note").value == "1qu"
        await pilot.press("escape")
        assert said(audit, "q1") is None and app.is_running

    drive(audit, size, steps)


@SIZES
def test_slash_narrows_while_typing_enter_keeps_and_escape_clears(audit, size):
    async def steps(app, pilot):
        await pilot.press("slash")
        assert isinstance(app.screen, FindDialog)
        await pilot.press(*"second")
        await pilot.pause(0.4)
        assert app.session.count == 1 and app.session.here == "q3"
        await pilot.press("escape")
        assert (app.session.count, app.session.filter.text) == (3, "is:failing")
        await pilot.press("slash", *"second", "enter")
        await pilot.pause()
        assert (app.session.count, app.session.filter.text) == (1, 'is:failing "second"')

    drive(audit, size, steps)


@SIZES
def test_f_filters_and_says_what_is_wrong_while_typing(audit, size):
    async def steps(app, pilot):
        await pilot.press("f")
        assert isinstance(app.screen, FilterDialog)
        field = app.screen.query_one("#filter")
        assert field.value == "is:failing"
        field.value = "stage:nowhere"
        await pilot.pause(0.3)
        assert "'nowhere' is not a stage" in app.screen.query_one("#matches").text()
        await pilot.press("enter")
        assert isinstance(app.screen, FilterDialog), "it stays until the filter is understood"
        field.value = "is:passing"
        await pilot.pause(0.3)
        assert "1 of 5 match" in app.screen.query_one("#matches").text()
        await pilot.press("enter")
        await pilot.pause()
        assert (app.session.here, status(app)) == ("q2", "1 match")
        await pilot.press("f", "escape")
        assert app.session.filter.text == "is:passing"

    drive(audit, size, steps)


@SIZES
def test_question_mark_shows_the_keys_of_the_pane_and_of_the_app(audit, size):
    async def steps(app, pilot):
        app.screen.show_pane("hits")
        await pilot.pause()
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpDialog)
        text = app.screen.query_one("#help").text()
        assert "Below the rule: gold that this list does not hold." in " ".join(text.split())
        assert "Agree with the diagnosis, and go on" in text and "Quit" in text
        await pilot.press("escape")
        assert app.screen is app.main_screen

    drive(audit, size, steps)


@SIZES
def test_o_and_r_change_the_screen(audit, size):
    async def steps(app, pilot):
        await pilot.press("o")
        await pilot.pause()
        assert app.main_screen.NAME == "overview"
        await pilot.press("r")
        await pilot.pause()
        assert app.main_screen.NAME == "review"

    drive(audit, size, steps)


@SIZES
def test_q_leaves_with_exit_code_0_and_the_place_is_kept(audit, size):
    async def steps(app, pilot):
        await pilot.press("n", "q")
        await pilot.pause()
        assert app.return_value == 0

    drive(audit, size, steps)

    async def again(app, pilot):
        assert app.session.here == "q3"

    drive(audit, size, again)


@SIZES
def test_y_copies_the_id_and_capital_y_the_row_and_both_say_how(audit, size, monkeypatch):
    monkeypatch.setattr("ragaudit.tui.app.copy", lambda text, by_terminal: by_terminal(text) or "somehow")

    async def steps(app, pilot):
        await pilot.press("y")
        assert (app.clipboard, status(app)) == ("q1", "copied q1 somehow")
        await pilot.press("Y")
        assert '"query_id": "q1"' in app.clipboard and "refund" not in app.clipboard
        assert status(app) == "copied q1 as JSON, without text, somehow"

    drive(audit, size, steps)


@SIZES
def test_what_another_terminal_says_is_shown(audit, size):
    async def steps(app, pilot):
        with Reviews.open(audit) as other:
            from ragaudit.model.review import Patch

            other.apply(["q3"], Patch(verdict=ReviewVerdict.UNSURE))
        app._look()
        await pilot.pause()
        assert app.session.reviewed == 1
        assert status(app) == "another terminal wrote to this audit: shown as it is now"
        assert app.session.here == "q1"

    drive(audit, size, steps)


@SIZES
def test_an_audit_that_was_replaced_refuses_a_verdict_and_says_so(audit, size):
    async def steps(app, pilot):
        write(audit, [lost_at_pack("q1")])
        await pilot.press("1")
        assert "another audit took its place. Nothing was saved; open it again" in status(app)
        await pilot.press("u")
        assert "nothing to undo" in status(app)

    drive(audit, size, steps)


@SIZES
def test_a_file_that_may_not_be_written_can_be_read_and_says_why_nothing_is_kept(audit, size, monkeypatch):
    monkeypatch.setattr("ragaudit.tui.session._reviews", lambda path: (None, f"{path.name}: cannot be opened"))

    async def steps(app, pilot):
        assert "refund window?" in pane(app, "query").text()
        for key in ("1", "u", "a"):
            await pilot.press(key)
            assert status(app) == "run.audit: cannot be opened"

    drive(audit, size, steps)


@SIZES
def test_a_resize_lays_the_screen_out_anew(audit, size):
    async def steps(app, pilot):
        other = WIDE if size == NARROW else NARROW
        await pilot.resize_terminal(*other)
        await pilot.pause()
        assert app.screen.has_class("-wide" if other == WIDE else "-narrow")
        assert pane(app, "queue").display or other == NARROW

    drive(audit, size, steps)


@SIZES
def test_the_footer_fits(audit, size):
    async def steps(app, pilot):
        for screen in ("review", "overview"):
            app.action_show_screen(screen)
            await until(pilot, lambda: app.screen.query("FooterKey"))
            keys = list(app.screen.query("FooterKey"))
            assert max(key.region.right for key in keys) <= size[0]

    drive(audit, size, steps)


@SIZES
def test_every_query_and_every_key_is_in_the_command_palette(audit, size):
    async def steps(app, pilot):
        names = [command.title for command in app.get_system_commands(app.screen)]
        for key in (*app.screen.KEYS, *app.BINDINGS):
            assert getattr(key, "does", names[0]) in names
        await pilot.press("ctrl+p", *"q5")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert app.session.here == "q5"

    drive(audit, size, steps)


def test_a_query_named_on_the_command_line_is_shown_whatever_the_filter(audit):
    async def steps(app, pilot):
        assert (app.session.here, app.session.count) == ("q2", 5)

    drive(audit, NARROW, steps, query_id="q2")


def test_a_run_in_which_nothing_fails_shows_all_of_it(tmp_path):
    async def steps(app, pilot):
        assert (app.session.here, app.session.filter.text) == ("q2", "")

    drive(write(tmp_path / "r.audit", [passed("q2")]), NARROW, steps)
