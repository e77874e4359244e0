"""One query through the pipeline: rewrite, search, filter, fuse, rerank, pack, prompt, answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import config, fuse, pack, rerank, search
from .cases import Case
from .fuse import Fused
from .generate import Answer, generate
from .grade import Grade, grade
from .pack import Prompt
from .rerank import Idf
from .search import Hit, Keep
from .store import Row, Store


@dataclass
class Run:
    """Everything that happened for one query."""

    settings: config.Config
    query_text: str
    search_text: str
    rewrite: str | None = None
    arms: dict[str, list[Hit] | None] = field(default_factory=dict)
    raw: dict[str, list[Hit]] = field(default_factory=dict)
    floored: dict[str, list[Hit]] | list[Fused] | None = None
    fused: list[Fused] = field(default_factory=list)
    candidates: list[str] | None = None
    reranked: list[Hit] | None = None
    packed: list[Row] = field(default_factory=list)
    packed_ids: list[str] = field(default_factory=list)
    prompt: Prompt = field(default_factory=lambda: Prompt("", (), 0))
    answer: Answer = field(default_factory=lambda: Answer("", True, "stop"))
    grade: Grade = field(default_factory=lambda: Grade(False, False, ()))
    status: dict[str, dict[str, Any]] = field(default_factory=dict)
    id_map: dict[str, str] = field(default_factory=dict)


def answer_query(case: Case, store: Store, idf: Idf, faulty: bool, base: config.Config = config.PIPELINE) -> Run:
    """Run one case with its query-time fault on or off, under the run's configuration or another."""
    fault = case.fault if faulty else None
    run = _begin(case, fault, faulty, base)
    arms = _search(case, store, run, fault)
    _fuse(run, arms, fault)
    hits = _rank(store, run, idf)
    settings = run.settings
    if fault == "split_id_space":
        by_chunk = {run.id_map.get(hit.chunk_id, hit.chunk_id): hit.chunk_id for hit in reversed(hits)}
        hits = [Hit(run.id_map.get(hit.chunk_id, hit.chunk_id), hit.score) for hit in hits]
        run.packed = pack.pack(store, hits, settings["pack"], settings["k_final"])
        run.packed_ids = [by_chunk[row.chunk_id] for row in run.packed]
    else:
        run.packed = pack.pack(store, hits, settings["pack"], settings["k_final"])
        run.packed_ids = [row.chunk_id for row in run.packed]
    run.prompt = pack.render(run.query_text, run.packed, settings["generator"]["context_window"])
    run.answer = generate(run.prompt.text, idf, settings["generator"]["max_tokens"], fault, case.memory)
    if run.answer.abstained and settings["generator"]["fallback"] == "memory":
        run.answer = Answer(case.memory, False, "stop")
    texts = [(row.chunk_id, row.text) for row in run.packed if row.chunk_id in run.prompt.ids]
    run.grade = grade(run.answer, case.reference, texts, case.answerable)
    return run


def strip_literals(text: str) -> str:
    """Fault: a rewriter that writes smoothly and loses every code and number."""
    kept = [word for word in text.split() if not any(char.isdigit() for char in word)]
    return re.sub(r"\s+", " ", " ".join(kept)).rstrip("?") + "?"


def _begin(case: Case, fault: str | None, faulty: bool, base: config.Config) -> Run:
    settings = config.merged(base, case.config)
    if faulty:
        settings = config.merged(settings, case.fault_config)
    text, rewrite = case.question, None
    if case.standalone and fault != "follow_up_not_rewritten":
        text = rewrite = case.standalone
    if case.plain_question and not faulty:
        text = case.plain_question
    run = Run(settings, text, text, rewrite)
    if fault == "rewrite_drops_literals":
        run.rewrite = run.search_text = strip_literals(case.question)
    return run


def _search(case: Case, store: Store, run: Run, fault: str | None) -> dict[str, list[Hit]]:
    by_source = faulty_source_repair(case, fault)
    post = run.settings["filter"]["mode"] == "post"
    found: dict[str, list[Hit]] = {}
    for arm in run.settings["arms"]:
        lost = fault == "acl_filter_lost"
        keep = by_source(None if lost else case.user_acl, case.filters)
        limit = run.settings["filter"]["fetch_k"] if post else run.settings["search"][arm]["fetch_k"]
        sent: dict[str, Any] = dict(case.filters) if lost else {"acl": list(case.user_acl), **case.filters}
        if case.dense_error and arm == "dense":
            run.status[arm] = {"status": "errored", "error": case.dense_error, "query_text": run.search_text}
            run.arms[arm] = None
            continue
        raw = _one_arm(store, run, arm, (lambda row: True) if post else keep, limit)
        kept = [hit for hit in raw if keep(store.rows[hit.chunk_id])]
        run.raw[arm] = raw
        shown = raw if case.log_raw_arms and faulty_post(case, fault) else kept
        run.arms[arm] = shown
        run.status[arm] = {
            "status": "ran",
            "query_text": run.search_text,
            "filter": sent,
            "limit": limit,
            "returned": len(shown),
            "matching": _matching(store, run, arm, keep),
        }
        found[arm] = kept
    if fault == "split_id_space" and "dense" in found:
        found["dense"] = _with_store_ids(store, found["dense"], run)
        run.arms["dense"] = found["dense"]
    return found


def faulty_source_repair(case: Case, fault: str | None) -> Callable[[Sequence[str] | None, search.Filter], Keep]:
    """The predicate in force: loose when a type or case fault is repaired, typed otherwise."""
    is_repaired = fault is None and case.fault in ("type_mismatch", "case_mismatch")
    return search.loose_predicate if is_repaired else search.predicate


def faulty_post(case: Case, fault: str | None) -> bool:
    """Whether this run filters behind the search."""
    return fault == "post_filter" and case.fault == fault


def _one_arm(store: Store, run: Run, arm: str, keep: Keep, limit: int) -> list[Hit]:
    settings = run.settings["search"][arm]
    if arm == "dense":
        vector = store.models.main.embed(run.search_text)
        return search.dense(store, vector, keep, limit, settings["nprobe"])
    return search.lexical(store, run.search_text, keep, limit, settings)


def _matching(store: Store, run: Run, arm: str, keep: Keep) -> int:
    if arm == "dense":
        return sum(keep(row) for row in store.searchable())
    return len(search.lexical(store, run.search_text, keep, len(store.rows), run.settings["search"]["bm25"]))


def _with_store_ids(store: Store, hits: Sequence[Hit], run: Run) -> list[Hit]:
    """Fault: the dense arm answers with the vector store's row keys in place of chunk ids."""
    keys = {chunk_id: f"vec-{number:04d}" for number, chunk_id in enumerate(store.rows)}
    run.id_map = {keys[hit.chunk_id]: hit.chunk_id for hit in hits}
    return [Hit(keys[hit.chunk_id], hit.score) for hit in hits]


def _fuse(run: Run, arms: Mapping[str, list[Hit]], fault: str | None) -> None:
    thresholds = run.settings["thresholds"]
    on_arms = any(item["on"] in arms for item in thresholds)
    floored = {arm: fuse.floor_arm(hits, thresholds, arm) for arm, hits in arms.items()}
    method = fuse.rrf
    if fault == "reversed_lexical_ranks":
        method = fuse.rrf_reversed_lexical
    elif fault == "single_arm_rule":
        method = fuse.rrf_single_arm
    run.fused = method(floored, run.settings["fusion"]["k"], run.settings["fusion"]["weights"])
    if on_arms:
        run.floored = floored
    if any(item["on"] == "fused" for item in thresholds):
        cosines = {hit.chunk_id: hit.score for hit in arms.get("dense", ())}
        run.floored = fuse.floor_fused(run.fused, thresholds, cosines)


def _rank(store: Store, run: Run, idf: Idf) -> list[Hit]:
    pool = run.floored if isinstance(run.floored, list) else run.fused
    settings = run.settings["rerank"]
    if not settings["model"]:
        return [Hit(hit.chunk_id, hit.rrf) for hit in pool]
    run.candidates = [hit.chunk_id for hit in pool[: settings["candidates"]]]
    rows = [store.rows[chunk_id] for chunk_id in run.candidates]
    run.reranked = rerank.rerank(run.search_text, rows, idf, settings["model"])[: settings["top_n"]]
    return run.reranked
