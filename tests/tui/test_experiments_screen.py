"""Every key of the experiments screen, at both sizes, against what it changes; the journal on the overview."""

import json

import pytest

from ragaudit.model.comparison import Verdict
from ragaudit.tui.screens.choosing import ChooseDialog
from ragaudit.tui.screens.experiments import ExperimentsScreen
from tests.tui.compare_audits import drive_both
from tests.tui.conftest import NARROW, WIDE, pane, screen_text, status
from tests.tui.test_hostile import ACTING, HOSTILE
from tests.tui.test_trials import ALL, audit, experiment, finish, needs_a_run

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])


@pytest.fixture
def run(tmp_path):
    return audit(tmp_path)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "experiments.jsonl"


def drive(path, size, steps, **options):
    drive_both(path, None, size, steps, **({"first": "experiments"} | options))


@SIZES
def test_x_shows_the_experiments_and_the_cursor_their_details(run, size):
    async def steps(app, pilot):
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(app.screen, ExperimentsScreen)
        assert app.focused is pane(app, "ranked")
        assert pane(app, "details").text().startswith("> pipeline.rerank.top_n: 8 -> 16")
        await pilot.press("j")
        assert pane(app, "details").text().startswith("> pipeline.search.*.fetch_k")
        await pilot.press("k")
        assert app.screen.current == ALL[0]

    drive(run, size, steps, first="review")


@SIZES
def test_enter_marks_the_queries_it_answers_and_shows_them(run, size):
    async def steps(app, pilot):
        await pilot.press("enter")
        await pilot.pause()
        assert (app.main_screen.NAME, app.session.marks, app.session.count) == ("review", {"q1", "q3"}, 2)
        assert status(app) == "2 queries marked; esc shows all queries again"

    drive(run, size, steps)


@SIZES
def test_enter_on_one_without_queries_says_so(run, size):
    async def steps(app, pilot):
        await pilot.press("G", "enter")
        await pilot.pause()
        assert (app.main_screen.NAME, status(app)) == ("experiments", "there are no queries to show")

    drive(run, size, steps)


@SIZES
def test_t_writes_the_plan_and_says_how_to_take_it_back(run, size, journal):
    async def steps(app, pilot):
        await pilot.press("t")
        await pilot.pause()
        (line,) = journal.read_text("utf-8").splitlines()
        assert status(app).startswith(f"planned rerank.top_n as {json.loads(line)['id']} in {journal}")
        assert " planned " in pane(app, "ranked").text().split("\n")[0]
        assert pane(app, "journal").text().startswith("1 planned\n")
        assert "in the journal" in pane(app, "details").text()
        await pilot.press("t")
        assert "the same change is planned already" in status(app)
        assert len(journal.read_text("utf-8").splitlines()) == 1

    drive(run, size, steps)


@SIZES
def test_t_asks_which_key_where_the_lever_fits_several(run, size, journal):
    async def steps(app, pilot):
        await pilot.press("j", "t")
        await pilot.pause()
        assert isinstance(app.screen, ChooseDialog)
        assert pane(app, "rows").text() == "search.dense.fetch_k\nsearch.bm25.fetch_k"
        await pilot.press("escape")
        await pilot.pause()
        assert (status(app), journal.exists()) == ("nothing was planned", False)
        await pilot.press("t", "j", "enter")
        await pilot.pause()
        (line,) = journal.read_text("utf-8").splitlines()
        assert json.loads(line)["variable"] == "pipeline.search.bm25.fetch_k"

    drive(run, size, steps)


@SIZES
def test_what_was_refuted_stays_and_is_shown_as_such(run, size, journal):
    async def plan(app, pilot):
        await pilot.press("t")

    drive(run, size, plan)
    finish(journal, -0.1, verdict=Verdict.WORSE)

    async def steps(app, pilot):
        assert "1 refuted" in pane(app, "top").text()
        assert " refuted -0.100 " in pane(app, "ranked").text().split("\n")[0]
        assert "tried and refuted" in pane(app, "details").text()
        await pilot.press("o")
        await pilot.pause()
        assert " refuted -0.100 " in pane(app, "next").text().split("\n")[0]

    drive(run, size, steps)


@SIZES
def test_the_journal_is_read_again_when_one_comes_back(run, size, journal):
    async def steps(app, pilot):
        await pilot.press("t", "r")
        finish(journal, 0.2)
        await pilot.press("x")
        await pilot.pause()
        assert " confirmed +0.200 " in pane(app, "ranked").text().split("\n")[0]

    drive(run, size, steps)


@SIZES
def test_tab_goes_through_the_panes_and_z_gives_one_the_whole_room(run, size):
    def shown(app):
        return [name for name in ("ranked", "details", "journal") if pane(app, name).region.area]

    async def steps(app, pilot):
        seen = []
        for _ in range(3):
            seen.append((app.screen.pane_shown, shown(app)))
            await pilot.press("tab")
            await pilot.pause()
        assert [name for name, _ in seen] == ["ranked", "details", "journal"]
        if size == NARROW:
            assert [names for _, names in seen] == [["ranked", "details"], ["ranked", "details"], ["journal"]]
        else:
            assert [len(names) for _, names in seen] == [3, 3, 3]
        await pilot.press("shift+tab")
        assert app.focused is pane(app, "journal")
        for name in ("ranked", "details", "journal"):
            app.screen.show_pane(name)
            await pilot.press("z")
            await pilot.pause()
            assert shown(app) == [name]
            await pilot.press("escape")
            await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert app.main_screen.NAME == "overview"

    drive(run, size, steps)


@SIZES
def test_question_mark_and_the_footer(run, size):
    async def steps(app, pilot):
        footer = screen_text(app).split("\n")[-1]
        assert footer.endswith("q quit") and "t plan" in footer
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Write this experiment into the journal; changes no pipeline" in pane(app, "help").text()

    drive(run, size, steps)


@SIZES
def test_an_audit_without_a_proposal_says_so(tmp_path, size):
    async def steps(app, pilot):
        assert pane(app, "ranked").text().startswith("No experiment to propose")
        assert "proposes no experiment" in pane(app, "details").text()
        await pilot.press("t")
        assert status(app) == "there is no experiment to plan"
        await pilot.press("enter")
        await pilot.pause()
        assert status(app) == "there are no queries to show"

    drive(audit(tmp_path, ()), size, steps)


@SIZES
def test_a_damaged_journal_is_shown_as_damaged_and_left_alone(run, size, journal):
    journal.write_text("no json\n")

    async def steps(app, pilot):
        assert ":1:notJSON" in "".join(pane(app, "journal").text().split()), "wherever the path makes it break"
        await pilot.press("t")
        assert journal.read_text() == "no json\n"
        assert pane(app, "ranked").count == 3

    drive(run, size, steps)


@pytest.mark.parametrize(("name", "size"), [*((name, WIDE) for name in HOSTILE), ("all", NARROW)])
def test_hostile_text_acts_on_nothing(tmp_path, name, size):
    text = HOSTILE.get(name, " ".join(HOSTILE.values())).encode("utf-8", "replace").decode()
    said = {"why": text, "how": text, "lost_to": text, "frozen": (text,), "watch": (text,), "queries": (text[:200],)}
    hostile = experiment(**said, to=text[:500], lost=(text[:200],))
    path = audit(tmp_path, (hostile, needs_a_run(**said)))

    async def steps(app, pilot):
        seen = []
        for key in ("t", "tab", "tab", "z", "z", "tab", "j", "o", "x"):
            await pilot.press(key)
            await pilot.pause()
            seen.append(screen_text(app))
        assert not ACTING & set("".join(seen))
        assert app.main_screen.NAME == "experiments"

    drive(path, size, steps)
