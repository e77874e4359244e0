"""The chunk texts of an audit, as far as the query's user may read them. There is no other way to show one."""

from dataclasses import dataclass

from ragaudit.config import AclSettings
from ragaudit.evidence.acl import may_read
from ragaudit.model.diagnosis import Diagnosis
from ragaudit.model.inventory import Inventory
from ragaudit.model.result import QueryResult, RunInfo
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Trace
from ragaudit.store.reader import AuditReader


@dataclass(frozen=True)
class ChunkText:
    """One chunk as this user may see it. `text` None = not shown, and `why` says why."""

    id: str
    text: str | None
    why: str = ""
    source_id: str | None = None
    hash: str | None = None
    """Of a text that is not shown."""


def hidden_ids(diagnosis: Diagnosis) -> set[str]:
    """Chunks that the query's user may not read, as far as the diagnosis says: their text is never shown."""
    return {*diagnosis.leaks, *(gold.id for gold in diagnosis.gold if gold.eligible is False)}


class ReadableTexts:
    """The texts of one query. What its user may not read is named by id and hash only, under whichever id it is asked.

    Where no ACL is known the text is shown, as the log had it.
    """

    def __init__(self, reader: AuditReader, run: RunInfo, result: QueryResult) -> None:
        """The reader must stay open."""
        diagnosis = result.diagnosis
        self._reader = reader
        self._acl = AclSettings(rule="all" if run.acl_rule == "all" else "any", everyone=run.acl_everyone)
        self._hidden = hidden_ids(diagnosis)
        self.shows_answer = not diagnosis.leaks
        """False = a leak stood in the prompt: the answer may repeat what its user may not read."""
        self.shows_reference = not diagnosis.gold or any(gold.eligible is not False for gold in diagnosis.gold)
        """False = the user may read none of the evidence that the reference was written from."""
        self.trace = reader.trace(diagnosis.query_id) or Trace(
            query_id=diagnosis.query_id, query_text=result.query_text, k_final=result.k_final
        )
        self._logged = {hit.id: hit.text for hits in self.trace.lists().values() for hit in hits if hit.text}

    def chunk(self, chunk_id: str) -> ChunkText:
        """A chunk's text as packed, else as stored, else as logged in a list."""
        stored = self._reader.chunk(chunk_id)
        source_id = stored.source_id if stored is not None else None
        text = (self.trace.context_texts or {}).get(chunk_id)
        text = text or (stored.text if stored is not None else None) or self._logged.get(chunk_id)
        if not self.readable(chunk_id):
            digest = content_hash(text)[:23] if text else None
            return ChunkText(chunk_id, None, "the query's user may not read it", source_id, digest)
        return ChunkText(chunk_id, text, "" if text else "no text in the audit", source_id)

    def text(self, chunk_id: str) -> str | None:
        """Its text alone; None when it is not shown."""
        return self.chunk(chunk_id).text

    def readable(self, chunk_id: str) -> bool:
        """Whether its text may be shown."""
        stored = self._reader.chunk(chunk_id)
        known = {chunk_id, *([stored.chunk_id, *stored.aliases] if stored is not None else ())}
        if known & self._hidden:
            return False
        source_id = stored.source_id if stored is not None else chunk_id
        source = None if source_id is None else self._reader.source(source_id)
        around = Inventory.of(
            {source.source_id: source} if source is not None else None,
            {stored.chunk_id: stored} if stored is not None else None,
            None,
        )
        return may_read(chunk_id, self.trace, around, self._acl) is not False
