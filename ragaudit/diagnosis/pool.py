"""The candidates on their way to the context: where the gold stood last, and what the reranker was given."""

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.location import kept_by_arm
from ragaudit.evidence.journey import Place


def merged_place(f: GoldFacts) -> Place | None:
    """The gold's place in the last list before the reranker: merged lists first, else its best arm."""
    for name in ("rerank_input", "after_threshold", "after_filter", "fused"):
        entry = f.listed(name)
        if entry is not None and entry.place is not None:
            return entry.place
    found = [arm.place for arm in f.arms if arm.place]
    return min(found, key=lambda place: place.rank, default=None)


def last_place(f: GoldFacts) -> Place | None:
    """The gold's place in the last list before the context."""
    after = f.listed("after_rerank")
    if after is not None:
        return after.place
    return merged_place(f)


def reached_pack(f: GoldFacts) -> bool:
    """The last list before the context has the gold within K."""
    place = last_place(f)
    before = [entry for entry in f.merged if entry.name not in ("final_context_ids", "prompt_ids")]
    last = before[-1] if before else None
    if last is None and len(f.arms) > 1:
        return False  # nobody logged how their lists became one
    return place is not None and place.rank <= f.k and (last is None or last.place is not None)


def before_rerank(f: GoldFacts) -> tuple[str, ...] | None:
    """The ids in the order that the reranker was given them; None when several arms and no merged list were logged."""
    for name in ("rerank_input", "after_threshold", "after_filter", "fused"):
        entry = f.listed(name)
        if entry is not None:
            return entry.ids
    return tuple(hit.id for hit in f.arms[0].hits) if len(f.arms) == 1 else None


def pool_had(f: GoldFacts) -> bool | None:
    """Did the reranker's input hold the gold? None when the input was not logged and a cut may stand before it."""
    given = f.listed("rerank_input")
    if given is not None:
        return given.place is not None
    place, candidates = merged_place(f), f.pipeline.rerank.candidates
    if place is None:
        return False
    if candidates is not None and place.rank > candidates:
        return False
    if candidates is not None and f.pipeline.floors_known and before_rerank(f) is not None:
        return True
    before, after = before_rerank(f), f.listed("after_rerank")
    if before is None or after is None or not (f.pipeline.floors_known or kept_by_arm(f, after)):
        return None
    if len(after.ids) == f.pipeline.rerank.top_n:
        return True
    # A hit ranked below the gold came through: neither a cut nor a floor stood between.
    below = set(before[place.rank :])
    return True if any(hit_id in below for hit_id in after.ids) else None
