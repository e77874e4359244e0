"""Whether a row meets the filter that a query sent, by what the index stores of it."""

from ragaudit.config import AclSettings
from ragaudit.evidence.predicate import ACL_KEY, Match, clauses, match
from ragaudit.evidence.principals import clause_meets
from ragaudit.model.inventory import Inventory
from ragaudit.model.trace import Trace


def meets_filter(chunk_id: str, trace: Trace, inventory: Inventory, acl: AclSettings) -> bool | None:
    """Would the store's filter, as sent, keep this row? None when a clause cannot be checked.

    The stored ACL decides, as it does in the store, and types and case must fit: this says what the filter does, not
    who may read the row.
    """
    sent, chunk = trace.filters_applied, inventory.chunk(chunk_id)
    if sent is None or chunk is None:
        return None
    known = {"source_id": chunk.source_id, "language": chunk.language, "lang": chunk.language}
    metadata = {**{name: value for name, value in known.items() if value is not None}, **(chunk.metadata or {})}
    found = [match(condition, metadata, name) for name, condition in clauses(sent)]
    held: list[bool | None] = [None if each is Match.UNKNOWN else each is Match.YES for each in found]
    if ACL_KEY in sent:
        held.append(clause_meets(sent[ACL_KEY], chunk.acl, trace.user_acl, acl))
    if False in held:
        return False
    return None if None in held else True
