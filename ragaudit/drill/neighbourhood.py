"""The part of the inventory that bears on one query, with a fault's changed rows laid over it.

A drill looks at thousands of broken queries, and each changes a handful of rows: rebuilding the look-up tables of the
whole inventory for each would cost more than everything else.
"""

from collections.abc import Iterator

from ragaudit.drill.case import Broken, Store
from ragaudit.evidence.identity import hashes
from ragaudit.model.inventory import Chunk, Inventory, Source
from ragaudit.model.trace import Trace


def neighbourhood(broken: Broken, store: Store) -> Inventory:
    """The chunks that the trace names, their relatives and their sources, as the fault left them."""
    inventory = store.inventory
    named = {i: row for i in _named(broken.trace, store) if (row := inventory.chunk(i)) is not None}
    held = {row.chunk_id: row for row in named.values()}
    for row in list(held.values()):
        for relative in _relatives(row, store):
            other = inventory.chunk(relative)
            if other is not None:
                held.setdefault(other.chunk_id, other)
    for chunk_id, changed in broken.chunks.items():
        if changed is None:
            held.pop(chunk_id, None)
        else:
            held[chunk_id] = changed
    sources = _sources(broken, held, inventory)
    index = broken.index or inventory.index
    return Inventory.of(
        None if inventory.sources is None or "sources" in broken.hidden else sources,
        None if inventory.chunks is None or "chunks" in broken.hidden else held,
        None if "index" in broken.hidden else index,
    )


def _named(trace: Trace, store: Store) -> Iterator[str]:
    for hits in trace.lists().values():
        for hit in hits:
            yield hit.id
    yield from trace.final_context_ids or ()
    yield from trace.prompt_ids or ()
    yield from (trace.id_map or {}).values()
    for gold in trace.gold:
        yield gold.id
        chunk = store.inventory.chunk(gold.id)
        source_id = gold.source_id or (chunk.source_id if chunk else None) or gold.id
        yield from store.inventory.by_source.get(source_id, ())


def _relatives(row: Chunk, store: Store) -> Iterator[str]:
    """Parent, children, and chunks of the same text."""
    if row.parent_id is not None:
        yield row.parent_id
    yield from store.identities.children.get(row.chunk_id, ())
    for digest in hashes(row):
        yield from store.identities.by_hash.get(digest, ())


def _sources(broken: Broken, held: dict[str, Chunk], inventory: Inventory) -> dict[str, Source]:
    """The sources of these chunks and of the gold, and those that supersede them."""
    todo = [row.source_id for row in held.values()]
    todo += [name for gold in broken.trace.gold for name in (gold.source_id, gold.id)]
    todo += [row.source_id for i in broken.chunks if (row := inventory.chunk(i)) is not None]
    todo += list(broken.sources)
    found: dict[str, Source] = {}
    while todo:
        source_id = todo.pop()
        if source_id is None:
            continue
        source = broken.sources[source_id] if source_id in broken.sources else inventory.source(source_id)
        if source is not None and source.source_id not in found:
            found[source.source_id] = source
            todo.append(source.superseded_by)
    return found
