"""Annotations and step summary: the worst first, capped with a count, and no trace can give the runner a command."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_builders import HOSTILE, RESULTS, failing, leaking, quiet_summary, result, summary, undecided

from ragaudit.compare.bar import NOTHING, bar
from ragaudit.compare.gates import rules
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.report.github import SUMMARY_BYTES, annotations, standings, step_summary
from tests.compare.compare_builders import query as frozen
from tests.compare.compare_builders import run as frozen_run

PASSED = result("q5", Outcome.PASS, Stage.NONE)


def told(results, against=NOTHING, most=200):
    return annotations(standings(results, against, most=most), against)


def page(results, against=NOTHING, most=200, run=None, **options):
    return step_summary(run or summary(), standings(results, against, most=most), against, **options)


def recalls(query_id, recall, **fields):
    return failing(query_id, metrics={"recall@k": recall, "mrr@k": recall}, **fields)


def commands(output):
    """What the runner takes for commands: a trimmed line that begins with `::`, at any line end that it knows."""
    lines = [line.strip() for line in re.split(r"[\r\n]", output)]
    found = [re.match(r"::([^: ]+)(?: ([^:]*))?::(.*)", line) for line in lines if line]
    assert all(found), output
    return [(each[1], each[2], each[3]) for each in found]


# --- annotations ------------------------------------------------------------------------------------------------------


def test_leaks_are_errors_and_what_nothing_holds_is_a_warning_with_the_least_recall_first():
    assert told((PASSED, recalls("half", 0.5), recalls("none", 0.0), leaking())) == (
        "::error title=q0::LEAK: the user may not read what stood in the context: hr#9. Restore the access filter "
        "first. hr#9: its ACL is hr, the user holds support\n"
        "::warning title=none::FAIL at Rerank/pack; held against nothing: write [gates], or pass --baseline. "
        "c9: rank 3 in dense, 2 in fused, 14 after rerank, top_n 8\n"
        "::warning title=half::FAIL at Rerank/pack; held against nothing: write [gates], or pass --baseline. "
        "c9: rank 3 in dense, 2 in fused, 14 after rerank, top_n 8\n"
    )


def test_errors_are_leaks_then_gates_then_what_newly_fails_then_what_makes_a_gate_fire():
    before = [frozen("new"), frozen("old", recall=0.0, stage=Stage.RERANK), frozen("leaky"), frozen("known")]
    now = [
        frozen("new", recall=0.5, stage=Stage.RERANK),
        frozen("old", recall=0.0, stage=Stage.RERANK),
        frozen("leaky", stage=Stage.FILTER, leaks=("hr#9",)),
        frozen("known", recall=1.0),
    ]
    against = bar(frozen_run(now), rules({"recall@k": 0.9}, "ragaudit.toml"), frozen_run(before, name="main"))
    results = (leaking("leaky"), failing("new"), failing("old"), result("known", Outcome.PASS, Stage.NONE))
    found = commands(told(results, against))
    assert [(level, title) for level, title, _ in found] == [
        ("error", "title=leaky"),
        ("error", "title=Gate recall@k.min"),
        ("error", "title=new"),
        ("error", "title=old"),
        ("warning", "title=Compared with the baseline"),
    ]
    assert found[0][2].startswith("LEAK, new since the baseline: ")
    assert found[2][2].startswith("FAIL at Rerank/pack; pass in the baseline. ")
    assert found[3][2].startswith("FAIL at Rerank/pack; makes a gate fire: recall@k.min: mean at least 0.9; it is 0.6")
    assert found[4][2] == "1 queries leak, and no gate looks at leaks: write leaks = 0 under [gates]"


def test_ten_of_a_kind_at_most_and_the_last_one_counts_the_rest():
    found = commands(told([recalls(f"q{n:02}", n / 100) for n in range(45)]))
    assert [title for _, title, _ in found[:9]] == [f"title=q{n:02}" for n in range(9)]
    assert found[9:] == [("warning", "title=ragaudit", "and 36 more, in the step summary and the audit file")]
    exactly = commands(told([recalls(f"q{n}", n / 100) for n in range(10)]))
    assert [title for _, title, _ in exactly] == [f"title=q{n}" for n in range(10)]


def test_a_query_without_recall_is_not_worse_than_one_with_none():
    unknown = failing("unknown", metrics={})
    assert [title for _, title, _ in commands(told((unknown, recalls("none", 0.0), recalls("most", 0.9))))] == [
        "title=none",
        "title=most",
        "title=unknown",
    ]


def test_a_run_in_which_nothing_fails_has_no_annotation():
    assert told((PASSED,)) == ""


def test_with_gates_that_hold_a_failing_query_is_no_annotation():
    against = bar(frozen_run([frozen("q1", recall=0.9, stage=Stage.RERANK)]), rules({"recall@k": 0.5}, "t"))
    assert told((failing(),), against) == ""


# --- a trace is no command --------------------------------------------------------------------------------------------

INJECTIONS = [
    "q\n::set-output name=x::y",
    "q\r::add-mask::secret",
    "q\r\n::stop-commands::token",
    "::error::mine",
    "q,file=app.py,line=1",
    "q::",
    "q%0A::add-path::/evil",
    "q%",
    "q\u2028::set-env name=PATH::x",
    "q\x85::warning::x",
    "q\x0b::debug::x",
    "##[set-output name=x;]y",
    HOSTILE,
]


@pytest.mark.parametrize("written", INJECTIONS)
def test_no_id_or_evidence_is_a_workflow_command(written):
    output = told((leaking(written, written), failing(f"x{written}", evidence=(written,))))
    found = commands(output)
    assert [level for level, _, _ in found] == ["error", "warning"]
    assert all(len(re.findall("[:,]", properties)) == 0 for _, properties, _ in found)
    assert not re.search(r"%(?!25|3A|2C)", output)
    assert all(line.startswith("::") for line in output.splitlines())


def test_what_acts_in_a_command_is_escaped_as_the_runner_reads_it():
    (found,) = commands(told((failing("a:b,c%d", evidence=("100%: a, b",)),)))
    assert found[1] == "title=a%3Ab%2Cc%25d"
    assert found[2].endswith(". 100%25: a, b")


@settings(max_examples=100)
@given(st.text(alphabet=":%,\r\n\t set-output#[]\u2028\x85"), st.text())
def test_no_text_adds_a_command(query_id, evidence):
    assert [level for level, _, _ in commands(told((failing(query_id, evidence=(evidence,)),)))] == ["warning"]


def test_long_ids_and_evidence_are_cut_in_annotations():
    (found,) = commands(told((failing("q" * 5_000, evidence=("e" * 5_000,)),)))
    assert found[1].endswith("... (4%2C880 more characters)")
    assert len(found[2]) < 440


# --- the step summary -------------------------------------------------------------------------------------------------


def test_the_summary_says_the_leak_then_the_verdict_then_what_was_held():
    shown = page((PASSED, leaking(), failing(), undecided())).splitlines()
    assert shown[0] == "## RAG audit: support-kb"
    assert shown[2].startswith("**LEAK: 1 chunk that the user may not read stood in the final context of 1 query (q0).")
    assert shown[4].startswith("3 of 6 queries fail (50%); ")
    assert shown[6].startswith("Held against nothing: no \\[gates\\] are written and no baseline was given. ")
    assert (
        "| `q0` | LEAK: the user may not read what stood in the context: hr#9. Restore the access filter first. | "
        "hr#9: its ACL is hr, the user holds support |"
    ) in shown
    assert "| `q1` | Rerank/pack | c9: rank 3 in dense, 2 in fused, 14 after rerank, top_n 8 |" in shown


def test_the_summary_lists_gates_with_the_fired_ones_first():
    now = [frozen("q1", recall=0.0, stage=Stage.RERANK), frozen("q5")]
    gates = {"leaks": 0, "recall@k": 0.8, "mrr@k": {"max_drop": 0.1}}
    shown = page((failing(), PASSED), bar(frozen_run(now), rules(gates, "t")), run=quiet_summary())
    assert "1 of 2 gates fired: 1 query falls short." in shown
    assert shown.index("| `recall@k.min` | FIRED | mean at least 0.8 | 0.500 (2 queries) |") < shown.index(
        "| `leaks` | holds | at most 0 | 0 queries leak |"
    )
    assert "Gate `mrr@k.max_drop` is measured against a baseline, and none was given." in shown


def test_the_summary_names_queries_that_vanished():
    now = [frozen("q1"), frozen("q2")]
    against = bar(frozen_run(now), (), frozen_run([*now, frozen("gone|x")], name="main"))
    shown = page((), against, run=quiet_summary())
    assert "Held against the baseline main: 0 queries fall short." in shown
    assert "### Queries of the baseline that this run does not have\n\ngone\\|x\n" in shown


def test_rows_are_capped_with_a_count():
    shown = page([recalls(f"q{n:03}", n / 1000) for n in range(300)], most=50)
    assert shown.count("\n| `q") == 50
    assert "\nand 250 more, in the audit file and the JUnit report.\n" in shown


def test_the_summary_stays_far_under_the_limit_and_counts_what_was_cut():
    wide = "\u8fd4" * 400
    shown = page([failing(f"{n:04}{wide}", evidence=(wide,)) for n in range(2_000)], most=2_000)
    assert SUMMARY_BYTES // 4 < len(shown.encode()) <= SUMMARY_BYTES == 262_144
    rows = shown.count("\n| `")
    assert f"\nand {2_000 - rows} more, in the audit file" in shown


def test_no_query_text_in_the_summary_unless_it_is_asked_for():
    assert "refund window?" not in page((failing(),))
    assert "| `q1` refund window? | Rerank/pack |" in page((failing(),), with_text=True)


@pytest.mark.parametrize("written", [*INJECTIONS, "<img src=x onerror=alert(1)>", "|a|b|", "</td></table>", "`` ` ``"])
def test_markup_from_a_trace_shows_as_text_in_the_summary(written):
    run = summary(run=summary().run.model_copy(update={"name": written, "fingerprint": written}))
    shown = page((leaking(written, written), failing(f"x{written}", evidence=(written,))), run=run, with_text=True)
    tokens = MarkdownIt().enable("table").parse(shown)
    assert not [token for token in tokens if token.type == "html_block"]
    inline = [child.type for token in tokens for child in token.children or ()]
    assert not {"html_inline", "link_open", "image"} & set(inline)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h2", "h3", "h3", "h3", "h3"]
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert sum(line.startswith("| Query |") for line in rows) == 2


def test_the_summary_is_the_golden_one_byte_for_byte():
    now = [frozen("q1", recall=0.0, stage=Stage.RERANK), frozen("q0", stage=Stage.FILTER, leaks=("hr#9",))]
    before = frozen_run([frozen("q1"), frozen("q0"), frozen("q9")], name="main")
    against = bar(frozen_run(now), rules({"recall@k": 0.8, "leaks": 0}, "ragaudit.toml"), before)
    golden = Path(__file__).with_name("golden_step_summary.md")
    assert page((*RESULTS, PASSED), against) == golden.read_text("utf-8")
