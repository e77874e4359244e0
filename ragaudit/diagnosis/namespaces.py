"""Where the gold stands and where the search looked: namespaces, collections, partitions."""

from ragaudit.diagnosis.facts import ArmFacts, GoldFacts


def read_elsewhere(f: GoldFacts) -> tuple[str, str, str] | None:
    """The gold's namespace, the one that was searched, and what that one holds; None when they do not differ."""
    chunk = f.row.chunk
    if f.seen or chunk is None or chunk.namespace is None:
        return None
    asked = (f.trace.filters_applied or {}).get("namespace")
    searched = f.index.namespace if f.index.namespace is not None else asked
    if not isinstance(searched, str) or searched == chunk.namespace:
        return None
    rows = (f.index.namespaces or {}).get(searched)
    return chunk.namespace, searched, "" if rows is None else f", which holds {rows} rows"


def reads_it(f: GoldFacts, arm: ArmFacts) -> bool:
    """A hit of this arm stands in the gold's namespace: the arm searches there."""
    chunk = f.row.chunk
    mine = chunk.namespace if chunk is not None else None
    rows = (f.identities.inventory.chunk(hit.id) for hit in arm.hits)
    return mine is not None and any(row is not None and row.namespace == mine for row in rows)
