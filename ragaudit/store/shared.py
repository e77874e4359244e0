"""A finished audit file that is changed while others have it open: short transactions, and never the wrong file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ragaudit.errors import AuditFileError
from ragaudit.store import schema

WAIT_SECONDS = 5.0
"""How long another process's write is waited for."""


class OnSharedFile:
    """Something that works on a shared file. Close it, or use it as a context manager."""

    def __init__(self, file: "SharedFile") -> None:
        """Use `open`."""
        self.path = file.path
        self._file = file

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SharedFile:
    """One connection for reading and writing, used by one thread. What `writing` holds is on the disk at its end."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """Use `open`."""
        self.path = path
        self._connection = connection
        self._file = _identity(path)

    @classmethod
    def open(cls, path: Path, *, writable: bool = True) -> Self:
        """Open a finished audit for reading and writing, or for reading alone.

        Raises:
            AuditFileError: It is no audit, is damaged, or may not be written.
        """
        if not path.is_file():
            raise AuditFileError(f"{path}: no such file. Write one with `ragaudit audit BUNDLE -o {path.name}`.")
        with schema.translated(path):
            connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={'rw' if writable else 'ro'}",
                uri=True,
                isolation_level=None,
                timeout=WAIT_SECONDS,
            )
            with ExitStack() as refused:
                refused.callback(connection.close)
                schema.defend(connection)
                connection.execute("PRAGMA synchronous = FULL")
                schema.check(connection, path)
                if writable:
                    connection.execute("BEGIN IMMEDIATE")  # said now, not after the first review was typed
                    connection.execute("ROLLBACK")
                refused.pop_all()
        return cls(connection, path)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block, or nothing of it.

        Raises:
            AuditFileError: The file cannot be written, or another one took its place.
        """
        if _identity(self.path) != self._file:  # what is written to a file that was replaced is gone at its close
            raise AuditFileError(f"{self.path}: another audit took its place. Nothing was saved; open it again.")
        with schema.translated(self.path), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What a query finds. All of it is fetched: a reader that lingers would keep writers out."""
        with schema.translated(self.path):
            return self._connection.execute(sql, values).fetchall()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
