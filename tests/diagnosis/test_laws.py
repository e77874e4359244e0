"""Laws of the procedure: whatever a log holds, a verdict comes, is consistent, and does not depend on order."""

from typing import Any

import pytest
from diagnosis_builders import Bundle, bundle, diagnosed, with_trace
from hypothesis import given, settings
from hypothesis import strategies as st
from incident_rows import bundle_of, own, public
from test_causes import SAMPLES

from ragaudit.model.diagnosis import STAGES, Checkpoint, Diagnosis, Gap, Outcome, Severity, Stage

IDS = ("g", "h", "d1", "d2", "d3", "row-7")
ids = st.lists(st.sampled_from(IDS), max_size=5)
score = st.one_of(st.none(), st.floats(-1, 1), st.just(0.5))
ranking = st.lists(st.builds(lambda hit, value: {"id": hit, "score": value}, st.sampled_from(IDS), score), max_size=6)
maybe_list = st.one_of(st.none(), ranking)
maybe = st.one_of(st.none(), st.booleans())
rank = st.one_of(st.none(), st.integers(1, 30))
probes = st.lists(
    st.builds(
        lambda name, value, arm: {"probe": name, "value": value, "arm": arm},
        st.sampled_from(("exact_rank", "lexical_rank", "rerank_rank", "canonical_fused_rank", "self_query_rank")),
        rank,
        st.sampled_from(("dense", "bm25")),
    ),
    max_size=2,
)
traces = st.fixed_dictionaries(
    {
        "arms": st.one_of(st.none(), st.dictionaries(st.sampled_from(("dense", "bm25")), ranking, max_size=2)),
        "fused": maybe_list,
        "after_filter": maybe_list,
        "after_threshold": maybe_list,
        "rerank_input": maybe_list,
        "after_rerank": maybe_list,
        "final_context_ids": ids,
        "prompt_ids": st.one_of(st.none(), ids),
        "filters_applied": st.sampled_from((None, {}, {"tenant": "acme"}, {"tenant": 3}, {"acl": ["tenant:acme"]})),
        "user_acl": st.sampled_from((None, [], ["tenant:acme"])),
        "gold_mode": st.sampled_from(("all", "any")),
        "answer": st.one_of(
            st.none(), st.fixed_dictionaries({"correct": maybe, "supported": maybe, "abstained": maybe})
        ),
        "answerable": maybe,
        "probes": probes,
        "id_map": st.sampled_from((None, {"row-7": "g"})),
    }
)
pipelines = st.fixed_dictionaries(
    {
        "thresholds": st.sampled_from((None, [], [{"value": 0.4, "on": "dense"}], [{"value": 0.4, "on": "rerank"}])),
        "fusion": st.sampled_from(({}, {"method": "rrf"}, {"method": "x"}, {"weights": {"dense": 0.1}})),
        "filter": st.sampled_from(({}, {"mode": "post"}, {"expected": {"tenant": "acme"}})),
        "rerank": st.sampled_from(({}, {"model": "ce", "top_n": 2}, {"candidates": 2})),
        "pack": st.sampled_from(({}, {"dedupe_by": "source_id"}, {"token_budget": 9, "max_per_source": 1})),
    }
)
golds = st.sampled_from(
    (
        [],
        [{"id": "g", "source_id": "s1"}],
        [{"id": "g", "source_id": "s1", "span": "x"}, {"id": "h"}],
        [{"id": "row-7"}],
    )
)
bundles = st.builds(
    lambda trace, gold, pipeline, chunk, without: bundle(
        trace={**trace, "gold": gold}, pipeline=pipeline, chunk=chunk, without=without
    ),
    traces,
    golds,
    pipelines,
    st.fixed_dictionaries({"in": st.sampled_from(({}, {"dense": False}, {"dense": True, "bm25": False}))}),
    st.sampled_from(((), ("chunk",), ("sources",), ("chunks", "index"), ("sources", "chunks", "index", "pipeline"))),
)


def consistent(verdict: Diagnosis) -> None:
    assert (verdict.stage is Stage.UNDETERMINED) == bool(verdict.could_be)
    assert bool(verdict.could_be) <= bool(verdict.log)
    assert set(verdict.could_be) <= set(STAGES)
    assert set(verdict.secondary) <= set(STAGES) - {verdict.stage}
    if verdict.outcome in (Outcome.PASS, Outcome.NOT_APPLICABLE, Outcome.LABEL_ISSUE):
        assert (verdict.stage, verdict.secondary, verdict.causes) == (Stage.NONE, (), ())
    if verdict.outcome is Outcome.UNDETERMINED:
        assert verdict.stage is Stage.UNDETERMINED
    if verdict.outcome is Outcome.FAIL and verdict.stage is Stage.NONE:
        assert verdict.gap is Gap.CONFLICTING_SOURCES
    assert (verdict.severity is Severity.LEAK) == bool(verdict.leaks)
    for gold in verdict.gold:
        checkpoints = [step.checkpoint for step in gold.journey]
        assert set(checkpoints) == set(Checkpoint)
        assert checkpoints == sorted(checkpoints, key=list(Checkpoint).index)
        assert gold.evidence


@settings(max_examples=400, deadline=None)
@given(bundles)
def test_every_log_gets_a_consistent_verdict(parts: Bundle) -> None:
    consistent(diagnosed(parts))


@settings(max_examples=150, deadline=None)
@given(bundles)
def test_a_verdict_depends_on_what_was_logged_and_on_nothing_else(parts: Bundle) -> None:
    assert diagnosed(parts) == diagnosed(parts)


@settings(max_examples=150, deadline=None)
@given(bundles)
def test_scope_retrieval_changes_no_verdict_on_evidence_that_was_lost(parts: Bundle) -> None:
    whole, retrieval = diagnosed(parts), diagnosed(parts, "retrieval")
    if whole.delivered is not True:
        assert whole == retrieval


EVERY = [*((name, sample.bundle) for name, sample in SAMPLES.items())]
EVERY += [(row["incident_id"], bundle_of(row)) for row in (*public(), *own())]


@pytest.mark.parametrize("parts", [parts for _, parts in EVERY], ids=[name for name, _ in EVERY])
def test_neither_the_order_of_arms_nor_that_of_rows_nor_notes_decide(parts: Bundle) -> None:
    verdict = diagnosed(parts)
    consistent(verdict)
    arms = parts.trace.get("arms")
    turned = with_trace(parts, notes="see the reranker", arms=dict(reversed(arms.items())) if arms else arms)
    for table in ("sources", "chunks"):
        rows: list[dict[str, Any]] | None = getattr(turned, table)
        if rows:
            turned = type(turned)(**{**vars(turned), table: rows[::-1]})
    other = diagnosed(turned)
    assert (other.outcome, other.stage, other.gap) == (verdict.outcome, verdict.stage, verdict.gap)
