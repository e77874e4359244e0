"""Who may read what. Access is decided by the source's ACL; what the index stores is only a copy of it."""

from ragaudit.config import AclSettings
from ragaudit.model.inventory import Chunk, Inventory
from ragaudit.model.trace import Gold, Trace


def admits(acl: tuple[str, ...] | None, principals: tuple[str, ...] | None, settings: AclSettings) -> bool | None:
    """Does this ACL admit a user with these principals? None when either side was not observed.

    An empty ACL admits nobody: a list that was read and holds no principal is not a missing list.
    """
    if acl is None or principals is None:
        return None
    held = {*principals, *settings.everyone}
    if settings.rule == "all":
        return bool(acl) and held.issuperset(acl)
    return not held.isdisjoint(acl)


def may_read(chunk_id: str, trace: Trace, inventory: Inventory, settings: AclSettings) -> bool | None:
    """May the query's user read this chunk? None when no ACL is known for it.

    The source decides. Where the source's ACL is unknown, the chunk's stored ACL does, unless it is empty: an empty
    stored list is as likely a lost copy as a ban, so it proves nothing.
    """
    chunk = inventory.chunk(chunk_id)
    by_source = admits(_source_acl(chunk, None, inventory), trace.user_acl, settings)
    if by_source is not None or chunk is None or not chunk.acl:
        return by_source
    return admits(chunk.acl, trace.user_acl, settings)


def eligible(gold: Gold, trace: Trace, inventory: Inventory, settings: AclSettings) -> bool | None:
    """May the user read this gold? The label's own word wins, then the ACLs; None = unknown, counted as labelled."""
    if gold.eligible is not None:
        return gold.eligible
    chunk = inventory.chunk(gold.id)
    acl = _source_acl(chunk, gold.source_id or gold.id, inventory)
    by_source = admits(acl, trace.user_acl, settings)
    if by_source is not None or chunk is None or not chunk.acl:
        return by_source
    return admits(chunk.acl, trace.user_acl, settings)


def _source_acl(chunk: Chunk | None, source_id: str | None, inventory: Inventory) -> tuple[str, ...] | None:
    source = inventory.source(chunk.source_id if chunk and chunk.source_id else source_id)
    return source.acl if source else None
