"""Records for evidence tests: a trace, an inventory, a list of hits, each with defaults."""

from typing import Any

from ragaudit.config import AclSettings
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence, gather
from ragaudit.model.inventory import Chunk, Index, Inventory, Source
from ragaudit.model.trace import Gold, Hit, Ranking, Trace

ANY = AclSettings()


def ranking(*ids: str, scores: tuple[float, ...] = ()) -> Ranking:
    """A list of hits in this order."""
    return tuple(Hit(hit, rank, scores[rank - 1] if scores else None) for rank, hit in enumerate(ids, 1))


def gold(*ids: str, **over: Any) -> tuple[Gold, ...]:
    """Labels with these ids; the fields are those of each."""
    return tuple(Gold(id=one, **over) for one in ids)


def trace(**over: Any) -> Trace:
    """A trace of one query; what is not given was not observed."""
    return Trace(**{"query_id": "q1", "query_text": "refund?", "k_final": 3, "gold": gold("g"), **over})


def inventory(
    *chunks: Chunk | dict[str, Any], sources: tuple[Source | dict[str, Any], ...] = (), index: Index | None = None
) -> Inventory:
    """An inventory of these rows."""
    rows = [Chunk.model_validate(chunk) for chunk in chunks]
    docs = [Source.model_validate(source) for source in sources]
    return Inventory.of({row.source_id: row for row in docs}, {row.chunk_id: row for row in rows}, index)


def evidence(query: Trace, held: Inventory | None = None, acl: AclSettings = ANY) -> QueryEvidence:
    """The trace joined with the inventory."""
    return gather(query, Identities.of(held or inventory()), acl)
