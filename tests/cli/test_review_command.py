"""`ragaudit review` where there is no terminal: what it prints, writes and refuses; and when it starts the app."""

import io
import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cli_builders import stand_in, write_audit

from ragaudit.cli.commands import review
from ragaudit.cli.main import execute
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.report.export import ExportFormat
from ragaudit.store import Reviews


@pytest.fixture
def audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_audit(tmp_path / "run.audit")
    return "run.audit"


def told(arguments, capsys, code=0):
    assert execute(arguments) == code
    return capsys.readouterr()


def say(query_id, **fields):
    with Reviews.open(Path("run.audit")) as reviews:
        reviews.apply([query_id], Patch(**fields))


class Typed(io.StringIO):
    """What somebody types, or pipes."""

    def __init__(self, text, terminal=False):
        super().__init__(text)
        self.terminal = terminal

    def isatty(self):
        return self.terminal


# --- without a terminal ----------------------------------------------------------------------------------------------


def test_in_a_pipe_the_query_is_printed_once_and_the_way_on_is_said(audit, capsys):
    said = told(["review", audit, "--query", "q2"], capsys)
    assert said.out.startswith("2 of 2, filter none, 0 reviewed\n\nX q2   FAIL at Rerank/pack\n")
    assert said.err == (
        "No terminal here, so the app was not started. ragaudit review run.audit --plain steps through the queries; "
        "ragaudit report run.audit writes the report.\n"
    )


@pytest.mark.parametrize(
    ("stdin", "stdout", "starts"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_the_app_starts_only_where_both_ends_are_a_terminal(audit, monkeypatch, capsys, stdin, stdout, starts):
    started = []
    monkeypatch.setattr(review, "run_app", lambda *given, **options: started.append((given, options)) or 0)
    monkeypatch.setattr(sys, "stdin", Typed("", stdin))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: stdout, raising=False)
    assert execute(["review", audit, "--filter", "is:failing"]) == 0
    assert bool(started) is starts
    assert ("X q1" in capsys.readouterr().out) is not starts


def test_plain_reads_lines_from_a_pipe_and_saves(audit, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Typed("1\n2 too short\nq\n"))
    said = told(["review", audit, "--plain"], capsys)
    assert "saved: q1 agree. 1 reviewed\n" in said.out
    assert "saved: q2 disagree. 2 reviewed\n" in said.out
    assert said.err == ""
    with Reviews.open(Path(audit)) as reviews:
        assert reviews.of("q2").note == "too short"


def test_plain_stops_at_what_a_pipe_cannot_do(audit, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Typed("g q9\n1\n"))
    said = told(["review", audit, "--plain"], capsys, code=2)
    assert said.err == "ragaudit: no query 'q9' in this audit. f WORD looks for one.\n"
    assert "saved" not in said.out


def test_plain_goes_on_where_a_person_types(audit, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Typed("g q9\n1\n", terminal=True))
    said = told(["review", audit, "--plain"], capsys)
    assert "no query 'q9' in this audit. f WORD looks for one.\nsaved" not in said.err
    assert "no query 'q9'" in said.out and "saved: q1 agree. 1 reviewed" in said.out
    assert said.err.startswith("1 agree, 2 disagree")


# --- export ----------------------------------------------------------------------------------------------------------


def test_the_formats_of_the_command_are_those_there_are():
    assert list(review.FORMATS) == [form.value for form in ExportFormat]


def test_an_export_takes_its_format_from_the_name_and_the_queries_from_the_filter(audit, tmp_path, capsys):
    say("q2", verdict=ReviewVerdict.AGREE)
    said = told(["review", audit, "--export", "x.labels.jsonl"], capsys)
    assert (said.out, said.err) == ("", "Wrote x.labels.jsonl: 1 query as labels.\n")
    assert json.loads((tmp_path / "x.labels.jsonl").read_text())["query_id"] == "q2"
    told(["review", audit, "--export", "x.html", "--filter", "is:unreviewed"], capsys)
    page = (tmp_path / "x.html").read_text()
    assert "<code>q1</code>" in page and "<code>q2</code>" not in page
    assert "filter is:unreviewed" in page
    told(["review", audit, "--export", "one.txt", "--as", "markdown", "--query", "q1", "--with-text"], capsys)
    assert "refund window?" in (tmp_path / "one.txt").read_text()


def test_an_export_to_stdout_is_data_alone(audit, capsys):
    said = told(["review", audit, "--export", "-", "--as", "jsonl"], capsys)
    assert [json.loads(line)["query_id"] for line in said.out.splitlines()] == ["q1", "q2"]
    assert said.err == ""


def test_a_file_that_is_there_is_kept_unless_replaced(audit, tmp_path, capsys):
    (tmp_path / "x.md").write_text("mine")
    said = told(["review", audit, "--export", "x.md"], capsys, code=2)
    assert said.err == "ragaudit: x.md: exists. Pass --replace to write over it, or choose another name.\n"
    assert (tmp_path / "x.md").read_text() == "mine"
    told(["review", audit, "--export", "x.md", "--replace"], capsys)
    assert (tmp_path / "x.md").read_text().startswith("# Diagnosis: ")


def test_an_audit_that_may_not_be_written_can_be_exported(audit, tmp_path, capsys):
    (tmp_path / audit).chmod(0o444)
    told(["review", audit, "--export", "-", "--as", "labels"], capsys)
    told(["review", audit, "--agreement"], capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--export", "x.txt"], "x.txt: its end names no format."),
        (["--export", "-"], "--export -: say --as"),
        (["--export", "x.md", "--query", "q9"], "no query 'q9' there"),
        (["--export", "x.md", "--filter", "stage:nowhere"], "filter: 'nowhere' is not a stage"),
        (["--export", "x.md", "--plain"], "choose one"),
        (["--plain", "--serve"], "choose one"),
        (["--json"], "--json goes with --agreement"),
        (["--with-text"], "go with --export FILE"),
        (["--as", "html"], "go with --export FILE"),
        (["--filter", "stage:nowhere"], "filter: 'nowhere' is not a stage"),
        (["--serve", "--query", "q9"], "no query 'q9' there"),
        (["--serve", "--theme", "drak"], "--theme: 'drak' is no theme."),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(audit, tmp_path, capsys, arguments, message):
    said = told(["review", audit, *arguments], capsys, code=2)
    assert (said.out, message in said.err) == ("", True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.audit"]


# --- agreement -------------------------------------------------------------------------------------------------------


def test_agreement_is_printed_with_what_it_leaves_out(audit, capsys):
    say("q1", verdict=ReviewVerdict.AGREE)
    say("q2", verdict=ReviewVerdict.UNSURE)
    assert told(["review", audit, "--agreement"], capsys).out == (
        "-- The diagnosis and the person who reviewed it --------------------------------\n"
        "  agree                  1.000  [0.207, 1.000]   n 1   1 of 1\n"
        "  kappa of the stage         -  both sides gave one and the same label throughout\n"
        "  left out of both: 1 unsure\n"
        "  small sample: fewer than 30 verdicts. Nothing rests on these figures yet.\n"
    )


def test_agreement_as_json(audit, capsys):
    say("q1", verdict=ReviewVerdict.DISAGREE)
    found = json.loads(told(["review", audit, "--agreement", "--json"], capsys).out)
    assert (found["rate"]["value"], found["disagreed"], found["without_stage"], found["small"]) == (0.0, 1, 1, True)
    assert found["kappa"] == {"value": None, "low": None, "high": None, "n": 0, "reason": "nothing was compared"}


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.fixture
def app(monkeypatch):
    """What the app was started with."""
    started = []
    monkeypatch.setattr("ragaudit.tui.app.run", lambda path, **options: started.append(options) or 0)
    monkeypatch.setattr(review, "at_a_terminal", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return started


def test_the_tui_table_of_the_folder_is_read(audit, tmp_path, app, monkeypatch, capsys):
    (tmp_path / "ragaudit.toml").write_text('[tui]\ntheme = "nord"\nkeymap = { "review.agree" = "A" }\n')
    monkeypatch.setenv("NO_COLOR", "1")
    told(["review", audit], capsys)
    assert (app[0]["settings"].theme, app[0]["settings"].keymap) == ("nord", {"review.agree": "A"})
    assert (app[0]["place"], app[0]["no_color"]) == ("ragaudit.toml", True)


def test_another_file_and_a_theme_of_the_command_line_win(audit, tmp_path, app, capsys):
    (tmp_path / "ragaudit.toml").write_text('[tui]\ntheme = "nord"\n')
    (tmp_path / "mine.toml").write_text("[tui.keymap]\nreview.agree = 'A'\n")
    told(["review", audit, "--config", "mine.toml", "--theme", "dracula"], capsys)
    assert (app[0]["settings"].theme, app[0]["settings"].keymap) == ("dracula", {"review.agree": "A"})
    assert (app[0]["place"], app[0]["no_color"]) == ("--theme", False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tui]\ncolour = "red"\n', "ragaudit.toml:2: unknown key 'tui.colour'. Known here: theme, keymap."),
        ("[tui]\nkeymap = 3\n", "ragaudit.toml:2: tui.keymap: must be a table, not 3."),
        (
            "[tui.keymap]\n'review.agree' = 1\n",
            "ragaudit.toml:2: tui.keymap.review.agree: must be a text, not 1.",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_what_to_do(audit, tmp_path, app, capsys, text, message):
    (tmp_path / "ragaudit.toml").write_text(text)
    assert message in told(["review", audit], capsys, code=2).err
    assert app == []


# --- the demo --------------------------------------------------------------------------------------------------------


def test_the_demo_opens_the_app_on_a_terminal_and_says_where_the_audit_is(tmp_path, monkeypatch, capsys):
    stand_in(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    demo = import_module("ragaudit.cli.commands.demo")
    opened = []
    monkeypatch.setattr(demo, "at_a_terminal", lambda: True)
    monkeypatch.setattr(demo, "run_app", lambda path, source: opened.append(path) or 0)
    said = told(["demo"], capsys)
    assert [path.name for path in opened] == ["demo.audit"]
    assert said.out == ""
    assert f"ragaudit review {opened[0]}" in said.err


@pytest.mark.parametrize("option", ["--no-review", "--report", "--json"])
def test_the_demo_can_be_told_to_print_on_a_terminal(tmp_path, monkeypatch, capsys, option):
    stand_in(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    demo = import_module("ragaudit.cli.commands.demo")
    monkeypatch.setattr(demo, "at_a_terminal", lambda: True)
    monkeypatch.setattr(demo, "run_app", lambda path: pytest.fail("the app was started"))
    assert told(["demo", option], capsys).out != ""
