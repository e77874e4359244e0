"""What may be shown of one query's chunks: the ACLs, and the access clauses of its filters where no ACL is known."""

from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

from ragaudit.config import AclSettings
from ragaudit.evidence.access_clauses import is_access_clause
from ragaudit.evidence.acl import Acls
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.logged import Logged, logged_source
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.model.inventory import Chunk
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Gold, Hit, Trace


class Access(Acls):
    """The one door to a query's texts: leaks, what is stored, shown, and sent to a judge all ask it.

    The access clauses are those of the filter that was sent, of the arms' own filters, and of the filter as it should
    be: one set, so that what is hidden is a leak where it was packed, and the other way round.
    """

    def __init__(
        self,
        trace: Trace,
        identities: Identities,
        settings: AclSettings,
        pipeline: Pipeline,
        logged: Logged | None = None,
    ) -> None:
        """`pipeline` is the configuration that this query ran under, its own departures included."""
        super().__init__(trace, identities, settings, logged)
        self.pipeline = pipeline

    def may_show(self, chunk_id: str) -> bool:
        """May its text be shown or sent on? Where no ACL decides: unless it violates an access clause."""
        readable = self.may_read(chunk_id)
        return self.broken_clause(chunk_id) is None if readable is None else readable

    def may_show_source(self, source_id: str) -> bool:
        """May the text of a source document be shown or sent on? It holds the words of all its chunks."""
        readable = self._admits(self._source_acl(source_id), self.trace.user_acl)
        if readable is not None:
            return readable
        ids = (*self._inventory.by_source.get(source_id, ()), *self.logged.by_source.get(source_id, ()), source_id)
        return all(map(self.may_show, ids))

    def is_leak(self, chunk_id: str) -> bool:
        """Is it against the rules that this user is given the chunk: by ACL, or by a clause that no ACL outweighs?"""
        if self.is_barred(chunk_id):
            return True
        return self.broken_clause(chunk_id) is not None and self.may_read(chunk_id) is not True

    def broken_clause(self, chunk_id: str) -> str | None:
        """The field of an access clause that this chunk plainly violates, by any of its names: it is another's.

        A parent holds the words of its children, a document those of its chunks, and an id that no table knows those
        of the chunks with its text.
        """
        if not self._guards or not self.knows_fields:
            return None
        return self._broken(self._named(chunk_id, self._inventory.chunk(chunk_id))) or self._broken_by_kin(chunk_id)

    def broken_by(self, gold: Gold) -> str | None:
        """The field of an access clause that this gold plainly violates."""
        if not self._guards:
            return None
        return self._broken(self._named(gold.id, self.identities.chunk_of(gold))) or self._broken_by_kin(gold.id)

    def broken_subject(self, chunk_id: str) -> str | None:
        """The field of another clause, of the sent or the expected filter, that it plainly violates."""
        if not self._subjects:
            return None
        metadata = self.metadata(chunk_id)
        return next((name for name, want in self._subjects.items() if match(want, metadata, name) is Match.NO), None)

    @property
    def guarding(self) -> Collection[str]:
        """The fields of the access clauses."""
        return {field for field, _ in self._guards}

    # --- what a filter can read of a chunk -----------------------------------------------------------------------

    def metadata(self, chunk_id: str) -> Mapping[str, Any] | None:
        """What is known of the chunk's fields: as stored, and where its row lacks a field, as logged with a hit."""
        if not self.knows_fields:
            return None
        return _merged(self._named(chunk_id, self._inventory.chunk(chunk_id)))

    @cached_property
    def knows_fields(self) -> bool:
        """A chunk table, or what was logged with the hits, may say more of a chunk than its id."""
        return bool(self._inventory.chunks) or self.logged.says_more

    def metadata_of(self, gold: Gold) -> Mapping[str, Any] | None:
        """The same of a gold id. A row of another source is not it."""
        return _merged(self._named(gold.id, self.identities.chunk_of(gold)))

    def _named(self, chunk_id: str, row: Chunk | None) -> list[Mapping[str, Any]]:
        """The fields by every name of the chunk: of its row, else of the row that it maps to, and of its hits."""
        mapped = None if row is not None and row.metadata is not None else self._mapped(chunk_id)
        rows = [each for each in (row, mapped) if each is not None]
        said = [*map(_stored, rows)]
        for name in self.names(chunk_id, rows):
            said += [_as_logged(hit) for hit in self.logged.hits.get(name, ()) if hit.metadata or hit.source_id]
        return said

    # --- access clauses ------------------------------------------------------------------------------------------

    def _broken(self, said: list[Mapping[str, Any]]) -> str | None:
        """The field of the first clause that some of these violate, in all the values that were sent for it."""
        for field, conditions in self._guards:
            if any(all(match(each, fields, field) is Match.NO for each in conditions) for fields in said):
                return field
        return None

    def _broken_by_kin(self, chunk_id: str) -> str | None:
        chunk = self._inventory.chunk(chunk_id) or self._mapped(chunk_id)
        children = self.identities.children.get(chunk_id if chunk is None else chunk.chunk_id, ())
        parts = self._inventory.by_source.get(chunk_id, ()) if chunk is None else ()
        for part in (*children, *parts):
            if (field := self._foreign_row(part)) is not None:
                return field
        twins = self._twins(chunk_id) if chunk is None else ()
        fields = [self._foreign_row(twin) for twin in twins]
        hidden = all(field or self.may_read(twin) is False for field, twin in zip(fields, twins, strict=True))
        return next(filter(None, fields), None) if hidden else None

    def _foreign_row(self, chunk_id: str) -> str | None:
        """The field that says that this row is another's, unless an ACL admits the user."""
        if self.may_read(chunk_id) is True:
            return None
        return self._broken(self._named(chunk_id, self._inventory.chunk(chunk_id)))

    @cached_property
    def _guards(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """Field and conditions, of which a row must meet one: arms may send different values, and each is obeyed."""
        sent: dict[str, tuple[Any, ...]] = {}
        filters = [self.trace.filters_applied, *(status.filter for status in (self.trace.arm_status or {}).values())]
        for field, condition in chain.from_iterable(map(clauses, filters)):
            if self._is_guard(field, condition):
                sent[field] = (*sent.get(field, ()), condition)
        expected = clauses(self.pipeline.filter.expected)
        return (*sent.items(), *((field, (want,)) for field, want in expected if self._is_guard(field, want)))

    @cached_property
    def _subjects(self) -> Mapping[str, Any]:
        wanted = {**dict(clauses(self.trace.filters_applied)), **dict(clauses(self.pipeline.filter.expected))}
        return {field: want for field, want in wanted.items() if not self._is_guard(field, want)}

    def _is_guard(self, field: str, condition: Any) -> bool:
        return is_access_clause(field, condition, self.trace.user_acl)


def _stored(chunk: Chunk) -> Mapping[str, Any]:
    fields: dict[str, Any] = {}
    if chunk.source_id is not None:
        fields["source_id"] = chunk.source_id
    if chunk.language is not None:
        fields["language"] = fields["lang"] = chunk.language
    return {**fields, **(chunk.metadata or {})}


def _as_logged(hit: Hit) -> Mapping[str, Any]:
    metadata, source_id = hit.metadata or {}, logged_source(hit)
    return metadata if source_id is None else {"source_id": source_id, **metadata}


def _merged(said: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The first word on each field counts; None when nothing is known."""
    if len(said) < 2:
        return said[0] if said else None
    return {name: value for fields in reversed(said) for name, value in fields.items()}
