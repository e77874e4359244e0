"""Probes: cheap extra measurements of where a gold chunk would stand. None of them drops the ACL."""

from __future__ import annotations

from typing import Any

from . import fuse, rerank, search
from .cases import Case
from .rerank import Idf
from .run import Run
from .search import Keep, rank_of
from .store import Store
from .tokens import count_tokens

_PLAIN = {"tokenizer": "words+cjk-bigrams", "operator": "or"}
Value = int | bool | list[str] | None


def measure(name: str, arm: str, gold_id: str, case: Case, store: Store, run: Run, idf: Idf) -> dict[str, Any]:
    """One probe as a row of the trace."""
    keep = search.predicate(case.user_acl, case.filters)
    value, note = _value(name, arm, gold_id, case, store, run, idf, keep)
    row: dict[str, Any] = {"probe": name, "gold_id": gold_id, "value": value}
    if arm:
        row["arm"] = arm
    if note:
        row["note"] = note
    return row


def answer_offset(store: Store, chunk_id: str, span: str) -> int:
    """Tokens before the answer in its chunk."""
    return count_tokens(store.rows[chunk_id].text.partition(span)[0])


def _value(
    name: str, arm: str, gold_id: str, case: Case, store: Store, run: Run, idf: Idf, keep: Keep
) -> tuple[Value, str]:
    if name in ("exact_rank", "rank_prefilter", "rank_expected_filter"):
        if arm == "bm25":
            return _lexical(store, run.search_text, gold_id, keep), ""
        return _dense(store, run.search_text, gold_id, keep), ""
    if name == "lexical_rank":
        return _lexical(store, run.search_text, gold_id, keep), "any term, words and character pairs"
    if name in ("rank_original_query", "rank_standalone_query"):
        text = case.question if name == "rank_original_query" else case.standalone
        rank = _lexical if arm == "bm25" else _dense
        return rank(store, text, gold_id, keep), text
    if name == "rank_other_limit":
        return _dense(store, run.search_text, gold_id, keep), f"limit {len(store.rows)}"
    if name == "self_query_rank":
        row = store.rows[gold_id]
        if len(row.vector) != store.models.main.dim:
            return None, "vector of another width"
        return rank_of(gold_id, search.exact(store, row.vector, keep)), ""
    if name == "rerank_rank":
        rows = [store.rows[chunk_id] for chunk_id in run.candidates or ()]
        model = run.settings["rerank"]["model"]
        return rank_of(gold_id, rerank.rerank(run.search_text, rows, idf, model)), "before top_n"
    if name in ("canonical_fused_rank", "rank_without_threshold"):
        arms = {
            arm_name: [search.Hit(run.id_map.get(hit.chunk_id, hit.chunk_id), hit.score) for hit in hits]
            for arm_name, hits in run.arms.items()
            if hits is not None
        }
        fused = [search.Hit(hit.chunk_id, hit.rrf) for hit in fuse.rrf(arms, run.settings["fusion"]["k"])]
        return rank_of(gold_id, fused), ""
    return _fact(name, gold_id, case, store, run, keep)


def _fact(name: str, gold_id: str, case: Case, store: Store, run: Run, keep: Keep) -> tuple[Value, str]:
    index, _ = store.bm25(run.settings["search"]["bm25"]["tokenizer"])
    if name == "fetch_by_id":
        return gold_id in store.rows, ""
    if name == "filter_passes":
        return keep(store.rows[gold_id]), ""
    if name == "query_terms":
        return len(index.terms(run.search_text)), ""
    if name == "query_terms_in_vocabulary":
        return len(index.known_terms(run.search_text)), ""
    if name == "literals_lost":
        lost = [word.strip("?.,") for word in case.question.split() if any(char.isdigit() for char in word)]
        return [word for word in lost if word not in run.search_text], ""
    raise ValueError(f"unknown probe {name}")


def _dense(store: Store, text: str, gold_id: str, keep: Keep) -> int | None:
    return rank_of(gold_id, search.exact(store, store.models.main.embed(text), keep))


def _lexical(store: Store, text: str, gold_id: str, keep: Keep) -> int | None:
    return rank_of(gold_id, search.lexical(store, text, keep, len(store.rows), _PLAIN))
