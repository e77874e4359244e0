"""Reads an audit file that may come from anywhere: read-only, page by page, and every row is checked."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ragaudit.errors import AuditFileError
from ragaudit.model.diagnosis import Gap, Outcome, Severity, Stage
from ragaudit.model.inventory import Chunk, Inventory, Source
from ragaudit.model.judgement import Judgement
from ragaudit.model.record import Concluded
from ragaudit.model.result import QueryResult, Summary
from ragaudit.model.review import ReviewVerdict
from ragaudit.model.trace import Trace
from ragaudit.store import schema
from ragaudit.store.codec import unpack_judgement, unpack_trace
from ragaudit.store.filters import EVERYTHING, SORT_KEYS, Filter, Sort

MAX_CELL_BYTES = 256 << 20
RESULTS_AT_ONCE = 200
"""Results fetched together: long enough to be fast, short enough that another terminal can write in between."""


class Row(Concluded):
    """One line of a list of queries. `seq` is its place in the order of the file."""

    seq: int
    query_id: str
    outcome: Outcome
    stage: Stage
    gap: Gap | None
    causes: tuple[str, ...]
    n_gold: int
    query_text: str
    verdict: ReviewVerdict | None = None
    """What a person said of the diagnosis."""

    @property
    def severity(self) -> Severity:
        """A leak has a negative `seq`, which puts it before every other row."""
        return Severity.LEAK if self.seq < 0 else Severity.NORMAL


class AuditReader:
    """A finished audit file. Close it, or use it as a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """Use `open`."""
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open and check a file.

        Raises:
            AuditFileError: it is missing, no audit, unfinished, damaged, or of another version.
        """
        if not path.is_file():
            raise AuditFileError(f"{path}: no such file. Write one with `ragaudit audit BUNDLE -o {path.name}`.")
        with schema.translated(path):
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
            with ExitStack() as refused:
                refused.callback(connection.close)
                schema.defend(connection)
                connection.execute("PRAGMA query_only = ON")
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
                schema.check(connection, path)
                refused.pop_all()
        return cls(connection, path)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def summary(self) -> Summary:
        """Everything about the run but its queries."""
        found = self._one("SELECT value FROM meta WHERE name = 'summary'", ())
        if found is None:
            raise AuditFileError(f"{self.path}: unfinished. Run the same `ragaudit audit` command: it resumes.")
        counts = dict(self._all("SELECT name, value FROM meta WHERE name IN (?, ?)", (schema.REPLACED, schema.SUMMED)))
        with self._checked():
            behind = int(counts.get(schema.REPLACED, 0)) - int(counts.get(schema.SUMMED, 0))
            return Summary.model_validate_json(found[0]).model_copy(update={"behind": behind})

    def query(self, query_id: str) -> QueryResult | None:
        """The result of one query, if the run has it."""
        found = self._one(
            "SELECT result FROM results WHERE seq = (SELECT seq FROM queries WHERE query_id = ?)", (query_id,)
        )
        with self._checked():
            return None if found is None else QueryResult.model_validate_json(found[0])

    def trace(self, query_id: str) -> Trace | None:
        """The trace of one query as it was read, if the run has it."""
        found = self._one(
            "SELECT trace FROM traces WHERE seq = (SELECT seq FROM queries WHERE query_id = ?)", (query_id,)
        )
        with self._checked():
            return None if found is None else unpack_trace(found[0])

    def iter_traces(self) -> Iterator[Trace]:
        """Every trace in the order of the run, one in memory at a time."""
        sql = "SELECT trace FROM traces ORDER BY CASE WHEN seq < 0 THEN seq + ? ELSE seq END"
        with self._checked():
            for (packed,) in self._connection.execute(sql, (schema.LEAK_OFFSET,)):
                yield unpack_trace(packed)

    def page(
        self,
        where: Filter = EVERYTHING,
        *,
        sort: Sort = Sort.TRACES,
        marks: Collection[str] = (),
        offset: int = 0,
        limit: int = 100,
    ) -> list[Row]:
        """Rows that match, leaks first, then in the order of the traces, unless sorted otherwise.

        Args:
            where: Only these.
            sort: In this order.
            marks: The queries that `is:marked` means.
            offset: Leave out this many rows.
            limit: At most this many rows.
        """
        condition, values = where.where(marks)
        key = SORT_KEYS[sort]
        rows = self._all(
            "SELECT q.seq, q.query_id, q.outcome, q.stage, q.gap, q.causes, q.n_gold, q.query_text, "
            "(SELECT v.verdict FROM reviews v WHERE v.query_id = q.query_id) FROM queries q "
            f"WHERE {condition} ORDER BY {'' if sort is Sort.TRACES else key + ', '}q.seq LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        with self._checked():
            return [_row(row) for row in rows]

    def count(self, where: Filter = EVERYTHING, *, marks: Collection[str] = ()) -> int:
        """How many rows `page` would give in all."""
        condition, values = where.where(marks)
        return int(self._all(f"SELECT count(*) FROM queries q WHERE {condition}", values)[0][0])

    def ids(self, where: Filter = EVERYTHING, *, marks: Collection[str] = ()) -> list[str]:
        """The ids of all rows of `page`, in the order of the file."""
        condition, values = where.where(marks)
        return [
            str(query_id)
            for (query_id,) in self._all(f"SELECT q.query_id FROM queries q WHERE {condition} ORDER BY q.seq", values)
        ]

    def query_texts(self, query_ids: Sequence[str]) -> dict[str, str]:
        """The text of these queries by id, as far as the run has them."""
        sql = "SELECT query_id, query_text FROM queries WHERE query_id IN (SELECT value FROM json_each(?))"
        return {str(query_id): str(text) for query_id, text in self._all(sql, (json.dumps(list(query_ids)),))}

    def index_of(
        self, query_id: str, where: Filter = EVERYTHING, *, sort: Sort = Sort.TRACES, marks: Collection[str] = ()
    ) -> int | None:
        """How many rows of `page` stand before this query; None when it is not among them."""
        condition, values = where.where(marks)
        if self._one(f"SELECT 1 FROM queries q WHERE q.query_id = ? AND ({condition})", (query_id, *values)) is None:
            return None
        return self.place_of(query_id, where, sort=sort, marks=marks)

    def place_of(
        self, query_id: str, where: Filter = EVERYTHING, *, sort: Sort = Sort.TRACES, marks: Collection[str] = ()
    ) -> int:
        """How many rows of `page` stand before this query, whether it is among them or not; 0 when there is none."""
        condition, values = where.where(marks)
        key = SORT_KEYS[sort]
        found = self._one(f"SELECT {key}, q.seq FROM queries q WHERE q.query_id = ?", (query_id,))
        if found is None:
            return 0
        before = "q.seq < ?" if sort is Sort.TRACES else f"({key}, q.seq) < (?, ?)"
        sql = f"SELECT count(*) FROM queries q WHERE {condition} AND {before}"
        return int(self._all(sql, (*values, *(found[1:] if sort is Sort.TRACES else found)))[0][0])

    def iter_results(
        self, where: Filter = EVERYTHING, *, marks: Collection[str] = (), passed: bool = True
    ) -> Iterator[QueryResult]:
        """Results that match, leaks first, a few in memory at a time; the file is not held while one is looked at.

        Args:
            where: Only these.
            marks: The queries that `is:marked` means.
            passed: False leaves out what passed without a leak.
        """
        condition, values = where.where(marks)
        if not passed:
            condition = f"{condition} AND (q.outcome <> 'pass' OR q.seq < 0)"
        last = -2 * schema.LEAK_OFFSET
        sql = (  # CROSS JOIN: the short rows are scanned, the long ones only fetched
            "SELECT q.seq, r.result FROM queries q CROSS JOIN results r ON r.seq = q.seq "
            f"WHERE q.seq > ? AND {condition} ORDER BY q.seq LIMIT ?"
        )
        while rows := self._all(sql, (last, *values, RESULTS_AT_ONCE)):
            last = rows[-1][0]
            for _, result in rows:
                with self._checked():
                    found = QueryResult.model_validate_json(result)
                yield found

    def judgement(self, query_id: str) -> Judgement | None:
        """What the judge said about one query, if it was asked."""
        found = self._one(
            "SELECT judgement FROM judgements WHERE seq = (SELECT seq FROM queries WHERE query_id = ?)", (query_id,)
        )
        with self._checked():
            return None if found is None else unpack_judgement(found[0])

    def iter_judgements(self) -> Iterator[Judgement]:
        """Everything that the judge said, one query at a time."""
        with self._checked():
            for (row,) in self._connection.execute("SELECT judgement FROM judgements ORDER BY seq"):
                yield unpack_judgement(row)

    def chunk(self, chunk_id: str) -> Chunk | None:
        """A chunk of the inventory, by its id or an alias, with its text."""
        sql = "SELECT record, text FROM chunks WHERE chunk_id = ?"
        found = self._one(sql, (chunk_id,))
        if found is None:
            alias = self._one("SELECT chunk_id FROM aliases WHERE alias = ?", (chunk_id,))
            found = None if alias is None else self._one(sql, alias)
        with self._checked():
            return None if found is None else _chunk(found)

    def children(self, parent_id: str) -> list[Chunk]:
        """The chunks of a parent. The chunk table is read once for all parents, at the first call."""
        return self._each(self._children.get(parent_id, ()))

    def chunks_of(self, source_id: str) -> list[Chunk]:
        """The chunks of a source document. The chunk table is read once for all of them, at the first call."""
        return self._each(self._by_source.get(source_id, ()))

    def _each(self, chunk_ids: Sequence[str]) -> list[Chunk]:
        found = map(self.chunk, chunk_ids)
        return [chunk for chunk in found if chunk is not None]

    @cached_property
    def _children(self) -> Mapping[str, list[str]]:
        # only a record that names the key is parsed
        parent = "CASE WHEN instr(record, '\"parent_id\"') THEN json_extract(record, '$.parent_id') END"
        return self._grouped(f"SELECT {parent} AS parent, chunk_id FROM chunks WHERE parent IS NOT NULL")

    @cached_property
    def _by_source(self) -> Mapping[str, list[str]]:
        return self._grouped("SELECT source_id, chunk_id FROM chunks WHERE source_id IS NOT NULL")

    def _grouped(self, sql: str) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key, chunk_id in self._all(sql, ()):
            found.setdefault(str(key), []).append(str(chunk_id))
        return found

    def source(self, source_id: str) -> Source | None:
        """A source document of the inventory, with its texts."""
        found = self._one("SELECT record, text, extracted_text FROM sources WHERE source_id = ?", (source_id,))
        with self._checked():
            return None if found is None else _source(found)

    def inventory(self) -> Inventory:
        """All chunks and sources, with their texts. A table without rows counts as not given; no index is kept."""
        with self._checked():
            chunks = [_chunk(row) for row in self._connection.execute("SELECT record, text FROM chunks")]
            rows = self._connection.execute("SELECT record, text, extracted_text FROM sources")
            sources = [_source(row) for row in rows]
        return Inventory.of(
            {source.source_id: source for source in sources} or None,
            {chunk.chunk_id: chunk for chunk in chunks} or None,
            None,
        )

    def _one(self, sql: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
        rows = self._all(sql, values)
        return rows[0] if rows else None

    def _all(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with schema.translated(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """Whatever a row turns out not to be, the file is damaged: never a traceback (pydantic raises ValueError)."""
        try:
            with schema.translated(self.path):
                yield
        except (ValueError, TypeError, RecursionError) as error:
            said = str(error).splitlines()[0]
            raise AuditFileError(f"{self.path}: damaged ({said}). {schema.AGAIN}") from error


def _chunk(row: tuple[Any, ...]) -> Chunk:
    return Chunk.model_validate(json.loads(row[0]) | {"text": row[1]})


def _source(row: tuple[Any, ...]) -> Source:
    return Source.model_validate(json.loads(row[0]) | {"text": row[1], "extracted_text": row[2]})


def _row(row: tuple[Any, ...]) -> Row:
    names = ("seq", "query_id", "outcome", "stage", "gap", "causes", "n_gold", "query_text", "verdict")
    return Row.model_validate(dict(zip(names, row, strict=True)) | {"causes": json.loads(row[5])})
