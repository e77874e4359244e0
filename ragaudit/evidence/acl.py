"""Who may read what. Access is decided by the source's ACL; what the index stores is only a copy of it."""

from collections.abc import Iterable
from functools import cached_property

from ragaudit.config import AclSettings
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.logged import Logged
from ragaudit.evidence.principals import admits
from ragaudit.model.inventory import Chunk
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Gold, Trace

Acl = tuple[str, ...]


class Acls:
    """What the ACLs say of the user of one query, by every name that a chunk has in its log.

    They leave open what no ACL is known for. What may be shown or sent on is for `Access` to say.
    """

    def __init__(
        self, trace: Trace, identities: Identities, settings: AclSettings, logged: Logged | None = None
    ) -> None:
        self.trace = trace
        self.identities = identities
        self.settings = settings
        self.logged = logged or Logged(trace)
        self._inventory = identities.inventory
        self._known: dict[tuple[Acl | None, Acl | None], bool | None] = {}
        """Hundreds of hits share a few ACLs."""

    def may_read(self, chunk_id: str) -> bool | None:
        """May the user read this chunk? None when no ACL is known for it, or none that proves it either way.

        The source decides: that of the chunk's row, of the id that `id_map` gives for it, of the hit as logged, of
        the children of a parent, or the document that the id itself names. Where no source's ACL is known, the
        chunk's stored ACL does, unless it is empty: an empty stored list is as likely a lost copy as a ban, so it
        proves nothing; a parent without one has those of its children. A document is unreadable when one of its chunks
        is, and an id that no table knows when its text is that of chunks which the user may none of them read.
        """
        return self._reads(chunk_id, self.trace.user_acl)

    def eligible(self, gold: Gold) -> bool | None:
        """May the user read this gold? The label wins, then the ACLs; None = unknown, counted as labelled."""
        return gold.eligible if gold.eligible is not None else self._by_acl(gold)

    def label_disagrees(self, gold: Gold) -> bool:
        """The label says that the user may read it, and the ACL that decides does not admit the user."""
        return gold.eligible is True and self._by_acl(gold) is False

    def is_barred(self, chunk_id: str) -> bool:
        """Is it proven by ACL that the user may not read this chunk?

        A label that disagrees with the ACL of its gold shows only that the user may hold principals which were not
        logged, or logged in other words: those of that ACL. What they would admit is no proven leak.
        """
        if self.may_read(chunk_id) is not False:
            return False
        return not self._perhaps_held or self._reads(chunk_id, self._with_perhaps_held) is False

    # --- which ACL decides ---------------------------------------------------------------------------------------

    def _reads(self, chunk_id: str, principals: Acl | None) -> bool | None:
        if principals is None or not self.identities.has_acls:
            return None
        chunk = self._inventory.chunk(chunk_id)
        acls = self._deciding(chunk_id, chunk, None)
        if acls:
            return self._admitted(acls, principals)
        if chunk is None and self._mapped(chunk_id) is None:
            if any(self._reads(part, principals) is False for part in self._inventory.by_source.get(chunk_id, ())):
                return False
            twins = self._twins(chunk_id)
            if twins and all(self._reads(twin, principals) is False for twin in twins):
                return False
        return None

    def _by_acl(self, gold: Gold) -> bool | None:
        return self._admitted(self._gold_acls(gold), self.trace.user_acl)

    def _gold_acls(self, gold: Gold) -> tuple[Acl | None, ...]:
        return self._deciding(gold.id, self.identities.chunk_of(gold), gold.source_id)

    def _admitted(self, acls: tuple[Acl | None, ...], principals: Acl | None) -> bool | None:
        """Every one of these must admit: a parent holds the words of all its children."""
        found = {self._admits(acl, principals) for acl in acls}
        return False if False in found else None if None in found or not found else True

    def _admits(self, acl: Acl | None, principals: Acl | None) -> bool | None:
        if (acl, principals) not in self._known:
            self._known[acl, principals] = admits(acl, principals, self.settings)
        return self._known[acl, principals]

    def _deciding(self, chunk_id: str, chunk: Chunk | None, source_id: str | None) -> tuple[Acl | None, ...]:
        mapped = self._mapped(chunk_id)
        rows = [row for row in (chunk, mapped) if row is not None]
        named = [row.source_id for row in rows] + [source_id]
        for name in named:
            if (acl := self._source_acl(name)) is not None:
                return (acl,)
        if self.identities.source_acls:
            for name in self.names(chunk_id, rows):
                if (acl := self._source_acl(self.logged.sources.get(name))) is not None:
                    return (acl,)
        children = self.identities.children.get(chunk.chunk_id if chunk is not None else chunk_id, ())
        if not any(named):
            acls = tuple(self._source_acl(row.source_id) for row in map(self._inventory.chunk, children) if row)
            if any(acl is not None for acl in acls):
                return acls
            for name in (chunk_id, (self.trace.id_map or {}).get(chunk_id)):
                if (acl := self._source_acl(name)) is not None:
                    return (acl,)
        stored = next(((row.acl,) for row in rows if row.acl), ())
        if stored or any(named):
            return stored
        acls = tuple(row.acl or None for row in map(self._inventory.chunk, children) if row)
        return acls if any(acls) else ()

    def _source_acl(self, source_id: str | None) -> Acl | None:
        return None if source_id is None else self.identities.source_acls.get(source_id)

    def names(self, chunk_id: str, rows: Iterable[Chunk]) -> Iterable[str]:
        """The ids that a list may have the chunk of these rows under, its own first."""
        names = [chunk_id]
        for row in rows:
            names += [name for name in (row.chunk_id, *row.aliases) if name != chunk_id]
        id_map = self.trace.id_map
        if not id_map:
            return names
        names += [id_map[chunk_id]] if chunk_id in id_map else []
        return dict.fromkeys((*names, *(listed for name in names for listed in self.logged.listed_as.get(name, ()))))

    def _mapped(self, chunk_id: str) -> Chunk | None:
        """The row of the id that the log's `id_map` gives for this one."""
        target = (self.trace.id_map or {}).get(chunk_id)
        return None if target is None else self._inventory.chunk(target)

    def _twins(self, chunk_id: str) -> tuple[str, ...]:
        """The chunks whose text is the one that was logged under this id."""
        by_hash = self.identities.by_hash
        if not by_hash:
            return ()
        hits = self.logged.hits.get(chunk_id, ())
        texts = [(self.trace.context_texts or {}).get(chunk_id), *(hit.text for hit in hits)]
        digests = dict.fromkeys(content_hash(text) for text in dict.fromkeys(texts) if text)
        digest = (self.trace.context_hashes or {}).get(chunk_id)
        return tuple(twin for each in (*digests, *([digest] if digest else [])) for twin in by_hash.get(each, ()))

    # --- what the log says of the user ---------------------------------------------------------------------------

    @cached_property
    def _perhaps_held(self) -> Acl:
        acls = [acl for gold in self.trace.gold if self.label_disagrees(gold) for acl in self._gold_acls(gold)]
        return tuple(dict.fromkeys(entry for acl in acls for entry in acl or ()))

    @property
    def _with_perhaps_held(self) -> Acl:
        return (*(self.trace.user_acl or ()), *self._perhaps_held)
