"""A cassette: recorded judge replies in one text file, sorted and readable in review. One line of header, one a reply.

Replies that arrive during a run go to `<name>.part` beside it, one appended line each, so that a crash loses at most
the call in hand. Closing merges that file into the sorted cassette and replaces it in one step. Both happen under a
lock on the folder, so that several processes may record into one cassette.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any, BinaryIO

import msgspec

from ragaudit.errors import InputError
from ragaudit.judge.recording import as_json, asked, key_of_asked, read_reply, reply_fields, request_key
from ragaudit.model.judgement import Reply, Request

FORMAT = "ragaudit.cassette/1"


class _Header(msgspec.Struct):
    schema: str


class _Line(msgspec.Struct):
    key: str
    request: msgspec.Raw
    reply: msgspec.Raw


@dataclass(frozen=True)
class Merged:
    """What a merge did: replies that were new or there already, and keys with another reply (first one kept)."""

    added: int
    same: int
    conflicts: tuple[str, ...]


class Cassette:
    """The replies of one file. Opening reads all of it; nothing is written unless it was opened for recording."""

    def __init__(self, path: Path, lines: dict[str, str], *, cut_off: bool, records: bool) -> None:
        self.path = path
        self.cut_off = cut_off
        """Whether the file's last line was incomplete: the mark of a crash or of a bad copy."""
        self._lines = lines
        self._records = records
        self._changed = False
        self._writing = Lock()

    @classmethod
    def open(cls, path: Path, *, records: bool) -> "Cassette":
        """Read a cassette; one that does not exist yet is empty.

        Args:
            path: The file.
            records: Whether replies will be recorded; also picks up what a run that crashed left in `<name>.part`.

        Raises:
            InputError: The file cannot be read, is damaged before its last line, or is of another format.
        """
        lines, cut_off = _read(path)
        cassette = cls(path, lines, cut_off=cut_off, records=records)
        if records and part_of(path).exists():
            lines.update(_read(part_of(path), torn=True)[0])
            cassette._changed = True
        return cassette

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, key: str) -> bool:
        return key in self._lines

    def find(self, key: str) -> Reply | None:
        """The reply under a key; None when there is none that may be used."""
        line = self._lines.get(key)
        return None if line is None else read_reply(msgspec.json.decode(line, type=_Line).reply)

    def questions(self) -> Iterator[dict[str, Any]]:
        """What each recorded reply was asked, to find the nearest one to a request that is not there."""
        for line in self._lines.values():
            yield json.loads(line)["request"]

    def record(self, request: Request, reply: Reply, *, key: str | None = None) -> None:
        """Keep a reply: on disk before this returns."""
        key = key or request_key(request)
        line = _line(key, asked(request), reply_fields(reply))
        with self._writing, _locked(self.path.parent):
            part = part_of(self.path)
            with _writing(part), part.open("ab+") as file:
                file.write(_before_next_line(file) + line.encode() + b"\n")
        self._lines[key] = line
        self._changed = True

    def close(self) -> None:
        """Merge what was recorded into the file, sorted by key, in one atomic step."""
        if not (self._records and self._changed):
            return
        with self._writing, _locked(self.path.parent):
            part = part_of(self.path)
            # What other processes wrote meanwhile is on disk; what we recorded wins over it.
            merged = _read(self.path)[0] | _read(part, torn=True)[0] | self._lines
            _write(self.path, merged)
            part.unlink(missing_ok=True)
        self._lines, self._changed = merged, False


def merge(into: Path, others: Iterable[Path]) -> Merged:
    """Add the replies of other cassettes to one. Where two say different things under one key, the first is kept.

    Raises:
        InputError: A file is missing, damaged or of another format.
    """
    lines = _read(into)[0]
    added = same = 0
    conflicts = []
    for other in others:
        if not other.exists():
            raise InputError(f"{other}: no such cassette. Check the path.")
        for key, line in _read(other)[0].items():
            if key not in lines:
                lines[key] = line
                added += 1
            elif lines[key] == line:
                same += 1
            else:
                conflicts.append(key)
    with _locked(into.parent):
        _write(into, lines)
    return Merged(added, same, tuple(conflicts))


def keep_only(path: Path, keys: Collection[str]) -> int:
    """Drop the replies under all other keys, in one atomic step; returns how many were dropped.

    Raises:
        InputError: The file is damaged, of another format, or cannot be written.
    """
    with _locked(path.parent):
        lines = _read(path)[0]
        kept = {key: line for key, line in lines.items() if key in keys}
        if len(kept) < len(lines):
            _write(path, kept)
    return len(lines) - len(kept)


def problems(path: Path) -> tuple[str, ...]:
    """What is wrong with a cassette, line by line: edited questions, damaged replies, bad order."""
    found = []
    lines, cut_off = _read(path)
    for line in lines.values():
        entry = json.loads(line)
        key = entry["key"]
        if key_of_asked(entry["request"]) != key:
            found.append(f"{path}: {key[:19]}: the question was edited after it was recorded. Record it again.")
        if read_reply(json.dumps(entry["reply"])) is None:
            found.append(f"{path}: {key[:19]}: the reply is damaged. Record it again.")
    if list(lines) != sorted(lines):
        found.append(f"{path}: is not sorted by key. Merge it with itself to sort it.")
    if cut_off:
        found.append(f"{path}: the last line is cut off. Record it again.")
    return tuple(found)


def part_of(path: Path) -> Path:
    """Where replies stand between their arrival and the end of the run."""
    return path.with_name(path.name + ".part")


_HEADER = as_json({"schema": FORMAT}).encode() + b"\n"


def _line(key: str, question: dict[str, Any], reply: dict[str, Any]) -> str:
    return as_json({"key": key, "request": question, "reply": reply})


def _before_next_line(file: BinaryIO) -> bytes:
    """What has to stand before a line that is appended: the header, or an end to a line that a crash left open."""
    if file.seek(0, os.SEEK_END) == 0:
        return _HEADER
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def _read(path: Path, *, torn: bool = False) -> tuple[dict[str, str], bool]:
    """(key -> line, whether the last line was cut off). `torn` = broken lines are expected, and skipped."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}, False
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    # Split at line feeds alone: recorded text may hold other characters that count as line ends elsewhere.
    rows = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    whole, rest = rows[:-1], rows[-1].strip()
    if not whole and not rest:
        return {}, False
    if torn and not whole:
        return {}, True
    _check_header(path, (whole or [rest])[0])
    lines: dict[str, str] = {}
    for number, row in enumerate(whole[1:], start=2):
        if row.strip() and not _take(row, lines) and not torn:
            raise InputError(
                f"{path}:{number}: is not a recorded reply. Restore the file (a merge left open?) or record it again."
            )
    # A last line without a line feed may still be whole: an editor stripped it.
    cut_off = bool(whole and rest) and not _take(rest, lines)
    return lines, cut_off


def _check_header(path: Path, row: bytes) -> None:
    try:
        schema = msgspec.json.decode(row, type=_Header).schema
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InputError(f"{path}:1: is not a cassette: it does not start with {FORMAT}. Check the path.") from None
    if schema != FORMAT:
        raise InputError(
            f"{path}:1: is of format {schema[:60]!r}, this ragaudit reads {FORMAT}. Update ragaudit or record again."
        )


def _take(row: bytes, lines: dict[str, str]) -> bool:
    try:
        text = row.strip().decode()
        line = msgspec.json.decode(text, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if not (bytes(line.request).startswith(b"{") and bytes(line.reply).startswith(b"{")):
        return False
    lines[line.key] = text
    return True


def _write(path: Path, lines: dict[str, str]) -> None:
    with (
        _writing(path),
        NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file,
        ExitStack() as unfinished,
    ):
        unfinished.callback(os.unlink, file.name)
        file.write(_HEADER)
        for key in sorted(lines):
            file.write(lines[key].encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
        unfinished.pop_all()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Check the folder and the disk.") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold other processes off. The folder itself is locked, so that no lock file is left beside the cassette."""
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows: there, one process at a time may record into a cassette
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
