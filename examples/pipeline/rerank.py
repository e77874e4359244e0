"""Reranker: a cross scorer on stem coverage, adjacent pairs and the heading."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from .search import Hit
from .store import Row
from .tokens import stem, stems, words

Idf = Mapping[str, float]
RECENCY_MODEL = "overlap-cross-1+recency"


def stem_idf(texts: Iterable[str]) -> dict[str, float]:
    """Inverse document frequency of each stem."""
    collected = [stems(text) for text in texts]
    counts = Counter(item for found in collected for item in found)
    return {item: math.log(1 + len(collected) / n) for item, n in sorted(counts.items())}


def rerank(query: str, rows: Sequence[Row], idf: Idf, model: str) -> list[Hit]:
    """Candidates by the reranker's own score, best first; ties keep their order."""
    scored = [(_recency(row) if model == RECENCY_MODEL else relevance(query, row.text, idf), row) for row in rows]
    ordered = sorted(scored, key=lambda pair: -pair[0])
    return [Hit(row.chunk_id, score) for score, row in ordered]


def relevance(query: str, text: str, idf: Idf) -> float:
    """How much of the query a text covers, 0..1."""
    wanted = [stem(word) for word in words(query)]
    if not wanted:
        return 0.0
    head, _, body = text.partition("\n\n")
    total = sum(idf.get(item, 4.0) for item in set(wanted))
    covered = sum(idf.get(item, 4.0) for item in set(wanted) & stems(text))
    in_head = sum(idf.get(item, 4.0) for item in set(wanted) & stems(head))
    body_stems = [stem(word) for word in words(body)]
    pairs = set(pairwise(body_stems))
    query_pairs = list(pairwise(wanted))
    adjacent = sum(pair in pairs for pair in query_pairs) / max(1, len(query_pairs))
    return round(0.65 * covered / total + 0.15 * in_head / total + 0.2 * adjacent, 6)


def _recency(row: Row) -> float:
    """Fault: the former reranker multiplied saturated scores with recency, so that only the date was left."""
    year, month, day = (int(part) for part in str(row.metadata["updated"]).split("-"))
    return round(0.5 + ((year - 2024) * 372 + month * 31 + day) / 3000, 6)
