"""Causes between the candidates and the prompt: the reranker, cuts, dedupe, budget, parents, the rendered prompt."""

from ragaudit.diagnosis.facts import GoldFacts, Listed
from ragaudit.diagnosis.registry import cause
from ragaudit.evidence.identity import Via, hashes
from ragaudit.evidence.journey import Place
from ragaudit.evidence.spans import content_hash, find
from ragaudit.model.diagnosis import Stage

# --- packed, and not read ------------------------------------------------------------------------------------------


@cause(
    "prompt_truncation",
    Stage.RERANK,
    "prompt",
    summary="The gold was packed and is not in the prompt as it was rendered.",
    remedy="Render every packed chunk, or enlarge the prompt window; one of the two. Log ids from the rendered prompt.",
)
def prompt_truncation(f: GoldFacts) -> str | None:
    if f.packed is not None and f.delivered is False:
        read = len(f.trace.prompt_ids or ())
        packed = len(f.trace.final_context_ids or ())
        return f"{f.id}: position {f.packed.rank} of {packed} packed, and the prompt holds {read} of them without it"
    return None


@cause(
    "prompt_window",
    Stage.RERANK,
    "prompt_unsure",
    summary="The prompt is longer than the model's window: part of the context was not read.",
    remedy="Lower the packed tokens, or use a model with a larger window; one of the two.",
)
def prompt_window(f: GoldFacts) -> str | None:
    window, tokens = f.pipeline.generator.context_window, f.trace.prompt_tokens
    if window is None or tokens is None or tokens <= window:
        return None
    return f"the prompt has {tokens} tokens, the model reads {window}"


@cause(
    "packed_text",
    Stage.RERANK,
    "prompt_unsure",
    summary="The text packed under the gold's id is not the gold's text.",
    remedy="Look the text up by the chunk's own id when packing; nothing else.",
)
def packed_text(f: GoldFacts) -> str | None:
    place, chunk, texts = f.packed, f.row.chunk, f.trace.context_texts or {}
    if place is None or place.hit_id not in texts or chunk is None or place.via in (Via.PARENT, Via.SOURCE):
        return None
    packed = texts[place.hit_id]
    span = f.row.gold.span
    if span is not None:
        if f.row.span.chunk is True and find(span, packed) is False:
            return f"{f.id}: the text packed under {place.hit_id} does not hold the answer's words"
        return None
    if chunk.text is not None and content_hash(packed) not in hashes(chunk) and find(chunk.text, packed) is not True:
        return f"{f.id}: the text packed under {place.hit_id} differs from the chunk's"
    return None


# --- lost while the context was assembled ---------------------------------------------------------------------------


@cause(
    "parent_map",
    Stage.RERANK,
    "pack",
    summary="The hit points to a parent that no row has, so there was no text to pack.",
    remedy="Derive parent ids from a stable key and rebuild that one document; the look-up must resolve.",
)
def parent_map(f: GoldFacts) -> str | None:
    place = _last_place(f)
    if place is None or f.packed is not None:
        return None
    hit = f.identities.inventory.chunk(place.hit_id)
    parent_id = hit.parent_id if hit else None
    if not f.pipeline.pack.parent_expansion or parent_id is None or not f.identities.inventory.chunks:
        return None
    if f.identities.inventory.chunk(parent_id) is None:
        return f"{place.hit_id} (for {f.id}) points to parent {parent_id}, which no row has"
    return None


@cause(
    "parent_shared",
    Stage.RERANK,
    "pack",
    summary="The hit's parent record belongs to another source: two documents share one parent id.",
    remedy="Make parent ids of document and text together, re-index one document; nothing else.",
)
def parent_shared(f: GoldFacts) -> str | None:
    place = _last_place(f)
    hit = f.identities.inventory.chunk(place.hit_id) if place is not None and f.packed is None else None
    parent = f.identities.inventory.chunk(hit.parent_id or "") if hit else None
    if hit is None or parent is None or None in (parent.source_id, hit.source_id):
        return None
    if parent.source_id == hit.source_id:
        return None
    return f"{hit.chunk_id} (for {f.id}) points to parent {hit.parent_id} of another source, {parent.source_id}"


@cause(
    "id_lookup",
    Stage.RERANK,
    "pack",
    summary="The gold was found under a store's id, and its text was looked up by that id in vain.",
    remedy="Look texts up by the chunk id in the payload; one field.",
)
def id_lookup(f: GoldFacts) -> str | None:
    place = _last_place(f)
    if place is None or f.packed is not None or place.via not in (Via.MAPPED, Via.ALIAS) or not _reached_pack(f):
        return None
    return f"{f.id} was found as {place.hit_id}; the context, looked up by that id, has none of it"


@cause(
    "duplicate_collapse",
    Stage.RERANK,
    "pack",
    summary="Duplicate removal keeps one chunk of a source or text, and dropped the gold for its neighbour.",
    remedy="Deduplicate by chunk instead; one key.",
)
def duplicate_collapse(f: GoldFacts) -> str | None:
    key = (f.pipeline.pack.dedupe_by or "").casefold()
    if not key or f.packed is not None or not _reached_pack(f):
        return None
    by_text = any(word in key for word in ("text", "content", "hash"))
    kept = next((i for i in f.trace.final_context_ids or () if i != f.id and _alike(f, i, by_text)), None)
    if kept is None or "chunk" in key:
        return None
    return f"{f.id}: dropped for {kept}, {'the same text' if by_text else 'of the same source'} (dedupe by {key!r})"


def _alike(f: GoldFacts, other: str, by_text: bool) -> bool:
    mine, its = f.row.chunk, f.identities.inventory.chunk(other)
    if its is None:
        return False
    if by_text:
        return mine is not None and not hashes(mine).isdisjoint(hashes(its))
    source = f.row.gold.source_id or (mine.source_id if mine else None)
    return source is not None and its.source_id == source


@cause(
    "max_per_source",
    Stage.RERANK,
    "pack",
    summary="The packer takes a limited number of chunks a source, and the gold was one too many.",
    remedy="Raise that one number; same candidates.",
)
def max_per_source(f: GoldFacts) -> str | None:
    limit = f.pipeline.pack.max_per_source
    if not limit or f.packed is not None or not _reached_pack(f):
        return None
    same = [i for i in f.trace.final_context_ids or () if _alike(f, i, by_text=False)]
    if len(same) >= limit:
        return f"{f.id}: {len(same)} chunks of its source are packed, {limit} are allowed"
    return None


@cause(
    "top_n_cut",
    Stage.RERANK,
    "rerank",
    summary="The gold was ranked, and below the number of chunks that are kept.",
    remedy="Raise that one number; same candidates and order.",
)
def top_n_cut(f: GoldFacts) -> str | None:
    top_n, place = f.pipeline.rerank.top_n, _last_place(f)
    after = f.listed("after_rerank")
    if not top_n or f.packed is not None:
        return None
    if after is not None and after.place is None and len(after.ids) == top_n < f.k and _merged_place(f) is not None:
        own = f.probe_rank("rerank_rank")
        if own is not None and own <= top_n:
            return None
        return (
            f"{f.id}: {f'rank {own} by the reranker, ' if own else ''}not among the {top_n} it returned (top_n {top_n})"
        )
    if place is None or not _reached_pack(f) or place.rank <= top_n or len(f.trace.final_context_ids or ()) > top_n:
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
    if after.place is None and _merged_place(f) is not None and (_pool_had(f) or not after.ids):
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
    place = _merged_place(f)
    given, candidates = f.listed("rerank_input"), f.pipeline.rerank.candidates
    if place is None or f.listed("after_rerank") is None:
        return None
    if given is not None and given.place is None and given.ids and place.rank > len(given.ids):
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
    before = _before_rerank(f)
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
    after, place = f.listed("after_rerank"), _merged_place(f)
    if after is None or place is None:
        return None
    if after.place is not None and after.place.rank > f.k:
        return f"{f.id}: rank {place.rank} before the reranker, {after.place.rank} after it, K is {f.k}"
    top_n = f.pipeline.rerank.top_n
    if after.place is None and (_pool_had(f) is True) and after.ids:
        cut = f"top_n {top_n}" if top_n is not None else f"{len(after.ids)} kept"
        return f"{f.id}: rank {place.rank} before the reranker, not among its output ({cut})"
    return None


@cause(
    "token_budget",
    Stage.RERANK,
    "pack",
    summary="The token budget was spent before the gold's turn came.",
    remedy="Raise the token budget, or shorten the first chunks; one of the two.",
)
def token_budget(f: GoldFacts) -> str | None:
    budget, place = f.pipeline.pack.token_budget, _last_place(f)
    if not budget or place is None or place.rank > f.k or f.packed is not None or not _reached_pack(f):
        return None
    packed = len(f.trace.final_context_ids or ())
    if packed >= f.k:
        return None
    own = f.row.chunk.tokens if f.row.chunk else None
    size = f", the chunk has {own}" if own is not None else ""
    return f"{f.id}: rank {place.rank} of K {f.k}, {packed} packed; the budget is {budget} tokens{size}"


@cause(
    "pool_cut",
    Stage.RERANK,
    "pool",
    summary="The pool that was fetched held the gold below K, and nothing reordered it before the cut.",
    remedy="Rerank the pool before the cut, or raise K; one of the two.",
)
def pool_cut(f: GoldFacts) -> str | None:
    for arm in f.arms:
        limit = arm.status.limit if arm.status else None
        if arm.place and limit is not None and limit > f.k and arm.place.rank > f.k:
            return f"{f.id}: rank {arm.place.rank} of the {limit} fetched from {arm.name}, cut at {f.k}"
    return None


@cause(
    "pack_loss",
    Stage.RERANK,
    "residue_pack",
    summary="The gold was within K in the last list and is not in the context.",
    remedy="Compare the ids before and after packing; change the one rule that dropped it.",
)
def pack_loss(f: GoldFacts) -> str | None:
    place = _last_place(f)
    return f"{f.id}: rank {place.rank} in the last list, and not packed" if place and _reached_pack(f) else None


def _merged_place(f: GoldFacts) -> Place | None:
    """The gold's place in the last list before the reranker: merged lists first, else its best arm."""
    for name in ("rerank_input", "after_threshold", "after_filter", "fused"):
        entry = f.listed(name)
        if entry is not None and entry.place is not None:
            return entry.place
    found = [arm.place for arm in f.arms if arm.place]
    return min(found, key=lambda place: place.rank, default=None)


def _last_place(f: GoldFacts) -> Place | None:
    """The gold's place in the last list before the context."""
    after = f.listed("after_rerank")
    if after is not None:
        return after.place
    return _merged_place(f)


def _reached_pack(f: GoldFacts) -> bool:
    """The last list before the context has the gold within K."""
    place = _last_place(f)
    last: Listed | None = next((e for e in reversed(f.merged) if e.name != "final_context_ids"), None)
    return place is not None and place.rank <= f.k and (last is None or last.place is not None)


def _before_rerank(f: GoldFacts) -> tuple[str, ...] | None:
    for name in ("rerank_input", "after_threshold", "after_filter", "fused"):
        entry = f.listed(name)
        if entry is not None:
            return entry.ids
    return tuple(hit.id for hit in f.arms[0].hits) if len(f.arms) == 1 else None


def _pool_had(f: GoldFacts) -> bool | None:
    """Did the reranker's input hold the gold? None when the input was not logged and a cut may stand before it."""
    given = f.listed("rerank_input")
    if given is not None:
        return given.place is not None
    place, candidates = _merged_place(f), f.pipeline.rerank.candidates
    if place is None:
        return False
    if candidates is not None:
        return place.rank <= candidates
    before, after = _before_rerank(f), f.listed("after_rerank")
    if before is None or after is None:
        return None
    if len(after.ids) == f.pipeline.rerank.top_n:
        return True
    # A hit ranked below the gold came through: neither a cut nor a floor stood between.
    below = set(before[place.rank :])
    return True if any(hit_id in below for hit_id in after.ids) else None
