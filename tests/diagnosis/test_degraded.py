"""What was not seen decides nothing: a bundle with one observation taken away gets the same verdict, or an open one."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from diagnosis_builders import Bundle, brief, bundle, diagnosed, hits, seed_only, with_trace
from incident_rows import bundle_of, own, public

from ragaudit.model.diagnosis import Stage

LISTS = ("arms", "fused", "after_filter", "after_threshold", "rerank_input", "after_rerank", "final_context_ids")
TAKEN = (*LISTS, "arm_status", "id_map")


def without_one(row: dict[str, Any]) -> Iterator[tuple[str, Bundle]]:
    """The incident's bundle with one list, the id map or the status of the arms taken away."""
    whole = bundle_of(row)
    for name in whole.trace:
        if name in TAKEN:
            yield f"trace:{name}", with_trace(whole, **{name: None})
    for arm in whole.trace.get("arms") or {}:
        arms = {key: hits for key, hits in deepcopy(whole.trace["arms"]).items() if key != arm}
        yield f"arm:{arm}", with_trace(whole, arms={**arms, arm: None})


MISSED = [
    row
    for row in (*public(), *own())
    if row["outcome"] == "fail" and set(row["acceptable_stages"]) - {"none", "undetermined"}
]
"""The incidents with a stage that could be missed."""


@pytest.mark.parametrize("row", [pytest.param(row, id=row["incident_id"]) for row in MISSED])
def test_a_list_taken_away_makes_no_other_stage_certain(row: dict[str, Any]) -> None:
    for what, parts in without_one(row):
        if what == "trace:final_context_ids" and parts.trace.get("arms") is None:
            continue
        verdict = diagnosed(parts)
        if verdict.stage is Stage.UNDETERMINED:
            assert set(row["acceptable_stages"]) & set(verdict.could_be), (what, verdict.could_be, verdict.evidence)
        else:
            assert verdict.stage.value in row["acceptable_stages"], (what, verdict.causes, verdict.evidence)


def test_a_renamed_context_leaves_open_who_lost_a_gold_that_no_arm_has() -> None:
    parts = bundle(
        gold_at=0, lexical_at=0, trace={"final_context_ids": ["p1", "p2"], "fused": None}, without=("chunks",)
    )
    verdict = diagnosed(parts)
    assert {Stage.FUSE, Stage.RERANK} <= set(verdict.could_be)
    assert verdict.evidence == (
        "g: in no arm (dense, bm25); final_context_ids holds none of what the arms returned, by these ids",
    )
    assert verdict.log[0] == "id_map (or chunks.jsonl: aliases, parent_id)"
    kept = diagnosed(with_trace(parts, final_context_ids=["p1", "d1"]))
    assert Stage.RERANK not in kept.could_be


def test_parents_of_what_the_arms_returned_are_no_other_names() -> None:
    rows = [{"chunk_id": "d1", "source_id": "s2", "parent_id": "p1"}]
    parts = bundle(gold_at=0, trace={"final_context_ids": ["p1"]}, chunks=rows)
    assert "by these ids" not in diagnosed(parts).evidence[0]


def test_arms_that_name_their_hits_in_two_ways_may_have_met_in_the_gold() -> None:
    arms = {"dense": [{"id": f"v_{n}"} for n in range(4)], "bm25": [{"id": n} for n in range(4)]}
    parts = seed_only(bundle(gold_at=0, lexical_at=0, trace={"arms": arms, "fused": None}))
    verdict = diagnosed(with_trace(parts, final_context_ids=["v_0", "v_1", "0"]))
    assert Stage.FUSE in verdict.could_be
    assert "each arm has ids of another form" in verdict.evidence[0]


@pytest.mark.parametrize(("principals", "open_"), [(["tenant:acme"], True), ([], False), (None, False)])
def test_an_unfiltered_search_for_a_user_with_principals_may_be_full_of_others_rows(
    principals: list[str] | None, open_: bool
) -> None:
    verdict = diagnosed(with_trace(seed_only(bundle(gold_at=5)), user_acl=principals))
    assert (Stage.FILTER in verdict.could_be) is open_


def test_an_arm_that_fused_hits_name_and_nobody_logged_is_unlogged() -> None:
    fused = [{"id": "d1", "sources": ["dense", "bm25"]}]
    parts = bundle(gold_at=4, pipeline={"arms": None}, trace={"fused": fused, "final_context_ids": ["d1"]})
    assert {Stage.FUSE, Stage.RERANK} <= set(diagnosed(parts).could_be)


def test_an_errored_arm_missed_nothing_by_its_index() -> None:
    status = {"dense": {"status": "errored", "error": "deadline"}}
    probes = [{"probe": "exact_rank", "gold_id": "g", "arm": "dense", "value": 1}]
    parts = bundle(gold_at=0, lexical_at=0, trace={"arms": {"dense": []}, "arm_status": status, "probes": probes})
    assert brief(diagnosed(parts)) == "fail retrieve dead_arm"


def test_a_floor_on_the_fused_list_is_read_against_the_context_where_no_list_behind_it_was_logged() -> None:
    fused = [{"id": "d1", "rrf": 0.0325}, {"id": "d2", "rrf": 0.0320}, {"id": "g", "rrf": 0.0159}]
    floor = {"thresholds": [{"value": 0.02, "on": "fused", "score": "rrf", "direction": "min"}]}
    parts = bundle(gold_at=3, trace={"fused": fused, "final_context_ids": ["d1", "d2"]}, pipeline=floor)
    verdict = diagnosed(parts)
    assert (brief(verdict), verdict.evidence) == (
        "fail fuse fused_floor",
        ("g: rrf 0.0159 is under the floor 0.02 on fused",),
    )
    unscored = with_trace(parts, fused=[{"id": "d1"}, {"id": "d2"}, {"id": "g"}])
    assert diagnosed(unscored).could_be == (Stage.FUSE, Stage.RERANK)


def test_what_the_fused_list_has_within_k_was_not_lost_in_fusion() -> None:
    fused = [{"id": "d1", "rrf": 0.0164}, {"id": "b1", "rrf": 0.0164}, {"id": "g", "rrf": 0.0161}]
    parts = bundle(gold_at=2, lexical_at=0, trace={"fused": fused, "final_context_ids": ["d1", "b1", "b2"]})
    assert brief(diagnosed(parts)) == "fail rerank pack_loss"


def test_the_prompt_stands_for_the_context_where_only_the_prompt_was_logged() -> None:
    parts = with_trace(bundle(gold_at=2), final_context_ids=None, prompt_ids=["d1"])
    verdict = diagnosed(parts)
    assert brief(verdict) == "fail rerank pack_loss"


def test_without_a_context_the_causes_that_fire_are_still_among_what_it_could_be() -> None:
    parts = bundle(gold_at=0, source={"registered": False}, chunk={"in": {"dense": False}})
    verdict = diagnosed(with_trace(parts, final_context_ids=None))
    assert verdict.stage is Stage.UNDETERMINED
    assert {Stage.INGESTION, Stage.GENERATE} <= set(verdict.could_be)


def test_a_rank_beyond_k_names_no_stage_while_nobody_saw_the_chunk_s_text() -> None:
    probes = [{"probe": "exact_rank", "gold_id": "g", "arm": "dense", "value": 40}]
    seen = bundle(gold_at=0, trace={"probes": probes})
    assert brief(diagnosed(seen)) == "fail retrieve weak_match"
    unseen = diagnosed(with_trace(seen, gold=[{"id": "g", "source_id": "s1"}]))
    assert unseen.could_be == (Stage.PARSE, Stage.CHUNK, Stage.RETRIEVE)


def test_a_long_chunk_and_no_known_limit_leave_the_embedder_in_question() -> None:
    probes = [{"probe": "exact_rank", "gold_id": "g", "arm": "dense", "value": 40}]
    long = bundle(gold_at=0, trace={"probes": probes}, chunk={"tokens": 129})
    assert diagnosed(long).could_be == (Stage.EMBED, Stage.RETRIEVE)
    known = bundle(
        gold_at=0,
        trace={"probes": probes},
        chunk={"tokens": 129},
        pipeline={"embedding": {"corpus": {"max_tokens": 8192}}},
    )
    assert brief(diagnosed(known)) == "fail retrieve weak_match"


def test_an_arm_of_which_nothing_says_that_it_compares_vectors_has_no_bad_vectors() -> None:
    level = [{**hit, "score": 1.0} for hit in hits("x", 8, 0)]
    named = {"arms": {"search": level}, "final_context_ids": ["x1"]}
    parts = bundle(gold_at=0, trace={**named}, pipeline={"arms": ["search"]})
    parts = with_trace(parts, arms={"search": level})
    assert "constant_scores" not in diagnosed(parts).causes
    assert brief(diagnosed(with_trace(bundle(gold_at=0), arms={"dense": level}))) == "fail embed constant_scores"


def test_a_wrong_answer_over_a_span_that_nobody_looked_for_is_open() -> None:
    answered = {"prompt_ids": ["d1", "g"], "final_context_ids": ["d1", "g"], "answer": {"correct": False}}
    parts = bundle(gold_at=2, trace=answered, without=("chunks", "sources"))
    verdict = diagnosed(parts)
    assert (verdict.stage, verdict.could_be) == (Stage.UNDETERMINED, (Stage.PARSE, Stage.CHUNK, Stage.GENERATE))
    assert verdict.log == (
        "sources.jsonl: extracted_text (or gold.span_in.extracted)",
        "chunks.jsonl: text (or gold.span_in.chunk)",
        "answer.supported",
    )
    plain = diagnosed(with_trace(parts, gold=[{"id": "g"}]))
    assert brief(plain) == "fail generate wrong_answer"
    assert plain.evidence[-1] == "that g holds the answer is taken from the label, which names no span"


FLOOR = {"thresholds": [{"value": 0.5, "on": "fused", "score": "fused", "direction": "min"}]}


def test_a_floor_that_a_lower_hit_survived_is_not_in_force() -> None:
    fused = [{"id": "d1", "score": 0.9}, {"id": "d2", "score": 0.4}, {"id": "g", "score": 0.3}]
    parts = bundle(gold_at=3, trace={"fused": fused, "final_context_ids": ["d1", "d2"]}, pipeline=FLOOR)
    assert brief(diagnosed(parts)) == "fail rerank pack_loss"
    assert brief(diagnosed(with_trace(parts, final_context_ids=["d1"]))) == "fail fuse fused_floor"


def test_a_floor_is_not_blamed_for_what_the_cut_at_k_drops_anyway() -> None:
    fused = [{"id": f"d{n}", "score": 0.9} for n in range(1, 4)] + [{"id": "g", "score": 0.3}]
    parts = bundle(gold_at=4, trace={"fused": fused, "final_context_ids": ["d1", "d2", "d3"]}, pipeline=FLOOR)
    assert "fused_floor" not in diagnosed(parts).causes
    assert "fused_floor" in diagnosed(with_trace(parts, after_threshold=[{"id": "d1"}])).causes


@pytest.mark.parametrize(
    ("method", "lowest", "certain"), [("weighted", 0.1, True), ("weighted", -0.1, False), ("mean", 0.1, False)]
)
def test_an_order_is_impossible_only_where_nothing_counts_against_a_hit(
    method: str, lowest: float, certain: bool
) -> None:
    dense = [{"id": "g", "score": 0.9}, {"id": "d1", "score": 0.5}, {"id": "d2", "score": lowest}]
    fused = [{"id": "d1"}, {"id": "d2"}, {"id": "x"}, {"id": "g"}]
    parts = bundle(
        gold_at=1,
        lexical_at=1,
        trace={"arms": {"dense": dense}, "fused": fused, "final_context_ids": ["d1", "d2", "x"]},
        pipeline={"fusion": {"method": method}},
    )
    assert ("fusion_order" in diagnosed(parts).causes) is certain


def test_a_search_that_returns_rows_of_the_gold_s_namespace_reads_it() -> None:
    rows = [{"chunk_id": "d1", "source_id": "s2", "namespace": "v2"}]
    read = {"index": {"namespace": "v1", "namespaces": {"v1": 0}}, "chunk": {"namespace": "v2"}}
    assert brief(diagnosed(bundle(gold_at=0, **read))) == "fail ingestion wrong_namespace"
    found = diagnosed(bundle(gold_at=0, chunks=rows, **read))
    assert not {"wrong_namespace", "other_namespace"} & set(found.causes)


@pytest.mark.parametrize(
    ("chunk", "cut"),
    [
        ({"tokens": None, "text": "word " * 40}, False),
        ({"tokens": None, "text": "word " * 60}, True),
        ({"tokens": None, "text": "文" * 129}, True),
        ({"tokens": None, "text": None}, True),
        ({"tokens": 600, "answer_token_offset": 20}, False),
    ],
)
def test_how_long_a_text_an_embedder_of_unknown_limit_reads_whole(chunk: dict[str, Any], cut: bool) -> None:
    probes = [{"probe": "exact_rank", "gold_id": "g", "arm": "dense", "value": 40}]
    whole = {"source": True, "extracted": True, "chunk": True}
    gold = [{"id": "g", "source_id": "s1", "span": "x", "span_in": whole}]
    verdict = diagnosed(bundle(gold_at=0, trace={"probes": probes, "gold": gold}, chunk=chunk))
    assert (Stage.EMBED in verdict.could_be) is cut


def test_an_empty_table_says_nothing_of_the_reranker() -> None:
    seed = seed_only(bundle(gold_at=5))
    assert Stage.RERANK in diagnosed(seed).could_be
    assert Stage.RERANK in diagnosed(replace(seed, pipeline={"pack": {}})).could_be
    assert Stage.RERANK not in diagnosed(replace(seed, pipeline={"k_final": 3})).could_be
