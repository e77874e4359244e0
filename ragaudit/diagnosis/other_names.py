"""What may be otherwise than it looks: a gold id that went by another name, or stood behind rows of others."""

from dataclasses import dataclass

from ragaudit.diagnosis.facts import GoldFacts, Listed
from ragaudit.model.diagnosis import Stage

MIN_HITS = 3
"""Fewer hits that share nothing show nothing."""


@dataclass(frozen=True)
class Doubt:
    """Stages that may have lost it all the same, what shows that, and what would settle it."""

    stages: tuple[Stage, ...]
    shows: str
    log: str


def doubts(f: GoldFacts) -> tuple[Doubt, ...]:
    """What keeps "in no arm" from meaning that no arm found it, and "below K" from meaning that it ranks low."""
    found = (_changed(f), _disjoint_arms(f)) if not f.in_any_arm else ()
    return tuple(doubt for doubt in (*found, _unchecked(f)) if doubt is not None)


def _changed(f: GoldFacts) -> Doubt | None:
    """A later list shares nothing with what the arms returned: ids change on the way, or everything was lost there."""
    earlier = {name for arm in f.arms for hit in arm.hits for name in _names(f, hit.id)}
    if not earlier:
        return None
    for entry in f.merged:
        if all(earlier.isdisjoint((hit_id, f.query.canonical(hit_id))) for hit_id in entry.ids):
            return _lost_at(f, entry)
    return None


def _lost_at(f: GoldFacts, entry: Listed) -> Doubt:
    early = entry.name in ("fused", "after_filter", "after_threshold")
    may_fuse = f.listed("fused") is None and (len(f.arms) > 1 or not f.pipeline.floors_known)
    stages = (*([Stage.FUSE] if early or may_fuse else []), *([] if early else [Stage.RERANK]))
    what = "holds none of what the arms returned, by these ids" if entry.ids else "is empty, though the arms are not"
    return Doubt(stages, f"{entry.name} {what}", "id_map (or chunks.jsonl: aliases, parent_id)")


def _disjoint_arms(f: GoldFacts) -> Doubt | None:
    """The arms name their hits in ways of their own: the same chunk may go by several ids."""
    looks = [f.query.arm_forms[arm.name] for arm in f.arms if len(arm.hits) >= MIN_HITS]
    if len(looks) < 2 or f.row.chunk is not None:
        return None
    if any(one & other for n, one in enumerate(looks) for other in looks[n + 1 :]):
        return None
    return Doubt((Stage.FUSE,), "each arm has ids of another form", "id_map (or chunks.jsonl: aliases)")


def _unchecked(f: GoldFacts) -> Doubt | None:
    """No filter was sent for a user who has principals, and no table was given that could say whose the hits are."""
    sent = [status.filter for status in (f.trace.arm_status or {}).values() if status.filter]
    inventory = f.identities.inventory
    if not f.trace.user_acl or f.trace.filters_applied != {} or sent:
        return None
    if (f.arms and not f.in_any_arm) or inventory.chunks is not None or inventory.sources is not None:
        return None
    return Doubt((Stage.FILTER,), "no filter was sent, and whose the hits are is not known", "chunks.jsonl: acl")


def _names(f: GoldFacts, hit_id: str) -> set[str]:
    """The ids that a later list may have this hit under: its own, its parent's, its source's."""
    chunk = f.identities.inventory.chunk(hit_id)
    related = (chunk.chunk_id, chunk.parent_id, chunk.source_id) if chunk is not None else ()
    return {hit_id, f.query.canonical(hit_id), *(name for name in related if name is not None)}
