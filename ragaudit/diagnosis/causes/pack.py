"""Causes in the packer and the prompt: parents, dedupe, limits, budget, and what was rendered in the end."""

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.pool import last_place, reached_pack
from ragaudit.diagnosis.registry import cause
from ragaudit.evidence.identity import Via, hashes
from ragaudit.evidence.spans import find
from ragaudit.model.diagnosis import Stage
from ragaudit.model.texts import content_hash


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
    place, chunk, texts = f.read_at, f.row.chunk, f.trace.context_texts or {}
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


@cause(
    "parent_map",
    Stage.RERANK,
    "pack",
    summary="The hit points to a parent that no row has, so there was no text to pack.",
    remedy="Derive parent ids from a stable key and rebuild that one document; the look-up must resolve.",
)
def parent_map(f: GoldFacts) -> str | None:
    place = last_place(f)
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
    place = last_place(f)
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
    place = last_place(f)
    if place is None or f.packed is not None or place.via not in (Via.MAPPED, Via.ALIAS) or not reached_pack(f):
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
    if not key or f.packed is not None or not reached_pack(f):
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
    if not limit or f.packed is not None or not reached_pack(f):
        return None
    same = [i for i in f.trace.final_context_ids or () if _alike(f, i, by_text=False)]
    if len(same) >= limit:
        return f"{f.id}: {len(same)} chunks of its source are packed, {limit} are allowed"
    return None


@cause(
    "token_budget",
    Stage.RERANK,
    "pack",
    summary="The token budget was spent before the gold's turn came.",
    remedy="Raise the token budget, or shorten the first chunks; one of the two.",
)
def token_budget(f: GoldFacts) -> str | None:
    budget, place = f.pipeline.pack.token_budget, last_place(f)
    if not budget or place is None or place.rank > f.k or f.packed is not None or not reached_pack(f):
        return None
    packed = len(f.trace.final_context_ids or ())
    if packed >= f.k:
        return None
    own = f.row.chunk.tokens if f.row.chunk else None
    rows = [f.identities.inventory.chunk(i) for i in f.trace.final_context_ids or ()]
    used = [row.tokens if row else None for row in rows]
    if own is not None and None not in used and sum(n or 0 for n in used) + own <= budget:
        return None  # there was room for it
    size = f", the chunk has {own}" if own is not None else ""
    return f"{f.id}: rank {place.rank} of K {f.k}, {packed} packed; the budget is {budget} tokens{size}"


@cause(
    "pack_loss",
    Stage.RERANK,
    "residue_pack",
    summary="The gold was within K in the last list and is not in the context.",
    remedy="Compare the ids before and after packing; change the one rule that dropped it.",
)
def pack_loss(f: GoldFacts) -> str | None:
    place = last_place(f)
    return f"{f.id}: rank {place.rank} in the last list, and not packed" if place and reached_pack(f) else None
