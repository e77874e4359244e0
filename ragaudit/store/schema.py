"""What an audit file looks like inside: tables, version stamps, and the checks before one is trusted."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragaudit.errors import AuditFileError

APPLICATION_ID = 0x52414744
"""In the header of every audit file (`file` and SQLite show it), so that another database is not mistaken for one."""

SCHEMA_VERSION = 2
"""Raised by any change to TABLES or to what a column means. Other versions are refused, never guessed at."""

LEAK_OFFSET = 1 << 40
"""Row n of the run has seq n, and n - LEAK_OFFSET when it holds a leak: leaks come first in the file's own order."""

REPLACED = "replaced"
"""In `meta`: how many results were replaced since the audit was written."""

SUMMED = "replaced_in_summary"
"""In `meta`: the same count when the summary was made."""

JUDGE = "judge"
"""In `meta`: who judged the results that were replaced."""

TABLES: dict[str, str] = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "queries": (
        "CREATE TABLE queries (seq INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, outcome TEXT NOT NULL, "
        "stage TEXT NOT NULL, gap TEXT, causes TEXT NOT NULL, n_gold INTEGER NOT NULL, query_text TEXT NOT NULL)"
    ),
    "results": "CREATE TABLE results (seq INTEGER PRIMARY KEY, result TEXT NOT NULL)",
    "judgements": "CREATE TABLE judgements (seq INTEGER PRIMARY KEY, judgement TEXT NOT NULL)",
    "traces": "CREATE TABLE traces (seq INTEGER PRIMARY KEY, trace BLOB NOT NULL)",
    "causes": "CREATE TABLE causes (cause TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (cause, seq)) WITHOUT ROWID",
    "chunks": (
        "CREATE TABLE chunks (chunk_id TEXT PRIMARY KEY, source_id TEXT, text TEXT, acl TEXT, record TEXT NOT NULL)"
    ),
    "aliases": "CREATE TABLE aliases (alias TEXT PRIMARY KEY, chunk_id TEXT NOT NULL) WITHOUT ROWID",
    "sources": (
        "CREATE TABLE sources (source_id TEXT PRIMARY KEY, text TEXT, extracted_text TEXT, acl TEXT, "
        "record TEXT NOT NULL)"
    ),
    "patches": (
        "CREATE TABLE patches (n INTEGER PRIMARY KEY, action TEXT NOT NULL, query_id TEXT NOT NULL, at TEXT NOT NULL, "
        "about_outcome TEXT NOT NULL, about_stage TEXT NOT NULL, patch TEXT NOT NULL)"
    ),
    "reviews": (
        "CREATE TABLE reviews (query_id TEXT PRIMARY KEY, verdict TEXT, tags TEXT NOT NULL, review TEXT NOT NULL) "
        "WITHOUT ROWID"
    ),
}
"""Lists and pages read `queries` alone, whose rows are short: results and traces are fetched one at a time.

`patches` is what people did, in order; `reviews` is its fold, one row a query, kept for filters.
"""

INDEXES: dict[str, str] = {
    "queries_outcome": "CREATE INDEX queries_outcome ON queries (outcome)",
    "queries_stage": "CREATE INDEX queries_stage ON queries (stage)",
    "queries_stage_outcome": "CREATE INDEX queries_stage_outcome ON queries (stage, outcome)",
    "patches_query": "CREATE INDEX patches_query ON patches (query_id)",
}
"""Each ends in the row's seq by itself, so that a page within one stage or outcome needs no sort."""


def create(connection: sqlite3.Connection, key: str) -> None:
    """Lay out an empty audit file for the run that `key` names, in one transaction."""
    with connection:
        connection.execute("BEGIN")
        for statement in (*TABLES.values(), *INDEXES.values()):
            connection.execute(statement)
        connection.execute("INSERT INTO meta VALUES ('key', ?)", (key,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def defend(connection: sqlite3.Connection) -> None:
    """Set what SQLite advises for a file from elsewhere: nothing in its schema runs, every cell is checked."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")


def is_audit(connection: sqlite3.Connection) -> bool:
    """Whether the file carries our stamp, of any version."""
    return bool(_pragma(connection, "application_id") == APPLICATION_ID)


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not an audit, is of another version, or whose tables are not the ones we write."""
    if not is_audit(connection):
        raise AuditFileError(f"{path}: not an audit file. Name a file that `ragaudit audit BUNDLE -o FILE` wrote.")
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise AuditFileError(
            f"{path}: a newer ragaudit wrote it (file version {version}, this one reads {SCHEMA_VERSION}). "
            "Upgrade ragaudit, or run `ragaudit audit BUNDLE` again."
        )
    if version < SCHEMA_VERSION:
        raise AuditFileError(
            f"{path}: an older ragaudit wrote it (file version {version}, this one reads {SCHEMA_VERSION}). "
            "Run `ragaudit audit BUNDLE` again."
        )
    # A view or a virtual table under one of our names would run another's code: the text must be ours, word for word.
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index', 'view')"))
    for name, statement in (TABLES | INDEXES).items():
        if found.get(name) != statement:
            raise AuditFileError(f"{path}: damaged: its table {name!r} is not as written. {AGAIN}")
    if connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[0]:
        raise AuditFileError(f"{path}: damaged: it holds triggers. {AGAIN}")


AGAIN = "Run `ragaudit audit BUNDLE` again."


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite raises within the block into an error that names the file and says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise AuditFileError(f"{path}: {_explained(error)}") from error


def _explained(error: sqlite3.Error) -> str:
    said, name = str(error), getattr(error, "sqlite_errorname", "")
    if "locked" in said or "busy" in said:
        return "another process is writing it. Wait for it, or choose another name with -o."
    if "full" in said:
        return "the disk is full. Free some space and run the same command: it resumes."
    if name.startswith("SQLITE_IOERR") and "READ" not in name:
        return (
            f"cannot be written ({said}). Check the disk, a quota, and limits of a file's size (ulimit -f); "
            "then run the same command: it resumes."
        )
    if "unable to open" in said or "readonly" in said or "read-only" in said:
        return f"cannot be opened ({said}). Check the path and its permissions."
    if "not a database" in said:
        return "not an audit file. Name a file that `ragaudit audit BUNDLE -o FILE` wrote."
    return f"damaged ({said}). {AGAIN}"


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
