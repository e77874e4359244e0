import re
from pathlib import Path

import pytest
from report_builders import (
    CAUSES,
    HOSTILE,
    RESULTS,
    STAGE_NOTES,
    failing,
    gold,
    leaking,
    quiet_summary,
    result,
    summary,
    undecided,
)

from ragaudit.errors import ConfigError
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.result import AclNote, Leak, SliceResult
from ragaudit.report.collect import collect
from ragaudit.report.markdown import markdown
from ragaudit.report.view import view

GOLDEN = Path(__file__).parent / "golden_report.md"


def written(run=None, results=RESULTS, **options):
    return markdown(run or summary(), results, CAUSES, STAGE_NOTES, **options)


def section(text, title):
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_report_is_the_golden_one_byte_for_byte():
    assert written().encode() == GOLDEN.read_bytes()


def test_a_leak_stands_above_the_verdict():
    assert written().index("LEAK: 1 chunk") < written().index("3 of 6 queries fail")


def test_a_clean_run_has_no_alarming_section():
    text = written(quiet_summary(), [])
    assert text.splitlines()[2].startswith("None of 6 queries fails. Recall at K = 8")
    for title in ("Security finding", "Not decided", "Failing queries", "One diagnosis", "Labels in doubt"):
        assert f"## {title}" not in text
    assert "No query was lost at generation or passed as unanswerable." in section(text, "Not retrieval")
    assert "All gold was readable" in section(text, "Access rules")


def test_no_query_text_unless_asked_for():
    results = [failing(), leaking(), undecided()]
    assert "refund window?" not in written(results=results)
    shown = written(results=results, with_text=True)
    assert "| `q1` refund window? |" in shown
    assert "Query: refund window?" in shown


def test_the_failure_table_is_capped_and_counts_the_rest():
    text = section(written(results=[failing(f"q{n}") for n in range(205)]), "Failing queries")
    assert len(re.findall(r"^\| `q", text, flags=re.MULTILINE)) == 200
    assert "and 5 more of 205 queries" in text
    assert "and 203 more" in written(results=[failing(f"q{n}") for n in range(205)], max_rows=2)


def test_the_worked_diagnosis_is_of_the_stage_that_loses_most():
    run = summary(stages={"fuse": 1, "rerank": 3})
    fused = failing("q8", gold=(gold(stage=Stage.FUSE),)).model_copy(
        update={"diagnosis": failing("q8").diagnosis.model_copy(update={"stage": Stage.FUSE})}
    )
    text = section(written(run, [leaking(), fused, failing("q9"), failing("q10")]), "One diagnosis, worked")
    assert text.strip().startswith("`q9`: **FAIL at Rerank/pack**")


def test_fields_to_log_are_counted_over_all_undecided_queries():
    other = result("q3", Outcome.UNDETERMINED, Stage.UNDETERMINED, log=("fused",), could_be=(Stage.FUSE,))
    text = section(written(results=[undecided(), other]), "Not decided, and what to log")
    assert text.index("| fused | 2 |") < text.index("| after_filter | 1 |")


def test_nothing_suggests_wider_access():
    text = written(summary(acl=AclNote(excluded_gold=9, queries_without_eligible_gold=3)))
    assert "9 gold ids are outside what the query's user may read" in text
    assert not re.search(r"(?i)grant|widen|open up|relax|remove the (filter|acl)|switch(ed)? off", text)


def test_hostile_text_shows_inert_everywhere():
    run = summary(
        run=summary().run.model_copy(update={"name": HOSTILE, "pipeline": {HOSTILE: HOSTILE, "```": "\n```\n# x"}}),
        acl=AclNote(leaks=(Leak(query_id=HOSTILE, chunk_id=HOSTILE),)),
        slices=(SliceResult(slice=HOSTILE, value=HOSTILE, n=1, metrics=summary().metrics, stages={}),),
        not_retrieval=(HOSTILE,),
        set_aside=(HOSTILE,),
        undetermined={HOSTILE: 1},
    )
    results = [
        leaking(HOSTILE, HOSTILE, text=HOSTILE),
        failing(HOSTILE, text=HOSTILE, evidence=(HOSTILE,), causes=(HOSTILE,), gold=(gold(HOSTILE, grade=2),)),
        undecided(HOSTILE, text=HOSTILE, log=(HOSTILE,)),
        result(HOSTILE, Outcome.LABEL_ISSUE, Stage.NONE),
    ]
    text = written(run, results, with_text=True)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
    assert "<U+001B>" in text.replace("&lt;", "<")
    prose = re.sub(r"`[^`\n]*`", "", text[: text.index("```json")])
    assert "<script" not in prose
    assert not re.search(r"(?<!\\)\[click", prose)
    assert [line for line in text.splitlines() if line.startswith("# ")] == [text.splitlines()[0]]
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table
    fence = re.search(r"^(`{3,})json$", text, flags=re.MULTILINE)[1]
    fenced = text[text.index(f"{fence}json\n") :]
    assert fenced.count(f"\n{fence}\n") == 1 and fenced.endswith(f"\n{fence}\n")


def test_a_template_of_the_user_replaces_ours(tmp_path):
    (tmp_path / "report.md.jinja").write_text("{{ run.name }}: {{ n_failing }}\n{{ leaks[0].chunk_id }}")
    run = summary(acl=AclNote(leaks=(Leak(query_id="q", chunk_id="<b>|"),)))
    assert written(run, templates=tmp_path) == "support-kb: 3 queries\n&lt;b>\\|"


def test_a_folder_without_a_template_falls_back_to_ours(tmp_path):
    assert written(templates=tmp_path) == written()


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{% if %}", r"report\.md\.jinja:1: "),
        ("{{ run.__class__.__mro__ }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% include 'absent' %}", "absent"),
    ],
)
def test_a_template_that_does_not_work_is_a_configuration_error(tmp_path, template, message):
    (tmp_path / "report.md.jinja").write_text(template)
    with pytest.raises(ConfigError, match=message):
        written(templates=tmp_path)


def test_a_missing_template_folder_is_named(tmp_path):
    with pytest.raises(ConfigError, match="absent: no such folder"):
        written(templates=tmp_path / "absent")


def test_every_name_that_a_template_may_print_is_in_the_documentation(repository):
    names = view(summary(), collect(summary(), RESULTS), CAUSES, STAGE_NOTES)
    text = (repository / "docs" / "report.md").read_text()
    assert [name for name in names if f"`{name}`" not in text] == []
