"""Judging from the screen, with a model that answers when it is let go: plan, progress, pause, stop, leaving."""

import asyncio

import pytest

from ragaudit.cli.judging import bundle_of, lookup_of, reviewing_judge
from ragaudit.cli.streams import Streams
from ragaudit.errors import ConfigError
from ragaudit.model.judgement import Failure
from ragaudit.model.review import Patch
from ragaudit.store import AuditReader, AuditUpdater, Reviews
from ragaudit.tui.app import ReviewApp
from ragaudit.tui.judging import Source
from ragaudit.tui.screens.judge import JudgeDialog, LeaveDialog
from ragaudit.tui.session import Session
from tests.audit.rejudge_builders import audited_at_once, audited_without_judge
from tests.cli.judged_bundle import Literal, judged_bundle, trace, use
from tests.tui.conftest import NARROW, WIDE, pane, screen_text, status, until

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
IDS = ("q1", "q2", "q3")
"""Seconds after which a test gives up on what should have come long before."""


class Held(Literal):
    """Answers about the queries that are let."""

    def __init__(self):
        super().__init__()
        self.let_go = set()
        self.begun = 0

    def let(self, *query_ids):
        self.let_go.update(query_ids or IDS)

    async def complete(self, request):
        self.begun += 1
        text = request.messages[-1]["content"]
        about = "q2" if "90 days" in text else "q3" if "999" in text else "q1"
        while about not in self.let_go:
            await asyncio.sleep(0.005)
        return await super().complete(request)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr("ragaudit.judge.live.GRACE_SECONDS", 0.0)
    return use(monkeypatch, Held())


@pytest.fixture
def folder(tmp_path):
    rows = (
        trace("q1", "Free keys expire after 30 days.", ("c1", "c2"), gold_ids=["c1"]),
        trace("q2", "Free keys expire after 90 days.", ("c1", "c2"), gold_ids=["c2"]),
        trace("q3", "The limit is 999 calls a minute.", ("c2", "c3")),
    )
    return judged_bundle(tmp_path / "b", *rows, config="concurrency = 4\n")


@pytest.fixture
def audit(folder, tmp_path):
    """Three queries without a judgement: q1 and q2 undetermined, q3 too."""
    return audited_without_judge(folder, tmp_path / "run.audit")


def source_of(audit, folder=None, tape="new"):
    return Source(
        bundle=lambda summary: bundle_of(audit, summary, folder),
        judge=lambda bundle, to_plan: reviewing_judge(Streams(), bundle, tape, to_plan=to_plan),
        lookup=lookup_of,
    )


def drive(audit, size, steps, *, source="own", code=None, **options):
    async def body():
        with Session.open(audit, **options) as session:
            app = ReviewApp(session, source=source_of(audit) if source == "own" else source)
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                await steps(app, pilot)
            assert app.return_value == code

    asyncio.run(body())


async def planned(app, pilot):
    await until(pilot, lambda: isinstance(app.screen, JudgeDialog) and "enter judges" in pane(app, "plan").text())


async def start(app, pilot, *keys):
    """Open the dialog, choose, start."""
    await pilot.press("J", *keys)
    await planned(app, pilot)
    await pilot.press("enter")
    await pilot.pause()


def faithfulness(path):
    with AuditReader.open(path) as reader:
        return {r.diagnosis.query_id: r.metrics["faithfulness"] for r in reader.iter_results()}


# --- before it starts ----------------------------------------------------------------------------------------------


@SIZES
def test_capital_j_shows_the_plan_first_and_esc_leaves_without_asking_or_writing(audit, folder, model, size):
    files = sorted(folder.iterdir())

    async def steps(app, pilot):
        await pilot.press("J")
        await planned(app, pilot)
        said = pane(app, "plan").text()
        assert said.splitlines()[1:3] == ["1 query to judge", "by test/literal (matrix mode)"]
        assert "as expected         2        0        2" in said and "not known" in said
        assert "goes to the model's provider: question, answer, reference, and chunks that" in " ".join(said.split())
        assert pane(app, "scope").text().splitlines() == ["> this query: q1", "  the queue: 3 queries (no filter)"]
        await pilot.press("j")
        await until(pilot, lambda: "3 queries to judge" in pane(app, "plan").text())
        assert pane(app, "scope").text().splitlines()[1] == "> the queue: 3 queries (no filter)"
        await pilot.press("escape")
        assert not app.judging.is_on

    drive(audit, size, steps)
    assert (model.begun, sorted(folder.iterdir())) == (0, files)


@SIZES
def test_enter_judges_this_query_and_it_is_in_the_file_before_the_screen_says_so(audit, model, size):
    model.let()

    async def steps(app, pilot):
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert status(app) == "judged: 1 query. The figures are up to date."
        assert faithfulness(audit) == {"q1": 1.0, "q2": None, "q3": None}
        assert app.session.summary.metrics["faithfulness"].n == 1
        assert app.screen.view.judgement.metrics["faithfulness"] == 1.0

    drive(audit, size, steps)


@SIZES
def test_the_whole_queue_is_judged_and_overview_and_file_agree(audit, folder, model, size, tmp_path):
    model.let()

    async def steps(app, pilot):
        await start(app, pilot, "j")
        await until(pilot, lambda: not app.judging.is_on)
        assert status(app) == "judged: 3 queries. The figures are up to date."
        await pilot.press("o")
        await pilot.pause()
        panel = pane(app, "judging").text()
        assert panel.startswith("[####################]") and panel.endswith("ended")
        assert "Faithfulness      0.333" in pane(app, "scores").text()
        with AuditReader.open(audit) as reader:
            assert app.session.summary == reader.summary()

    drive(audit, size, steps)
    audited_at_once(folder, tmp_path / "once.audit")
    with AuditReader.open(audit) as later, AuditReader.open(tmp_path / "once.audit") as at_once:
        assert later.summary().metrics == at_once.summary().metrics
        assert later.summary().outcomes == at_once.summary().outcomes


@SIZES
def test_marked_queries_are_judged_together(audit, model, size):
    model.let()

    async def steps(app, pilot):
        await pilot.press("m", "n", "m")
        await pilot.press("J")
        await planned(app, pilot)
        assert pane(app, "scope").text().splitlines()[0] == "> marked: 2 queries"
        await pilot.press("enter")
        await until(pilot, lambda: app.judging.moment is not None and not app.judging.is_on)
        assert faithfulness(audit) == {"q1": 1.0, "q2": None, "q3": 0.0}

    drive(audit, size, steps)


@SIZES
def test_what_was_judged_is_not_offered_again(audit, model, size):
    model.let()

    async def steps(app, pilot):
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        await pilot.press("J")
        await until(pilot, lambda: "There is nothing to do here" in pane(app, "plan").text())
        assert "1 query judged before: not asked about again" in pane(app, "plan").text()
        await pilot.press("enter")
        assert isinstance(app.screen, JudgeDialog) and not app.judging.is_on
        await pilot.press("j")
        await until(pilot, lambda: "2 queries to judge" in pane(app, "plan").text())

    drive(audit, size, steps)


def refusal(audit, size, saying, source="own"):
    async def steps(app, pilot):
        await pilot.press("J")
        await until(pilot, lambda: "esc leaves" in pane(app, "plan").text())
        said = " ".join(pane(app, "plan").text().split())
        assert saying in said, said
        await pilot.press("enter")
        assert isinstance(app.screen, JudgeDialog)
        await pilot.press("escape")
        assert not app.judging.is_on

    drive(audit, size, steps, source=source)


@SIZES
def test_without_a_bundle_it_says_how_to_name_one(audit, folder, model, size, monkeypatch):
    monkeypatch.chdir(folder)
    folder.rename(folder.with_name("elsewhere"))
    refusal(audit, size, "Name it with --bundle DIR.")


@SIZES
def test_without_a_model_it_says_where_to_write_one_and_the_next_press_finds_it(audit, folder, model, size):
    config = folder / "ragaudit.toml"
    kept = config.read_text()
    config.write_text("")

    async def steps(app, pilot):
        await pilot.press("J")
        await until(pilot, lambda: "names no judge" in pane(app, "plan").text())
        assert 'Write [judge] and model = "provider/name" into it' in " ".join(pane(app, "plan").text().split())
        await pilot.press("escape")
        config.write_text(kept)
        await pilot.press("J")
        await planned(app, pilot)

    drive(audit, size, steps)


@SIZES
def test_a_bundle_that_is_not_the_audited_one_is_refused_by_the_file_that_differs(audit, folder, model, size):
    (folder / "chunks.jsonl").write_text((folder / "chunks.jsonl").read_text().replace("30 days", "31 days"))
    refusal(audit, size, "chunks.jsonl is not the file that was audited. Name the bundle of run.audit")


@SIZES
def test_an_app_that_cannot_judge_says_so_in_the_status_line(audit, model, size, monkeypatch):
    async def steps(app, pilot):
        await pilot.press("J")
        assert status(app) == "this app was opened without anything to judge with"
        app.session.reviews.close()
        app.session.reviews, app.session.read_only = None, "run.audit: cannot be opened"
        await pilot.press("J")
        assert status(app) == "run.audit: cannot be opened"

    drive(audit, size, steps, source=None)


# --- while it runs -------------------------------------------------------------------------------------------------


@SIZES
def test_reviewing_goes_on_meanwhile_and_both_are_kept(audit, model, size):
    async def steps(app, pilot):
        await start(app, pilot, "j")
        await until(pilot, lambda: model.begun == 3)
        assert ("judging 0/3" if size == WIDE else "judging 0%") in pane(app, "top").text()
        await pilot.press("1", "a", "tab", *"slow", "enter")
        await pilot.press("J")
        assert status(app).startswith("judging goes on: o shows how far it is")
        model.let()
        await until(pilot, lambda: not app.judging.is_on)

    drive(audit, size, steps)
    assert faithfulness(audit) == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    with Reviews.open(audit) as reviews:
        assert [(r.query_id, r.verdict, r.tags) for r, _, _ in reviews.every()] == [
            ("q1", "agree", ()),
            ("q2", None, ("slow",)),
        ]


@SIZES
def test_the_overview_shows_how_far_it_is_and_what_it_waits_for(audit, model, size):
    async def steps(app, pilot):
        await pilot.press("o")
        await pilot.pause()
        assert not pane(app, "judging").display
        await start(app, pilot, "j")
        await until(pilot, lambda: "waiting for 3 replies" in pane(app, "judging").text())
        assert pane(app, "judging").display and "Judging" in pane(app, "judging").title
        model.let("q1")
        await until(pilot, lambda: app.judging.moment.done == 1)
        await until(pilot, lambda: "1/3" in pane(app, "judging").text() or "1 of 3" in pane(app, "judging").text())
        assert faithfulness(audit)["q1"] == 1.0
        assert pane(app, "judging").region.bottom <= size[1] - 2, "above status line and footer"
        assert "at unknown price" in pane(app, "judging").text()
        model.let()
        await until(pilot, lambda: not app.judging.is_on)

    drive(audit, size, steps)


@SIZES
def test_space_pauses_and_goes_on(audit, model, size):
    async def steps(app, pilot):
        await pilot.press("o")
        await pilot.pause()
        await start(app, pilot, "j")
        await until(pilot, lambda: model.begun == 3)
        await pilot.press("space")
        assert app.judging.is_paused and status(app) == "judging is paused: space goes on"
        await until(pilot, lambda: "paused: space goes on" in pane(app, "judging").text())
        model.let()
        await until(pilot, lambda: app.judging.moment.calls.replies == 3)
        await pilot.pause(0.3)
        assert (model.begun, app.judging.moment.done) == (3, 0), "what was in flight came, nothing was asked after it"
        model.let_go.clear()
        await pilot.press("space")
        assert status(app) == "judging goes on"
        model.let()
        await until(pilot, lambda: not app.judging.is_on)
        assert app.judging.moment.done == 3

    drive(audit, size, steps)


@SIZES
def test_esc_on_the_overview_stops_and_keeps_what_is_done_and_j_goes_on_from_there(audit, model, size):
    async def steps(app, pilot):
        await pilot.press("o")
        await pilot.pause()
        await start(app, pilot, "j")
        model.let("q1")
        await until(pilot, lambda: app.judging.moment is not None and app.judging.moment.done == 1)
        await pilot.press("escape")
        await until(pilot, lambda: not app.judging.is_on)
        assert status(app) == "stopped: 1 query judged and kept, 2 left. J goes on."
        assert faithfulness(audit) == {"q1": 1.0, "q2": None, "q3": None}
        assert app.session.summary.metrics["faithfulness"].n == 1
        await pilot.press("escape")
        assert status(app) == "nothing is being judged: J judges this query or the queue"
        await pilot.press("space")
        assert status(app) == "nothing is being judged: J judges this query or the queue"
        model.let()
        await start(app, pilot, "j")
        await until(pilot, lambda: not app.judging.is_on)
        assert status(app) == "judged: 2 queries. The figures are up to date."

    drive(audit, size, steps)


@SIZES
@pytest.mark.parametrize("key", ["q", "ctrl+q"])
def test_q_while_judging_asks_and_esc_stays(audit, model, size, key):
    async def steps(app, pilot):
        await start(app, pilot, "j")
        await until(pilot, lambda: model.begun == 3)
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(app.screen, LeaveDialog)
        assert "enter stops it and leaves, esc stays" in pane(app, "leave").text()
        await pilot.press("escape")
        await pilot.pause()
        assert app.judging.is_on and app.main_screen is app.screen
        model.let()
        await until(pilot, lambda: not app.judging.is_on)
        await pilot.press(key)

    drive(audit, size, steps, code=0)
    assert faithfulness(audit) == {"q1": 1.0, "q2": 0.0, "q3": 0.0}


@SIZES
def test_q_and_enter_stop_judging_and_leave_with_what_is_done_in_the_file(audit, model, size):
    async def steps(app, pilot):
        await start(app, pilot, "j")
        model.let("q1")
        await until(pilot, lambda: app.judging.moment is not None and app.judging.moment.done == 1)
        await pilot.press("q")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: not app.is_running)

    drive(audit, size, steps, code=0)
    assert faithfulness(audit) == {"q1": 1.0, "q2": None, "q3": None}
    with AuditReader.open(audit) as reader:
        assert (reader.summary().behind, reader.summary().metrics["faithfulness"].n) == (0, 1)


def test_an_app_that_ends_otherwise_stops_judging_and_keeps_what_is_done(audit, model):
    async def steps(app, pilot):
        await start(app, pilot, "j")
        model.let("q1")
        await until(pilot, lambda: app.judging.moment is not None and app.judging.moment.done == 1)

    drive(audit, NARROW, steps)
    assert faithfulness(audit) == {"q1": 1.0, "q2": None, "q3": None}


# --- what may go wrong ---------------------------------------------------------------------------------------------


@SIZES
def test_a_failed_judgement_is_told_as_unscored(audit, size, monkeypatch):
    use(monkeypatch, Literal(failing=Failure(kind="server", message="HTTP 500")))

    async def steps(app, pilot):
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert status(app) == "judged: 1 query, 1 unscored. The figures are up to date."

    drive(audit, size, steps)
    assert faithfulness(audit)["q1"] is None


@SIZES
def test_an_error_while_judging_is_told_and_reviewing_goes_on(audit, model, size):
    async def steps(app, pilot):
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert "no reply for claims@1" in status(app)
        await pilot.press("1")
        assert status(app).startswith("saved: q1 agree")

    drive(audit, size, steps, source=source_of(audit, tape="none"))


def test_a_bug_while_judging_says_that_it_is_one(audit, model):
    def broken(bundle, to_plan):
        if not to_plan:
            raise ZeroDivisionError("by zero")
        return reviewing_judge(Streams(), bundle, "new", to_plan=True)

    async def steps(app, pilot):
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert status(app) == "this is a bug in ragaudit: ZeroDivisionError: by zero"

    sound = source_of(audit)
    drive(audit, NARROW, steps, source=Source(bundle=sound.bundle, judge=broken, lookup=sound.lookup))


def test_outside_text_in_an_error_is_text(audit, model):
    def refuse(summary):
        raise ConfigError("no [/bundle] here \x1b[31m, none at all. Name it.")

    sound = source_of(audit)
    refusal(audit, NARROW, "no [/bundle] here", Source(bundle=refuse, judge=sound.judge, lookup=sound.lookup))


@SIZES
def test_the_cursor_stays_on_a_query_that_judging_takes_out_of_the_queue_until_one_moves_on(audit, model, size):
    model.let()

    async def steps(app, pilot):
        await pilot.press("n")
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert (app.session.here, app.screen.view.judgement is not None) == ("q2", True)
        await pilot.press("2")
        assert (app.session.here, app.session.count) == ("q3", 2)
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert app.session.here == "q3"
        await pilot.press("p")
        assert (app.session.here, app.session.count) == ("q1", 1)
        assert app.session.reviews.of("q2").verdict == "disagree"

    drive(audit, size, steps, filter_text="is:unjudged")


def test_while_a_note_is_written_the_queue_does_not_move_under_it(audit, model):
    async def steps(app, pilot):
        await start(app, pilot, "j")
        await until(pilot, lambda: model.begun == 3)
        await pilot.press("a", "tab", *"mine")
        model.let()
        await until(pilot, lambda: app.judging.moment is not None and app.judging.moment.done == 3)
        app._look()
        await pilot.press("enter")
        await until(pilot, lambda: not app.judging.is_on)

    drive(audit, NARROW, steps, filter_text="is:unjudged")
    with Reviews.open(audit) as reviews:
        assert [(r.query_id, r.tags) for r, _, _ in reviews.every()] == [("q1", ("mine",))]


def test_an_audit_whose_judging_was_killed_is_brought_up_to_date_when_it_is_opened(audit, folder, model, tmp_path):
    model.let()
    other = audited_at_once(folder, tmp_path / "once.audit")
    with AuditUpdater.open(audit) as killed, AuditReader.open(other) as source:
        killed.replace([(source.query("q1"), source.judgement("q1"))], source.summary().judge)

    async def steps(app, pilot):
        await until(pilot, lambda: app.session.summary.behind == 0)
        await until(pilot, lambda: status(app) == "the figures are up to date")
        assert app.session.summary.metrics["faithfulness"].n == 1

    drive(audit, NARROW, steps)


def test_a_second_terminal_sees_what_the_first_one_judges(audit, model):
    model.let()

    async def steps(app, pilot):
        with Session.open(audit) as other:
            await start(app, pilot, "j")
            await until(pilot, lambda: not app.judging.is_on)
            assert other.refresh() and other.summary == app.session.summary
            assert other.reviews.apply(["q3"], Patch(note="both")) == 1

    drive(audit, NARROW, steps)
    with Reviews.open(audit) as reviews:
        assert reviews.of("q3").note == "both"


def test_hostile_names_are_shown_as_text(tmp_path, monkeypatch):
    use(monkeypatch, Literal())
    folder = judged_bundle(tmp_path / "b", trace("[/q]", "Free keys expire after 30 days.", ("c1",)))
    config = folder / "ragaudit.toml"
    config.write_text(config.read_text().replace("test/literal", "test/[bold]lit\\u202Eeral"))
    path = audited_without_judge(folder, tmp_path / "run.audit")

    async def steps(app, pilot):
        await pilot.press("o")
        await pilot.pause()
        await start(app, pilot)
        await until(pilot, lambda: not app.judging.is_on)
        assert "[bold]lit" in pane(app, "judging").title
        assert "\u202e" not in screen_text(app)

    drive(path, WIDE, steps)
