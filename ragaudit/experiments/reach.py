"""Whether an arm that fetched more could bring lost gold into the pool, by what probes say of its rank there."""

from math import inf

from ragaudit.evidence.fusion import DEFAULT_K
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.experiments.pool import RRF
from ragaudit.model.diagnosis import Diagnosis, Outcome, Stage
from ragaudit.model.pipeline import Pipeline

_RANK_PROBES = ("exact_rank", "lexical_rank")


def out_of_reach(evidence: QueryEvidence, diagnosis: Diagnosis, pipeline: Pipeline) -> bool:
    """True when some gold lost at the search would stand below the cut however far one arm fetched.

    Its fused score is at most what the arms that hold it give, and one more arm at the rank that a probe measured
    (reciprocal ranks; Cormack, Clarke and Buettcher 2009). Deeper lists only add to the scores of others, so a score
    under that of the last fused hit that goes on stays under it. False as soon as a rank is not known.
    """
    if (pipeline.fusion.method or "rrf").casefold() not in RRF:
        return False
    trace = evidence.trace
    cut = trace.k_final
    if trace.after_rerank is not None:
        cut = max(cut, len(trace.rerank_input or ()), pipeline.rerank.candidates or 0)
    lost = {v.id for v in diagnosis.gold if v.outcome is Outcome.FAIL and v.stage is Stage.RETRIEVE}
    return any(
        _stays_below(evidence, position, pipeline, cut)
        for position, row in enumerate(evidence.gold)
        if row.gold.id in lost
    )


def _stays_below(evidence: QueryEvidence, position: int, pipeline: Pipeline, cut: int) -> bool:
    trace = evidence.trace
    arms = trace.arms or {}
    constant, weights = pipeline.fusion.k or DEFAULT_K, pipeline.fusion.weights or {}
    if not arms or any(arm not in arms for arm in pipeline.arms or ()):
        return False
    held, more = 0.0, 0.0
    for arm in arms:
        weight = weights.get(arm, 1.0)
        place = evidence.lists[f"arm:{arm}"].places[position]
        if place is not None:
            held += weight / (constant + place.rank)
            continue
        rank = _probed(evidence, position, arm)
        if rank is None:
            return False
        if len(arms) == 1:
            return rank > cut
        more = max(more, weight / (constant + rank))
    last = trace.fused[cut - 1].value if trace.fused is not None and len(trace.fused) >= cut else None
    return last is not None and held + more < last


def _probed(evidence: QueryEvidence, position: int, arm: str) -> float | None:
    """The rank that this arm would give the gold, were its list long enough: infinite when it has none for it."""
    gold_id = evidence.gold[position].gold.id
    for probe in evidence.trace.probes:
        if probe.probe not in _RANK_PROBES or probe.gold_id not in (None, gold_id) or probe.arm != arm:
            continue
        if probe.value is None:
            return inf
        if isinstance(probe.value, int) and not isinstance(probe.value, bool) and probe.value >= 1:
            return probe.value
    return None
