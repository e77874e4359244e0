"""Chunks that reached the user against the rules: unreadable by ACL, or outside the filter that was applied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.config import AclSettings
from ragaudit.evidence.acl import may_read
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.model.inventory import Inventory
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace


@dataclass(frozen=True)
class Foreign:
    """One id that should not be where it is. `field` is None when the ACL says so, else the violated filter field."""

    id: str
    field: str | None
    searched: bool
    """It came out of a search, or no list was logged that could say otherwise; False = it came in while packing."""


def foreign_hits(trace: Trace, inventory: Inventory, pipeline: Pipeline, acl: AclSettings) -> tuple[Foreign, ...]:
    """The final-context and prompt ids that the user may not read, or that violate the expected filter."""
    packed = dict.fromkeys((*(trace.final_context_ids or ()), *(trace.prompt_ids or ())))
    if not packed:
        return ()
    expected = {**dict(clauses(trace.filters_applied)), **dict(clauses(pipeline.filter.expected))}
    logged: dict[str, Mapping[str, Any]] = {}
    searched: set[str] = set()
    for hits in trace.lists().values():
        for hit in hits:
            searched.add(hit.id)
            if hit.metadata is not None:
                logged.setdefault(hit.id, hit.metadata)
    found = []
    named_alike = _acl_words_meet(trace, inventory, acl)
    for chunk_id in packed:
        chunk = inventory.chunk(chunk_id)
        if named_alike and may_read(chunk_id, trace, inventory, acl) is False:
            found.append(Foreign(chunk_id, None, not searched or chunk_id in searched))
            continue
        metadata = chunk.metadata if chunk is not None and chunk.metadata is not None else logged.get(chunk_id)
        violated = next((f for f, want in expected.items() if match(want, metadata, f) is Match.NO), None)
        if violated is not None:
            found.append(Foreign(chunk_id, violated, not searched or chunk_id in searched))
    return tuple(found)


def _acl_words_meet(trace: Trace, inventory: Inventory, acl: AclSettings) -> bool:
    """Do the user's principals and the stored ACLs use the same words?

    A label that says the user may read a gold id whose ACL does not admit them shows that they do not (a group under
    two names): then an ACL that does not match proves no leak.
    """
    return not any(gold.eligible is True and may_read(gold.id, trace, inventory, acl) is False for gold in trace.gold)
