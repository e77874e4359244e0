"""Spans grouped by trace in bounded memory: a temporary database that SQLite keeps in its cache and spills to disk.

A Collector writes the spans of one trace over many lines, in any order, and nothing says which is the last. To hold
them in memory would need a rule when to give a trace up, and a span that comes later would then be lost or make a
second row. The database needs no such rule: it costs one write and one read of what is kept of each span.
"""

import sqlite3
from collections.abc import Iterator

import msgspec

from ragaudit.errors import InputError
from ragaudit.importers.spans.span import Span

_CACHE_KIB = 64 * 1024
_SCHEMA = """
CREATE TABLE trace (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL);
CREATE TABLE span (trace INTEGER, id TEXT, body BLOB, PRIMARY KEY (trace, id)) WITHOUT ROWID;
CREATE TABLE query (id TEXT PRIMARY KEY) WITHOUT ROWID;
"""


class Spool:
    """Takes spans in any order and gives them back by trace. A context manager; the database dies with it."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KIB}", "temp_store=FILE"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN")
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Span).decode
        self._last: tuple[str, int] = ("", 0)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()

    def add(self, span: Span) -> bool:
        """Keep a span. False = one with this id was there; the longer of the two stays.

        Raises:
            OverflowError: It holds an integer of more than 64 bits.
            RecursionError: It is nested too deeply.
            InputError: The disk is full.
        """
        try:
            key = (self._number(span.trace_id), span.span_id, self._encode(span))
            if self._db.execute("INSERT OR IGNORE INTO span VALUES (?, ?, ?)", key).rowcount:
                return True
            longer = "UPDATE span SET body = ?3 WHERE trace = ?1 AND id = ?2 AND length(body) < length(?3)"
            self._db.execute(longer, key)
        except sqlite3.OperationalError as error:
            what = "Set SQLITE_TMPDIR to a folder with as much room as the input"
            raise InputError(f"temporary files: {error}. {what}.") from None
        return False

    def traces(self) -> Iterator[list[Span]]:
        """The spans of each trace, in the order in which the traces were first seen."""
        found: list[Span] = []
        current = None
        for number, body in self._db.execute("SELECT trace, body FROM span ORDER BY trace"):
            if number != current and found:
                yield found
                found = []
            current = number
            found.append(self._decode(body))
        if found:
            yield found

    def is_new(self, query_id: str) -> bool:
        """Whether no trace before had this query id."""
        return bool(self._db.execute("INSERT OR IGNORE INTO query VALUES (?)", (query_id,)).rowcount)

    def _number(self, trace_id: str) -> int:
        if self._last[0] == trace_id:
            return self._last[1]
        self._db.execute("INSERT OR IGNORE INTO trace (id) VALUES (?)", (trace_id,))
        (number,) = self._db.execute("SELECT number FROM trace WHERE id = ?", (trace_id,)).fetchone()
        self._last = (trace_id, number)
        return int(number)
