"""Whether a row meets the filter that a query sent, by what the index stores of it."""

from ragaudit.evidence.access import Access
from ragaudit.evidence.predicate import ACL_KEY, Match, clauses, match
from ragaudit.evidence.principals import clause_meets


def meets_filter(chunk_id: str, access: Access) -> bool | None:
    """Would the store's filter, as sent, keep this row? None when a clause cannot be checked.

    The stored ACL decides, as it does in the store, and types and case must fit: this says what the filter does, not
    who may read the row.
    """
    trace, chunk = access.trace, access.identities.inventory.chunk(chunk_id)
    sent = trace.filters_applied
    if sent is None or chunk is None:
        return None
    metadata = access.metadata(chunk_id)
    found = [match(condition, metadata, name) for name, condition in clauses(sent)]
    held: list[bool | None] = [None if each is Match.UNKNOWN else each is Match.YES for each in found]
    if ACL_KEY in sent:
        held.append(clause_meets(sent[ACL_KEY], chunk.acl, trace.user_acl, access.settings))
    if False in held:
        return False
    return None if None in held else True
