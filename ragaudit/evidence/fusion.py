"""Recomputes rank fusion (and the best score of several lists) from the logged arms, with canonical ids.

Reciprocal rank fusion: Cormack, Clarke and Buettcher, SIGIR 2009: score(d) = sum over arms of w / (k + rank(d)).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ragaudit.model.pipeline import Fusion
from ragaudit.model.trace import Ranking

DEFAULT_K = 60.0
_TOLERANCE = 2e-5
"""Logs round to five decimals; two such roundings may add up."""
_CONSTANTS = (60.0, 2.0, 1.0, 10.0, 20.0, 30.0, 40.0, 50.0, 80.0, 100.0)


@dataclass(frozen=True)
class Recomputed:
    """The fused order that the arms give. Ties share one score; a rank is therefore a range."""

    scores: Mapping[str, float]

    def ranks(self, item: str) -> tuple[int, int] | None:
        """Best and worst rank of an id under any order of its ties; None when no arm holds it."""
        mine = self.scores.get(item)
        if mine is None:
            return None
        above = sum(score > mine + _TOLERANCE for score in self.scores.values())
        level = sum(abs(score - mine) <= _TOLERANCE for score in self.scores.values())
        return above + 1, above + level


def recompute(arms: Mapping[str, Ranking], fusion: Fusion, k: float, canonical: Callable[[str], str]) -> Recomputed:
    """Fuse the arms as configured. Each arm counts an id once, at its best rank, whatever name it goes by there."""
    shift = 0 if fusion.rank_base is None else fusion.rank_base - 1
    scores: dict[str, float] = {}
    for arm, hits in arms.items():
        weight = 1.0 if fusion.weights is None else fusion.weights.get(arm, 1.0)
        seen: set[str] = set()
        for rank, hit in enumerate(hits, start=1):
            item = canonical(hit.id)
            if item not in seen:
                seen.add(item)
                scores[item] = scores.get(item, 0.0) + weight / (k + rank + shift)
    return Recomputed(scores)


def takes_best(fusion: Fusion) -> bool:
    """Each id gets its best raw score over the arms: the `simple` mode of LlamaIndex's query fusion, CombMAX."""
    return fusion.method is not None and fusion.method.casefold() in {"max", "simple", "combmax"}


def best_of(arms: Mapping[str, Ranking], canonical: Callable[[str], str]) -> Recomputed | None:
    """CombMAX (Fox and Shaw, TREC-2): the best score of each id; None when a hit has no score."""
    scores: dict[str, float] = {}
    for hits in arms.values():
        for hit in hits:
            if hit.value is None:
                return None
            item = canonical(hit.id)
            scores[item] = max(hit.value, scores.get(item, hit.value))
    return Recomputed(scores)


def rrf_constant(arms: Mapping[str, Ranking], fused: Ranking, fusion: Fusion) -> float | None:
    """The constant of reciprocal rank fusion: as configured, else the one that explains the logged scores.

    None when another method is configured, or when no common constant explains the logged scores of the fused list:
    a field called `rrf` may hold another fusion's score.
    """
    if fusion.method is not None:
        return (fusion.k or DEFAULT_K) if fusion.method.casefold() in {"rrf", "reciprocal_rank_fusion"} else None
    logged = [(hit.id, hit.value) for hit in fused if hit.value is not None]
    if not logged:
        return None
    ranks = _ranks(arms)
    for constant in _CONSTANTS if fusion.k is None else (fusion.k,):
        if all(_explains(value, ranks.get(hit_id, {}).values(), constant) for hit_id, value in logged):
            return constant
    return None


def contributing(arms: Mapping[str, Ranking], fused: Ranking, k: float) -> frozenset[str]:
    """The arms without which the logged fused scores cannot be explained.

    An arm that returned hits and is not among them was dropped before fusion.
    """
    ranks = _ranks(arms)
    found: set[str] = set()
    for hit in fused:
        held = ranks.get(hit.id, {})
        for arm in held.keys() - found:
            others = [rank for other, rank in held.items() if other != arm]
            if hit.value is not None and not _explains(hit.value, others, k):
                found.add(arm)
    return frozenset(found)


def _ranks(arms: Mapping[str, Ranking]) -> dict[str, dict[str, int]]:
    """Id -> arm -> its first rank there."""
    found: dict[str, dict[str, int]] = {}
    for arm, hits in arms.items():
        for rank, hit in enumerate(hits, start=1):
            found.setdefault(hit.id, {}).setdefault(arm, rank)
    return found


def _explains(value: float, ranks: Iterable[int], k: float) -> bool:
    """Is the score the sum of reciprocal ranks over some subset of the arms that hold the id?"""
    sums = [0.0]
    for rank in ranks:
        sums += [s + 1.0 / (k + rank) for s in sums]
    return any(abs(value - s) <= _TOLERANCE for s in sums)
