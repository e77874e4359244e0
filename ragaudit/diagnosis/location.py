"""Between which two observed lists a gold id was lost, and which stages could have lost it there."""

from dataclasses import dataclass

from ragaudit.diagnosis.facts import GoldFacts, Listed
from ragaudit.diagnosis.floors import unchecked
from ragaudit.evidence.journey import Place
from ragaudit.model.diagnosis import Stage


@dataclass(frozen=True)
class Loss:
    """The last list that has the gold and the first one after it that has not.

    `before` is "arms" when only the arms have it. `could_be` holds the stages that stand between the two lists and
    that no observation excludes.
    """

    before: str
    place: Place
    after: str
    could_be: tuple[Stage, ...]


def lost_between(f: GoldFacts) -> Loss | None:
    """Where the gold got lost after the search; None when no list within reach of K has it."""
    last, following = _last_seen(f)
    if last is None or following is None:
        return None
    name, place = last
    if name == "arms" and following.name == "fused" and not f.in_arm_within_k:
        return None
    if name == "arms" and following.name in ("final_context_ids", "prompt_ids") and not f.in_arm_within_k:
        return None
    if name not in ("arms", "after_rerank") and place.rank > f.k and f.listed("after_rerank") is None:
        return None
    return Loss(name, place, following.name, _between(f, name, place, following))


def _last_seen(f: GoldFacts) -> tuple[tuple[str, Place] | None, Listed | None]:
    for position in range(len(f.merged) - 1, -1, -1):
        entry = f.merged[position]
        if entry.place is not None:
            following = f.merged[position + 1] if position + 1 < len(f.merged) else None
            return (entry.name, entry.place), following
    places = [arm.place for arm in f.arms if arm.place]
    if not places or not f.merged:
        return None, None
    return ("arms", min(places, key=lambda place: place.rank)), f.merged[0]


_ORDER = (
    "arms",
    "fused",
    "after_filter",
    "after_threshold",
    "rerank_input",
    "after_rerank",
    "final_context_ids",
    "prompt_ids",
)


def _between(f: GoldFacts, before: str, place: Place, after: Listed) -> tuple[Stage, ...]:
    start, end = _ORDER.index(before), _ORDER.index(after.name)
    found = []
    # A fused list that was not logged may have lost it just as well.
    fusion = start < _ORDER.index("fused") <= end and (after.name == "fused" or len(f.arms) > 1)
    if fusion or _floor_possible(f, before, place, after):
        found.append(Stage.FUSE)
    if _filter_possible(f, start, end):
        found.append(Stage.FILTER)
    if end >= _ORDER.index("rerank_input"):
        found.append(Stage.RERANK)
    return tuple(found)


def _floor_possible(f: GoldFacts, before: str, place: Place, after: Listed) -> bool:
    """Could a score floor stand between these lists? Configured floors were checked already and did not drop it."""
    if before in ("after_threshold", "rerank_input", "after_rerank") or not unchecked(f):
        return False
    return not _kept_around(f, before, place, after)


def _kept_around(f: GoldFacts, before: str, place: Place, after: Listed) -> bool:
    """Hits ranked above and below the gold came through: no floor on that list's score, either way, dropped it."""
    if before == "arms":
        lists = [[hit.id for hit in arm.hits] for arm in f.arms if arm.place is place]
        others = {hit.id for arm in f.arms if arm.place is not place for hit in arm.hits}
    else:
        entry = f.listed(before)
        lists, others = [list(entry.ids) if entry else []], set()
        if not kept_by_arm(f, after):
            return False
    kept = [
        rank
        for ids in lists
        for rank, hit_id in enumerate(ids, start=1)
        if hit_id in after.ids and hit_id not in others
    ]
    return any(rank < place.rank for rank in kept) and any(rank > place.rank for rank in kept)


def kept_by_arm(f: GoldFacts, after: Listed) -> bool:
    """For each arm, a hit that stands below the gold there, or is not there either, came through.

    A floor behind fusion may read one arm's score, and drops what has none, wherever fusion put it.
    """
    for arm in f.arms:
        better = {hit.id for hit in (arm.hits[: arm.place.rank] if arm.place else arm.hits)}
        if all(hit_id in better for hit_id in after.ids):
            return False
    return True


def _filter_possible(f: GoldFacts, start: int, end: int) -> bool:
    if f.filter.cleared or f.filter_runs_first or (start >= _ORDER.index("after_filter") and f.listed("after_filter")):
        return False
    return end > start
