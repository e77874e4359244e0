"""Who may read what. Access is decided by the source's ACL; what the index stores is only a copy of it."""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from ragaudit.config import AclSettings
from ragaudit.evidence.access_clauses import is_access_clause
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.evidence.principals import admits
from ragaudit.model.inventory import Chunk
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Gold, Hit, Trace

Acl = tuple[str, ...]


class Access:
    """What the user of one query may read, by every name that a chunk has in its log."""

    def __init__(self, trace: Trace, identities: Identities, settings: AclSettings) -> None:
        self._trace = trace
        self._identities = identities
        self._inventory = identities.inventory
        self._settings = settings

    def may_read(self, chunk_id: str) -> bool | None:
        """May the user read this chunk? None when no ACL is known for it, or none that proves it either way.

        The source decides: that of the chunk's row, of the id that `id_map` gives for it, of the hit as logged, of
        the children of a parent, or the document that the id itself names. Where no source's ACL is known, the
        chunk's stored ACL does, unless it is empty: an empty stored list is as likely a lost copy as a ban, so it
        proves nothing. An id that no table knows is unreadable when its text is that of chunks which the user may
        none of them read.
        """
        return self._reads(chunk_id, self._trace.user_acl)

    def eligible(self, gold: Gold) -> bool | None:
        """May the user read this gold? The label wins, then the ACLs; None = unknown, counted as labelled."""
        return gold.eligible if gold.eligible is not None else self._by_acl(gold)

    def label_disagrees(self, gold: Gold) -> bool:
        """The label says that the user may read it, and the ACL that decides does not admit the user."""
        return gold.eligible is True and self._by_acl(gold) is False

    def is_leak(self, chunk_id: str) -> bool:
        """Is it proven that the user may not read this chunk?

        A label that disagrees with the ACL of its gold shows only that the user may hold principals which were not
        logged, or logged in other words: those of that ACL. What they would admit is no proven leak.
        """
        if self.may_read(chunk_id) is not False:
            return False
        return not self._perhaps_held or self._reads(chunk_id, self._with_perhaps_held) is False

    def may_show(self, chunk_id: str) -> bool:
        """May its text be shown? Where no ACL is known: unless it violates an access clause of the filter."""
        readable = self.may_read(chunk_id)
        return self.broken_clause(self._metadata(chunk_id)) is None if readable is None else readable

    def broken_clause(self, metadata: Mapping[str, Any] | None) -> str | None:
        """The field of an access clause that was sent and that this metadata plainly violates: another's row."""
        for field, conditions in self._sent.items():
            if all(match(condition, metadata, field) is Match.NO for condition in conditions):
                return field
        return None

    @property
    def guarding(self) -> Collection[str]:
        """The fields of the access clauses that were sent."""
        return self._sent.keys()

    # --- which ACL decides ---------------------------------------------------------------------------------------

    def _reads(self, chunk_id: str, principals: Acl | None) -> bool | None:
        if principals is None:
            return None
        chunk = self._inventory.chunk(chunk_id)
        acls = self._deciding(chunk_id, chunk, None)
        if acls:
            return self._admitted(acls, principals)
        if chunk is None and self._mapped(chunk_id) is None:
            twins = self._twins(chunk_id)
            if twins and all(self._reads(twin, principals) is False for twin in twins):
                return False
        return None

    def _by_acl(self, gold: Gold) -> bool | None:
        return self._admitted(self._gold_acls(gold), self._trace.user_acl)

    def _gold_acls(self, gold: Gold) -> tuple[Acl | None, ...]:
        return self._deciding(gold.id, self._identities.chunk_of(gold), gold.source_id)

    def _admitted(self, acls: tuple[Acl | None, ...], principals: Acl | None) -> bool | None:
        """Every one of these must admit: a parent holds the words of all its children."""
        found = {admits(acl, principals, self._settings) for acl in acls}
        return False if False in found else None if None in found or not found else True

    def _deciding(self, chunk_id: str, chunk: Chunk | None, source_id: str | None) -> tuple[Acl | None, ...]:
        mapped = self._mapped(chunk_id)
        rows = [row for row in (chunk, mapped) if row is not None]
        named = [row.source_id for row in rows] + [source_id]
        for name in named:
            if (acl := self._source_acl(name)) is not None:
                return (acl,)
        if self._identities.source_acls and (acl := self._source_acl(self._logged_sources.get(chunk_id))) is not None:
            return (acl,)
        if not any(named):
            children = self._identities.children.get(chunk.chunk_id if chunk is not None else chunk_id, ())
            acls = tuple(self._source_acl(row.source_id) for row in map(self._inventory.chunk, children) if row)
            if any(acl is not None for acl in acls):
                return acls
            for name in (chunk_id, (self._trace.id_map or {}).get(chunk_id)):
                if (acl := self._source_acl(name)) is not None:
                    return (acl,)
        return next(((row.acl,) for row in rows if row.acl), ())

    def _source_acl(self, source_id: str | None) -> Acl | None:
        return None if source_id is None else self._identities.source_acls.get(source_id)

    def _mapped(self, chunk_id: str) -> Chunk | None:
        """The row of the id that the log's `id_map` gives for this one."""
        target = (self._trace.id_map or {}).get(chunk_id)
        return None if target is None else self._inventory.chunk(target)

    @cached_property
    def _hits(self) -> Mapping[str, tuple[Hit, ...]]:
        found: dict[str, tuple[Hit, ...]] = {}
        for hits in self._trace.lists().values():
            for hit in hits:
                found[hit.id] = (*found.get(hit.id, ()), hit)
        return found

    @cached_property
    def _logged_sources(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for hits in self._trace.lists().values():
            for hit in hits:
                source_id = logged_source(hit)
                if source_id is not None:
                    found.setdefault(hit.id, source_id)
        return found

    def _twins(self, chunk_id: str) -> tuple[str, ...]:
        """The chunks whose text is the one that was logged under this id."""
        by_hash = self._identities.by_hash
        if not by_hash:
            return ()
        texts = [(self._trace.context_texts or {}).get(chunk_id), *(hit.text for hit in self._hits.get(chunk_id, ()))]
        digests = dict.fromkeys(content_hash(text) for text in dict.fromkeys(texts) if text)
        digest = (self._trace.context_hashes or {}).get(chunk_id)
        return tuple(twin for each in (*digests, *([digest] if digest else [])) for twin in by_hash.get(each, ()))

    # --- what the log says of the user ---------------------------------------------------------------------------

    @cached_property
    def _perhaps_held(self) -> Acl:
        acls = [acl for gold in self._trace.gold if self.label_disagrees(gold) for acl in self._gold_acls(gold)]
        return tuple(dict.fromkeys(entry for acl in acls for entry in acl or ()))

    @property
    def _with_perhaps_held(self) -> Acl:
        return (*(self._trace.user_acl or ()), *self._perhaps_held)

    @cached_property
    def _sent(self) -> Mapping[str, tuple[Any, ...]]:
        """The access clauses of the filters that were sent, by field."""
        found: dict[str, tuple[Any, ...]] = {}
        filters = [self._trace.filters_applied, *(status.filter for status in (self._trace.arm_status or {}).values())]
        for field, condition in (clause for sent in filters for clause in clauses(sent)):
            if is_access_clause(field, condition, self._trace.user_acl):
                found[field] = (*found.get(field, ()), condition)
        return found

    def _metadata(self, chunk_id: str) -> Mapping[str, Any] | None:
        if not self._sent:
            return None
        chunk = self._inventory.chunk(chunk_id) or self._mapped(chunk_id)
        if chunk is not None and chunk.metadata is not None:
            return chunk.metadata
        return next((hit.metadata for hit in self._hits.get(chunk_id, ()) if hit.metadata is not None), None)


def logged_source(hit: Hit) -> str | None:
    """The source that a hit was logged with, as its own field or in its metadata."""
    named = (hit.metadata or {}).get("source_id") if hit.source_id is None else hit.source_id
    return str(named) if isinstance(named, (str, int)) and not isinstance(named, bool) else None
