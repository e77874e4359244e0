"""A small sound bundle with defaults, changes laid over it, and the verdict that it gets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragaudit.config import AclSettings, AuditSettings, Settings
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.diagnosis.procedure import Scope, diagnose
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import gather
from ragaudit.model.diagnosis import Diagnosis
from ragaudit.model.inventory import Chunk, Index, Inventory, Source
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace
from ragaudit.readers.problems import Problems
from ragaudit.readers.traces import TraceContext, traces_from_rows

TEXT = "Refunds: a customer may ask for a refund within 30 days of the delivery."
SPAN = "within 30 days of the delivery"
OLD_TEXT = "Refunds: a customer may ask for a refund in the first two weeks."

_TRACE = {
    "query_id": "q1",
    "query_text": "how long may I ask for a refund",
    "user_acl": ["tenant:acme"],
    "index_revision": "r1",
    "embedding_model": "m1",
    "filters_applied": {},
    "gold": [{"id": "g", "source_id": "s1", "span": SPAN}],
}
_SOURCE = {
    "source_id": "s1",
    "registered": True,
    "status": "ok",
    "source_hash": "h1",
    "indexed_hash": "h1",
    "source_chars": 100,
    "extracted_chars": 100,
    "text": TEXT,
    "extracted_text": TEXT,
    "chunks_expected": 1,
    "chunks_indexed": {"dense": 1},
    "acl": ["tenant:acme"],
}
_CHUNK = {
    "chunk_id": "g",
    "source_id": "s1",
    "text": TEXT,
    "tokens": 40,
    "metadata": {"tenant": "acme"},
    "acl": ["tenant:acme"],
    "embedding_model": "m1",
    "in": {"dense": True},
}
_INDEX = {"revision": "r1", "complete": True, "arms": {"dense": {"chunks": 100, "metric": "cosine"}}}
_PIPELINE = {
    "arms": ["dense"],
    "embedding": {"query": {"model": "m1"}, "corpus": {"model": "m1"}},
    "filter": {"mode": "pre"},
    "thresholds": [],
}


_SEED = tuple(Trace.model_fields)[: tuple(Trace.model_fields).index("session_id")]
_ANY = AclSettings()


@dataclass(frozen=True)
class Bundle:
    """One query with its inventory, in the form of DATA.md. None for a table = that file was not given."""

    trace: Mapping[str, Any]
    sources: list[dict[str, Any]] | None = None
    chunks: list[dict[str, Any]] | None = None
    index: dict[str, Any] | None = None
    pipeline: Mapping[str, Any] | None = None
    acl: AclSettings = _ANY


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged, everything else is replaced."""
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        out[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out


def hits(letter: str, n: int, gold_at: int, top: float = 0.9, step: float = 0.05) -> list[dict[str, Any]]:
    """A list of n hits `d1`, `d2`, ... with falling scores, the gold at its rank (0 = not in it)."""
    ids = [f"{letter}{rank}" for rank in range(1, n + 1)]
    if gold_at:
        ids[gold_at - 1] = "g"
    return [{"id": hit, "rank": rank, "score": round(top - step * (rank - 1), 4)} for rank, hit in enumerate(ids, 1)]


def rrf(arms: Mapping[str, list[dict[str, Any]]], k: float = 60) -> list[dict[str, Any]]:
    """Reciprocal rank fusion as Cormack et al. wrote it, over the ids as they stand."""
    scores: dict[str, float] = {}
    sources: dict[str, list[str]] = {}
    for arm, listed in arms.items():
        for rank, hit in enumerate(listed, 1):
            scores[hit["id"]] = scores.get(hit["id"], 0.0) + 1 / (k + rank)
            sources.setdefault(hit["id"], []).append(arm)
    order = sorted(scores, key=lambda hit: -scores[hit])
    return [
        {"id": hit, "rank": rank, "rrf": round(scores[hit], 5), "sources": sources[hit]}
        for rank, hit in enumerate(order, 1)
    ]


def moved(ids: list[str], gold_at: int) -> list[dict[str, Any]]:
    """A reranker's output: these ids with the gold at another rank (0 = dropped)."""
    rest = [hit for hit in ids if hit != "g"]
    if gold_at:
        rest.insert(gold_at - 1, "g")
    return [{"id": hit, "rank": rank, "score": round(0.99 - 0.03 * rank, 4)} for rank, hit in enumerate(rest, 1)]


def bundle(
    *,
    gold_at: int = 5,
    lexical_at: int | None = None,
    reranked_at: int | None = None,
    k: int = 3,
    trace: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    chunk: Mapping[str, Any] | None = None,
    index: Mapping[str, Any] | None = None,
    pipeline: Mapping[str, Any] | None = None,
    sources: list[dict[str, Any]] | None = None,
    chunks: list[dict[str, Any]] | None = None,
    without: tuple[str, ...] = (),
    acl: AclSettings | None = None,
) -> Bundle:
    """A bundle in which all is sound and the gold `g` stands at rank 5 of the dense arm, with K = 3.

    Args:
        gold_at: The gold's rank in the dense arm of eight hits; 0 = not in it.
        lexical_at: The same for a second arm, `bm25`, with which `fused` is computed; None = there is none.
        reranked_at: The gold's rank in `after_rerank`; 0 = not in it, None = no reranker.
        k: K.
        trace: Laid over the trace. Here and below a None stands for an absent key.
        source: Laid over the gold's source.
        chunk: Laid over the gold's chunk.
        index: Laid over index.json.
        pipeline: Laid over [pipeline].
        sources: Further source rows.
        chunks: Further chunk rows.
        without: Tables left out: "source" and "chunk" rows, or "sources", "chunks", "index", "pipeline".
        acl: How principals match.
    """
    built: dict[str, Any] = {"k_final": k, "arms": {"dense": hits("d", 8, gold_at)}}
    held, arms = dict(_CHUNK), dict(_INDEX)
    said: dict[str, Any] = dict(_PIPELINE)
    if lexical_at is not None:
        built["arms"]["bm25"] = hits("b", 8, lexical_at, top=12.0, step=0.5)
        held = merged(held, {"in": {"bm25": True}})
        arms = merged(arms, {"arms": {"bm25": {"chunks": 100}}})
        said = merged(said, {"arms": ["dense", "bm25"], "fusion": {"method": "rrf", "k": 60}})
    built = merged(built, {"arms": (trace or {}).get("arms") or {}})
    if lexical_at is not None and "fused" not in (trace or {}):
        built["fused"] = rrf(built["arms"])
    before = (trace or {}).get("fused") or built.get("fused") or built["arms"]["dense"]
    if reranked_at is not None:
        built["after_rerank"] = moved([hit["id"] for hit in before], reranked_at)
    query = merged(merged(_TRACE, built), trace or {})
    if "final_context_ids" not in query:
        last = query.get("after_rerank") or query.get("fused") or query["arms"]["dense"]
        query["final_context_ids"] = [hit["id"] for hit in last[:k]]
    row, doc = merged(held, chunk or {}), merged(_SOURCE, source or {})
    return Bundle(
        _present(query),
        None if "sources" in without else [*([] if "source" in without else [_present(doc)]), *(sources or [])],
        None if "chunks" in without else [*([] if "chunk" in without else [_present(row)]), *(chunks or [])],
        None if "index" in without else _present(merged(arms, index or {})),
        None if "pipeline" in without else _present(merged(said, pipeline or {})),
        acl or _ANY,
    )


def _present(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table without its None values; lists are left as they are (a probe's None is a value)."""
    return {
        key: _present(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }


def seed_only(parts: Bundle) -> Bundle:
    """Only what the seed's mandatory log holds: the trace's first fields, no inventory, no configuration."""
    trace = {key: value for key, value in parts.trace.items() if key in _SEED}
    if "gold_ids" not in trace and "gold" in parts.trace:
        trace["gold_ids"] = [gold["id"] for gold in parts.trace["gold"]]
    return Bundle(trace, acl=parts.acl)


def trace_of(parts: Bundle) -> Trace:
    """The trace as the reader reads it."""
    problems = Problems()
    found = list(traces_from_rows([(1, dict(parts.trace))], TraceContext("traces.jsonl", problems)))
    assert len(found) == 1, problems.texts()
    return found[0]


def identities_of(parts: Bundle) -> Identities:
    """The inventory with its look-up tables."""
    sources = None if parts.sources is None else [Source.model_validate(row) for row in parts.sources]
    chunks = None if parts.chunks is None else [Chunk.model_validate(row) for row in parts.chunks]
    return Identities.of(
        Inventory.of(
            None if sources is None else {row.source_id: row for row in sources},
            None if chunks is None else {row.chunk_id: row for row in chunks},
            None if parts.index is None else Index.model_validate(parts.index),
        )
    )


def diagnosed(parts: Bundle, scope: Scope = "answer") -> Diagnosis:
    """The verdict on this query, by the same path as an audit: preflight's facts, evidence, procedure."""
    trace, identities = trace_of(parts), identities_of(parts)
    pipeline = Pipeline.model_validate(parts.pipeline or {})
    preflight = Preflight(identities, Settings(pipeline=pipeline, acl=parts.acl, audit=AuditSettings(scope=scope)))
    preflight.watch(trace)
    evidence = gather(trace, identities, parts.acl)
    return diagnose(
        evidence, pipeline.with_overrides(trace.config), identities, parts.acl, preflight.facts(), scope=scope
    )


def brief(diagnosis: Diagnosis) -> str:
    """Outcome, stage and causes in one line: `fail rerank top_n_cut`."""
    return " ".join((diagnosis.outcome, diagnosis.stage, ",".join(diagnosis.causes))).strip()


def with_trace(parts: Bundle, **over: Any) -> Bundle:
    """The same bundle with top-level fields of the trace replaced (None = absent)."""
    return replace(parts, trace=_present({**parts.trace, **over}))
