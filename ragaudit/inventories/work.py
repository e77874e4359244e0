"""The export while it is unfinished: one SQLite file beside the output, a page a transaction, so that it can go on."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError, InputError
from ragaudit.inventories.records import Held, Record

NAME = ".inventory.partial"
_SCHEMA = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE rows (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, chunk_id TEXT NOT NULL, hash TEXT,
                   source_id TEXT, chars INTEGER, namespace TEXT, row TEXT NOT NULL);
CREATE TABLE held (n INTEGER NOT NULL, arm TEXT NOT NULL, present INTEGER NOT NULL, model TEXT, dim INTEGER, norm REAL);
CREATE TABLE notes (what TEXT PRIMARY KEY, count INTEGER NOT NULL, first TEXT NOT NULL);
"""


class Work:
    """Rows that were read so far, and how far that is."""

    def __init__(self, folder: Path, *, restart: bool = False) -> None:
        """Open what is there, or begin.

        Args:
            folder: The output folder; made where it is missing.
            restart: Throw away what is there.

        Raises:
            ConfigError: The folder cannot be written.
            InputError: The unfinished export is damaged.
        """
        self.path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if restart:
                self.path.unlink(missing_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._db.execute("PRAGMA synchronous = NORMAL")
            if not self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path}: the unfinished export is damaged ({error}). Pass --restart.") from None
        except OSError as error:
            raise ConfigError(f"{folder}: cannot be written ({error.strerror}). Choose another folder.") from None

    def close(self) -> None:
        """Let go of the file; what was read is kept."""
        self._db.close()

    def drop(self) -> None:
        """The export is written: remove the file."""
        self._db.close()
        self.path.unlink(missing_ok=True)

    def get(self, name: str) -> Any:
        """A value that was kept, None for none."""
        found = self._db.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if found is None else json.loads(found[0])

    def put(self, name: str, value: Any) -> None:
        """Keep a value."""
        self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, json.dumps(value)))

    def clear(self) -> None:
        """Forget the rows and how far they went; what was asked stays."""
        tables = "".join(f"DELETE FROM {table};" for table in ("rows", "held", "notes"))
        self._db.executescript(f"BEGIN; {tables} DELETE FROM state WHERE name != 'asked'; COMMIT;")

    def add(
        self,
        page: Iterable[tuple[Record, dict[str, Any]]],
        notes: Mapping[str, tuple[int, str]],
        state: Mapping[str, Any],
    ) -> int:
        """Keep a page and what came of it, all or nothing. Returns how many of its rows were new.

        Raises:
            ConfigError: The file cannot be written, as on a full disk.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            new = sum(self._add(record, row) for record, row in page)
            for what, (count, first) in notes.items():
                self._db.execute(
                    "INSERT INTO notes VALUES (?, ?, ?) "
                    "ON CONFLICT (what) DO UPDATE SET count = count + excluded.count",
                    (what, count, first),
                )
            for name, value in state.items():
                self.put(name, value)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise ConfigError(f"{self.path}: cannot be written ({error}). Make room and run it again.") from None
        return new

    def _add(self, record: Record, row: dict[str, Any]) -> bool:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
        values = (
            record.key,
            row["chunk_id"],
            row.get("content_hash"),
            row.get("source_id"),
            len(row["text"]) if "text" in row else None,
            row.get("namespace"),
            text,
        )
        done = self._db.execute(
            "INSERT OR IGNORE INTO rows (key, chunk_id, hash, source_id, chars, namespace, row) VALUES (?,?,?,?,?,?,?)",
            values,
        )
        if not done.rowcount:
            return False
        model = row.get("embedding_model")
        self._db.executemany(
            "INSERT INTO held VALUES (?, ?, ?, ?, ?, ?)",
            [(done.lastrowid, arm, held is not None, model, *_measures(held)) for arm, held in record.arms.items()],
        )
        return True

    def settle(self) -> None:
        """Make the look-ups that writing the files needs fast."""
        for name, columns in (
            ("by_chunk", "rows (chunk_id)"),
            ("by_source", "rows (source_id)"),
            ("by_row", "held (n)"),
        ):
            self._db.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {columns}")

    def count(self) -> int:
        """Rows so far."""
        return int(self._db.execute("SELECT count(*) FROM rows").fetchone()[0])

    def notes(self) -> dict[str, tuple[int, str]]:
        """What was noted -> how often, and the key of the first row."""
        return {what: (count, first) for what, count, first in self._db.execute("SELECT * FROM notes ORDER BY rowid")}

    def query(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Rows of a query, one at a time."""
        yield from self._db.execute(sql, values)

    def one(self, sql: str, *values: Any) -> Any:
        """The first value of a query, None for none."""
        found = self._db.execute(sql, values).fetchone()
        return None if found is None else found[0]


def _measures(held: Held | None) -> tuple[int | None, float | None]:
    return (None, None) if held is None else (held.dim, held.norm)
