"""Which ids stand for a gold id: itself, aliases, mapped ids, its parent, its children, the same text elsewhere."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ragaudit.model.inventory import Chunk, Inventory
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Gold, Trace


class Via(StrEnum):
    """How an id came to stand for a gold id."""

    ITSELF = "id"
    ALIAS = "alias"
    MAPPED = "id_map"
    PARENT = "parent"
    CHILD = "child"
    SAME_TEXT = "same text"
    SOURCE = "source"


@dataclass(frozen=True)
class Identities:
    """Look-up tables over one inventory, built once for a run."""

    inventory: Inventory
    by_hash: Mapping[str, tuple[str, ...]]
    children: Mapping[str, tuple[str, ...]]
    source_acls: Mapping[str, tuple[str, ...]]
    """Source id -> its ACL, for the sources whose ACL is known."""
    has_acls: bool
    """Some source's ACL is known, or some chunk has a stored one that is not empty: else no ACL decides anything."""

    @classmethod
    def of(cls, inventory: Inventory) -> "Identities":
        """Group the chunks by content hash (given, and computed where the text is known) and by parent."""
        by_hash: dict[str, list[str]] = {}
        children: dict[str, list[str]] = {}
        has_acls = False
        for chunk in (inventory.chunks or {}).values():
            has_acls = has_acls or bool(chunk.acl)
            for digest in hashes(chunk):
                by_hash.setdefault(digest, []).append(chunk.chunk_id)
            if chunk.parent_id is not None:
                children.setdefault(chunk.parent_id, []).append(chunk.chunk_id)
        source_acls = {key: row.acl for key, row in (inventory.sources or {}).items() if row.acl is not None}
        return cls(
            inventory,
            {k: tuple(v) for k, v in by_hash.items()},
            {k: tuple(v) for k, v in children.items()},
            source_acls,
            has_acls or bool(source_acls),
        )

    def canonical(self, hit_id: str, trace: Trace) -> str:
        """The one id for all names of a hit: what `id_map` gives, and of that, the chunk whose alias it is."""
        mapped = (trace.id_map or {}).get(hit_id, hit_id)
        by_alias = self.inventory.by_alias
        if not by_alias or mapped in (self.inventory.chunks or {}):
            return mapped
        return by_alias.get(mapped, mapped)

    def chunk_of(self, gold: Gold) -> Chunk | None:
        """The gold's row in the chunk table. A row of another source is not it, whatever its aliases say."""
        chunk = self.inventory.chunk(gold.id)
        if chunk is None or chunk.chunk_id == gold.id:
            return chunk
        foreign = None not in (gold.source_id, chunk.source_id) and gold.source_id != chunk.source_id
        return None if foreign else chunk


def hashes(chunk: Chunk) -> set[str]:
    """The chunk's content hash as given, and as computed from its text."""
    found = {chunk.content_hash} if chunk.content_hash else set()
    if chunk.text:
        found.add(content_hash(chunk.text))
    return found


@dataclass(frozen=True)
class Standing:
    """The ids that stand for each gold id of one query: id -> (gold position, how), in searches and in the context."""

    searched: Mapping[str, tuple[tuple[int, Via], ...]]
    packed: Mapping[str, tuple[tuple[int, Via], ...]]
    sources: Mapping[str, int]
    """Gold that names a document and no chunk: source id -> gold position."""


def standing(trace: Trace, identities: Identities) -> Standing:
    """Resolve every gold id of a trace.

    A child that was found stands for its gold parent in a search, where children are searched and parents served;
    in the context it does not, since the parent's text is not there.
    """
    searched: dict[str, list[tuple[int, Via]]] = {}
    packed: dict[str, list[tuple[int, Via]]] = {}
    mapped: dict[str, list[str]] = {}
    for listed, target in (trace.id_map or {}).items():
        mapped.setdefault(target, []).append(listed)
    documents: dict[str, int] = {}
    for position, gold in enumerate(trace.gold):
        if identities.inventory.chunk(gold.id) is None:
            documents[gold.id] = position
        for other, via in _names(gold, mapped, identities):
            tables = [searched] if via is Via.CHILD else [searched, packed]
            for table in tables:
                ways = table.setdefault(other, [])
                if all(known != position for known, _ in ways):
                    ways.append((position, via))
    return Standing({k: tuple(v) for k, v in searched.items()}, {k: tuple(v) for k, v in packed.items()}, documents)


def _names(gold: Gold, mapped: Mapping[str, list[str]], identities: Identities) -> Iterable[tuple[str, Via]]:
    yield gold.id, Via.ITSELF
    for listed in mapped.get(gold.id, ()):
        yield listed, Via.MAPPED
    inventory = identities.inventory
    chunk = identities.chunk_of(gold)
    if chunk is None:
        # A document-level label: any chunk of that source carries it.
        if inventory.chunk(gold.id) is None:
            for child in inventory.by_source.get(gold.id, ()):
                yield child, Via.SOURCE
        return
    yield chunk.chunk_id, Via.ALIAS
    for alias in chunk.aliases:
        yield alias, Via.ALIAS
    for digest in hashes(chunk):
        for twin in identities.by_hash.get(digest, ()):
            yield twin, Via.SAME_TEXT
    if chunk.parent_id is not None and not _foreign_parent(chunk, inventory):
        yield chunk.parent_id, Via.PARENT
    for child in identities.children.get(chunk.chunk_id, ()):
        yield child, Via.CHILD


def _foreign_parent(chunk: Chunk, inventory: Inventory) -> bool:
    """A parent record that belongs to another source does not stand for this chunk."""
    parent = inventory.chunk(chunk.parent_id or "")
    return (
        parent is not None and None not in (parent.source_id, chunk.source_id) and (parent.source_id != chunk.source_id)
    )
