"""What was not logged decides nothing: no drop is concluded from null, and an open verdict says what to log."""

import pytest
from diagnosis_builders import Bundle, brief, bundle, diagnosed, seed_only, with_trace
from incident_rows import bundle_of, own, public
from test_causes import SAMPLES

from ragaudit.model.diagnosis import Diagnosis, Outcome, Stage

IN_ARM = bundle(gold_at=2, trace={"final_context_ids": ["d1", "d3"]})


def test_a_reranked_list_that_was_not_logged_drops_nothing() -> None:
    verdict = diagnosed(with_trace(IN_ARM, after_rerank=None, final_context_ids=None))
    assert verdict.outcome is Outcome.UNDETERMINED
    assert "dropped" not in " ".join(verdict.evidence)


@pytest.mark.parametrize("name", ["fused", "after_rerank", "after_filter", "after_threshold", "rerank_input"])
def test_a_missing_list_never_makes_a_verdict_that_an_empty_one_makes(name: str) -> None:
    empty = diagnosed(with_trace(bundle(gold_at=2), **{name: [], "final_context_ids": []}))
    missing = diagnosed(with_trace(bundle(gold_at=2), **{name: None, "final_context_ids": []}))
    assert any(step.list == name and step.state == "absent" for step in empty.gold[0].journey)
    assert all(step.list != name for step in missing.gold[0].journey)
    assert empty.evidence != missing.evidence


def test_an_empty_reranked_list_is_a_loss_at_the_reranker() -> None:
    open_filter = {"pipeline": {"thresholds": [{"on": "rerank", "value": 0.3}]}}
    emptied = bundle(gold_at=2, trace={"after_rerank": [], "final_context_ids": []}, **open_filter)
    assert brief(diagnosed(emptied)) == "fail rerank rerank_floor"
    unlogged = with_trace(emptied, after_rerank=None)
    assert "rerank_floor" not in diagnosed(unlogged).causes


@pytest.mark.parametrize("arm", [[], None])
def test_an_empty_arm_is_not_an_unlogged_one(arm: list[str] | None) -> None:
    parts = bundle(gold_at=4, lexical_at=0, trace={"fused": None, "final_context_ids": ["d1", "d2", "d3"]})
    arms = {"dense": parts.trace["arms"]["dense"], **({} if arm is None else {"bm25": arm})}
    verdict = diagnosed(with_trace(parts, arms=arms))
    if arm is None:
        assert (verdict.stage, verdict.could_be) == (
            Stage.UNDETERMINED,
            (Stage.RETRIEVE, Stage.FUSE, Stage.RERANK),
        )
        assert "arms.bm25" in verdict.log
    else:
        assert brief(verdict) == "fail retrieve below_k"


def test_an_arm_whose_status_is_logged_is_not_unlogged() -> None:
    parts = bundle(gold_at=4, lexical_at=0, trace={"fused": None, "final_context_ids": ["d1", "d2", "d3"]})
    off = with_trace(parts, arms={"dense": parts.trace["arms"]["dense"]}, arm_status={"bm25": {"status": "off"}})
    assert brief(diagnosed(off)) == "fail retrieve dead_arm"


def test_an_unlogged_fused_list_may_have_lost_what_an_arm_had_within_k() -> None:
    parts = bundle(gold_at=0, lexical_at=1, trace={"final_context_ids": ["d1", "b2", "d2"]})
    assert brief(diagnosed(with_trace(parts, fused=[{"id": "g"}]))) == "fail rerank pack_loss"
    verdict = diagnosed(with_trace(parts, fused=None))
    assert (verdict.outcome, verdict.could_be) == (
        Outcome.FAIL,
        (Stage.EMBED, Stage.RETRIEVE, Stage.FUSE, Stage.RERANK),  # dense misses it, and a fused list may sink it then
    )
    assert "fused" in verdict.log
    alone = with_trace(bundle(gold_at=1), final_context_ids=["d2", "d3", "d4"])
    assert brief(diagnosed(alone)) == "fail rerank pack_loss"


def test_two_low_ranks_may_have_made_a_high_one_in_an_unlogged_fused_list() -> None:
    parts = bundle(gold_at=4, lexical_at=4, trace={"fused": None, "final_context_ids": ["d1", "b1", "d2"]})
    verdict = diagnosed(parts)
    assert verdict.could_be == (Stage.RETRIEVE, Stage.FUSE)
    assert "fused" in verdict.log
    one = bundle(gold_at=4, lexical_at=0, trace={"fused": None, "final_context_ids": ["d1", "b1", "d2"]})
    assert Stage.FUSE not in diagnosed(one).could_be


def test_a_configured_reranker_whose_output_was_not_logged_stays_open() -> None:
    parts = bundle(gold_at=4, pipeline={"rerank": {"model": "ce"}})
    verdict = diagnosed(parts)
    assert (verdict.outcome, verdict.could_be) == (Outcome.FAIL, (Stage.RETRIEVE, Stage.RERANK))
    assert "after_rerank" in verdict.log
    assert brief(diagnosed(bundle(gold_at=4))) == "fail retrieve below_k"


def test_with_the_final_context_alone_a_miss_is_certain_and_its_stage_is_not() -> None:
    only = Bundle({"query_id": "q1", "query_text": "?", "k_final": 3, "final_context_ids": ["d1"], "gold_ids": ["g"]})
    verdict = diagnosed(only)
    assert (verdict.outcome, verdict.stage, verdict.delivered) == (Outcome.FAIL, Stage.UNDETERMINED, False)
    assert verdict.could_be == tuple(stage for stage in Stage if stage not in ("generate", "none", "undetermined"))
    assert {"arms", "fused", "after_rerank", "filters_applied", "chunks.jsonl: in"} <= set(verdict.log)


def test_with_the_arms_alone_nothing_is_certain() -> None:
    verdict = diagnosed(Bundle({"query_id": "q1", "query_text": "?", "k_final": 3, "arms": {}, "gold_ids": ["g"]}))
    assert (verdict.outcome, verdict.stage, verdict.delivered) == (Outcome.UNDETERMINED, Stage.UNDETERMINED, None)


def test_a_partial_export_proves_no_absence() -> None:
    lost = bundle(gold_at=0, without=("source", "chunk"), sources=[{"source_id": "s0"}])
    assert brief(diagnosed(lost)) == "fail ingestion source_missing"
    partial = bundle(gold_at=0, without=("source", "chunk"), sources=[{"source_id": "s0"}], index={"complete": False})
    verdict = diagnosed(partial)
    assert verdict.stage is Stage.UNDETERMINED
    assert Stage.INGESTION in verdict.could_be


def every_verdict() -> list[tuple[str, Diagnosis]]:
    found = [(name, diagnosed(parts)) for name, s in SAMPLES.items() for parts in (s.bundle, s.near_miss)]
    found += [(f"seed:{name}", diagnosed(seed_only(sample.bundle))) for name, sample in SAMPLES.items()]
    for row in (*public(), *own()):
        found += [(row["incident_id"], diagnosed(make(bundle_of(row)))) for make in (lambda parts: parts, seed_only)]
    return found


def test_undetermined_always_says_what_it_could_be_and_what_to_log() -> None:
    verdicts = every_verdict()
    for name, verdict in verdicts:
        if verdict.stage is Stage.UNDETERMINED:
            assert verdict.could_be, name
            assert verdict.log, name
        else:
            assert verdict.could_be == (), name
        for gold in verdict.gold:
            assert (gold.stage is Stage.UNDETERMINED) == bool(gold.could_be), (name, gold.id)
            assert bool(gold.could_be) <= bool(gold.log), (name, gold.id)
    assert sum(verdict.stage is Stage.UNDETERMINED for _, verdict in verdicts) > len(SAMPLES) / 2
