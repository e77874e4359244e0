"""Recomputes what a query would have logged downstream of a changed list: fusion, candidates, reranker, context.

Fusion, floors and the packer are recomputed as configured. A reranker cannot be: its recorded order is kept, and a
candidate that it never scored goes to the end (or to the front, where a fault says so).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ragaudit.drill.case import Case
from ragaudit.evidence.fusion import DEFAULT_K, recompute
from ragaudit.experiments.levels import Level
from ragaudit.experiments.pool import RRF, Unreplayable
from ragaudit.experiments.replay import replay
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import ArmStatus, Hit, Ranking, Trace

_NO_PACKER = {"dedupe_by": "chunk", "max_per_source": 0, "token_budget": 0, "parent_expansion": False}
_EVERY_HIT = 1_000_000


def relistable(case: Case) -> bool:
    """Do the logged lists follow from one another, so that a change can be carried downstream?"""
    trace = case.trace
    if trace.arms is None or trace.final_context_ids is None or trace.after_filter or trace.after_threshold:
        return False
    again = from_arms(case, trace.arms)
    return again is not None and all(
        _ids(getattr(again, name)) == _ids(getattr(trace, name))
        for name in ("fused", "rerank_input", "after_rerank", "final_context_ids")
    )


def _ids(ranking: Any) -> Any:
    return None if ranking is None else tuple(getattr(hit, "id", hit) for hit in ranking)


def from_arms(
    case: Case,
    arms: Mapping[str, Ranking],
    *,
    pipeline: Pipeline | None = None,
    fusing: Collection[str] | None = None,
    first: Sequence[str] = (),
    **update: Any,
) -> Trace | None:
    """The trace as it would have been with these arms; None when its lists cannot be recomputed.

    Args:
        case: The query.
        arms: The arms' lists.
        pipeline: The configuration; default: the case's own.
        fusing: The arms that fusion works on; default: all.
        first: Ids that the reranker puts on top.
        **update: Further fields of the trace to set.
    """
    pipeline = pipeline or case.pipeline
    inputs = {name: hits for name, hits in arms.items() if fusing is None or name in fusing}
    trace = case.trace.model_copy(update={"arms": dict(arms), **update})
    if trace.fused is not None:
        fused = fuse(case, inputs, pipeline)
        if fused is None:
            return None
        trace = trace.model_copy(update={"fused": fused})
    elif len(arms) != 1:
        return None
    pool = _pool(trace.model_copy(update={"arms": inputs}), pipeline, case)
    return None if pool is None else from_pool(case, trace, pool, pipeline=pipeline, first=first)


def fuse(case: Case, arms: Mapping[str, Ranking], pipeline: Pipeline) -> Ranking | None:
    """The fused list, in the form in which this query logged it; None for another method than reciprocal ranks."""
    logged = case.trace.fused or ()
    if (pipeline.fusion.method or "").casefold() not in RRF:
        return None
    scores = recompute(arms, pipeline.fusion, pipeline.fusion.k or DEFAULT_K, lambda hit_id: hit_id).scores
    place = {hit.id: n for n, hit in enumerate(logged)}
    arrival: dict[str, int] = {}
    for hits in arms.values():
        for hit in hits:
            arrival.setdefault(hit.id, len(arrival))
    order = sorted(scores, key=lambda i: (-round(scores[i], 9), place.get(i, len(place)), arrival[i]))
    everything = len({hit.id for hits in (case.trace.arms or {}).values() for hit in hits})
    order = order[: len(logged)] if 0 < len(logged) < everything else order
    by_score = bool(logged) and logged[0].rrf is None and logged[0].score is not None
    return tuple(
        Hit(
            chunk_id,
            rank=rank,
            score=round(scores[chunk_id], 8) if by_score else None,
            rrf=None if by_score else round(scores[chunk_id], 8),
            sources=tuple(arm for arm, hits in arms.items() if any(hit.id == chunk_id for hit in hits)),
        )
        for rank, chunk_id in enumerate(order, start=1)
    )


def _pool(trace: Trace, pipeline: Pipeline, case: Case) -> tuple[str, ...] | None:
    """The merged list behind fusion and its floors: a replay with neither reranker nor packer."""
    arms = list(trace.arms or ())
    bare = pipeline.with_overrides({"arms": arms, "rerank": {"model": ""}, "pack": _NO_PACKER, "k_final": _EVERY_HIT})
    found = replay(trace, bare, bare, case.store.table, Level.POOL)
    return None if isinstance(found, Unreplayable) else found


def from_pool(
    case: Case, trace: Trace, pool: Sequence[str], *, pipeline: Pipeline | None = None, first: Sequence[str] = ()
) -> Trace | None:
    """Candidates, reranker and context behind this merged list."""
    pipeline = pipeline or case.pipeline
    logged = case.trace
    candidates = pipeline.rerank.candidates or (len(logged.rerank_input) if logged.rerank_input else None)
    given = tuple(pool[:candidates]) if logged.after_rerank is not None or logged.rerank_input is not None else ()
    if logged.rerank_input is not None:
        trace = trace.model_copy(update={"rerank_input": _hits(given, logged.rerank_input)})
    if logged.after_rerank is None:
        return from_ranked(case, trace, pool, pipeline=pipeline)
    place = {hit.id: n for n, hit in enumerate(logged.after_rerank)}
    top = {chunk_id: n - len(first) for n, chunk_id in enumerate(first)}
    ranked = sorted(given, key=lambda i: top.get(i, place.get(i, len(place))))
    cut = pipeline.rerank.top_n
    if cut is None and logged.rerank_input is not None and len(logged.after_rerank) < len(logged.rerank_input):
        cut = len(logged.after_rerank)
    return with_reranked(case, trace, ranked[:cut], pipeline=pipeline)


def with_reranked(case: Case, trace: Trace, ranked: Sequence[str], *, pipeline: Pipeline | None = None) -> Trace | None:
    """The reranker returned these ids in this order; scores go with the place, as they were logged."""
    logged = case.trace.after_rerank or ()
    scores = [hit.score for hit in logged] or [None]
    hits = tuple(
        Hit(chunk_id, rank=rank, score=scores[min(rank, len(scores)) - 1])
        for rank, chunk_id in enumerate(ranked, start=1)
    )
    return from_ranked(case, trace.model_copy(update={"after_rerank": hits}), ranked, pipeline=pipeline)


def from_ranked(case: Case, trace: Trace, ranked: Sequence[str], *, pipeline: Pipeline | None = None) -> Trace | None:
    """The context that the packer makes of the last list; None when its rules cannot be recomputed."""
    pipeline = pipeline or case.pipeline
    arm = (pipeline.arms or ("ranked",))[0]
    lists: dict[str, Any] = dict.fromkeys(
        ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank", "id_map")
    )
    alone = trace.model_copy(update={**lists, "arms": {arm: tuple(Hit(i) for i in ranked)}})
    plain = pipeline.with_overrides({"arms": [arm], "thresholds": [], "k_final": trace.k_final})
    packed = replay(alone, plain, plain, case.store.table, Level.POOL)
    return None if isinstance(packed, Unreplayable) else packing(case, trace, packed)


def packing(case: Case, trace: Trace, packed: Sequence[str], prompt: Sequence[str] | None = None) -> Trace:
    """The trace with this context, and this prompt (default: the same ids), with counts that fit."""
    logged = case.trace
    read = tuple(packed if prompt is None else prompt)
    update: dict[str, Any] = {"final_context_ids": tuple(packed)}
    if logged.prompt_ids is not None or prompt is not None:
        update["prompt_ids"] = read
    if logged.prompt_tokens is not None:
        update["prompt_tokens"] = _prompt_tokens(case, read)
    if logged.final_context_chars is not None:
        update["final_context_chars"] = _chars(case, packed)
    return trace.model_copy(update=update)


def _prompt_tokens(case: Case, read: Sequence[str]) -> int | None:
    before, tokens = case.trace.prompt_ids or case.trace.final_context_ids or (), case.store.table.tokens
    if case.trace.prompt_tokens is None or any(i not in tokens for i in (*read, *before)):
        return None
    return max(case.trace.prompt_tokens + sum(tokens[i] for i in read) - sum(tokens[i] for i in before), 0)


def _chars(case: Case, packed: Sequence[str]) -> int | None:
    texts = [chunk.text if (chunk := case.store.inventory.chunk(i)) else None for i in packed]
    return None if None in texts else sum(len(text or "") for text in texts)


def _hits(ids: Sequence[str], logged: Ranking) -> Ranking:
    """These ids in the form in which the list was logged: a known hit keeps its fields, whatever its new place."""
    known = {hit.id: hit for hit in logged}
    return tuple(replace(known.get(i, Hit(i)), rank=rank) for rank, i in enumerate(ids, start=1))


# --- arms ---------------------------------------------------------------------------------------------------------


def without(
    case: Case, ids: Collection[str], *, arms: Collection[str] | None = None, gone: bool = False
) -> tuple[dict[str, Ranking], dict[str, ArmStatus] | None] | None:
    """The arms without these ids, and what each arm reports: the rows that came next move up.

    None when an arm cannot have missed them: a vector arm that returned every matching row returned these as well.

    Args:
        case: The query.
        ids: The ids to take out.
        arms: The arms to take them out of; default: all.
        gone: The rows are not in the index (or do not pass the filter) any more.
    """
    logged = case.trace.arms or {}
    status = None if case.trace.arm_status is None else dict(case.trace.arm_status)
    taken = frozenset(hit.id for hits in case.trace.lists().values() for hit in hits) | frozenset(ids)
    lists: dict[str, Ranking] = {}
    for arm in case.arms:
        hits = logged[arm.name]
        kept = [hit for hit in hits if hit.id not in ids]
        if len(kept) == len(hits) or (arms is not None and arm.name not in arms):
            lists[arm.name] = hits
            continue
        matching = arm.status.matching if arm.status else None
        rows = len(hits) - len(kept) if arm.lexical or not gone else _rows(case, arm.name, ids)
        left = None if matching is None else max(matching - rows, len(kept))
        limit = arm.status.limit if arm.status else None
        full = limit is not None and len(hits) >= limit
        if left is not None and left < len(hits) and not gone and not arm.lexical:
            return None
        wanted = min(len(hits), left) if left is not None else len(hits) if full else len(kept)
        fill = case.fillers(arm.name, wanted - len(kept), taken)
        if len(kept) + len(fill) < wanted:
            return None
        taken |= frozenset(fill)
        last = hits[-1].score
        lists[arm.name] = tuple(
            replace(hit, rank=rank) for rank, hit in enumerate([*kept, *(Hit(i, score=last) for i in fill)], start=1)
        )
        if status is not None and arm.status is not None:
            counts: dict[str, Any] = {}
            if arm.status.returned is not None:
                counts["returned"] = len(lists[arm.name])
            if matching is not None and (gone or arm.lexical):
                counts["matching"] = left
            status[arm.name] = arm.status.model_copy(update=counts)
    return lists, status


def _rows(case: Case, arm: str, ids: Collection[str]) -> int:
    """How many matching rows of the arm's index these ids are."""
    chunks = (case.store.inventory.chunk(i) for i in ids)
    known = {c.chunk_id: c for c in chunks if c is not None}
    return sum((c.present_in is None or c.present_in.get(arm, False)) and case.matches(c) for c in known.values())


def emptied(case: Case, arms: Collection[str], **fields: Any) -> tuple[dict[str, Ranking], dict[str, ArmStatus]]:
    """The arms with these returning nothing, and their status with these fields set."""
    lists = {name: () if name in arms else hits for name, hits in (case.trace.arms or {}).items()}
    status = dict(case.trace.arm_status or {})
    for name in arms:
        status[name] = status.get(name, ArmStatus()).model_copy(update={"returned": 0, **fields})
    return lists, status


# --- cases that are posed so that a fault can bite -------------------------------------------------------------------


def found_only_by(case: Case, arm: str) -> Case | None:
    """The query as it would be if this arm alone had found the gold; None when it would not be delivered then."""
    others = [other.name for other in case.arms if other.name != arm]
    here = {hit.id for hit in (case.trace.arms or {}).get(arm, ())}
    if here.isdisjoint(case.names):
        return None
    taken = without(case, case.names, arms=others)
    trace = None if taken is None else from_arms(case, taken[0], arm_status=taken[1])
    return case.became(trace) if trace is not None and case.delivered(trace) else None


def found_by_one(case: Case, *, lexical: bool) -> tuple[str, Case] | None:
    """The first arm of this kind that could have found the gold alone, and the query in which it did."""
    for arm in case.arms:
        if arm.lexical is lexical:
            alone = found_only_by(case, arm.name)
            if alone is not None:
                return arm.name, alone
    return None


def lower_in_context(case: Case) -> Case | None:
    """The query with its gold reranked to the last place of the context: delivered, and the first to be cut."""
    after = case.trace.after_rerank
    if after is None:
        return None
    names = [hit.id for hit in after if hit.id in case.names]
    rest = [hit.id for hit in after if hit.id not in case.names]
    for place in range(min(case.trace.k_final, len(after)) - len(names), 0, -1):
        trace = with_reranked(case, case.trace, [*rest[:place], *names, *rest[place:]])
        if trace is not None and case.delivered(trace) and len(trace.final_context_ids or ()) > len(names):
            return case.became(trace)
    return None
