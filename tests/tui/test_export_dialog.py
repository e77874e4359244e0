"""The export dialog: what it offers, what it refuses, and that what it writes is there."""

import json
from pathlib import Path

import pytest
from textual.widgets import Input

from ragaudit.errors import AuditFileError
from ragaudit.model.review import Patch
from ragaudit.report.export import ExportFormat
from ragaudit.store import Reviews
from ragaudit.tui.exporting import ExportRequest, Stopped, selections, write
from ragaudit.tui.screens.export import ExportDialog
from ragaudit.tui.session import Session
from tests.tui import builders
from tests.tui.builders import inventory, lost_at_pack, passed
from tests.tui.conftest import NARROW, WIDE, drive, pane, screen_text, status

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])


@pytest.fixture
def audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [lost_at_pack("q/1 [x]"), passed("q2"), lost_at_pack("q3", text="second refund?")]
    return builders.write(tmp_path / "run.audit", rows, inventory({"c9": "within 30 days"}))


def name(app):
    return app.screen.query_one("#to", Input).value


def hint(app):
    return pane(app, "hint").text()


async def written(app, pilot):
    await app.workers.wait_for_complete()
    await pilot.pause()


@SIZES
def test_e_and_enter_write_the_query_as_markdown_without_text(audit, size):
    async def steps(app, pilot):
        await pilot.press("e")
        assert isinstance(app.screen, ExportDialog)
        assert name(app) == "q-1-x.md"
        await pilot.press("enter")
        await written(app, pilot)
        assert status(app) == "wrote q-1-x.md: 1 query as markdown"
        text = Path("q-1-x.md").read_text()
        assert "FAIL at Rerank/pack" in text and "30 days" not in text
        assert sorted(path.name for path in Path().iterdir()) == ["q-1-x.md", "run.audit"]

    drive(audit, size, steps)


@SIZES
def test_every_choice_is_marked_in_words_and_changes_the_name(audit, size):
    async def steps(app, pilot):
        await pilot.press("e")
        assert "(x) this query   ( ) the queue: 2   ( ) all: 3" in screen_text(app)
        assert "(x) markdown   ( ) html   ( ) jsonl   ( ) qrels   ( ) labels" in screen_text(app)
        assert "[ ] texts too" in screen_text(app)
        assert "> what" in screen_text(app) and "> as" not in screen_text(app)
        await pilot.press("tab", "right")
        assert "> as" in screen_text(app) and "> what" not in screen_text(app)
        assert (name(app), hint(app).splitlines()[0]) == ("q-1-x.html", "html: the same, one file for a browser")
        await pilot.press("right", "right", "shift+tab", "right")
        assert name(app) == "run-queue.qrels"
        await pilot.press("right", "tab", "right", "tab", "tab", "space")
        assert name(app) == "run.labels.jsonl"
        assert "( ) this query   ( ) the queue: 2   (x) all: 3" in screen_text(app)
        assert "[x] texts too" in screen_text(app)

    drive(audit, size, steps)


def test_the_queue_is_what_the_filter_shows(audit):
    async def steps(app, pilot):
        app.session.narrow("second")
        await pilot.press("e", "right", "tab", "right", "right", "tab", "tab", "space", "enter")
        await written(app, pilot)
        assert status(app) == "wrote run-queue.jsonl: 1 query as jsonl with texts"
        (row,) = map(json.loads, Path("run-queue.jsonl").read_text().splitlines())
        assert (row["query_id"], row["query_text"], row["texts"][0]["text"]) == (
            "q3",
            "second refund?",
            "within 30 days",
        )

    drive(audit, NARROW, steps)


def test_marked_queries_are_the_queue_of_their_filter(audit):
    async def steps(app, pilot):
        app.session.mark(["q2"])
        await pilot.press("e", "right", "tab", "right", "right", "enter")
        await written(app, pilot)
        (row,) = map(json.loads, Path("run-queue.jsonl").read_text().splitlines())
        assert row["query_id"] == "q2"

    drive(audit, NARROW, steps)


def test_a_file_that_is_there_is_named_and_only_a_second_enter_writes_over_it(audit):
    Path("q-1-x.md").write_text("before")

    async def steps(app, pilot):
        await pilot.press("e", "enter")
        assert isinstance(app.screen, ExportDialog)
        assert hint(app).startswith("q-1-x.md is there already: enter again writes over it")
        assert Path("q-1-x.md").read_text() == "before"
        await pilot.press("enter")
        await written(app, pilot)
        assert Path("q-1-x.md").read_text().startswith("# Diagnosis: run")

    drive(audit, NARROW, steps)


def test_another_name_is_asked_about_anew_and_keeps_its_stem_when_the_format_changes(audit):
    Path("q-1-x.md").write_text("before")
    Path("mine.md").write_text("mine")

    async def steps(app, pilot):
        await pilot.press("e", "enter", "tab", "tab", "ctrl+u", *"mine.md", "enter")
        assert hint(app).startswith("mine.md is there already")
        await pilot.press("shift+tab", "right")
        assert name(app) == "mine.html"
        await pilot.press("enter")
        await written(app, pilot)
        assert status(app) == "wrote mine.html: 1 query as html"
        assert (Path("mine.md").read_text(), Path("q-1-x.md").read_text()) == ("mine", "before")

    drive(audit, NARROW, steps)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Write the name of a file."),
        ("here/x.md", "here: no such folder."),
        ("there", "there is a folder. Write the name of a file in it."),
    ],
)
def test_a_name_that_cannot_be_is_said_in_the_dialog(audit, typed, said):
    Path("there").mkdir()

    async def steps(app, pilot):
        await pilot.press("e", "tab", "tab", "ctrl+u", *typed, "enter")
        assert isinstance(app.screen, ExportDialog)
        assert hint(app).splitlines()[0] == said

    drive(audit, NARROW, steps)


def test_escape_writes_nothing(audit):
    async def steps(app, pilot):
        await pilot.press("e", "escape")
        assert not isinstance(app.screen, ExportDialog)
        assert [path.name for path in Path().iterdir()] == ["run.audit"]

    drive(audit, NARROW, steps)


def test_what_goes_wrong_while_writing_is_in_the_status_line(audit, monkeypatch):
    def fails(path, wanted, progress):
        raise AuditFileError(f"{path}: damaged. Run `ragaudit audit BUNDLE` again.")

    monkeypatch.setattr("ragaudit.tui.exporting.write", fails)

    async def steps(app, pilot):
        await pilot.press("e", "enter")
        await written(app, pilot)
        assert status(app).endswith("run.audit: damaged. Run `ragaudit audit BUNDLE` again.")

    drive(audit, WIDE, steps)


def test_with_an_empty_queue_there_is_everything_to_export(audit):
    async def steps(app, pilot):
        app.session.narrow("nothing-like-this")
        await pilot.press("e")
        assert "(x) the queue: 0   ( ) all: 3" in screen_text(app)

    drive(audit, NARROW, steps)


def test_the_reviews_are_in_the_file_and_an_export_may_be_stopped(audit):
    with Session.open(audit) as session:
        session.reviews.apply(["q3"], Patch(note="seen"))
        everything = selections(session, None)["all"][1]

    def stop(n):
        raise Stopped

    with pytest.raises(Stopped):
        write(audit, ExportRequest(Path("x.md"), ExportFormat.MARKDOWN, everything), stop)
    assert not Path("x.md").exists() and not list(Path().glob(".*partial"))
    said = write(audit, ExportRequest(Path("x.labels.jsonl"), ExportFormat.LABELS, everything), lambda n: None)
    assert said == "wrote x.labels.jsonl: 1 query as labels"


def test_the_audit_may_be_written_while_it_is_exported(audit):
    with Session.open(audit) as session:
        everything = selections(session, None)["all"][1]

    def between(n):
        with Reviews.open(audit) as reviews:
            reviews.apply(["q2"], Patch(note="seen"))

    assert write(audit, ExportRequest(Path("x.jsonl"), ExportFormat.JSONL, everything), between).startswith(
        "wrote x.jsonl: 3"
    )
