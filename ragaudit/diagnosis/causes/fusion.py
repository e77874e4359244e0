"""Causes between the arms and the fused list: floors on the wrong score, ids that never meet, another formula."""

import re

from ragaudit.diagnosis.causes.index import wrong_metric
from ragaudit.diagnosis.facts import ArmFacts, GoldFacts
from ragaudit.diagnosis.registry import cause
from ragaudit.model.diagnosis import Stage
from ragaudit.model.pipeline import Threshold

_FUSED = ("fused", "rrf", "hybrid", "merged")
_DENSE = ("dense", "vector", "cosine", "similarity", "embedding")


def lost_in_fusion(f: GoldFacts) -> bool:
    """An arm has the gold within K, and the list after fusion and floors has not."""
    if not f.in_arm_within_k:
        return False
    return any(entry is not None and entry.place is None for entry in (f.listed("fused"), f.listed("after_threshold")))


def lost_by_floor(f: GoldFacts) -> bool:
    """The gold is in an arm, and the list after the floor, or the context when no list was logged, has not."""
    lists = [entry for entry in (f.listed("fused"), f.listed("after_threshold")) if entry is not None]
    if not lists and f.listed("after_rerank") is None and f.listed("rerank_input") is None:
        lists = [entry for entry in (f.listed("final_context_ids"),) if entry is not None]
    arm_level = [
        places.places[f.position] is None
        for name, places in f.evidence.lists.items()
        if name.startswith("after_threshold:")
    ]
    return f.in_any_arm and (any(entry.place is None for entry in lists) or any(arm_level))


@cause(
    "metric_under_floor",
    Stage.EMBED,
    "floor",
    summary="The index compares by another metric than expected, so its scores can never pass the floor.",
    remedy="Create the index with the expected metric and add the same vectors; same thresholds.",
)
def metric_under_floor(f: GoldFacts) -> str | None:
    if not lost_by_floor(f):
        return None
    for arm in f.arms:
        wrong = wrong_metric(f, arm) if arm.place else None
        if wrong is not None and any(_floor_drops(f, t) for t in f.pipeline.thresholds):
            return wrong
    return None


@cause(
    "floor_direction",
    Stage.FUSE,
    "floor",
    summary="A distance is cut as if it were a similarity: the best matches are dropped.",
    remedy="Turn that one comparison around; same value.",
)
def floor_direction(f: GoldFacts) -> str | None:
    if not lost_by_floor(f):
        return None
    for threshold in f.pipeline.thresholds:
        dropped = _floor_drops(f, threshold)
        arm = _arm_of(f, threshold)
        if (
            dropped
            and arm is not None
            and arm.lower_is_better
            and threshold.direction != "max"
            and not _converted(threshold)
        ):
            return f"{dropped}; {arm.name} scores are distances: lower is better"
    return None


@cause(
    "fused_floor",
    Stage.FUSE,
    "floor",
    summary="A floor on the fused list drops hits that have no such score, or a score of another scale.",
    remedy="Move the floor to the arm whose score it was tuned for; same value.",
)
def fused_floor(f: GoldFacts) -> str | None:
    if not lost_by_floor(f):
        return None
    floors = (t for t in f.pipeline.thresholds if _names(t.on, _FUSED))
    return next((dropped for t in floors if (dropped := _floor_drops(f, t)) is not None), None)


@cause(
    "arm_floor",
    Stage.FUSE,
    "floor",
    summary="A floor on one arm cut the gold before fusion.",
    remedy="Give that arm a floor of its own scale, or none; the other arms keep theirs.",
)
def arm_floor(f: GoldFacts) -> str | None:
    if not lost_by_floor(f):
        return None
    floors = (t for t in f.pipeline.thresholds if not _names(t.on, _FUSED) and t.on not in ("rerank", "none"))
    return next((dropped for t in floors if (dropped := _floor_drops(f, t)) is not None), None)


@cause(
    "floor_probed",
    Stage.FUSE,
    "floor",
    summary="Without the threshold the gold is within K.",
    remedy="Move the threshold to the score it was tuned for, or turn it off; one change.",
)
def floor_probed(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rank_without_threshold")
    return None if rank is None or rank > f.k else f"{f.id}: rank {rank} without the threshold"


@cause(
    "threshold_dropped",
    Stage.FUSE,
    "floor",
    summary="The gold was in the list, and the threshold behind it removed it.",
    remedy="Move the threshold to the score it was tuned for, or turn it off; one change.",
)
def threshold_dropped(f: GoldFacts) -> str | None:
    for arm in f.arms:
        after = f.evidence.lists.get(f"after_threshold:{arm.name}")
        if arm.place and after is not None and after.places[f.position] is None:
            return f"{f.id}: rank {arm.place.rank} in {arm.name}, gone after its threshold"
    after_all, before = f.listed("after_threshold"), f.listed("after_filter") or f.listed("fused")
    if after_all is None or after_all.place is not None:
        return None
    if before is not None and before.place is not None:
        return f"{f.id}: rank {before.place.rank} in {before.name}, gone after the threshold"
    if before is None and f.in_any_arm:
        return f"{f.id}: rank {f.best_rank} in the search, gone after the threshold"
    return None


def _floor_drops(f: GoldFacts, threshold: Threshold) -> str | None:
    """The sentence that shows this threshold dropping the gold; None when it does not, or cannot be checked."""
    if threshold.on in (None, "none", "rerank"):
        return None
    if threshold.kind == "autocut":
        return _autocut(f, threshold)
    if threshold.value is None or _survivor_under(f, threshold):
        return None
    score = _score_under(f, threshold)
    named = f"{threshold.value:g} on {threshold.on}"
    if score is None:
        lacks = _names(threshold.on, _FUSED) and _names(threshold.score, _DENSE) and not _dense_has(f) and f.in_any_arm
        return f"{f.id} has no {threshold.score} score, and the floor {named} asks for one" if lacks else None
    if score > threshold.value if threshold.direction == "max" else score < threshold.value:
        side = "over the ceiling" if threshold.direction == "max" else "under the floor"
        return f"{f.id}: {threshold.score or 'score'} {score:g} is {side} {named}"
    return None


def _autocut(f: GoldFacts, threshold: Threshold) -> str | None:
    entry = f.listed("after_threshold") or f.listed("fused")
    arm = next((arm for arm in f.arms if arm.place), None)
    if entry is None or entry.place is not None or arm is None or arm.place is None:
        return None
    kept = [rank for rank, hit in enumerate(arm.hits, start=1) if hit.id in entry.ids]
    if kept and max(kept) < arm.place.rank:
        return f"{f.id}: rank {arm.place.rank} in {arm.name}; autocut on {threshold.on} kept {len(entry.ids)} hits"
    return None


def _score_under(f: GoldFacts, threshold: Threshold) -> float | None:
    """The gold's score on the scale that the threshold reads."""
    arm = _arm_of(f, threshold)
    if arm is not None:
        value = arm.place.score if arm.place else None
        return 1 - value if value is not None and _converted(threshold) and arm.lower_is_better else value
    fused = f.listed("fused")
    if fused is not None and fused.place is not None:
        return fused.place.score
    if f.query.recomputed is not None:
        return f.query.recomputed.scores.get(f.id)
    return None


def _arm_of(f: GoldFacts, threshold: Threshold) -> ArmFacts | None:
    """The arm whose score the threshold reads: by its list, else by the score's name."""
    by_name = {arm.name: arm for arm in f.arms}
    for word in (threshold.on, threshold.score):
        if word in by_name:
            return by_name[word]
    if _names(threshold.on, _FUSED) and not _names(threshold.score, _DENSE):
        return None
    dense = [arm for arm in f.arms if not arm.lexical]
    return dense[0] if len(dense) == 1 and (_names(threshold.score, _DENSE) or _names(threshold.on, _DENSE)) else None


def _survivor_under(f: GoldFacts, threshold: Threshold) -> bool:
    """A hit that only this arm returned survived with a score that the threshold would drop: it is not in force."""
    arm, after = _arm_of(f, threshold), f.listed("after_threshold") or f.listed("fused")
    if arm is None or after is None or threshold.value is None:
        return False
    others = {hit.id for other in f.arms if other is not arm for hit in other.hits}
    for hit in arm.hits:
        score = hit.value
        if score is not None and _converted(threshold) and arm.lower_is_better:
            score = 1 - score
        under = score is not None and (
            score > threshold.value if threshold.direction == "max" else score < threshold.value
        )
        if under and hit.id in after.ids and hit.id not in others:
            return True
    return False


def _converted(threshold: Threshold) -> bool:
    return bool(re.match(r"\s*1\s*-", threshold.score or ""))


def _names(word: str | None, words: tuple[str, ...]) -> bool:
    return word is not None and any(w in word.casefold() for w in words)


def _dense_has(f: GoldFacts) -> bool:
    return any(arm.place for arm in f.arms if not arm.lexical)


# --- fusion itself: recomputed from the arms and compared with the log ------------------------------------------


@cause(
    "fusion_ids",
    Stage.FUSE,
    "fusion",
    summary="One chunk goes by several ids in the arms, so fusion never sees them agree, or counts one source often.",
    remedy="Key fusion on one stable chunk id in every arm, each arm counting it once; nothing else.",
)
def fusion_ids(f: GoldFacts) -> str | None:
    if not _fusion_lost(f):
        return None
    rank = f.probe_rank("canonical_fused_rank")
    if rank is not None and rank <= f.k:
        return f"{f.id}: rank {rank} when fusion keys on canonical ids; {_logged(f)}"
    again = f.recomputed_rank
    if f.query.renames and again is not None and again <= f.fused_cut:
        return f"{f.id}: rank {again} when fusion is recomputed with canonical ids; {_logged(f)}"
    return None


@cause(
    "single_arm_rule",
    Stage.FUSE,
    "fusion",
    summary="An arm's hits were thrown away: with one arm empty, or left out of the sum, fusion dropped the other.",
    remedy="Return whichever arm has hits when the other is empty; one branch.",
)
def single_arm_rule(f: GoldFacts) -> str | None:
    fused = f.listed("fused")
    if fused is None or fused.place is not None or not f.in_any_arm or not _no_filter_between(f):
        return None
    holding = [arm for arm in f.arms if arm.place]
    if not fused.ids and f.query.recomputed is not None and any(arm.holds(f.k) for arm in holding):
        return f"{holding[0].name} returned {len(holding[0].hits)} hits, and the fused list is empty"
    silent = [arm.name for arm in holding if arm.name in f.query.silent_arms]
    if silent and len(silent) == len(holding):
        return f"{', '.join(silent)}: the logged fused scores hold no share of it; {f.id} was only there"
    return None


@cause(
    "tied_scores",
    Stage.FUSE,
    "fusion",
    summary="An arm's scores are all equal, so the ranks that fusion read are arrival order.",
    remedy="Keep that arm's raw scores and sort by them before ranking; nothing else.",
)
def tied_scores(f: GoldFacts) -> str | None:
    for arm in f.arms:
        if arm.constant_score is None or arm.place is None or f.listed("fused") is None:
            continue
        rank = f.probe_rank("lexical_rank" if arm.lexical else "exact_rank", arm.name)
        if rank is not None and rank <= f.k and arm.place.rank > rank:
            tied = f"{arm.name}: every score is {arm.constant_score:g}"
            return f"{tied}; {f.id} at {arm.place.rank} there, {rank} by the engine's own"
    return None


@cause(
    "fusion_weight",
    Stage.FUSE,
    "fusion",
    summary="The arm that found the gold weighs so little in fusion that its hits cannot get through.",
    remedy="Give that arm more weight; nothing else.",
)
def fusion_weight(f: GoldFacts) -> str | None:
    weights = f.pipeline.fusion.weights
    holding = [arm.name for arm in f.arms if arm.holds(f.k)]
    if not weights or not _fusion_lost(f) or not holding or not _no_filter_between(f):
        return None
    mine = max(weights.get(name, 1.0) for name in holding)
    if mine > 0.5 * max(weights.values()):
        return None
    return f"{', '.join(holding)} found {f.id} within {f.k} and weighs {mine:g} of {sum(weights.values()):g} in fusion"


@cause(
    "fusion_formula",
    Stage.FUSE,
    "fusion",
    summary="The logged fused order is not what the configured formula gives for the logged arms.",
    remedy="Compute fusion as configured (constant, weights, ranks from 1, each id once); nothing else.",
)
def fusion_formula(f: GoldFacts) -> str | None:
    again = f.recomputed_rank
    if not _fusion_lost(f) or again is None or again > f.fused_cut or not _no_filter_between(f):
        return None
    return f"{f.id}: rank {again} when fusion is recomputed as configured; {_logged(f)}"


def _fusion_lost(f: GoldFacts) -> bool:
    fused = f.listed("fused")
    return fused is not None and (fused.place is None or fused.place.rank > f.fused_cut)


def _no_filter_between(f: GoldFacts) -> bool:
    """No filter could have dropped the gold between the arms and the fused list."""
    return f.filter_cleared or f.filter_runs_first


def _logged(f: GoldFacts) -> str:
    fused = f.listed("fused")
    return f"the log has it at {fused.place.rank}" if fused and fused.place else "the log lost it"


@cause(
    "fusion_loss",
    Stage.FUSE,
    "residue_fuse",
    summary="The arm's hit is missing from the fused list, and only fusion or a floor stands between them.",
    remedy="Compare ids before and after fusion; log after_threshold, then change the one rule that dropped it.",
)
def fusion_loss(f: GoldFacts) -> str | None:
    holding = next((arm for arm in f.arms if arm.holds(f.k)), None)
    if holding is None or holding.place is None:
        return None
    return f"{f.id}: rank {holding.place.rank} in {holding.name}, not in the fused list"
