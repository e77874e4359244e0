"""From gold ids to the query: modes and groups, leaks, answers, and queries without gold."""

from dataclasses import replace
from typing import Any

import pytest
from diagnosis_builders import SPAN, Bundle, brief, bundle, diagnosed, with_trace

from ragaudit.model.diagnosis import STAGES, Gap, Outcome, Severity, Stage

G = {"id": "g", "source_id": "s1", "span": SPAN}
LABELS = {"gold": [{"id": "x1", "source_id": "s2"}, G]}
X1 = {"chunk_id": "x1", "source_id": "s2", "text": "x", "in": {"dense": False}}
S2 = {"source_id": "s2", "acl": ["tenant:acme"]}
RIGHT: dict[str, Any] = {"correct": True, "supported": True}


def two_gold(gold_at: int, **trace: Any) -> Bundle:
    """Gold `x1` was never written (ingestion); gold `g` stands at this rank of the dense arm."""
    return bundle(gold_at=gold_at, trace={**LABELS, **trace}, chunks=[X1], sources=[S2])


# --- all, any, groups ---------------------------------------------------------------------------------------------


def test_all_mode_takes_the_earliest_failing_stage_and_keeps_the_rest() -> None:
    verdict = diagnosed(two_gold(5))
    assert brief(verdict) == "fail ingestion chunk_not_written"
    assert verdict.secondary == (Stage.RETRIEVE,)
    assert {gold.id: gold.stage for gold in verdict.gold} == {"x1": Stage.INGESTION, "g": Stage.RETRIEVE}
    assert verdict.evidence == ("x1: not in the index of dense",)


def test_all_mode_fails_when_one_of_two_is_missing() -> None:
    verdict = diagnosed(two_gold(1, answer=RIGHT))
    assert brief(verdict) == "fail ingestion chunk_not_written"
    assert (verdict.secondary, verdict.delivered) == ((), False)


def test_any_mode_passes_with_one_of_two() -> None:
    verdict = diagnosed(two_gold(1, gold_mode="any", answer=RIGHT))
    assert (brief(verdict), verdict.delivered) == ("pass none", True)


def test_any_mode_fails_only_when_every_gold_fails() -> None:
    verdict = diagnosed(two_gold(5, gold_mode="any"))
    assert (brief(verdict), verdict.secondary) == ("fail ingestion chunk_not_written", (Stage.RETRIEVE,))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [([["x1", "g"]], "pass none"), ([["x1"], ["g"]], "fail ingestion chunk_not_written"), ([["g"]], "pass none")],
)
def test_one_id_of_each_group_is_needed(groups: list[list[str]], expected: str) -> None:
    assert brief(diagnosed(two_gold(1, gold_groups=groups, answer=RIGHT))) == expected


def test_a_group_that_lost_every_id_fails_though_another_group_is_complete() -> None:
    verdict = diagnosed(two_gold(1, gold_groups=[["g"], ["x1"]], answer={"correct": False}))
    assert (brief(verdict), verdict.delivered) == ("fail ingestion chunk_not_written", False)


def test_more_gold_than_k_is_an_aggregate_query() -> None:
    many = [G, *({"id": f"a{n}"} for n in range(4))]
    verdict = diagnosed(bundle(gold_at=1, trace={"gold": many}))
    assert (brief(verdict), verdict.gap) == ("not_applicable none", Gap.AGGREGATE_QUERY)
    assert verdict.evidence == ("5 gold needed, K is 3: recall can reach 0.60 at most",)


def test_more_gold_than_k_in_any_mode_is_no_aggregate_query() -> None:
    many = [G, *({"id": f"a{n}"} for n in range(4))]
    verdict = diagnosed(bundle(gold_at=1, trace={"gold": many, "gold_mode": "any", "answer": RIGHT}))
    assert (verdict.outcome, verdict.gap) == (Outcome.PASS, None)


def test_gold_below_grade_1_is_not_needed() -> None:
    graded = [G, {"id": "x1", "grade": 0.5}]
    verdict = diagnosed(bundle(gold_at=1, trace={"gold": graded, "answer": RIGHT}))
    assert (brief(verdict), [gold.id for gold in verdict.gold]) == ("pass none", ["g"])


def test_sound_gold_that_was_delivered_beside_a_doubtful_label_is_for_a_person() -> None:
    doubted = {"gold": [{"id": "x1", "suspect": True}, G]}
    verdict = diagnosed(bundle(gold_at=2, trace={**doubted, "answer": RIGHT}))
    assert (brief(verdict), verdict.gap) == ("label_issue none", Gap.WRONG_GOLD_LABEL)
    assert verdict.evidence == ("x1: the label is marked as doubtful", "g: in the context at position 2")
    assert brief(diagnosed(bundle(gold_at=5, trace=doubted))) == "fail retrieve below_k"


def test_a_parent_that_stands_for_the_gold_passes_and_says_so() -> None:
    parent = {"chunk_id": "p", "source_id": "s1", "kind": "parent", "text": "Refunds."}
    packed = {"final_context_ids": ["d1", "p"], "answer": RIGHT}
    verdict = diagnosed(bundle(gold_at=2, trace=packed, chunk={"parent_id": "p"}, chunks=[parent]))
    assert (brief(verdict), verdict.gap) == ("pass none", Gap.GRANULARITY_REMAP)
    assert verdict.evidence == ("g: in the context at position 2 as p",)


# --- leaks --------------------------------------------------------------------------------------------------------

HR = {"chunk_id": "d1", "source_id": "s0", "text": "Salaries.", "in": {"dense": True}}
HR_SOURCE = {"source_id": "s0", "acl": ["role:hr"]}


def leaking(**over: Any) -> Bundle:
    return bundle(**{"gold_at": 2, "chunks": [HR], "sources": [HR_SOURCE], **over})


def test_a_leak_dominates_a_query_that_was_answered_right() -> None:
    verdict = diagnosed(leaking(trace={"answer": RIGHT}))
    assert (verdict.outcome, verdict.stage, verdict.severity) == (Outcome.FAIL, Stage.FILTER, Severity.LEAK)
    assert (verdict.gap, verdict.leaks, verdict.causes) == (Gap.WRONG_TENANT_HITS, ("d1",), ("foreign_hits",))
    assert verdict.evidence[0] == "leak: d1 is in the context, and the user may not read it"
    assert diagnosed(leaking(trace={"answer": RIGHT}, sources=[{**HR_SOURCE, "acl": ["tenant:acme"]}])).leaks == ()


def test_a_leak_by_the_filter_names_the_violated_field() -> None:
    foreign = [{**HR, "metadata": {"tenant": "other"}}]
    verdict = diagnosed(leaking(trace={"filters_applied": {"tenant": "acme"}}, chunks=foreign, sources=[]))
    assert verdict.evidence[0] == "leak: d1 is in the context, and it violates the filter on tenant"
    assert (verdict.stage, verdict.severity) == (Stage.FILTER, Severity.LEAK)


def test_a_leak_that_came_in_through_parent_expansion_is_rerank() -> None:
    parent = {**HR, "chunk_id": "p9", "kind": "parent"}
    expanded = {"final_context_ids": ["d1", "g", "p9"], "answer": RIGHT}
    verdict = diagnosed(leaking(trace=expanded, chunks=[parent]))
    assert (verdict.outcome, verdict.stage, verdict.severity) == (Outcome.FAIL, Stage.RERANK, Severity.LEAK)
    assert verdict.leaks == ("p9",)


def test_a_leak_and_a_miss_stand_side_by_side() -> None:
    verdict = diagnosed(leaking(gold_at=5))
    assert (verdict.stage, verdict.secondary) == (Stage.RETRIEVE, (Stage.FILTER,))
    assert verdict.severity is Severity.LEAK


def test_a_leak_ends_every_doubt_about_the_outcome() -> None:
    verdict = diagnosed(leaking())
    assert (verdict.outcome, verdict.stage, verdict.could_be) == (Outcome.FAIL, Stage.FILTER, ())


def test_a_label_against_its_acl_takes_back_only_the_leaks_that_this_acl_explains() -> None:
    """The label says the user may read the gold, its ACL says not: the user may hold group-0042 under another name."""
    said = {"gold": [{**G, "eligible": True}], "answer": RIGHT}
    other: dict[str, Any] = {"source": {"acl": ["group-0042"]}, "chunk": {"acl": ["group-0042"]}}
    assert diagnosed(leaking(trace=said, **other)).leaks == ("d1",)
    assert diagnosed(leaking(trace=said, **other, sources=[{**HR_SOURCE, "acl": ["group-0042"]}])).leaks == ()


# --- leaks whose stage nobody logged, and rows outside the filter that are no leak ----------------------------------


def unlisted(**over: Any) -> Bundle:
    """The leak stands in a context of which no list was logged."""
    return with_trace(leaking(trace={"final_context_ids": ["d1", "g", "d3"], **over}), arms=None)


def test_a_leak_without_any_list_may_have_come_from_search_or_packing() -> None:
    verdict = diagnosed(unlisted(answer=RIGHT))
    assert (verdict.outcome, verdict.stage, verdict.severity) == (Outcome.FAIL, Stage.UNDETERMINED, Severity.LEAK)
    assert (verdict.could_be, verdict.log) == ((Stage.FILTER, Stage.RERANK), ("arms",))
    assert (verdict.leaks, verdict.gap, verdict.causes) == (("d1",), None, ())


def test_a_leak_without_any_list_stands_beside_a_stage_that_failed_for_sure() -> None:
    verdict = diagnosed(unlisted(answer={"correct": False}, prompt_ids=["d1", "g", "d3"]))
    assert (verdict.outcome, verdict.stage, verdict.secondary) == (Outcome.FAIL, Stage.GENERATE, ())
    assert (verdict.could_be, verdict.log, verdict.severity) == ((), (), Severity.LEAK)


def test_a_leak_without_any_list_adds_its_doubt_to_that_of_a_miss() -> None:
    verdict = diagnosed(unlisted(final_context_ids=["d1", "d2", "d3"]))
    assert (verdict.outcome, verdict.stage) == (Outcome.FAIL, Stage.UNDETERMINED)
    assert {Stage.EMBED, Stage.RETRIEVE, Stage.FILTER, Stage.RERANK} <= {*verdict.could_be}
    assert verdict.log[0] == "arms"


def test_a_stage_that_a_leak_decides_has_nothing_left_to_log() -> None:
    verdict = diagnosed(leaking(gold_at=0, pipeline={"embedding": None}))
    assert (verdict.stage, verdict.could_be, verdict.log) == (Stage.FILTER, (), ())


def outside(field: str, *, answer: dict[str, Any] | None = None) -> Bundle:
    row = {"chunk_id": "d1", "source_id": "s0", "metadata": {field: "other"}, "in": {"dense": True}}
    return bundle(gold_at=2, chunks=[row], trace={"filters_applied": {field: "acme"}, "answer": answer or RIGHT})


def test_a_row_outside_a_clause_that_is_not_about_access_fails_at_filter_and_is_no_leak() -> None:
    verdict = diagnosed(outside("tags"))
    assert (verdict.outcome, verdict.stage, verdict.severity) == (Outcome.FAIL, Stage.FILTER, Severity.NORMAL)
    assert (verdict.causes, verdict.leaks, verdict.gap) == (("foreign_hits",), (), None)
    assert verdict.evidence[0] == "d1 is in the context, and it violates the filter on tags"
    leak = diagnosed(outside("tenant"))
    assert (leak.severity, leak.leaks, leak.gap) == (Severity.LEAK, ("d1",), Gap.WRONG_TENANT_HITS)


def test_a_row_outside_the_filter_takes_the_gap_of_a_tenant_only_where_it_is_a_leak() -> None:
    """It took the gold's place: the gold says the same as the query."""
    for field, gap in (("tags", None), ("tenant", Gap.WRONG_TENANT_HITS)):
        row = {"chunk_id": "d1", "source_id": "s0", "metadata": {field: "other"}, "in": {"dense": True}}
        verdict = diagnosed(bundle(gold_at=4, chunks=[row], pipeline={"filter": {"expected": {field: "acme"}}}))
        assert (verdict.causes, verdict.gap, verdict.gold[0].gap) == (("foreign_hits",), gap, gap)


def test_a_row_outside_the_filter_does_not_fail_a_query_whose_gold_the_user_may_not_read() -> None:
    parts = outside("tags")
    shut = {**parts.trace, "gold": [{**G, "eligible": False}]}
    verdict = diagnosed(replace(parts, trace=shut))
    assert (verdict.outcome, verdict.severity) == (Outcome.NOT_APPLICABLE, Severity.NORMAL)
    assert verdict.evidence[0] == "d1 is in the context, and it violates the filter on tags"


def test_a_leak_in_the_prompt_alone_is_found() -> None:
    verdict = diagnosed(leaking(trace={"final_context_ids": ["d2", "g"], "prompt_ids": ["d1", "g"]}))
    assert verdict.leaks == ("d1",)


# --- the answer ---------------------------------------------------------------------------------------------------


def test_a_right_answer_without_its_evidence_stays_a_miss() -> None:
    verdict = diagnosed(bundle(trace={"answer": {"correct": True}}))
    assert (brief(verdict), verdict.gap) == ("fail retrieve below_k", Gap.CORRECT_WITHOUT_EVIDENCE)
    assert verdict.evidence[-1] == "the answer is right all the same, and no packed chunk supports it"


def test_a_wrong_answer_that_is_faithful_to_the_wrong_context_is_not_generate() -> None:
    verdict = diagnosed(bundle(trace={"answer": {"correct": False, "supported": True}}))
    assert (verdict.stage, verdict.gap) == (Stage.RETRIEVE, None)
    assert verdict.evidence[-1] == "the answer is faithful to the wrong context: it reads well and is wrong"


SAYS_OTHERWISE = {"answer": {"correct": False, "supported": True, "supported_by": ["d1"]}}


def test_two_live_sources_that_disagree_fail_without_a_stage() -> None:
    verdict = diagnosed(bundle(gold_at=2, trace={**SAYS_OTHERWISE, "prompt_ids": ["d1", "g"]}))
    assert (verdict.outcome, verdict.stage, verdict.gap) == (Outcome.FAIL, Stage.NONE, Gap.CONFLICTING_SOURCES)
    assert verdict.evidence[0] == "the answer follows d1, which says otherwise than the gold beside it"


def test_a_wrong_answer_supported_by_the_gold_itself_is_generate() -> None:
    own = {"answer": {"correct": False, "supported": True, "supported_by": ["g"]}}
    verdict = diagnosed(bundle(gold_at=2, trace=own))
    assert brief(verdict) == "fail generate wrong_answer"


@pytest.mark.parametrize(
    ("outdated", "gap"),
    [
        ({"in_source_of_truth": False}, Gap.STALE_VERSION),
        ({"status": "deleted"}, Gap.STALE_VERSION),
        ({"superseded_by": "s1"}, Gap.CONFLICTING_SOURCES),
    ],
)
def test_an_outdated_source_that_says_otherwise_is_ingestion(outdated: dict[str, Any], gap: Gap) -> None:
    row = {"chunk_id": "d1", "source_id": "s0", "text": "14 days", "in": {"dense": True}}
    parts = bundle(gold_at=2, trace=SAYS_OTHERWISE, chunks=[row], sources=[{"source_id": "s0", **outdated}])
    verdict = diagnosed(parts)
    assert (brief(verdict), verdict.gap) == ("fail ingestion stale_version_served", gap)


# --- scope --------------------------------------------------------------------------------------------------------


def test_scope_retrieval_passes_delivered_evidence_that_nobody_judged() -> None:
    parts = bundle(gold_at=2)
    assert diagnosed(parts).outcome is Outcome.UNDETERMINED
    assert brief(diagnosed(parts, "retrieval")) == "pass none"


def test_scope_retrieval_hides_neither_a_miss_nor_a_wrong_answer() -> None:
    assert brief(diagnosed(bundle(), "retrieval")) == "fail retrieve below_k"
    wrong = bundle(gold_at=2, trace={"answer": {"correct": False}})
    assert brief(diagnosed(wrong, "retrieval")) == "fail generate wrong_answer"


# --- no gold ------------------------------------------------------------------------------------------------------


def unanswerable(**answer: Any) -> Bundle:
    return with_trace(bundle(), gold=None, gold_ids=[], answerable=False, answer=answer or None)


def test_an_unanswerable_query_passes_when_the_system_abstained() -> None:
    verdict = diagnosed(unanswerable(abstained=True))
    assert (brief(verdict), verdict.gap) == ("pass none", Gap.UNANSWERABLE)


def test_an_unanswerable_query_that_was_answered_is_generate() -> None:
    verdict = diagnosed(unanswerable(abstained=False))
    assert (brief(verdict), verdict.gap) == ("fail generate unanswerable_answered", Gap.UNANSWERABLE)


def test_an_unanswerable_query_whose_answer_nobody_judged_is_undetermined() -> None:
    verdict = diagnosed(unanswerable())
    assert (verdict.outcome, verdict.could_be) == (Outcome.UNDETERMINED, (Stage.GENERATE,))
    assert (verdict.log, verdict.gap) == (("answer.abstained",), Gap.UNANSWERABLE)


@pytest.mark.parametrize(("gold_ids", "log"), [(None, ("gold_ids",)), ([], ("answerable",))])
def test_no_gold_and_no_word_on_answerability_is_undetermined(gold_ids: list[str] | None, log: tuple[str]) -> None:
    verdict = diagnosed(with_trace(bundle(), gold=None, gold_ids=gold_ids))
    assert (verdict.outcome, verdict.stage) == (Outcome.UNDETERMINED, Stage.UNDETERMINED)
    assert (verdict.could_be, verdict.log) == (STAGES, log)
