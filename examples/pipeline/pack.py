"""Packer and prompt: which ranked chunks are sent, in which order, within which budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .search import Hit
from .store import Row, Store
from .tokens import count_tokens

INSTRUCTION = "Answer the question from the numbered passages only. Say that you do not know when they do not hold it."


@dataclass(frozen=True)
class Prompt:
    """The rendered prompt, the ids in it and its size."""

    text: str
    ids: tuple[str, ...]
    tokens: int


def pack(store: Store, ranked: Sequence[Hit], settings: Mapping[str, Any], k_final: int) -> list[Row]:
    """At most k_final rows: parents in place of children, duplicates dropped, the budget kept."""
    packed: list[Row] = []
    seen: set[str] = set()
    of_source: Counter[str] = Counter()
    used = 0
    for hit in ranked:
        row = _served(store, hit.chunk_id, settings["parent_expansion"])
        if row is None:
            continue
        key = {"source_id": row.source_id, "content_hash": row.hash}.get(settings["dedupe_by"], row.chunk_id)
        if key in seen or 0 < settings["max_per_source"] <= of_source[row.source_id]:
            continue
        if used + row.tokens > settings["token_budget"]:
            if settings["on_overflow"] == "stop":
                break
            continue
        seen.add(key)
        of_source[row.source_id] += 1
        used += row.tokens
        packed.append(row)
        if len(packed) == k_final:
            break
    return packed


def render(question: str, rows: Sequence[Row], context_window: int) -> Prompt:
    """The prompt; passages that do not fit into the window are cut off at the end."""
    parts = [INSTRUCTION]
    ids: list[str] = []
    closing = f"Question: {question}"
    for number, row in enumerate(rows, start=1):
        part = f"[{number}] {row.text}"
        if count_tokens("\n\n".join([*parts, part, closing])) > context_window:
            break
        parts.append(part)
        ids.append(row.chunk_id)
    text = "\n\n".join([*parts, closing])
    return Prompt(text, tuple(ids), count_tokens(text))


def _served(store: Store, chunk_id: str, parent_expansion: bool) -> Row | None:
    row = store.rows[chunk_id]
    if not parent_expansion or row.parent_id is None:
        return row
    return store.rows.get(row.parent_id)
