"""The merged list behind fusion and floors: recomputed from the arms, or taken from the log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ragaudit.evidence.fusion import DEFAULT_K, recompute
from ragaudit.experiments.score_fusion import DISTRIBUTION, RELATIVE, fused_by_score
from ragaudit.model.pipeline import Fusion, Pipeline, Threshold
from ragaudit.model.trace import ArmState, Ranking, Trace

RRF = ("rrf", "reciprocal_rank_fusion")
SHORT = "the recorded list ends before the context is full, and may have been cut there"
_DENSE_WORDS = ("dense", "vector", "cosine", "similarity")
_FUSED_WORDS = ("fused", "rrf", "hybrid", "merged")


@dataclass(frozen=True)
class Unreplayable:
    """Why the recorded lists cannot tell what a change would do for a query."""

    reason: str


@dataclass(frozen=True)
class Listed:
    """Ids in order. `is_whole` = nothing stood below the last of them; else the log may have been cut there."""

    ids: tuple[str, ...]
    is_whole: bool


def recomputed_pool(trace: Trace, was: Pipeline, pipeline: Pipeline) -> Listed | Unreplayable:
    """The merged list that this configuration makes of the arms, which were recorded under `was`."""
    arms = _arms(trace, was, pipeline)
    if isinstance(arms, Unreplayable):
        return arms
    floored = {name: _floored(name, hits, pipeline) for name, hits in arms.items()}
    if len(floored) == 1 and trace.fused is None:
        merged = tuple(hit.id for hit in next(iter(floored.values())))
        scores: Mapping[str, float] = {}
    else:
        fused = _fused(floored, pipeline.fusion)
        if isinstance(fused, Unreplayable):
            return fused
        scores = fused
        merged = _by_score(trace, floored, scores)
    kept = _above_floors(merged, scores, floored, pipeline)
    return kept if isinstance(kept, Unreplayable) else Listed(kept, is_whole=True)


def recorded_pool(trace: Trace, pipeline: Pipeline) -> Listed | Unreplayable:
    """The merged list as it was, for a change that does not touch it: as logged, longer where the arms say so."""
    again = recomputed_pool(trace, pipeline, pipeline)
    logged = next(
        (hits for hits in (trace.after_threshold, trace.after_filter, trace.fused) if isinstance(hits, tuple)),
        trace.rerank_input,
    )
    if logged is None:
        return again
    ids = tuple(hit.id for hit in logged)
    if trace.after_threshold is None:
        scores = {hit.id: hit.value for hit in trace.fused or () if hit.value is not None}
        kept = _above_floors(ids, scores, trace.arms or {}, pipeline)
        if isinstance(kept, Unreplayable):
            return kept
        ids = kept
    if ids and isinstance(again, Listed) and again.ids[: len(ids)] == ids:
        return again
    return Listed(ids, is_whole=not logged)  # an empty list was not cut: nothing came out


def _arms(trace: Trace, was: Pipeline, pipeline: Pipeline) -> dict[str, Ranking] | Unreplayable:
    """The lists that were fused. A configured arm of which the log shows nothing may have brought anything."""
    if trace.arms is None:
        return Unreplayable("arms are not logged")
    if isinstance(trace.after_filter, tuple):
        return Unreplayable("a filter behind the search may drop rows that only a run would show")
    if trace.id_map:
        return Unreplayable("lists use several id spaces")
    lists = {**trace.arms, **(trace.after_filter or {})}
    named = lists if pipeline.arms is None else pipeline.arms
    silent = {
        name
        for name, status in (trace.arm_status or {}).items()
        if status.status in (ArmState.OFF, ArmState.ERRORED) and name in (was.arms or ())
    }
    missing = [name for name in named if name not in lists and name not in silent]
    if missing:
        return Unreplayable(f"{', '.join(missing)}: configured, and not logged")
    return {name: lists[name] for name in lists if name in named}


def _fused(arms: Mapping[str, Ranking], fusion: Fusion) -> Mapping[str, float] | Unreplayable:
    method = (fusion.method or "").casefold()
    if method in RRF:
        return recompute(arms, fusion, fusion.k or DEFAULT_K, lambda hit_id: hit_id).scores
    if method not in (RELATIVE, DISTRIBUTION):
        return Unreplayable(f"fusion {method or 'method unknown'} is not recomputed")
    found = fused_by_score(arms, fusion, method)
    return Unreplayable("an arm's scores are not logged, and fusion reads them") if found is None else found


def _by_score(trace: Trace, arms: Mapping[str, Ranking], scores: Mapping[str, float]) -> tuple[str, ...]:
    """Ties keep the logged order, then the order in which the arms name the ids."""
    logged = {hit.id: rank for rank, hit in enumerate(trace.fused or ())}
    first: dict[str, int] = {}
    for hits in arms.values():
        for hit in hits:
            first.setdefault(hit.id, len(first))
    return tuple(
        sorted(scores, key=lambda i: (-round(scores[i], 9), logged.get(i, len(logged)), first.get(i, len(first))))
    )


def _floored(arm: str, hits: Ranking, pipeline: Pipeline) -> Ranking:
    for threshold in pipeline.thresholds:
        if reads_arm(threshold.on, arm):
            hits = tuple(hit for hit in hits if passes(hit.value, threshold))
    return hits


def reads_arm(word: str | None, arm: str) -> bool:
    """Does this word of a floor name this arm, by its name or by the name of a vector score?"""
    said = (word or "").casefold()
    return said == arm.casefold() or (said in _DENSE_WORDS and arm.casefold() in _DENSE_WORDS)


def on_fused(threshold: Threshold) -> bool:
    """Does the floor work on the fused list?"""
    return (threshold.on or "").casefold() in _FUSED_WORDS


def _above_floors(
    order: tuple[str, ...], scores: Mapping[str, float], arms: Mapping[str, Ranking], pipeline: Pipeline
) -> tuple[str, ...] | Unreplayable:
    for threshold in filter(on_fused, pipeline.thresholds):
        reader = _score_reader(threshold, scores, arms)
        if reader is None:
            return Unreplayable(f"a floor on {threshold.on} reads {threshold.score}, which is not logged")
        order = tuple(i for i in order if passes(reader(i), threshold))
    return order


def _score_reader(
    threshold: Threshold, scores: Mapping[str, float], arms: Mapping[str, Ranking]
) -> Callable[[str], float | None] | None:
    if (threshold.score or "").casefold() in ("", *_FUSED_WORDS):
        return scores.get
    for name, hits in arms.items():
        if reads_arm(threshold.score, name):
            return {hit.id: hit.value for hit in hits}.get
    return None


def passes(score: float | None, threshold: Threshold) -> bool:
    """Does a hit with this score survive the floor? Without a score it does not."""
    if threshold.value is None:
        return True
    if score is None:
        return False
    return score <= threshold.value if threshold.direction == "max" else score >= threshold.value
