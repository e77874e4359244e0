"""The reply cache of this machine: diskcache with a Disk of our own, because a cache file must not be able to run code.

diskcache unpickles values and keys whose row says so, also under its JSONDisk (CVE-2025-69872), and opens and deletes
the files that a row names. Our Disk knows one kind of row, text in the database itself, and refuses every other.
"""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import diskcache
import msgspec
from diskcache.core import DBNAME, DEFAULT_SETTINGS, METADATA, MODE_RAW

from ragaudit.errors import InputError
from ragaudit.judge.recording import asked, read_reply, reply_fields, request_key
from ragaudit.model.judgement import Reply, Request

LOCK_SECONDS = 60
"""How long a process waits for another one's write."""


_KEPT = "kept:"
"""How the keys of rows begin that hold no reply."""


class ForeignRowError(InputError):
    """A cache row that ragaudit did not write: it is not opened, whatever it holds."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Stores text as it is, and knows nothing else: no pickles, no binary values, no files beside the database."""

    def __init__(self, directory: str, **_settings_of_the_file: object) -> None:
        super().__init__(directory)

    def put(self, key: object) -> tuple[str, bool]:
        """A key as it stands in the database."""
        return (key, True) if type(key) is str else _refuse(f"key of type {type(key).__name__}")

    def get(self, key: object, raw: object) -> str:
        """A key as it was put."""
        return key if type(key) is str and raw == 1 else _refuse("key that is not text")

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, str]:
        """The columns of a value."""
        return (0, MODE_RAW, None, value) if type(value) is str and not read else _refuse("value that is not text")

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> str:
        """The value of a row."""
        if mode == MODE_RAW and filename is None and type(value) is str and not read:
            return value
        return _refuse(f"value of mode {mode!r}")

    def filename(self, key: object = None, value: object = None) -> NoReturn:
        """No value lives in a file."""
        _refuse("value in a file")

    def remove(self, file_path: object) -> None:
        """Nothing: we write no files, so a file that a row names is not ours to delete."""


class ReplyCache:
    """Replies by key, shared by all processes of this machine. Each row holds what was asked as well, for `export`."""

    def __init__(self, folder: Path, rows: Any | None) -> None:
        self.folder = folder
        self.damaged = 0
        """Rows whose text no longer matches its checksum. They count as not there, and are asked again."""
        self._rows = rows
        """A diskcache.Cache, a _ReadOnly, or None: nothing is there and nothing may be written."""

    @classmethod
    def open(cls, folder: Path, *, records: bool, size_limit: int | None = None) -> "ReplyCache":
        """Open a cache folder, or make it.

        Args:
            folder: The folder.
            records: Whether replies will be written. Without it nothing in the folder changes.
            size_limit: Bytes beyond which the replies stored first are dropped; None = keep everything.

        Raises:
            InputError: The folder holds something else, is damaged, or cannot be written.
        """
        database = folder / DBNAME
        with _explained(folder):
            if database.exists():
                _inspect(database)
            elif not records:
                return cls(folder, None)
            if not records:
                return cls(folder, _ReadOnly(database))
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not database.exists():
                # It holds the texts of chunks and answers: not for others to read, and not to be committed.
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
            return cls(
                folder,
                diskcache.Cache(
                    str(folder.absolute()),
                    timeout=LOCK_SECONDS,
                    disk=TextDisk,
                    eviction_policy="none" if size_limit is None else "least-recently-stored",
                    size_limit=size_limit or DEFAULT_SETTINGS["size_limit"],
                    statistics=0,
                    tag_index=0,
                    sqlite_journal_mode="wal",
                    # A memory-mapped file that another process cuts short kills the reader.
                    sqlite_mmap_size=0,
                ),
            )

    def __len__(self) -> int:
        return sum(1 for _ in self._keys())

    def find(self, key: str) -> Reply | None:
        """The reply under a key; None when there is none that can be trusted.

        Raises:
            ForeignRowError: The row was not written by ragaudit.
            InputError: The database is damaged.
        """
        text = self._text(key)
        return None if text is None else read_reply(text.partition("\n")[0])

    def record(self, request: Request, reply: Reply, *, key: str | None = None) -> None:
        """Keep a reply: committed before this returns."""
        text = f"{_compact(reply_fields(reply))}\n{_compact(asked(request))}"
        self._set(key or request_key(request), text)

    def kept(self, key: str) -> str | None:
        """What was kept beside the replies under a key; None when there is nothing that can be trusted."""
        return self._text(_KEPT + key)

    def keep(self, key: str, text: str) -> None:
        """Keep a text beside the replies."""
        self._set(_KEPT + key, text)

    def mark(self, key: str) -> str | None:
        """The checksum of a reply and of what was asked; None when there is no reply that can be trusted."""
        text = self._text(key)
        return None if text is None else _checksum(key, text)

    def entries(self) -> Iterator[tuple[str, dict[str, Any], Reply]]:
        """(key, what was asked, reply) of every row that can be trusted."""
        for key in self._keys():
            text = self._text(key)
            if text is not None:
                answer, _, question = text.partition("\n")
                reply = read_reply(answer)
                if reply is not None:
                    yield key, msgspec.json.decode(question, type=dict[str, Any]), reply

    def keep_only(self, keys: Collection[str]) -> int:
        """Drop the replies under all other keys, and what was kept beside them; returns how many replies it dropped."""
        if self._rows is None or isinstance(self._rows, _ReadOnly):
            raise AssertionError("a cache that was opened to read is not written")
        dropped = [key for key in self._keys() if key not in keys]
        with _explained(self.folder):
            beside = [key for key in self._rows.iterkeys() if key.startswith(_KEPT)]
            for key in [*dropped, *beside]:
                self._rows.delete(key)
        return len(dropped)

    def release(self) -> None:
        """Close this thread's connection; other threads keep theirs."""
        if self._rows is not None:
            with _explained(self.folder):
                self._rows.close()

    def _keys(self) -> Iterator[str]:
        if self._rows is not None:
            with _explained(self.folder):
                yield from (key for key in self._rows.iterkeys() if not key.startswith(_KEPT))

    def _set(self, key: str, text: str) -> None:
        if self._rows is None or isinstance(self._rows, _ReadOnly):
            raise AssertionError("a cache that was opened to read is not written")
        with _explained(self.folder):
            self._rows.set(key, _checksum(key, text) + text)

    def _text(self, key: str) -> str | None:
        if self._rows is None:
            return None
        with _explained(self.folder):
            text = self._rows.get(key)
        if text is None:
            return None
        checksum, kept = text[:8], str(text[8:])
        if checksum != _checksum(key, kept):
            self.damaged += 1
            return None
        return kept


class _ReadOnly:
    """The same rows read without diskcache, which writes its settings whenever it opens a folder."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._disk = TextDisk(str(database.parent))
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        found = self._run("SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1", (key,)).fetchone()
        if found is None:
            return None
        mode, filename, value = found
        return self._disk.fetch(mode, filename, value, False)

    def iterkeys(self) -> Iterator[str]:
        for key, raw in self._run("SELECT key, raw FROM Cache ORDER BY key"):
            yield self._disk.get(key, raw)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _run(self, statement: str, values: tuple[str, ...] = ()) -> sqlite3.Cursor:
        if self._connection is None:
            self._connection = _connect(self._database)
        return self._connection.execute(statement, values)


def _connect(database: Path) -> sqlite3.Connection:
    # Without a write-ahead log beside it nobody is writing, and SQLite need not (and must not) make one to read.
    quiet = "" if database.with_name(database.name + "-wal").exists() else "&immutable=1"
    uri = f"{database.absolute().as_uri()}?mode=ro{quiet}"
    return sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, check_same_thread=False)


def _inspect(database: Path) -> None:
    """Refuse a database that is not a cache before diskcache acts on the settings in it."""
    with closing(_connect(database)) as connection:
        parts = connection.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
        tables = {name for kind, name, _ in parts if kind == "table"}
        strange = [name for kind, name, table in parts if kind == "view" or table not in _TABLES]
        if "Settings" in tables:
            known = {*DEFAULT_SETTINGS, *METADATA}
            strange += [str(key) for (key,) in connection.execute("SELECT key FROM Settings") if key not in known]
    if strange:
        raise ForeignRowError(
            f"{database}: is not a reply cache of ragaudit (it holds {strange[0][:60]!r}). Choose another folder."
        )


def _compact(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value)


_TABLES = ("Cache", "Settings", "sqlite_sequence", "sqlite_stat1")


def _checksum(key: str, text: str) -> str:
    return f"{zlib.crc32(text.encode(), zlib.crc32(key.encode())):08x}"


def _refuse(what: str) -> NoReturn:
    raise ForeignRowError(f"a {what} was not written by ragaudit and was not opened. Delete the cache folder.")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except ForeignRowError as error:
        place = "" if str(error).startswith(str(folder)) else f"{folder}: "
        raise ForeignRowError(f"{place}{error}") from None
    except diskcache.Timeout:
        raise InputError(
            f"{folder}: another process has locked the cache for {LOCK_SECONDS} s. End it, or choose another folder."
        ) from None
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{folder}: the reply cache cannot be used ({error}). If it is damaged, move the folder away: what it held "
            "is then asked again."
        ) from None
    except OSError as error:
        raise InputError(f"{folder}: the reply cache cannot be opened ({error.strerror}). Check the folder.") from None
