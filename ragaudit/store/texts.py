"""The chunk texts of an audit, as far as the query's user may read them. There is no other way to show one."""

from dataclasses import dataclass

from pydantic import ValidationError

from ragaudit.config import AclSettings
from ragaudit.errors import AuditFileError
from ragaudit.evidence.access import Access
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.logged import Logged
from ragaudit.model.diagnosis import Diagnosis, GoldDiagnosis
from ragaudit.model.faults import first_fault
from ragaudit.model.inventory import Chunk, Inventory
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import QueryResult, RunInfo
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Trace
from ragaudit.store.reader import AuditReader
from ragaudit.store.schema import AGAIN


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

    Where no ACL is known the text is shown, as the log had it, unless the chunk violates an access clause of the
    filter.
    """

    def __init__(self, reader: AuditReader, run: RunInfo, result: QueryResult) -> None:
        """The reader must stay open."""
        diagnosis = result.diagnosis
        self._reader = reader
        self._acl = AclSettings(rule="all" if run.acl_rule == "all" else "any", everyone=run.acl_everyone)
        self._hidden = hidden_ids(diagnosis)
        self.trace = reader.trace(diagnosis.query_id) or Trace(
            query_id=diagnosis.query_id, query_text=result.query_text, k_final=result.k_final
        )
        self._logged = Logged(self.trace)
        self._pipeline = self._ran_under(run)
        self._has_rules = self.trace.user_acl is not None or bool(self._access(Identities.of(Inventory())).guarding)
        self._why: dict[str, str | None] = {}
        self.shows_answer = not diagnosis.leaks
        """False = a leak stood in the prompt: the answer may repeat what its user may not read."""
        self.shows_reference = not diagnosis.gold or any(self._may_read_gold(gold) for gold in diagnosis.gold)
        """False = the user may read none of the evidence that the reference was written from."""

    def chunk(self, chunk_id: str) -> ChunkText:
        """A chunk's text as packed, else as stored, else as logged in a list."""
        stored = self._reader.chunk(chunk_id)
        source_id = stored.source_id if stored is not None else None
        text = (self.trace.context_texts or {}).get(chunk_id)
        text = text or (stored.text if stored is not None else None) or self._text_of_hit(chunk_id)
        why = self._withheld(chunk_id)
        if why is not None:
            return ChunkText(chunk_id, None, why, source_id, content_hash(text)[:23] if text else None)
        return ChunkText(chunk_id, text, "" if text else "no text in the audit", source_id)

    def text(self, chunk_id: str) -> str | None:
        """Its text alone; None when it is not shown."""
        return self.chunk(chunk_id).text

    def readable(self, chunk_id: str) -> bool:
        """Whether its text may be shown."""
        return self._withheld(chunk_id) is None

    def _may_read_gold(self, gold: GoldDiagnosis) -> bool:
        return gold.eligible is True or (gold.eligible is None and self.readable(gold.id))

    def _ran_under(self, run: RunInfo) -> Pipeline:
        try:
            return Pipeline.model_validate(run.pipeline).with_overrides(self.trace.config)
        except ValidationError as error:
            where = ".".join(map(str, first_fault(error).path))
            raise AuditFileError(f"{self._reader.path}: damaged (its configuration, {where}). {AGAIN}") from error

    def _text_of_hit(self, chunk_id: str) -> str | None:
        texts = [hit.text for hit in self._logged.hits.get(chunk_id, ()) if hit.text]
        return texts[-1] if texts else None

    def _withheld(self, chunk_id: str) -> str | None:
        """Why its text is not shown; None when it is."""
        if chunk_id not in self._why:
            self._why[chunk_id] = self._reason(chunk_id)
        return self._why[chunk_id]

    def _reason(self, chunk_id: str) -> str | None:
        rows = self._rows(chunk_id)
        known = {chunk_id, (self.trace.id_map or {}).get(chunk_id)}
        known |= {name for row in rows for name in (row.chunk_id, *row.aliases)}
        access = self._access(self._around(chunk_id, rows))
        if known & self._hidden or access.may_read(chunk_id) is False:
            return "the query's user may not read it"
        return None if access.may_show(chunk_id) else "its metadata says it is another's, and no ACL says otherwise"

    def _access(self, around: Identities) -> Access:
        return Access(self.trace, around, self._acl, self._pipeline, self._logged)

    def _rows(self, chunk_id: str) -> list[Chunk]:
        """The chunk's row, and that of the id which `id_map` gives for it."""
        names = (chunk_id, (self.trace.id_map or {}).get(chunk_id))
        return [row for name in names if name is not None and (row := self._reader.chunk(name)) is not None]

    def _around(self, chunk_id: str, rows: list[Chunk]) -> Identities:
        """The part of the inventory that says who may read this chunk."""
        ids = self._access(Identities.of(Inventory())).names(chunk_id, rows)
        named = [*(row.source_id for row in rows), *map(self._logged.sources.get, ids)]
        children: list[Chunk] = []
        if self._has_rules:
            parents = (chunk_id, *(row.chunk_id for row in rows))
            children = [child for name in dict.fromkeys(parents) for child in self._reader.children(name)]
            children += [] if rows else self._reader.chunks_of(chunk_id)
        names = [*named, *(child.source_id for child in children), chunk_id, (self.trace.id_map or {}).get(chunk_id)]
        sources = [self._reader.source(name) for name in dict.fromkeys(names) if name is not None]
        return Identities.of(
            Inventory.of(
                {source.source_id: source for source in sources if source is not None},
                {row.chunk_id: row for row in (*children, *rows)},
                None,
            )
        )
