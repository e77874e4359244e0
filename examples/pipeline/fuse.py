"""Fusion: reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009), and floors before and behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .search import Hit

Weights = Mapping[str, float]
EVEN: Weights = {}
"""Every arm counts once."""


@dataclass(frozen=True)
class Fused:
    """One chunk of the fused list, with the arms that brought it."""

    chunk_id: str
    rrf: float
    arms: tuple[str, ...]


def rrf(arms: Mapping[str, Sequence[Hit]], k: int, weights: Weights = EVEN) -> list[Fused]:
    """Sum of weight / (k + rank) over the arms; ties keep the order of first sight."""
    scores: dict[str, float] = {}
    brought: dict[str, list[str]] = {}
    for arm, hits in arms.items():
        for rank, hit in enumerate(hits, start=1):
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + weights.get(arm, 1.0) / (k + rank)
            brought.setdefault(hit.chunk_id, []).append(arm)
    order = sorted(scores, key=lambda chunk_id: -round(scores[chunk_id], 12))
    return [Fused(chunk_id, round(scores[chunk_id], 8), tuple(brought[chunk_id])) for chunk_id in order]


def rrf_reversed_lexical(arms: Mapping[str, Sequence[Hit]], k: int, weights: Weights = EVEN) -> list[Fused]:
    """Fault: the lexical list is read as if it were sorted from worst to best."""
    return rrf({arm: list(reversed(hits)) if arm == "bm25" else hits for arm, hits in arms.items()}, k, weights)


def rrf_single_arm(arms: Mapping[str, Sequence[Hit]], k: int, weights: Weights = EVEN) -> list[Fused]:
    """Fault: when only one list is there, it is taken to be the dense one."""
    alive = [arm for arm, hits in arms.items() if hits]
    return rrf({"dense": arms.get("dense", ())} if len(alive) == 1 else arms, k, weights)


def floor_arm(hits: Sequence[Hit], thresholds: Sequence[Mapping[str, Any]], arm: str) -> list[Hit]:
    """Hits of one arm that reach every floor set on it."""
    floors = [float(item["value"]) for item in thresholds if item["on"] == arm]
    return [hit for hit in hits if all(hit.score >= floor for floor in floors)]


def floor_fused(
    fused: Sequence[Fused], thresholds: Sequence[Mapping[str, Any]], cosines: Mapping[str, float]
) -> list[Fused]:
    """Fused hits whose cosine reaches the floors on the fused list; a lexical-only hit has none and is lost."""
    floors = [float(item["value"]) for item in thresholds if item["on"] == "fused"]
    return [hit for hit in fused if all(cosines.get(hit.chunk_id, 0.0) >= floor for floor in floors)]
