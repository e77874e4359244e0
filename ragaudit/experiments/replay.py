"""Recomputes a query's final context from its recorded lists under a changed configuration.

Only what the lists hold is used: a candidate that the reranker never scored, or a row that no arm returned, makes the
change unreplayable for that query. Replaying the configuration as it was must give the logged context exactly; a
trace for which it does not is left out, and counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ragaudit.evidence.fusion import DEFAULT_K, recompute
from ragaudit.evidence.identity import hashes
from ragaudit.model.inventory import Inventory
from ragaudit.model.pipeline import Pack, Pipeline, Threshold
from ragaudit.model.trace import Hit, Ranking, Trace

_RRF = {"rrf", "reciprocal_rank_fusion"}
_DENSE_WORDS = ("dense", "vector", "cosine", "similarity")
_FUSED_WORDS = ("fused", "rrf", "hybrid", "merged")


@dataclass(frozen=True)
class Unreplayable:
    """Why the recorded lists cannot tell what a change would do for a query."""

    reason: str


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


def replay(trace: Trace, pipeline: Pipeline, chunks: ChunkTable) -> tuple[str, ...] | Unreplayable:
    """The ids that would have been packed under this configuration, in order."""
    pool = _pool(trace, pipeline)
    if isinstance(pool, Unreplayable):
        return pool
    ranked = _reranked(trace, pipeline, pool)
    if isinstance(ranked, Unreplayable):
        return ranked
    return _packed(ranked, trace.k_final if pipeline.k_final is None else pipeline.k_final, pipeline.pack, chunks)


def reproduces(trace: Trace, pipeline: Pipeline, chunks: ChunkTable) -> bool:
    """Does replaying no change give the context that was logged?"""
    return trace.final_context_ids is not None and replay(trace, pipeline, chunks) == trace.final_context_ids


# --- candidates ---------------------------------------------------------------------------------------------------


def _pool(trace: Trace, pipeline: Pipeline) -> tuple[str, ...] | Unreplayable:
    """The merged list behind fusion and floors."""
    if trace.arms is None:
        return Unreplayable("arms are not logged")
    if trace.after_filter is not None:
        return Unreplayable("a filter behind the search may drop rows that only a run would show")
    if trace.id_map:
        return Unreplayable("lists use several id spaces")
    named = [name for name in trace.arms if pipeline.arms is None or name in pipeline.arms]
    arms = {name: _floored(name, trace.arms[name], pipeline) for name in named}
    if len(arms) == 1 and trace.fused is None:
        merged = tuple(hit.id for hit in next(iter(arms.values())))
        return _fused_floor(merged, {}, arms, pipeline)
    method = (pipeline.fusion.method or "").casefold()
    if method not in _RRF:
        return Unreplayable(f"fusion {method or 'method unknown'} is not recomputed from ranks")
    fused = recompute(arms, pipeline.fusion, pipeline.fusion.k or DEFAULT_K, lambda hit_id: hit_id)
    order = _tie_order(trace, arms, fused.scores)
    return _fused_floor(order, fused.scores, arms, pipeline)


def _tie_order(trace: Trace, arms: Mapping[str, Ranking], scores: Mapping[str, float]) -> tuple[str, ...]:
    """By score; ties keep the logged order, then the order in which the arms name the ids."""
    logged = {hit.id: rank for rank, hit in enumerate(trace.fused or ())}
    first: dict[str, int] = {}
    for hits in arms.values():
        for hit in hits:
            first.setdefault(hit.id, len(first))
    return tuple(
        sorted(scores, key=lambda i: (-round(scores[i], 9), logged.get(i, len(logged)), first.get(i, len(first))))
    )


def _floored(arm: str, hits: Ranking, pipeline: Pipeline) -> Ranking:
    for threshold in pipeline.thresholds:
        on = (threshold.on or "").casefold()
        if on == arm.casefold() or (on in _DENSE_WORDS and arm.casefold() in _DENSE_WORDS):
            hits = tuple(hit for hit in hits if _passes(hit.value, threshold))
    return hits


def _fused_floor(
    order: tuple[str, ...], scores: Mapping[str, float], arms: Mapping[str, Ranking], pipeline: Pipeline
) -> tuple[str, ...] | Unreplayable:
    for threshold in pipeline.thresholds:
        if (threshold.on or "").casefold() not in _FUSED_WORDS:
            continue
        reader = _score_reader(threshold, scores, arms)
        if reader is None:
            return Unreplayable(f"a floor on {threshold.on} reads {threshold.score}, which is not logged")
        order = tuple(i for i in order if _passes(reader(i), threshold))
    return order


def _score_reader(
    threshold: Threshold, scores: Mapping[str, float], arms: Mapping[str, Ranking]
) -> Callable[[str], float | None] | None:
    word = (threshold.score or "").casefold()
    if word in ("", *_FUSED_WORDS):
        return scores.get
    for name, hits in arms.items():
        if name.casefold() == word or (word in _DENSE_WORDS and name.casefold() in _DENSE_WORDS):
            return {hit.id: hit.value for hit in hits}.get
    return None


def _passes(score: float | None, threshold: Threshold) -> bool:
    if threshold.value is None:
        return True
    if score is None:
        return False
    return score <= threshold.value if threshold.direction == "max" else score >= threshold.value


# --- reranking ----------------------------------------------------------------------------------------------------


def _reranked(trace: Trace, pipeline: Pipeline, pool: tuple[str, ...]) -> tuple[str, ...] | Unreplayable:
    """The order behind the reranker: recorded scores, over the candidates that this configuration would give it."""
    if trace.after_rerank is None or pipeline.rerank.model == "":
        return pool
    candidates = pool if pipeline.rerank.candidates is None else pool[: pipeline.rerank.candidates]
    logged: dict[str, Hit] = {hit.id: hit for hit in trace.after_rerank}
    given = {hit.id for hit in trace.rerank_input} if trace.rerank_input is not None else set(logged)
    unscored = [i for i in candidates if i not in given]
    if unscored:
        return Unreplayable("the reranker never scored some of the candidates")
    order = {hit.id: rank for rank, hit in enumerate(trace.after_rerank)}
    missing = [i for i in candidates if i not in order]
    kept = sorted((i for i in candidates if i in order), key=order.__getitem__)
    top_n = pipeline.rerank.top_n
    if missing and (top_n is None or top_n > len(kept)):
        cut = trace.config.get("rerank", {}).get("top_n") if trace.config else None
        if top_n is None or len(kept) < min(top_n, cut or top_n):
            return Unreplayable("the reranker's output was cut, and the scores below the cut are not logged")
        if top_n > len(trace.after_rerank):
            return Unreplayable("the reranker's output was cut, and the scores below the cut are not logged")
    weight = (pipeline.rerank.model_extra or {}).get("blend")
    if isinstance(weight, (int, float)) and not isinstance(weight, bool):
        kept = _blended(kept, candidates, weight)
    kept = [i for i in kept if all(_passes(logged[i].value, t) for t in pipeline.thresholds if t.on == "rerank")]
    return tuple(kept[:top_n] if top_n else kept)


def _blended(reranked: list[str], candidates: tuple[str, ...], weight: float) -> list[str]:
    """Both orders by reciprocal rank: `weight` for the reranker, the rest for the order it was given."""
    before = {i: rank for rank, i in enumerate(candidates, start=1)}
    score = {
        i: weight / (DEFAULT_K + rank) + (1 - weight) / (DEFAULT_K + before[i])
        for rank, i in enumerate(reranked, start=1)
    }
    return sorted(reranked, key=lambda i: (-score[i], before[i]))


# --- packing ------------------------------------------------------------------------------------------------------


def _packed(ranked: tuple[str, ...], k: int, pack: Pack, chunks: ChunkTable) -> tuple[str, ...] | Unreplayable:
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
                    break
                continue
            left -= tokens
        packed.append(chunk_id)
        seen.add(same)
        per_source[source] = per_source.get(source, 0) + 1
    return tuple(packed)


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
