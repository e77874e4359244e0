"""Recomputes a query's final context from its recorded lists under a changed configuration.

It begins at the last recorded list that the change does not touch. Only what the lists hold is used: a candidate that
the reranker never scored, or a row that no arm returned, makes the change unreplayable for that query. Replaying the
configuration as it was, from the same list on, must give the logged context exactly; where it does not, the query is
left out of that change, and counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ragaudit.evidence.fusion import DEFAULT_K
from ragaudit.evidence.identity import hashes
from ragaudit.experiments.levels import Level
from ragaudit.experiments.pool import SHORT, Listed, Unreplayable, passes, recomputed_pool, recorded_pool
from ragaudit.experiments.refilter import refiltered_pool
from ragaudit.model.inventory import Inventory
from ragaudit.model.pipeline import Pack, Pipeline
from ragaudit.model.trace import Ranking, Trace

OFF = ("", "none")
"""Names that say that there is no reranker."""

_NOTHING_KNOWN: Mapping[str, bool] = {}
_CUT = "the reranker's output was cut, and the scores below the cut are not logged"


@dataclass(frozen=True)
class ChunkTable:
    """What packing needs to know of a chunk: its source, its length in tokens, its text's identity."""

    source: Mapping[str, str]
    tokens: Mapping[str, int]
    text: Mapping[str, str]

    @classmethod
    def of(cls, inventory: Inventory) -> "ChunkTable":
        """From the chunk table, by id and alias."""
        source, tokens, text = {}, {}, {}
        for chunk in (inventory.chunks or {}).values():
            digest = min(hashes(chunk), default=None)
            for name in (chunk.chunk_id, *chunk.aliases):
                if chunk.source_id is not None:
                    source[name] = chunk.source_id
                if chunk.tokens is not None:
                    tokens[name] = chunk.tokens
                if digest is not None:
                    text[name] = digest
        return cls(source, tokens, text)


def replay(
    trace: Trace,
    was: Pipeline,
    now: Pipeline,
    chunks: ChunkTable,
    level: Level,
    meets: Mapping[str, bool] = _NOTHING_KNOWN,
) -> tuple[str, ...] | Unreplayable:
    """The ids that would have been packed, in order.

    Args:
        trace: The query as it was logged.
        was: What it was logged under.
        now: The configuration to replay; `was` for no change.
        chunks: What packing needs to know.
        level: Where to begin: `level_of(was, now)`, or earlier.
        meets: Listed id -> does the row meet the filter that was sent, where that is known.
    """
    if level is Level.SEARCH:
        return Unreplayable("what the search returns is not recorded for another configuration")
    if level is Level.PACK and trace.after_rerank is not None and not _is_off(was):
        ranked: Listed | Unreplayable = _reranker_output(trace, trace.after_rerank, now)
    else:
        pool = _pool(trace, was, now, level, meets)
        ranked = pool if isinstance(pool, Unreplayable) else _reranked(trace, was, now, pool)
    if isinstance(ranked, Unreplayable):
        return ranked
    k = trace.k_final if now.k_final is None else now.k_final
    packed = _packed(ranked.ids, k, now.pack, chunks)
    if isinstance(packed, Unreplayable):
        return packed
    ids, ran_out = packed
    if ran_out and not ranked.is_whole:
        return Unreplayable(SHORT if trace.after_rerank is None or _is_off(now) else _CUT)
    return ids


def _pool(trace: Trace, was: Pipeline, now: Pipeline, level: Level, meets: Mapping[str, bool]) -> Listed | Unreplayable:
    if level is Level.POOL:
        return recomputed_pool(trace, was, now)
    return refiltered_pool(trace, was, now, meets) if level is Level.FILTER else recorded_pool(trace, now)


# --- reranking ----------------------------------------------------------------------------------------------------


def _is_off(pipeline: Pipeline) -> bool:
    return pipeline.rerank.model in OFF


def _reranker_output(trace: Trace, output: Ranking, now: Pipeline) -> Listed:
    """What the reranker returned goes to the packer as it was."""
    ids = _above_floor(tuple(hit.id for hit in output), output, now)
    top_n = now.rerank.top_n
    is_all = trace.rerank_input is not None and {hit.id for hit in trace.rerank_input} <= {hit.id for hit in output}
    return Listed(ids[:top_n] if top_n else ids, is_whole=is_all or bool(top_n and len(output) >= top_n))


def _reranked(trace: Trace, was: Pipeline, now: Pipeline, pool: Listed) -> Listed | Unreplayable:
    """The order behind the reranker: its recorded order, over the candidates that this configuration would give it."""
    output = trace.after_rerank
    if _is_off(now) or (output is None and was.rerank.model == now.rerank.model):
        return pool
    if output is None:
        return Unreplayable("no reranker ran, so its scores are not recorded")
    if was.rerank.model != now.rerank.model:
        return Unreplayable("the scores of another reranker are not recorded")
    wanted = now.rerank.candidates
    if not pool.is_whole and (wanted is None or wanted > len(pool.ids)):
        return Unreplayable(SHORT)
    candidates = pool.ids[:wanted]
    place = {hit.id: rank for rank, hit in enumerate(output)}
    given = place if trace.rerank_input is None else {hit.id for hit in trace.rerank_input}
    if any(i not in given for i in candidates):
        return Unreplayable("the reranker never scored some of the candidates")
    kept = sorted((i for i in candidates if i in place), key=place.__getitem__)
    weight = (now.rerank.model_extra or {}).get("blend")
    if isinstance(weight, (int, float)) and not isinstance(weight, bool):
        kept = _blended(kept, candidates, weight)
    ids = _above_floor(tuple(kept), output, now)
    top_n = now.rerank.top_n
    is_whole = len(kept) == len(candidates) or bool(top_n and len(kept) >= top_n)
    return Listed(ids[:top_n] if top_n else ids, is_whole)


def _above_floor(ids: tuple[str, ...], output: Ranking, now: Pipeline) -> tuple[str, ...]:
    scores = {hit.id: hit.value for hit in output}
    floors = [floor for floor in now.thresholds if floor.on == "rerank"]
    return tuple(i for i in ids if all(passes(scores[i], floor) for floor in floors))


def _blended(reranked: list[str], candidates: tuple[str, ...], weight: float) -> list[str]:
    """Both orders by reciprocal rank: `weight` for the reranker, the rest for the order it was given."""
    before = {i: rank for rank, i in enumerate(candidates, start=1)}
    score = {
        i: weight / (DEFAULT_K + rank) + (1 - weight) / (DEFAULT_K + before[i])
        for rank, i in enumerate(reranked, start=1)
    }
    return sorted(reranked, key=lambda i: (-score[i], before[i]))


# --- packing ------------------------------------------------------------------------------------------------------


def _packed(
    ranked: tuple[str, ...], k: int, pack: Pack, chunks: ChunkTable
) -> tuple[tuple[str, ...], bool] | Unreplayable:
    """The context, and whether the packer came to the end of the list and would have taken more."""
    if pack.parent_expansion:
        return Unreplayable("parents are packed for their children")
    key = _dedupe_key(pack.dedupe_by, chunks)
    if key is None:
        return Unreplayable(f"duplicates are removed by {pack.dedupe_by!r}")
    packed: list[str] = []
    seen: set[str] = set()
    per_source: dict[str, int] = {}
    left = pack.token_budget or None
    for chunk_id in ranked:
        if len(packed) == k:
            break
        same = key(chunk_id)
        source = chunks.source.get(chunk_id, chunk_id)
        if same in seen or (pack.max_per_source and per_source.get(source, 0) >= pack.max_per_source):
            continue
        if left is not None:
            tokens = chunks.tokens.get(chunk_id)
            if tokens is None:
                return Unreplayable("token counts are not known, and the budget needs them")
            if tokens > left:
                if pack.on_overflow == "stop":
                    return tuple(packed), False
                continue
            left -= tokens
        packed.append(chunk_id)
        seen.add(same)
        per_source[source] = per_source.get(source, 0) + 1
    return tuple(packed), len(packed) < k


def _dedupe_key(rule: str | None, chunks: ChunkTable) -> Callable[[str], str] | None:
    word = (rule or "chunk").casefold()
    if "chunk" in word or word in ("id", "none"):
        return lambda chunk_id: chunk_id
    if "minhash" in word or "simhash" in word:
        return None
    if any(part in word for part in ("text", "content", "hash")):
        return lambda chunk_id: chunks.text.get(chunk_id, chunk_id)
    if any(part in word for part in ("source", "file", "doc")):
        return lambda chunk_id: chunks.source.get(chunk_id, chunk_id)
    return None
