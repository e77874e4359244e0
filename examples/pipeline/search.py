"""Both arms with their filter: who may read a row, and which metadata it must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .embed import Vector
from .store import Row, Store

Filter = Mapping[str, str | int]
Keep = Callable[[Row], bool]


@dataclass(frozen=True)
class Hit:
    """One chunk at one rank."""

    chunk_id: str
    score: float


def predicate(principals: Sequence[str] | None, fields: Filter) -> Keep:
    """The filter as the store evaluates it: typed equality, and any principal in common.

    `principals` None means that no ACL clause was sent.
    """

    def keep(row: Row) -> bool:
        if principals is not None and not set(principals) & set(row.acl):
            return False
        return all(_same(row.metadata.get(name), value) for name, value in fields.items())

    return keep


def loose_predicate(principals: Sequence[str] | None, fields: Filter) -> Keep:
    """The same filter with values compared as folded strings: the repair of type and case faults."""

    def keep(row: Row) -> bool:
        if principals is not None and not set(principals) & set(row.acl):
            return False
        return all(str(row.metadata.get(name)).lower() == str(value).lower() for name, value in fields.items())

    return keep


def dense(store: Store, vector: Vector, keep: Keep, limit: int, nprobe: int) -> list[Hit]:
    """Nearest rows by cosine. Rows of another width are skipped without a word, as some stores do."""
    rows = [row for row in store.searchable() if len(row.vector) == len(vector) and keep(row)]
    numbered = [(number, row.list_number, row.vector) for number, row in enumerate(rows)]
    found = store.models.ivf.search(vector, numbered, limit, nprobe)
    return [Hit(rows[number].chunk_id, round(score, 4)) for number, score in found]


def exact(store: Store, vector: Vector, keep: Keep) -> list[Hit]:
    """Every row that passes, by exact cosine."""
    return dense(store, vector, keep, len(store.rows), store.models.ivf.centroids.shape[0])


def lexical(store: Store, query: str, keep: Keep, limit: int, settings: Mapping[str, Any]) -> list[Hit]:
    """Best rows by BM25; a row that shares no term is not returned."""
    index, ids = store.bm25(settings["tokenizer"])
    scored = [
        (round(index.score(query, number, settings["operator"]), 6), number)
        for number, chunk_id in enumerate(ids)
        if keep(store.rows[chunk_id])
    ]
    best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1]))
    return [Hit(ids[number], round(score, 4)) for score, number in best[:limit]]


def rank_of(chunk_id: str, hits: Sequence[Hit]) -> int | None:
    """Rank from 1, or None."""
    for rank, hit in enumerate(hits, start=1):
        if hit.chunk_id == chunk_id:
            return rank
    return None


def _same(stored: object, wanted: object) -> bool:
    return type(stored) is type(wanted) and stored == wanted
