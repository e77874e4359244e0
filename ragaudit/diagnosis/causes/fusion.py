"""Causes between the arms and the fused list: floors on the wrong score, ids that never meet, another formula."""

from ragaudit.diagnosis.causes.index import wrong_metric
from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.floors import arm_of, converted, drops, is_fused, lost_by_floor
from ragaudit.diagnosis.registry import cause
from ragaudit.evidence.fusion import takes_best
from ragaudit.model.diagnosis import Stage

_SUMS = {"weighted", "weighted_sum", "linear", "convex", "sum", "combsum", "relative_score", "relative_score_fusion"}
"""Methods that add up the scores that the arms give, as such or scaled from 0."""


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
        if wrong is not None and any(drops(f, t) for t in f.pipeline.thresholds):
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
        dropped = drops(f, threshold)
        arm = arm_of(f, threshold)
        if (
            dropped
            and arm is not None
            and arm.lower_is_better
            and threshold.direction != "max"
            and not converted(threshold)
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
    floors = (t for t in f.pipeline.thresholds if is_fused(t))
    return next((dropped for t in floors if (dropped := drops(f, t)) is not None), None)


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
    floors = (t for t in f.pipeline.thresholds if not is_fused(t) and t.on not in ("rerank", "none"))
    return next((dropped for t in floors if (dropped := drops(f, t)) is not None), None)


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


@cause(
    "fusion_order",
    Stage.FUSE,
    "fusion",
    summary="The fused list puts hits above the gold that no arm puts above it: no sum or maximum does that.",
    remedy="Check direction and scale of the scores that fusion reads (a distance taken as a similarity); that alone.",
)
def fusion_order(f: GoldFacts) -> str | None:
    fused = f.listed("fused")
    if not _fusion_lost(f) or fused is None or fused.place is None or not _no_filter_between(f):
        return None
    if any(weight < 0 for weight in (f.pipeline.fusion.weights or {}).values()) or f.unlogged_arms:
        return None
    if not _only_adds_up(f):
        return None
    beaten = [hit_id for hit_id in fused.ids[: fused.place.rank - 1] if _beaten_everywhere(f, hit_id)]
    if not beaten or fused.place.rank - len(beaten) > f.fused_cut:
        return None
    others = f" and {len(beaten) - 1} more" if len(beaten) > 1 else ""
    return f"{f.id}: the fused list has {beaten[0]}{others} above it, and no arm has"


def _beaten_everywhere(f: GoldFacts, hit_id: str) -> bool:
    """Each arm that has this hit has the gold above it, and some arm has it."""
    ranks = f.query.arm_ranks.get(f.query.canonical(hit_id), {})
    mine = {arm.name: arm.place.rank for arm in f.arms if arm.place is not None}
    return bool(ranks) and all(name in mine and mine[name] < rank for name, rank in ranks.items())


def _only_adds_up(f: GoldFacts) -> bool:
    """Fusion sums, or takes the best of, values that are never negative: a further or better place costs no rank."""
    if f.query.rrf_k is not None:
        return True
    scores = [hit.value for arm in f.arms for hit in arm.hits]
    fusion = f.pipeline.fusion
    named = takes_best(fusion) or (fusion.method or "").casefold() in _SUMS
    return named and all(score is not None and score >= 0 for score in scores)


def _fusion_lost(f: GoldFacts) -> bool:
    fused = f.listed("fused")
    return fused is not None and (fused.place is None or fused.place.rank > f.fused_cut)


def _no_filter_between(f: GoldFacts) -> bool:
    """No filter could have dropped the gold between the arms and the fused list."""
    return f.filter.cleared or f.filter_runs_first


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
    holding, fused = next((arm for arm in f.arms if arm.holds(f.k)), None), f.listed("fused")
    if holding is None or holding.place is None:
        return None
    if fused is not None and fused.place is not None:
        held = f"rank {fused.place.rank} in the fused list, K is {f.k}"
        return f"{f.id}: every arm has it within {f.k} ({holding.name} at {holding.place.rank}); {held}"
    return f"{f.id}: rank {holding.place.rank} in {holding.name}, not in the fused list"
