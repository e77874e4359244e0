"""Chunks that reached the context against the rules: unreadable by ACL, or outside the filter that was applied."""

from dataclasses import dataclass

from ragaudit.evidence.access import Access


@dataclass(frozen=True)
class Foreign:
    """One id that should not be where it is. `field` is None when the ACL says so, else the violated filter field."""

    id: str
    field: str | None
    searched: bool | None
    """It came out of a search; False = it came in while packing; None = no list was logged that could say which."""
    is_leak: bool = True
    """The violated rule is about access, and no ACL admits the user. False = it is about a subject, say a year."""


def foreign_hits(access: Access) -> tuple[Foreign, ...]:
    """The final-context and prompt ids that the user may not read, or that violate the sent or the expected filter."""
    trace = access.trace
    found = []
    for chunk_id in dict.fromkeys((*(trace.final_context_ids or ()), *(trace.prompt_ids or ()))):
        is_leak = access.is_leak(chunk_id)
        field = None
        if not access.is_barred(chunk_id):
            field = access.broken_clause(chunk_id) or access.broken_subject(chunk_id)
        if is_leak or field is not None:
            found.append(Foreign(chunk_id, field, _searched(chunk_id, access), is_leak))
    return tuple(found)


def _searched(chunk_id: str, access: Access) -> bool | None:
    """It stands in a list, by its own id or another that the log maps to it, or is the parent of a leak that does."""
    if not access.trace.lists():
        return None
    searched = access.logged.hits
    if chunk_id in searched:
        return True
    if any(child in searched and access.is_leak(child) for child in access.identities.children.get(chunk_id, ())):
        return True
    return any(listed in searched for listed in access.logged.listed_as.get(chunk_id, ()))
