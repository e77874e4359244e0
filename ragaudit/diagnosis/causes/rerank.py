"""Causes in the reranker: what it was given, what it did with the order, what it returned."""

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.pool import before_rerank, last_place, merged_place, pool_had, reached_pack
from ragaudit.diagnosis.registry import cause
from ragaudit.model.diagnosis import Stage


@cause(
    "top_n_cut",
    Stage.RERANK,
    "rerank",
    summary="The gold was ranked, and below the number of chunks that are kept.",
    remedy="Raise that one number; same candidates and order.",
)
def top_n_cut(f: GoldFacts) -> str | None:
    top_n, place = f.pipeline.rerank.top_n, last_place(f)
    after = f.listed("after_rerank")
    if not top_n or f.packed is not None:
        return None
    if after is not None and after.place is None and len(after.ids) == top_n < f.k and merged_place(f) is not None:
        own = f.probe_rank("rerank_rank")
        if own is not None and own <= top_n:
            return None
        return (
            f"{f.id}: {f'rank {own} by the reranker, ' if own else ''}not among the {top_n} it returned (top_n {top_n})"
        )
    if place is None or not reached_pack(f) or place.rank <= top_n or len(f.trace.final_context_ids or ()) > top_n:
        return None
    return f"{f.id}: rank {place.rank} in the last list, top_n is {top_n}"


@cause(
    "rerank_floor",
    Stage.RERANK,
    "rerank",
    summary="A threshold on the reranker's score dropped the gold.",
    remedy="Normalise the reranker's score per document, or move that threshold; one of the two.",
)
def rerank_floor(f: GoldFacts) -> str | None:
    after = f.listed("after_rerank")
    floor = next((t for t in f.pipeline.thresholds if t.on == "rerank"), None)
    if after is None or floor is None or floor.value is None or f.packed is not None:
        return None
    if after.place is None and merged_place(f) is not None and (pool_had(f) or not after.ids):
        return (
            f"{f.id}: gone behind the reranker, whose score has a floor of {floor.value:g}; {len(after.ids)} hits left"
        )
    if after.place is not None and after.place.score is not None and after.place.score < floor.value:
        return f"{f.id}: rerank score {after.place.score:g} is under the floor {floor.value:g}"
    return None


@cause(
    "candidate_cut",
    Stage.RERANK,
    "rerank",
    summary="The gold ranked below the number of candidates that the reranker was given.",
    remedy="Raise the candidate pool alone; same reranker and top_n.",
)
def candidate_cut(f: GoldFacts) -> str | None:
    place = merged_place(f)
    given, candidates = f.listed("rerank_input"), f.pipeline.rerank.candidates
    if place is None or f.listed("after_rerank") is None:
        return None
    # Fewer than are configured: a floor that nobody wrote down may have taken it out before.
    short = given is not None and len(given.ids) < (candidates or 0) and not f.pipeline.floors_known
    if given is not None and given.place is None and given.ids and place.rank > len(given.ids) and not short:
        return f"{f.id}: rank {place.rank}, and the reranker was given {len(given.ids)} candidates"
    after = f.listed("after_rerank")
    if (
        given is None
        and candidates is not None
        and place.rank > candidates
        and after is not None
        and after.place is None
    ):
        return f"{f.id}: rank {place.rank}, and the reranker is given {candidates} candidates"
    return None


@cause(
    "reranker_noop",
    Stage.RERANK,
    "rerank",
    summary="The reranker kept its input's order: its scores do not reach the documents, or are all equal.",
    remedy="Map scores to documents by the model's own index, in full precision; same model and candidates.",
)
def reranker_noop(f: GoldFacts) -> str | None:
    after = f.listed("after_rerank")
    before = before_rerank(f)
    if after is None or after.hits is None or before is None or after.place is None or after.place.rank <= f.k:
        return None
    if len(after.ids) < 3 or after.ids != before[: len(after.ids)]:
        return None
    scores = {hit.value for hit in after.hits}
    tied = f", every score {next(iter(scores))}" if len(scores) == 1 else ""
    return f"{f.id}: rank {after.place.rank} before and after the reranker, which changed no position{tied}"


@cause(
    "reranker_flat",
    Stage.RERANK,
    "rerank",
    summary="The reranker's scores are squeezed together, so something else decided the order.",
    remedy="Remove the second squashing of scores that are already in 0..1; same model and candidates.",
)
def reranker_flat(f: GoldFacts) -> str | None:
    after = f.listed("after_rerank")
    if after is None or after.hits is None or after.place is None or after.place.rank <= f.k:
        return None
    scores = [hit.value for hit in after.hits if hit.value is not None]
    if len(scores) < 3 or after.place.score is None:
        return None
    better = sum(score > after.place.score for score in scores) + 1
    if better <= f.k and max(scores) - min(scores) < 0.01:
        return (
            f"{f.id}: rank {after.place.rank}, though {better} by the reranker's own score; "
            f"all scores lie in {min(scores):g}..{max(scores):g}"
        )
    return None


@cause(
    "reranker_order",
    Stage.RERANK,
    "rerank",
    summary="By the reranker's own score the gold is within K; the list that came out has another order.",
    remedy="Sort by the reranker's score, mapped to documents by its own index; nothing else.",
)
def reranker_order(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rerank_rank")
    after = f.listed("after_rerank")
    if rank is None or after is None or rank > min(f.k, len(after.ids)):
        return None
    logged = f"rank {after.place.rank}" if after.place else "absent"
    return f"{f.id}: rank {rank} by the reranker's own score, {logged} in its output"


@cause(
    "reranker_skipped",
    Stage.RERANK,
    "rerank",
    summary="The gold was handed to the reranker, which logged no output: the order before it was kept.",
    remedy="Let a failing rerank call fail visibly and repair that one call; same candidates.",
)
def reranker_skipped(f: GoldFacts) -> str | None:
    given = f.listed("rerank_input")
    if given is None or given.place is None or given.place.rank <= f.k or f.listed("after_rerank") is not None:
        return None
    rank = f.probe_rank("rerank_rank")
    own = f", rank {rank} by the reranker's own score" if rank is not None else ""
    return f"{f.id}: candidate {given.place.rank} of {len(given.ids)} for the reranker{own}; no output was logged"


@cause(
    "reranker_demotion",
    Stage.RERANK,
    "rerank",
    summary="The reranker moved the gold out of the top K, or did not lift it from the pool it was given.",
    remedy="Blend the reranker's score with the fused one, or turn it off; one of the two.",
)
def reranker_demotion(f: GoldFacts) -> str | None:
    after, place = f.listed("after_rerank"), merged_place(f)
    if after is None or place is None:
        return None
    if after.place is not None and after.place.rank > f.k:
        return f"{f.id}: rank {place.rank} before the reranker, {after.place.rank} after it, K is {f.k}"
    top_n = f.pipeline.rerank.top_n
    if after.place is None and (pool_had(f) is True) and after.ids:
        cut = f"top_n {top_n}" if top_n is not None else f"{len(after.ids)} kept"
        return f"{f.id}: rank {place.rank} before the reranker, not among its output ({cut})"
    return None


@cause(
    "pool_cut",
    Stage.RERANK,
    "pool",
    summary="The pool that was fetched held the gold below K, and nothing reordered it before the cut.",
    remedy="Rerank the pool before the cut, or raise K; one of the two.",
)
def pool_cut(f: GoldFacts) -> str | None:
    if len(f.arms) > 1 and (f.listed("fused") is None or not all(arm.place for arm in f.arms)):
        return None  # the arm that misses it is the question, or the merging that nobody logged
    for arm in f.arms:
        limit = arm.status.limit if arm.status else None
        if arm.place and limit is not None and limit > f.k and not f.in_arm_within_k:
            return f"{f.id}: rank {arm.place.rank} of the {limit} fetched from {arm.name}, cut at {f.k}"
    return None
