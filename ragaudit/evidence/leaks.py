"""Chunks that reached the context against the rules: unreadable by ACL, or outside the filter that was applied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.config import AclSettings
from ragaudit.evidence.access_clauses import is_access_clause
from ragaudit.evidence.acl import Access
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace


@dataclass(frozen=True)
class Foreign:
    """One id that should not be where it is. `field` is None when the ACL says so, else the violated filter field."""

    id: str
    field: str | None
    searched: bool | None
    """It came out of a search; False = it came in while packing; None = no list was logged that could say which."""
    is_leak: bool = True
    """The violated rule is about access. False = it is about a subject: a year, a language, a tag."""


def foreign_hits(trace: Trace, identities: Identities, pipeline: Pipeline, acl: AclSettings) -> tuple[Foreign, ...]:
    """The final-context and prompt ids that the user may not read, or that violate the expected filter."""
    packed = dict.fromkeys((*(trace.final_context_ids or ()), *(trace.prompt_ids or ())))
    if not packed:
        return ()
    access = Access(trace, identities, acl)
    expected = {**dict(clauses(trace.filters_applied)), **dict(clauses(pipeline.filter.expected))}
    guarding = {name for name, want in expected.items() if is_access_clause(name, want, trace.user_acl)}
    order = sorted(expected, key=lambda name: name not in guarding)
    logged: dict[str, Mapping[str, Any]] = {}
    searched: set[str] = set()
    lists = trace.lists()
    for hits in lists.values():
        for hit in hits:
            searched.add(hit.id)
            if hit.metadata is not None:
                logged.setdefault(hit.id, hit.metadata)
    found = []
    for chunk_id in packed:
        came = _searched(chunk_id, searched, trace, identities, access) if lists else None
        if access.is_leak(chunk_id):
            found.append(Foreign(chunk_id, None, came))
            continue
        chunk = identities.inventory.chunk(chunk_id)
        metadata = chunk.metadata if chunk is not None and chunk.metadata is not None else logged.get(chunk_id)
        violated = next((name for name in order if match(expected[name], metadata, name) is Match.NO), None)
        if violated is not None:
            found.append(Foreign(chunk_id, violated, came, violated in guarding))
    return tuple(found)


def _searched(chunk_id: str, searched: set[str], trace: Trace, identities: Identities, access: Access) -> bool:
    """It stands in a list, by its own id or another that the log maps to it, or is the parent of a leak that does."""
    if chunk_id in searched:
        return True
    children = searched.intersection(identities.children.get(chunk_id, ()))
    if any(access.is_leak(child) for child in children):
        return True
    return any(listed in searched for listed, target in (trace.id_map or {}).items() if target == chunk_id)
