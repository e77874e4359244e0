"""Ingestion: parse, chunk, embed and index every source, with the faults that are switched on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

import numpy as np

from . import config
from .bm25 import Bm25, Tokenizer
from .chunk import ChunkFault, chunk
from .corpus import Source, content_hash, former_version
from .embed import Embedder, Vector, fit_lsa, random_model, windows
from .faults import FORMER_TEXT, HALF_WRITTEN_KEEPS
from .ivf import Ivf
from .parse import Parsed, ParseFault, parse
from .tokens import count_tokens, whitespace_words, words

N_LISTS = 8
SEED = 20261001
PARENTS = {"rb-dead-letter": ("p-9be2", "p-4f1c"), "rb-dns": ("p-77a0", "p-77a0")}
"""Sources with a parent chunk: key of the parent now, key in the rows when the map is out of date."""
LATE = ("2026-10-01T08:40:00Z", "2026-10-01T18:00:00Z")
FORMER = "2026-01-10T21:30:00Z"
_PARSE = ("tables_dropped", "quotes_dropped", "words_broken", "nothing_extracted")
_CHUNK = ("fixed_window", "tail_dropped", "header_not_repeated")


@dataclass
class Row:
    """One chunk as the store and the indexes hold it."""

    chunk_id: str
    source_id: str
    heading: str
    text: str
    tokens: int
    metadata: dict[str, str | int]
    acl: tuple[str, ...]
    language: str
    vector: Vector
    model: str
    list_number: int
    is_parent: bool = False
    parent_id: str | None = None
    is_indexed: bool = True
    indexed_at: str = config.INDEXED
    visible_at: str = config.INDEXED

    @property
    def hash(self) -> str:
        """Content hash of the text."""
        return content_hash(self.text)


@dataclass(frozen=True)
class Ingested:
    """What became of one source."""

    source: Source
    status: str
    parsed: Parsed | None = None
    indexed_hash: str | None = None
    n_expected: int = 0
    n_indexed: int = 0
    chunked_chars: int = 0
    indexed_at: str | None = None


@dataclass(frozen=True)
class Models:
    """The embedding models and the trained centroids: fixed before any fault."""

    main: Embedder
    main_whole: Embedder
    other: Embedder
    narrow: Embedder
    ivf: Ivf


@dataclass
class Store:
    """Every row, both arms and the ledger of ingestion."""

    rows: dict[str, Row]
    ingested: dict[str, Ingested]
    models: Models
    _bm25: dict[str, tuple[Bm25, list[str]]] = field(default_factory=dict)

    def searchable(self) -> list[Row]:
        """Rows that an arm can return now, in the order they were written."""
        return [row for row in self.rows.values() if row.is_indexed and row.visible_at <= config.SNAPSHOT]

    def bm25(self, tokenizer: str) -> tuple[Bm25, list[str]]:
        """The lexical index under a tokenizer, and the chunk id of each of its rows."""
        if tokenizer not in self._bm25:
            rows = self.searchable()
            cut: Tokenizer = whitespace_words if tokenizer == "whitespace" else words
            self._bm25[tokenizer] = (Bm25([row.text for row in rows], cut), [row.chunk_id for row in rows])
        return self._bm25[tokenizer]


def train(sources: Iterable[Source]) -> Models:
    """Fit the models on the sources as they should be."""
    pieces = [piece.text for source in sources for piece in chunk(source, parse(source))]
    texts = [window for text in pieces for window in windows(text, config.EMBED_MAX_TOKENS)]
    main = fit_lsa(config.MODEL, texts, 96, config.EMBED_MAX_TOKENS)
    whole = fit_lsa(config.MODEL, texts, 96, None)
    return Models(
        main=main,
        main_whole=whole,
        other=random_model(config.OTHER_MODEL, texts, 96, SEED, config.EMBED_MAX_TOKENS),
        narrow=random_model(config.NARROW_MODEL, texts, 64, SEED + 1, config.EMBED_MAX_TOKENS),
        ivf=Ivf(np.stack([main.embed(text) for text in texts]), N_LISTS, SEED),
    )


def build(sources: Mapping[str, Source], models: Models, faults: Mapping[str, str]) -> Store:
    """Ingest every source. `faults` maps a source id to the fault of its ingestion."""
    rows: dict[str, Row] = {}
    ingested: dict[str, Ingested] = {}
    for source_id, source in sources.items():
        written, record = _ingest(source, models, faults.get(source_id))
        rows.update((row.chunk_id, row) for row in written)
        ingested[source_id] = record
    return Store(rows, ingested, models)


def _ingest(source: Source, models: Models, fault: str | None) -> tuple[list[Row], Ingested]:
    if source.superseded_by and fault != "not_deleted":
        return [], Ingested(source, "deleted")
    if fault == "source_missing":
        return [], Ingested(source, "absent")
    if fault == "source_failed":
        return [], Ingested(source, "failed")
    read = former_version(source, FORMER_TEXT[source.source_id], "2026-01-10") if fault == "source_stale" else source
    parsed = parse(read, cast(ParseFault, fault) if fault in _PARSE else None)
    pieces = chunk(read, parsed, cast(ChunkFault, fault) if fault in _CHUNK else None)
    rows = [
        _row(source, number, piece.heading, piece.text, models, fault) for number, piece in enumerate(pieces, start=1)
    ]
    if fault == "half_written":
        for row in rows[HALF_WRITTEN_KEEPS:]:
            row.is_indexed = False
    rows.extend(_parents(source, rows, models, fault))
    record = Ingested(
        source=source,
        status="ok",
        parsed=parsed,
        indexed_hash=content_hash(read.text),
        n_expected=len(pieces),
        n_indexed=sum(row.is_indexed and not row.is_parent for row in rows),
        chunked_chars=sum(len(piece.text) for piece in pieces),
        indexed_at=rows[0].indexed_at if rows else config.INDEXED,
    )
    return rows, record


def _row(source: Source, number: int, heading: str, text: str, models: Models, fault: str | None) -> Row:
    model = models.main
    if fault == "other_model":
        model = models.other
    elif fault == "narrow_model":
        model = models.narrow
    vector = _embed(models.main_whole if source.source_id == "hb-relocation" and fault is None else model, text)
    if model.dim != models.main.dim:
        list_number = 0
    elif fault == "bulk_load_wrong_list":
        list_number = models.ivf.wrong_list_of(vector)
    else:
        list_number = models.ivf.list_of(vector)
    metadata = dict(source.metadata)
    if fault == "type_mismatch":
        metadata["api_version"] = str(metadata["api_version"])
    if fault == "case_mismatch":
        metadata["region"] = str(metadata["region"]).upper()
    row = Row(
        chunk_id=f"{source.source_id}#{number}",
        source_id=source.source_id,
        heading=heading,
        text=text,
        tokens=count_tokens(text),
        metadata=metadata,
        acl=() if fault == "empty_acl" else source.acl,
        language=source.language,
        vector=vector,
        model=model.name,
        list_number=list_number,
    )
    if fault == "not_visible":
        row.indexed_at, row.visible_at = LATE
    elif fault == "source_stale":
        row.indexed_at = row.visible_at = FORMER
    return row


def _parents(source: Source, children: list[Row], models: Models, fault: str | None) -> list[Row]:
    if source.source_id not in PARENTS or not children:
        return []
    current, former = PARENTS[source.source_id]
    key = former if fault == "parent_ids_regenerated" else current
    for child in children:
        child.parent_id = f"{source.source_id}@{key}"
    bodies = [f"{child.heading}: {child.text.partition(chr(10) * 2)[2]}" for child in children]
    text = source.title + "\n\n" + "\n\n".join(bodies)
    parent = _row(source, 0, "", text, models, None)
    parent.chunk_id = f"{source.source_id}@{current}"
    parent.is_parent, parent.is_indexed = True, False
    return [parent]


@lru_cache(maxsize=8192)
def _embed(model: Embedder, text: str) -> Vector:
    return model.embed(text)
