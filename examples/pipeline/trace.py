"""The trace of one query, in the form that an audit reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import config
from .cases import Case
from .corpus import Source
from .fuse import Fused
from .gold import gold_id, span_in
from .probes import measure
from .rerank import Idf
from .run import Run
from .search import Hit, predicate
from .store import Store

LIST_LIMIT = 20


def trace_row(
    number: int,
    case: Case,
    run: Run,
    stores: tuple[Store, Store],
    sources: dict[str, Source],
    idf: Idf,
    previous: Run | None,
) -> dict[str, Any]:
    """One line of traces.jsonl.

    Args:
        number: position of the query; gives its timestamp.
        case: the query.
        run: what happened.
        stores: the index as it is, and the one without faults.
        sources: the documents.
        idf: weights of stems, for probes.
        previous: the run of the turn before, for a follow-up.
    """
    actual, reference = stores
    ids = [gold_id(gold, actual, reference) for gold in case.gold]
    final = run.packed_ids
    row: dict[str, Any] = {
        "query_id": case.query_id,
        "query_text": case.question,
        "user_acl": list(case.user_acl),
        "session_id": f"s-{case.previous or case.query_id}",
        "timestamp": f"2026-10-01T{9 + number // 60:02d}:{number % 60:02d}:00Z",
        "slices": {"family": case.family, "language": case.language},
        "index_revision": config.REVISION,
        "embedding_model": config.MODEL,
        "k_final": run.settings["k_final"],
        "query_rewrite": run.rewrite,
        "filters_applied": {"acl": list(case.user_acl), **case.filters},
        "arms": {arm: None if hits is None else _hits(hits) for arm, hits in run.arms.items()},
        "arm_status": run.status,
        "fused": _fused(run.fused),
        "rerank_input": _candidates(run),
        "after_rerank": None if run.reranked is None else _hits(run.reranked),
        "final_context_ids": final,
        "final_context_chars": sum(len(packed.text) for packed in run.packed),
        "prompt_ids": [key for key, packed in zip(final, run.packed, strict=True) if packed.chunk_id in run.prompt.ids],
        "prompt_tokens": run.prompt.tokens,
        "gold_ids": ids,
        "gold": [_gold(case, index, chunk_id, sources, actual) for index, chunk_id in enumerate(ids)],
        "gold_mode": case.gold_mode,
        "answerable": case.answerable,
        "reference": case.reference or None,
        "answer": {
            "text": run.answer.text,
            "correct": run.grade.correct,
            "supported": run.grade.supported,
            "abstained": run.answer.abstained,
            "finish_reason": run.answer.finish_reason,
            "supported_by": list(run.grade.supported_by),
        },
        "notes": "",
    }
    if case.log_raw_arms:
        keep = predicate(case.user_acl, case.filters)
        row["after_filter"] = {
            arm: _hits([hit for hit in hits or () if keep(actual.rows[hit.chunk_id])]) for arm, hits in run.arms.items()
        }
    if isinstance(run.floored, dict):
        row["after_threshold"] = {arm: _hits(hits) for arm, hits in run.floored.items()}
    elif run.floored is not None:
        row["after_threshold"] = _fused(run.floored)
    if case.gold_groups:
        row["gold_groups"] = [[ids[index] for index in group] for group in case.gold_groups]
    if run.id_map:
        row["id_map"] = run.id_map
    if previous is not None:
        row["conversation"] = {
            "turn": 2,
            "previous_query": previous.query_text,
            "previous_context_ids": previous.packed_ids,
        }
    if case.probes:
        targets = ids or [""]
        row["probes"] = [
            measure(name, arm, chunk_id, case, actual, run, idf) for name, arm in case.probes for chunk_id in targets
        ]
    changes = config.merged(case.config, case.fault_config)
    if changes:
        row["config"] = changes
    _drop(row, case.drop)
    return row


def _hits(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    return [{"id": hit.chunk_id, "rank": rank, "score": hit.score} for rank, hit in enumerate(hits[:LIST_LIMIT], 1)]


def _fused(hits: Sequence[Fused]) -> list[dict[str, Any]]:
    return [
        {"id": hit.chunk_id, "rank": rank, "rrf": hit.rrf, "sources": list(hit.arms)}
        for rank, hit in enumerate(hits, 1)
    ]


def _candidates(run: Run) -> list[dict[str, Any]] | None:
    if run.candidates is None:
        return None
    return [{"id": chunk_id, "rank": rank} for rank, chunk_id in enumerate(run.candidates, 1)]


def _gold(case: Case, index: int, chunk_id: str, sources: dict[str, Source], actual: Store) -> dict[str, Any]:
    gold = case.gold[index]
    row: dict[str, Any] = {"id": chunk_id, "grade": gold.grade, "source_id": gold.source, "span": gold.words}
    if case.log_span_in or gold.header:
        row["span_in"] = span_in(gold, sources, actual)
    return row


def _drop(row: dict[str, Any], fields: Sequence[str]) -> None:
    """Remove observations that this query's logger did not write."""
    for field in fields:
        if field in ("arms.bm25", "arms.dense"):
            row["arms"][field[5:]] = None
            row["arm_status"].pop(field[5:], None)
        elif field == "judgements":
            row["answer"] = {"text": row["answer"]["text"], "finish_reason": row["answer"]["finish_reason"]}
        else:
            row[field] = None
