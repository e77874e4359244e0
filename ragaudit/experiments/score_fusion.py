"""Fusion by score: each arm's scores brought to one scale and summed."""

from collections.abc import Mapping
from math import sqrt

from ragaudit.model.pipeline import Fusion
from ragaudit.model.trace import Ranking

RELATIVE = "relative_score"
DISTRIBUTION = "distribution_based"


def fused_by_score(arms: Mapping[str, Ranking], fusion: Fusion, method: str) -> dict[str, float] | None:
    """Id -> weight times scaled score, summed over the arms; None when a hit has no score.

    `relative_score` scales an arm's scores from its least to its greatest, `distribution_based` from three standard
    deviations under their mean to three over it (as LlamaIndex and Qdrant do); scores that are all equal become 1. A
    list whose scores rise is one of distances, and is turned around.
    """
    fused: dict[str, float] = {}
    for arm, hits in arms.items():
        first = {hit.id: hit.value for hit in reversed(hits)}
        scores = [score for score in first.values() if score is not None]
        if len(scores) < len(first):
            return None
        rises = len(hits) > 1 and (hits[0].value or 0.0) < (hits[-1].value or 0.0)
        low, high = _scale([-score for score in scores] if rises else scores, method)
        weight = 1.0 if fusion.weights is None else fusion.weights.get(arm, 1.0)
        for hit_id, score in first.items():
            value = (score or 0.0) * (-1 if rises else 1)
            share = 1.0 if high == low else (value - low) / (high - low)
            fused[hit_id] = fused.get(hit_id, 0.0) + weight * share
    return fused


def _scale(scores: list[float], method: str) -> tuple[float, float]:
    if not scores:
        return 0.0, 0.0
    if method == RELATIVE:
        return min(scores), max(scores)
    mean = sum(scores) / len(scores)
    spread = 3 * sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
    return mean - spread, mean + spread
