import pytest
from cli_builders import result, write_audit
from test_compare_commands import BASE, MORE, TWO, audit, here, told  # noqa: F401 - here is a fixture


@pytest.mark.parametrize(("options", "title"), [([], "RAG audit: "), (["--one-page"], "RAG audit, one page: ")])
def test_html_is_one_document(here, capsys, options, title):  # noqa: F811
    write_audit(here / "run.audit")
    said = told(["report", "run.audit", "--format", "html", *options], capsys).out
    assert said.startswith("<!DOCTYPE html>\n") and said.endswith("</html>\n")
    assert f"<title>{title}support-kb</title>" in said


def test_one_page_of_markdown_is_shorter_than_the_whole(here, capsys):  # noqa: F811
    write_audit(here / "run.audit")
    page = told(["report", "run.audit", "--one-page"], capsys).out
    assert page.startswith("# RAG audit on one page: support-kb\n")
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## What to do next",
        "## Losses by stage",
        "## Metrics at K = 2",
        "## Not decided",
    ]


@pytest.mark.parametrize("form", ["md", "html"])
def test_texts_come_on_request_and_never_those_that_the_user_may_not_read(here, capsys, form):  # noqa: F811
    write_audit(here / "run.audit", [result("q1", gold_id="c9", leaks=("c7",))])
    without = told(["report", "run.audit", "--format", form], capsys).out
    assert "refund window?" not in without and "30 days" not in without
    with_text = told(["report", "run.audit", "--format", form, "--with-text"], capsys).out
    assert "refund window?" in with_text and "salary bands" not in with_text
    assert "30 days" in with_text


@pytest.mark.parametrize("form", ["md", "html"])
def test_before_and_after_are_those_of_compare(here, capsys, form):  # noqa: F811
    audit(here / "base.audit", (0.0,) * 12)
    audit(here / "cand.audit", (1.0,) * 12, pipeline=MORE)
    said = told(["report", "cand.audit", "--baseline", "base.audit", "--format", form], capsys).out
    assert "BETTER: Recall +1.000" in said and "rerank.top_n 8 -" in said
    page = told(["report", "cand.audit", "--baseline", "base.audit", "--format", form, "--one-page"], capsys).out
    assert "BETTER: Recall +1.000" in page


@pytest.mark.parametrize("form", ["md", "html"])
def test_a_refused_comparison_is_in_the_report_and_in_the_exit_code(here, capsys, form):  # noqa: F811
    audit(here / "base.audit")
    audit(here / "cand.audit", pipeline=TWO)
    said = told(["report", "cand.audit", "--baseline", "base.audit", "--format", form, "-o", "out"], capsys, code=3)
    assert "2 pipeline variables changed" in said.err
    report = (here / "out").read_text()
    assert "Not compared with run" in report and "2 pipeline variables changed" in report
    assert "BETTER" not in report and "WORSE" not in report


def test_an_exception_is_named_by_hand_and_stays_visible(here, capsys):  # noqa: F811
    audit(here / "base.audit")
    audit(here / "cand.audit", pipeline=TWO)
    said = told(["report", "cand.audit", "--baseline", "base.audit", "--allow", "fusion.k"], capsys).out
    assert "`pipeline.fusion.k 60 -> 30 (allowed by --allow)`" in said


def test_an_exception_that_names_nothing_is_said_so(here, capsys):  # noqa: F811
    audit(here / "base.audit")
    audit(here / "cand.audit", pipeline=MORE)
    said = told(["report", "cand.audit", "--baseline", "base.audit", "--allow", "fusion.k"], capsys)
    assert "--allow fusion.k: nothing of that name differs." in said.err


def test_a_baseline_that_is_not_there_writes_nothing(here, capsys):  # noqa: F811
    audit(here / "cand.audit", pipeline=BASE)
    said = told(["report", "cand.audit", "--baseline", "absent", "-o", "out"], capsys, code=3)
    assert "absent: no such audit file and no baseline of that name" in said.err
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--json", "--one-page"], "--templates and --one-page are for --format md and html."),
        (["--json", "--baseline", "x"], "--baseline is for every format but json"),
        (["--allow", "x"], "--allow is for --baseline."),
    ],
)
def test_options_that_do_not_belong_together_are_refused(here, capsys, options, message):  # noqa: F811
    write_audit(here / "run.audit")
    assert message in told(["report", "run.audit", *options], capsys, code=2).err
