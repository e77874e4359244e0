"""What was ingested, parsed, chunked and indexed: sources, chunks, index revision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from ragaudit.model.ids import Id
from ragaudit.model.record import Observed


class SourceStatus(StrEnum):
    """How the last ingestion of a source ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    PENDING = "pending"
    DELETED = "deleted"


class Source(Observed):
    """One source document, as registered and as indexed."""

    source_id: Id
    registered: bool | None = None
    status: SourceStatus | None = None
    in_source_of_truth: bool | None = None
    superseded_by: Id | None = None
    source_hash: str | None = None
    indexed_hash: str | None = None
    source_chars: int | None = None
    extracted_chars: int | None = None
    text: str | None = None
    extracted_text: str | None = None
    chunked_chars: int | None = None
    tables_in_source: int | None = None
    tables_extracted: int | None = None
    chunks_expected: int | None = None
    chunks_indexed: dict[str, int] | None = None
    acl: tuple[str, ...] | None = None
    updated_at: str | None = None
    indexed_at: str | None = None
    note: str | None = None


class ChunkKind(StrEnum):
    """A parent is served but not searched."""

    CHUNK = "chunk"
    PARENT = "parent"


class Chunk(Observed):
    """One chunk of the chunk store. It may stand in no index (`present_in` all False)."""

    chunk_id: Id
    source_id: Id | None = None
    parent_id: Id | None = None
    kind: ChunkKind | None = None
    aliases: tuple[Id, ...] = ()
    text: str | None = None
    content_hash: str | None = None
    tokens: int | None = None
    metadata: dict[str, Any] | None = None
    acl: tuple[str, ...] | None = None
    embedding_model: str | None = None
    dim: int | None = None
    norm: float | None = None
    present_in: dict[str, bool] | None = Field(default=None, alias="in")
    indexed_at: str | None = None
    visible_at: str | None = None
    answer_token_offset: int | None = None
    namespace: str | None = None
    language: str | None = None
    note: str | None = None


class ScoreMeaning(Observed):
    """Which way an arm's score runs, and its formula."""

    direction: str | None = None
    formula: str | None = None


class IndexArm(Observed):
    """The index behind one arm."""

    chunks: int | None = None
    built_at: str | None = None
    rows_at_build: int | None = None
    metric: str | None = None
    models: dict[str, int] | None = None
    dims: dict[str, int] | None = None
    norm_p5: float | None = None
    norm_p50: float | None = None
    norm_p95: float | None = None
    tombstones: int | None = None
    ann: str | None = None
    model_history: tuple[dict[str, Any], ...] | None = None
    score: ScoreMeaning | None = None


class Index(Observed):
    """One index revision. `complete = False` forbids every verdict that rests on absence from it."""

    revision: str | None = None
    snapshot_at: str | None = None
    namespace: str | None = None
    namespaces: dict[str, int] | None = None
    arms: dict[str, IndexArm] = Field(default_factory=dict)
    chunks_in_store: int | None = None
    sources_expected: int | None = None
    sources_indexed: int | None = None
    id_overlap_with_gold: float | None = None
    metadata_types: dict[str, str] | None = None
    complete: bool | None = None
    note: str | None = None


@dataclass(frozen=True)
class Inventory:
    """Sources, chunks and index together, by id. `None` for a table = that file was not given."""

    sources: Mapping[str, Source] | None = None
    chunks: Mapping[str, Chunk] | None = None
    index: Index | None = None
    by_alias: Mapping[str, str] = field(default_factory=dict)
    """Other id -> chunk id, from `Chunk.aliases`; a chunk's own id always wins over an alias."""
    by_source: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Source id -> its chunk ids in file order."""

    @classmethod
    def of(
        cls, sources: Mapping[str, Source] | None, chunks: Mapping[str, Chunk] | None, index: Index | None
    ) -> "Inventory":
        """Build the inventory with its look-up tables."""
        by_alias: dict[str, str] = {}
        by_source: dict[str, list[str]] = {}
        for chunk in (chunks or {}).values():
            for alias in chunk.aliases:
                by_alias.setdefault(alias, chunk.chunk_id)
            if chunk.source_id is not None:
                by_source.setdefault(chunk.source_id, []).append(chunk.chunk_id)
        return cls(sources, chunks, index, by_alias, {key: tuple(ids) for key, ids in by_source.items()})

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk of this id or alias, if the chunk table holds it."""
        if self.chunks is None:
            return None
        return self.chunks.get(chunk_id) or self.chunks.get(self.by_alias.get(chunk_id, ""))

    def source(self, source_id: str | None) -> Source | None:
        """The source of this id, if the source table holds it."""
        return None if source_id is None or self.sources is None else self.sources.get(source_id)
