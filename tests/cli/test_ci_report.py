"""`report --format junit` and `github`: where each part goes, what is refused, and that a report never fails."""

from xml.etree import ElementTree

import pytest
from test_compare_commands import MORE, audit, gates, told


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(out, tag):
    root = ElementTree.fromstring(out)
    return [case.get("name") for case in root.iter("testcase") if case.find(tag) is not None]


def test_junit_goes_to_stdout_or_to_a_file_and_a_report_ends_with_0(here, capsys):
    audit(here / "run.audit", (1.0, 0.0, 1.0), leaking=("q02",))
    said = told(["report", "run.audit", "--format", "junit"], capsys)
    assert (names(said.out, "failure"), names(said.out, "skipped"), said.err) == (["q02"], ["q01"], "")
    quiet = told(["report", "run.audit", "--format", "junit", "-o", "j.xml"], capsys)
    assert (quiet.out, quiet.err) == ("", "Wrote j.xml.\n")
    assert (here / "j.xml").read_text() == said.out
    assert "secret" not in said.out
    assert "secret words" in told(["report", "run.audit", "--format", "junit", "--with-text"], capsys).out


def test_junit_holds_the_run_against_gates_that_lie_here_and_a_frozen_baseline(here, capsys):
    audit(here / "base.audit", (1.0, 0.0, 1.0), name="main")
    audit(here / "run.audit", (1.0, 0.0, 0.0), pipeline=MORE)
    gates(here, '"mrr@k" = 0.5')
    told(["baseline", "freeze", "base.audit"], capsys)
    said = told(["report", "run.audit", "--format", "junit", "--baseline", "main"], capsys)
    assert said.err == "Gates from ragaudit.toml.\n"
    assert names(said.out, "failure") == ["mrr@k.min", "q01", "q02"]
    kinds = [failure.get("type") for failure in ElementTree.fromstring(said.out).iter("failure")]
    assert kinds == ["gate", "gate", "newly_failing"]
    again = told(["report", "run.audit", "--format", "junit", "--baseline", "base.audit"], capsys)
    assert again.out == said.out


def test_github_annotates_on_stdout_and_writes_the_summary_only_where_it_is_told_to(here, capsys):
    audit(here / "run.audit", (1.0, 0.0))
    said = told(["report", "run.audit", "--format", "github"], capsys)
    assert said.out.startswith("::warning title=q01::FAIL at Rerank/pack; held against nothing")
    assert said.err == 'No step summary: name its file with -o "$GITHUB_STEP_SUMMARY".\n'
    assert sorted(path.name for path in here.iterdir()) == ["run.audit"]
    said = told(["report", "run.audit", "--format", "github", "-o", "s.md"], capsys)
    assert (here / "s.md").read_text().startswith("## RAG audit: run\n")
    told(["report", "run.audit", "--format", "github", "-o", "s.md"], capsys)
    assert (here / "s.md").read_text().count("## RAG audit") == 1


def test_the_summary_of_the_step_is_appended_to(here, monkeypatch, capsys):
    audit(here / "run.audit")
    (here / "step.md").write_text("of another tool\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "step.md"))
    told(["report", "run.audit", "--format", "github", "-o", str(here / "step.md")], capsys)
    assert (here / "step.md").read_text().startswith("of another tool\n## RAG audit: run\n")


def test_the_environment_alone_writes_nothing(here, monkeypatch, capsys):
    audit(here / "run.audit")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "step.md"))
    told(["report", "run.audit", "--format", "github"], capsys)
    assert not (here / "step.md").exists()


@pytest.mark.parametrize("form", ["junit", "github"])
def test_what_cannot_be_held_against_leaves_no_file(here, form, capsys):
    audit(here / "run.audit")
    arguments = ["report", "run.audit", "--format", form, "-o", "out"]
    assert "no baseline of that name" in told([*arguments, "--baseline", "nope"], capsys, code=3).err
    gates(here, '"recal@k" = 0.8')
    assert "Did you mean 'recall@k'?" in told(arguments, capsys, code=2).err
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "json", "--baseline", "main"], "--baseline is for every format but json"),
        (["--format", "json", "--config", "x.toml"], "--config is for --format junit and github"),
        (["--format", "junit", "--templates", "."], "--templates and --one-page are for"),
    ],
)
def test_options_of_another_format_are_refused(here, options, message, capsys):
    audit(here / "run.audit")
    assert message in told(["report", "run.audit", *options], capsys, code=2).err
