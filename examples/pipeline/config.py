"""The frozen configuration of the run, and a query's departures from it."""

from __future__ import annotations

import copy
from typing import Any

Config = dict[str, Any]
REVISION = "idx-2026-10-01T06:00Z"
SNAPSHOT = "2026-10-01T12:00:00Z"
BUILT = "2026-09-30T22:00:00Z"
INDEXED = "2026-09-30T21:30:00Z"
MODEL = "lsa-latin-96"
OTHER_MODEL = "hash-96"
NARROW_MODEL = "hash-64"
EMBED_MAX_TOKENS = 128
K_FINAL = 5

PIPELINE: Config = {
    "arms": ["dense", "bm25"],
    "k_final": K_FINAL,
    "embedding": {
        "query": {"model": MODEL, "dim": 96, "prefix": "", "normalised": True},
        "corpus": {
            "model": MODEL,
            "dim": 96,
            "prefix": "",
            "normalised": True,
            "max_tokens": EMBED_MAX_TOKENS,
            "requires_prefix": False,
            "languages": ["en", "de"],
        },
    },
    "metric": {"expected": "cosine"},
    "search": {
        "dense": {"type": "similarity", "fetch_k": 20, "lists": 8, "nprobe": 7},
        "bm25": {"type": "similarity", "fetch_k": 20, "operator": "or", "tokenizer": "words+cjk-bigrams"},
    },
    "parser": {"name": "markdown-blocks", "version": "1.2"},
    "chunker": {"name": "by-heading", "target_tokens": 120, "overlap": 1, "overlap_unit": "sentence"},
    "rewrite": {"standalone": True, "model": ""},
    "filter": {"mode": "pre"},
    "fusion": {"method": "rrf", "k": 60, "weights": {"dense": 1.0, "bm25": 1.0}, "id_key": "id", "rank_base": 1},
    "thresholds": [],
    "rerank": {"model": "overlap-cross-2", "candidates": 12, "top_n": 10, "score": "0..1, higher is better"},
    "pack": {
        "dedupe_by": "content_hash",
        "parent_expansion": False,
        "order": "rank",
        "token_budget": 900,
        "on_overflow": "skip",
        "max_per_source": 0,
    },
    "generator": {
        "model": "extractive-1",
        "context_window": 2000,
        "max_tokens": 200,
        "synthesis": "single",
        "fallback": "",
    },
}


def merged(base: Config, changes: Config) -> Config:
    """A copy of a configuration with changes laid over it, table by table."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def to_toml(table: Config, path: str) -> str:
    """A configuration as TOML, tables after values."""
    lines: list[str] = []
    nested: list[str] = []
    for key, value in table.items():
        if isinstance(value, dict):
            nested.append(to_toml(value, f"{path}.{key}"))
        else:
            lines.append(f"{key} = {_literal(value)}")
    head = "\n".join([f"[{path}]", *lines]) + "\n\n" if lines else ""
    return head + "".join(nested)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)
