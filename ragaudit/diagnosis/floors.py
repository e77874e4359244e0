"""Score floors: which list stands behind one, whether it drops the gold, and whether that can be checked at all."""

import re

from ragaudit.diagnosis.facts import ArmFacts, GoldFacts, Listed
from ragaudit.model.pipeline import Threshold

_FUSED = ("fused", "rrf", "hybrid", "merged")
_DENSE = ("dense", "vector", "cosine", "similarity", "embedding")
_BEHIND = ("after_threshold", "rerank_input", "after_rerank", "final_context_ids", "prompt_ids")


def behind_floor(f: GoldFacts) -> Listed | None:
    """The first logged list that stands behind every floor on arms and fused list; None when none was logged."""
    return next((entry for name in _BEHIND if (entry := f.listed(name)) is not None), None)


def lost_by_floor(f: GoldFacts) -> bool:
    """An arm or the fused list has the gold, and a list that may stand behind a floor has not."""
    lists = [entry for entry in (f.listed("fused"), behind_floor(f)) if entry is not None]
    arm_level = [
        places.places[f.position] is None
        for name, places in f.evidence.lists.items()
        if name.startswith("after_threshold:")
    ]
    fused = f.listed("fused")
    found = f.in_any_arm or (fused is not None and fused.place is not None)
    return found and (any(entry.place is None for entry in lists) or any(arm_level))


def is_fused(threshold: Threshold) -> bool:
    """The floor stands on the fused list."""
    return _names(threshold.on, _FUSED)


def unchecked(f: GoldFacts) -> bool:
    """Some floor may have dropped the gold: it was not written down, or the gold's score on its scale is not known."""
    if not f.pipeline.floors_known:
        return True
    return any(_unread(f, threshold) for threshold in f.pipeline.thresholds)


def _unread(f: GoldFacts, threshold: Threshold) -> bool:
    if threshold.on in ("none", "rerank") or threshold.kind == "autocut" or _survivor_under(f, threshold):
        return False
    if threshold.on is None:
        return True
    arm = arm_of(f, threshold)
    if arm is not None and arm.place is None:
        return False  # it never stood under this floor
    if threshold.value is None or _score_under(f, threshold) is None:
        return True
    return arm is not None and converted(threshold) and arm.declared_direction is None


def drops(f: GoldFacts, threshold: Threshold) -> str | None:
    """The sentence that shows this threshold dropping the gold; None when it does not, or cannot be checked."""
    if threshold.on in (None, "none", "rerank"):
        return None
    if threshold.kind == "autocut":
        return _autocut(f, threshold)
    if threshold.value is None or _survivor_under(f, threshold) or _cut_anyway(f, threshold):
        return None
    score = _score_under(f, threshold)
    named = f"{threshold.value:g} on {threshold.on}"
    if score is None:
        asked = is_fused(threshold) and _names(threshold.score, _DENSE)
        lacks = asked and f.in_any_arm and not f.unlogged_arms and not _dense_has(f)
        return f"{f.id} has no {threshold.score} score, and the floor {named} asks for one" if lacks else None
    if _is_under(score, threshold):
        side = "over the ceiling" if threshold.direction == "max" else "under the floor"
        return f"{f.id}: {threshold.score or 'score'} {score:g} is {side} {named}"
    return None


def _autocut(f: GoldFacts, threshold: Threshold) -> str | None:
    entry = _after(f, threshold)
    arm = next((arm for arm in f.arms if arm.place), None)
    if entry is None or entry.name == "after_rerank" or entry.place is not None or arm is None or arm.place is None:
        return None
    kept = [rank for rank, hit in enumerate(arm.hits, start=1) if hit.id in entry.ids]
    if kept and max(kept) < arm.place.rank:
        return f"{f.id}: rank {arm.place.rank} in {arm.name}; autocut on {threshold.on} kept {len(entry.ids)} hits"
    return None


def _score_under(f: GoldFacts, threshold: Threshold) -> float | None:
    """The gold's score on the scale that the threshold reads."""
    arm = arm_of(f, threshold)
    if arm is not None:
        value = arm.place.score if arm.place else None
        return 1 - value if value is not None and converted(threshold) and arm.lower_is_better else value
    if _names(threshold.score, _DENSE):
        return None  # a vector score, and no arm that it could be of
    fused = f.listed("fused")
    if fused is not None and fused.place is not None:
        return fused.place.score
    if f.query.recomputed is not None:
        return f.query.recomputed.scores.get(f.id)
    return None


def arm_of(f: GoldFacts, threshold: Threshold) -> ArmFacts | None:
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
    """A hit of this arm alone, or of the fused list, survived with a score that the threshold would drop."""
    arm, after = arm_of(f, threshold), _after(f, threshold)
    if after is None or threshold.value is None:
        return False
    if arm is None:
        fused = f.listed("fused") if is_fused(threshold) and not _names(threshold.score, _DENSE) else None
        kept = [
            hit.value for hit in (fused.hits or () if fused else ()) if hit.id in after.ids and hit.value is not None
        ]
        return any(_is_under(value, threshold) for value in kept)
    others = {hit.id for other in f.arms if other is not arm for hit in other.hits}
    for hit in arm.hits:
        score = hit.value
        if score is not None and converted(threshold) and arm.lower_is_better:
            score = 1 - score
        if score is not None and _is_under(score, threshold) and hit.id in after.ids and hit.id not in others:
            return True
    return False


def _is_under(score: float, threshold: Threshold) -> bool:
    value = threshold.value or 0.0
    return score > value if threshold.direction == "max" else score < value


def _cut_anyway(f: GoldFacts, threshold: Threshold) -> bool:
    """The floor is on the fused list, the gold stands there beyond the cut, and no list between the two was logged."""
    fused, behind = f.listed("fused"), behind_floor(f)
    if not is_fused(threshold) or fused is None or fused.place is None or behind is None:
        return False
    return behind.name not in ("after_threshold", "rerank_input") and fused.place.rank > f.fused_cut


def _after(f: GoldFacts, threshold: Threshold) -> Listed | None:
    """The first logged list that stands behind this floor."""
    return behind_floor(f) if is_fused(threshold) else f.listed("after_threshold") or f.listed("fused")


def converted(threshold: Threshold) -> bool:
    """The floor reads a distance that was turned into a similarity, `1 - distance`."""
    return bool(re.match(r"\s*1\s*-", threshold.score or ""))


def _names(word: str | None, words: tuple[str, ...]) -> bool:
    return word is not None and any(w in word.casefold() for w in words)


def _dense_has(f: GoldFacts) -> bool:
    return any(arm.place for arm in f.arms if not arm.lexical)
