"""Writes an audit file: into `<out>.partial`, batch by batch, then one atomic rename. Interrupted, it resumes."""

import heapq
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from ragaudit.errors import AuditFileError, ConfigError, InputError
from ragaudit.model.diagnosis import Severity
from ragaudit.model.inventory import Inventory
from ragaudit.model.judgement import Judgement
from ragaudit.model.result import QueryResult, Summary
from ragaudit.model.trace import Trace
from ragaudit.store import schema
from ragaudit.store.codec import filled, pack_judgement, pack_trace, query_columns, to_json, unpack_judgement
from ragaudit.store.reviews import carry_over


class AuditWriter:
    """A context manager that fills one audit file.

    Leaving the block without `finish` keeps `<out>.partial` and touches nothing else: a later writer with the same
    `key` goes on from it, one with another key puts it under another name.
    """

    def __init__(self, out: Path, *, key: str) -> None:
        """Prepare; nothing is written before the block is entered.

        Args:
            out: Where the finished file goes. An older audit there is replaced, any other file is refused.
            key: What the contents depend on: configuration fingerprint, input digests, version of ragaudit.
        """
        self.out = out
        self.partial = out.with_name(out.name + ".partial")
        self.resumed = False
        """Whether rows of an interrupted audit were found and kept."""
        self.put_by: Path | None = None
        """Where what stood in the way of `<out>.partial` is now; None = nothing did."""
        self._key = key
        self._next = 1

    def __enter__(self) -> Self:
        _refuse_other_files(self.out)
        with schema.translated(self.partial):
            self._connection = self._resume() or self._start()
            self._connection.execute("BEGIN EXCLUSIVE")  # held from here on: a second writer is told at once
            self._connection.execute("COMMIT")
            self._next = 1 + int(self._connection.execute("SELECT count(*) FROM queries").fetchone()[0])
        self.resumed = self._next > 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(sqlite3.Error):  # the block's own error matters more; a journal that stays is rolled back later
            self._connection.rollback()
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def done_ids(self) -> set[str]:
        """Query ids that an interrupted audit had already stored."""
        with schema.translated(self.partial):
            return {query_id for (query_id,) in self._connection.execute("SELECT query_id FROM queries")}

    def stored(self) -> Iterator[QueryResult]:
        """The results stored so far, one at a time, in the order of the traces: what a resumed run must count.

        Sums and resamples depend on the order, and a resumed run gives the numbers of one that was never interrupted.
        """
        with schema.translated(self.partial):
            for result in self._in_order("results", "result"):
                try:
                    yield QueryResult.model_validate_json(result)
                except ValidationError as error:
                    raise AuditFileError(f"{self.partial}: damaged. Delete it and run the same command.") from error

    def stored_judgements(self) -> Iterator[Judgement]:
        """What the judge said about the queries stored so far, in the order of the traces."""
        with schema.translated(self.partial):
            for judgement in self._in_order("judgements", "judgement"):
                try:
                    yield unpack_judgement(judgement)
                except ValueError as error:
                    raise AuditFileError(f"{self.partial}: damaged. Delete it and run the same command.") from error

    def add(self, rows: Sequence[tuple[QueryResult, Trace]], judgements: Mapping[str, Judgement] | None = None) -> None:
        """Store one batch, with what the judge said by query id; after the call it survives a crash.

        Raises:
            InputError: a query id is stored already.
        """
        queries: list[tuple[Any, ...]] = []
        results: list[tuple[int, str]] = []
        traces: list[tuple[int, bytes]] = []
        causes: list[tuple[str, int]] = []
        judged: list[tuple[int, str]] = []
        for place, (result, trace) in enumerate(rows, self._next):
            diagnosis = result.diagnosis
            seq = place - schema.LEAK_OFFSET if diagnosis.severity is Severity.LEAK else place
            queries.append((seq, diagnosis.query_id, *query_columns(result)))
            results.append((seq, result.model_dump_json(exclude_defaults=True)))
            traces.append((seq, pack_trace(trace)))
            judgement = (judgements or {}).get(diagnosis.query_id)
            if judgement is not None:
                judged.append((seq, pack_judgement(judgement)))
            causes.extend((cause, seq) for cause in dict.fromkeys(diagnosis.causes))
        try:
            with schema.translated(self.partial), self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", queries)
                connection.executemany("INSERT INTO results VALUES (?, ?)", results)
                connection.executemany("INSERT INTO traces VALUES (?, ?)", traces)
                connection.executemany("INSERT INTO causes VALUES (?, ?)", causes)
                connection.executemany("INSERT INTO judgements VALUES (?, ?)", judged)
        except AuditFileError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                raise InputError(self._repeated([row[1] for row in queries])) from error
            raise
        self._next += len(rows)

    def add_inventory(self, inventory: Inventory) -> None:
        """Store chunks and sources with their texts, for the viewer. A second call, as after a resume, does nothing."""
        with schema.translated(self.partial), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("SELECT 1 FROM meta WHERE name = 'inventory'").fetchone():
                return
            connection.executemany(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)",
                (
                    (c.chunk_id, c.source_id, c.text, _acl(c.acl), to_json(filled(c) | {"text": None}))
                    for c in (inventory.chunks or {}).values()
                ),
            )
            connection.executemany("INSERT INTO aliases VALUES (?, ?)", inventory.by_alias.items())
            connection.executemany(
                "INSERT INTO sources VALUES (?, ?, ?, ?, ?)",
                (
                    (
                        s.source_id,
                        s.text,
                        s.extracted_text,
                        _acl(s.acl),
                        to_json(filled(s) | {"text": None, "extracted_text": None}),
                    )
                    for s in (inventory.sources or {}).values()
                ),
            )
            connection.execute("INSERT INTO meta VALUES ('inventory', '1')")

    def finish(self, summary: Summary) -> None:
        """Write the summary and put the file in place of `out`: either all of it is there afterwards, or nothing.

        What people said about the queries of an older audit in that place is carried over.
        """
        with schema.translated(self.partial):
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(
                    "INSERT OR REPLACE INTO meta VALUES ('summary', ?)",
                    (summary.model_dump_json(exclude_defaults=True),),
                )
                carry_over(self.out, connection)
            self._connection.execute("PRAGMA journal_mode = DELETE")
            self._connection.close()
        try:
            _sync(self.partial)
            os.replace(self.partial, self.out)
            with suppress(PermissionError):  # Windows has no handle for a folder
                _sync(self.out.parent)
        except OSError as error:
            raise AuditFileError(
                f"{self.out}: cannot be put in place ({error.strerror}). The finished audit is {self.partial}."
            ) from error

    def _in_order(self, table: str, column: str) -> Iterator[Any]:
        """A column in the order of the traces. The rows of leaks come first in the file, and are merged in."""
        sql = f"SELECT (seq + {schema.LEAK_OFFSET}) % {schema.LEAK_OFFSET}, {column} FROM {table} WHERE seq "
        leaks, others = (self._connection.execute(f"{sql} {side} 0 ORDER BY seq") for side in ("<", ">"))
        return (value for _, value in heapq.merge(leaks, others, key=itemgetter(0)))

    def _resume(self) -> sqlite3.Connection | None:
        """The interrupted audit, if it is one of the same run and whole. Anything else in its place is put by."""
        if not self.partial.exists() or not self.partial.stat().st_size:
            return None
        connection = sqlite3.connect(self.partial, isolation_level=None, timeout=0.5)
        kept, empty = False, False
        try:
            _prepare(connection)
            schema.check(connection, self.partial)
            kept = bool(connection.execute("SELECT value = ? FROM meta WHERE name = 'key'", (self._key,)).fetchone()[0])
            empty = connection.execute("SELECT 1 FROM queries").fetchone() is None
        except AuditFileError:
            pass  # of another version, or no audit: nothing to go on from
        except sqlite3.OperationalError:
            raise  # a live writer holds it, or it may not be opened: not ours to delete
        except sqlite3.DatabaseError:
            pass  # no database at all
        finally:
            if not kept:
                connection.close()
        if not kept and not empty:
            self._put_by()
        return connection if kept else None

    def _put_by(self) -> None:
        """Rename what is in the way: somebody may still want to go on with it."""
        numbered = (self.partial.with_name(f"{self.partial.name}.{n}") for n in count(1))
        self.put_by = next(path for path in numbered if not path.exists())
        try:
            self.partial.rename(self.put_by)
        except OSError as error:
            raise AuditFileError(
                f"{self.partial}: in the way, and cannot be renamed ({error.strerror}). Choose another name with -o."
            ) from error

    def _start(self) -> sqlite3.Connection:
        # The journal goes first: left beside a new file of the same name, SQLite would roll it back into that.
        self.partial.with_name(self.partial.name + "-journal").unlink(missing_ok=True)
        self.partial.unlink(missing_ok=True)
        connection = sqlite3.connect(self.partial, isolation_level=None, timeout=0.5)
        _prepare(connection)
        schema.create(connection, self._key)
        return connection

    def _repeated(self, query_ids: Sequence[str]) -> str:
        seen = self.done_ids()
        twice = next(q for n, q in enumerate(query_ids) if q in seen or q in query_ids[:n])
        return f"query id {json.dumps(twice)}: two traces have it. Give each query its own query_id."


def _prepare(connection: sqlite3.Connection) -> None:
    schema.defend(connection)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")


def _refuse_other_files(out: Path) -> None:
    """Replace an audit, of any version; never a file that somebody may miss."""
    if not out.parent.is_dir():
        raise ConfigError(f"{out}: its folder does not exist. Create it, or choose another place with -o.")
    if not out.exists():
        return
    if out.is_file():
        try:
            with out.open("rb") as file:
                head = file.read(72)
        except OSError as error:
            raise ConfigError(f"{out}: cannot be read ({error.strerror}). Choose another name with -o.") from error
        if not head or head[68:72] == schema.APPLICATION_ID.to_bytes(4, "big"):
            return
    raise ConfigError(f"{out}: exists and is not an audit file. Choose another name with -o.")


def _acl(acl: tuple[str, ...] | None) -> str | None:
    return None if acl is None else to_json(acl)


def _sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
