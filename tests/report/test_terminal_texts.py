import re
from pathlib import Path

import pytest
from report_builders import (
    CAUSES,
    HOSTILE,
    KEPT,
    LOST,
    STAGE_NOTES,
    failing,
    gold,
    leaking,
    quiet_summary,
    result,
    steps,
    summary,
    undecided,
)

from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.result import AclNote, Finding, Leak, Level
from ragaudit.report.diagnosis_text import diagnosis_text
from ragaudit.report.example import worked_example
from ragaudit.report.findings_text import findings_text
from ragaudit.report.funnel import funnel, ranks, unlogged
from ragaudit.report.layout import cells
from ragaudit.report.overview_text import summary_text
from ragaudit.report.verdict import verdict
from ragaudit.store.texts import ChunkText


def told(query, **options):
    return diagnosis_text(query, CAUSES, STAGE_NOTES, **options)


def test_a_journey_reads_from_left_to_right_and_marks_the_cut():
    assert " ".join(funnel(steps(LOST))) == (
        "eligible yes -> indexed yes -> arm:dense #3, arm:bm25 - -> fused #2 -> reranked #14 CUT -> packed - "
        "-> answered no"
    )
    assert " ".join(ranks(steps(LOST))) == ("arm:dense #3, arm:bm25 - -> fused #2 -> reranked #14 CUT -> packed -")
    assert unlogged(steps(LOST)) == ["parsed", "prompted"]


def test_a_kept_gold_has_no_cut_even_when_the_answer_is_wrong():
    assert "CUT" not in " ".join(funnel(steps(KEPT + " answered=-")))


def test_lists_of_one_checkpoint_are_told_apart_by_name():
    journey = steps("reranked:rerank_input=9 reranked:after_rerank=- packed:final_context_ids=-")
    assert funnel(journey) == ["rerank_input #9,", "after_rerank - CUT ->", "packed -"]


def test_a_journey_of_which_nothing_was_logged_is_empty():
    assert funnel(steps("parsed=? packed=?")) == []


def test_one_diagnosis_reads_as_intended():
    assert (
        told(failing())
        == """\
X q1   FAIL at Rerank/pack
  K = 8   gold by label   evidence not in the prompt

-- Why -------------------------------------------------------------------------
  c9: rank 3 in dense, 2 in fused, 14 after rerank, top_n 8
  Rerank/pack: The evidence was a candidate and did not reach the prompt.

-- Journey   #3 = rank 3   - = absent ------------------------------------------
  X c9   FAIL at Rerank/pack   grade 2
      eligible yes -> indexed yes -> arm:dense #3, arm:bm25 - -> fused #2 ->
      reranked #14 CUT -> packed - -> answered no
      not logged: parsed, prompted
  . c4   PASS
      eligible yes -> arm:dense #1 -> fused #1 -> reranked #2 -> packed #2

-- Causes, and the one thing to change -----------------------------------------
  top n cut: The chunk was ranked below top_n.
  > Raise pipeline.rerank.top_n; keep everything else.

-- Metrics of this query -------------------------------------------------------
  Hit-rate 0.500   Recall 0.500   Precision (by K) 0.500
  Precision (returned) 0.500   MRR 0.500   nDCG 0.500   AP 0.500
  7 undefined: judge off

-- Final context ---------------------------------------------------------------
  c4* c1   (* gold)
"""
    )


def test_an_undecided_query_says_what_to_log():
    text = told(undecided())
    assert text.startswith("X q2   FAIL, stage not decided\n")
    assert "could be Fuse/threshold or Filter/ACL\n  > log after_filter\n  > log fused\n" in text


def test_a_leak_comes_before_the_evidence():
    text = told(leaking())
    assert text.index("!! LEAK: the user may not read what stood in the context: hr#9") < text.index("-- Why")
    assert "  hr#9!   (! not readable for this user)\n" in text


def test_texts_are_shown_only_when_asked_for_and_never_what_the_user_may_not_read():
    asked = []

    def texts(chunk_id):
        asked.append(chunk_id)
        return ChunkText(chunk_id, f"the text of {chunk_id}")

    query = failing(
        gold=(gold("c9"), gold("secret", Outcome.NOT_APPLICABLE, Stage.NONE, KEPT, eligible=False)),
        final_context_ids=("c4", "leaked"),
        leaks=("leaked",),
    )
    assert "refund window?" not in told(query)
    text = told(query, texts=texts)
    assert "refund window?" in text
    assert "the text of c9" in text and "the text of c4" in text
    assert asked == ["c9", "c4"]
    assert text.count("(not shown: the user may not read it)") == 2


def test_a_text_that_is_not_shown_says_why():
    told_why = told(failing(final_context_ids=()), texts=lambda name: ChunkText(name, None, "no text in the audit"))
    assert "(no text in the audit)" in told_why


def test_many_gold_ids_are_counted_not_listed():
    text = told(failing(gold=tuple(gold(f"g{n}") for n in range(20))))
    assert "  X g11 " in text and "  X g12 " not in text
    assert "and 8 more gold ids" in text


def test_the_summary_is_the_golden_one():
    assert summary_text(summary()) == (Path(__file__).parent / "golden_summary.txt").read_text()


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            summary(),
            "3 of 6 queries fail (50%); Filter/ACL and Rerank/pack lose most (1 each); 1 could not be decided.",
        ),
        (summary(outcomes={"fail": 1}, stages={"chunk": 1}), "1 of 1 query fails (100%); Chunk loses most (1)."),
        (
            summary(outcomes={"fail": 2}, stages={}),
            "2 of 2 queries fail (100%); what was logged does not name the stage of any.",
        ),
        (quiet_summary(), "None of 6 queries fails."),
        (
            quiet_summary(outcomes={"undetermined": 4}),
            "None of 4 queries could be decided from what was logged.",
        ),
    ],
)
def test_the_verdict_says_how_many_and_where(run, sentence):
    assert verdict(run).startswith(sentence + " ")


def test_the_verdict_of_a_run_without_gold_says_that_recall_is_undefined():
    assert verdict(quiet_summary(metrics={})).endswith(
        "Recall at K = 8 is undefined: no query has gold that could be counted."
    )
    assert verdict(quiet_summary(outcomes={})) == "No query was audited."


@pytest.mark.parametrize("width", [80, 120])
def test_texts_fit_their_columns(width):
    long = "q-" + "返" * 200
    run = summary(undetermined={"|".join(["fuse", "filter", "rerank", "generate", "embed"]): 2, long: 1})
    queries = [failing(long, gold=(gold(long, grade=3, eligible=False),)), leaking(long, long), undecided()]
    for text in (
        summary_text(run, width),
        findings_text(long[:20], run.preflight, width),
        *(told(query, texts=lambda name: ChunkText(name, long), width=width) for query in queries),
    ):
        assert max(map(cells, text.splitlines())) <= width


def test_hostile_text_shows_inert_in_a_terminal():
    run = summary(
        run=summary().run.model_copy(update={"name": HOSTILE, "fingerprint": HOSTILE}),
        acl=AclNote(leaks=(Leak(query_id=HOSTILE, chunk_id=HOSTILE),)),
        preflight=(Finding(check=HOSTILE, severity=Level.WARN, message=HOSTILE, fix=HOSTILE),),
        undetermined={HOSTILE: 1},
        set_aside=(HOSTILE,),
        metrics={HOSTILE: summary().metrics["mrr@k"]},
        at={HOSTILE: summary().at["final"], "final": summary().at["final"]},
    )
    query = failing(
        HOSTILE,
        text=HOSTILE,
        evidence=(HOSTILE,),
        causes=(HOSTILE,),
        log=(HOSTILE,),
        gold=(gold(HOSTILE),),
        final_context_ids=(HOSTILE,),
        leaks=(HOSTILE,),
        metrics={HOSTILE: 1.0},
    )
    shown = [
        summary_text(run),
        findings_text(HOSTILE, run.preflight),
        told(query, texts=lambda name: ChunkText(name, HOSTILE)),
        told(leaking(HOSTILE, HOSTILE)),
    ]
    for text in shown:
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
        assert "<U+001B>" in text


def test_findings_are_listed_by_weight_with_their_fix():
    text = findings_text("support-kb", summary().preflight)
    assert (
        text
        == """\
support-kb: 2 findings (1 block, 1 warn, 0 info)

  X block No ACL rule is written.
          > Write [acl].
  ! warn  6 queries, fewer than 30.
          > Log more.

X block: an audit of this would not be sound; repair these first.
"""
    )
    assert findings_text("support-kb", ()) == "support-kb: nothing is missing that an audit needs.\n"


def test_the_worked_example_is_a_failing_query_of_the_worst_stage_without_a_leak():
    run = summary(stages={"filter": 1, "rerank": 1})
    queries = [leaking(), result("q3", Outcome.PASS, Stage.NONE), undecided(), failing("q8"), failing("q9")]
    example = worked_example(summary(stages={"rerank": 2}), queries)
    assert example is not None and example.diagnosis.query_id == "q8"
    assert worked_example(run, [leaking()]) == leaking()
    assert worked_example(run, [result("q3", Outcome.PASS, Stage.NONE)]) is None
