"""Lines of a text file as bytes: plain or gzip, one at a time, however long; and JSON recovered from damaged ones."""

import hashlib
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from ragaudit.errors import InputError
from ragaudit.readers.gzipped import GzipStream
from ragaudit.readers.problems import Problems

MAX_LINE = 256 * 1024 * 1024
"""Longer lines are set aside without being loaded."""

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_decode = msgspec.json.Decoder().decode


class LineError(ValueError):
    """A line that cannot be used: what is wrong and what to do, without the place. `kind` is what it counts as."""

    def __init__(self, message: str, kind: str = "unreadable") -> None:
        super().__init__(message)
        self.kind = kind


def read_lines(
    path: Path, name: str, problems: Problems, *, max_line: int = MAX_LINE, blank: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1, and its line end if it has one; blank lines only when `blank` is set.

    A byte order mark is dropped wherever a line starts with one. A line longer than `max_line` is set aside. When a
    gzip stream ends early, what came before the damage is read and the loss is reported.

    Raises:
        InputError: The file cannot be opened, or is UTF-16.
    """
    number = 0
    with _opened(path, name) as stream:
        while True:
            number += 1
            try:
                line = stream.readline(max_line)
                if len(line) == max_line and not line.endswith(b"\n"):
                    length = len(line) + _skip_line(stream)
                    problems.set_aside("line_too_long", name, number, _too_long(length, max_line))
                    continue
            except (EOFError, zlib.error) as error:
                lost = f"the gzip stream is damaged ({error}); nothing after this line was read. Compress it again."
                problems.set_aside("damaged_gzip", name, number, lost)
                return
            except OSError as error:
                raise InputError(f"{name}:{number}: cannot be read ({error.strerror}). Check the disk.") from None
            if not line:
                return
            if line.startswith(_BOM):
                line = line[3:]
            if blank or (line and not line.isspace()):
                yield number, line


def parse_json(line: bytes, name: str, number: int, problems: Problems) -> Any:
    """Decode one line of JSON, and repair what can be repaired: each repair is a reported problem.

    Bytes that are not UTF-8 and surrogates without a partner become U+FFFD. NaN and Infinity stay, as floats, for
    the reader of the field to judge.

    Raises:
        LineError: The line is no JSON.
    """
    try:
        return _decode(line)
    except (msgspec.DecodeError, RecursionError):
        pass  # msgspec is strict; the standard library reads more
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        text = line.decode("utf-8", errors="replace")
        where = f"byte {error.start + 1} of the line is not UTF-8 and was read as U+FFFD. Write the file as UTF-8."
        problems.note("invalid_utf8", name, number, where)
    try:
        value = json.loads(text)
        if _SURROGATE_ESCAPE.search(line):
            cleaned = _without_surrogates(value)
            if cleaned != value:
                what = r"a \ud800-\udfff escape has no partner and was read as U+FFFD. Write whole characters."
                problems.note("lone_surrogate", name, number, what)
            return cleaned
        return value
    except RecursionError:
        raise LineError("is nested too deeply to read. Log flat records.") from None
    except json.JSONDecodeError as error:
        if line.find(b"\r", 0, len(line.rstrip())) >= 0:
            raise LineError("lines end in CR alone. Save the file with LF line ends.", "not_json") from None
        if not line.endswith(b"\n"):
            what = "the file ends in mid-line: was the writer stopped? Write this line again, whole."
            raise LineError(what, "cut") from None
        raise LineError(f"is not JSON ({error}). Write one JSON object on one line.", "not_json") from None
    except ValueError:
        limit = sys.get_int_max_str_digits()
        what = f"holds a whole number of more than {limit:,} digits. Write such an id as text, in quotes."
        raise LineError(what, "not_json") from None


def sha256_of(path: Path) -> str:
    """The digest of a file's bytes as they stand on disk, `sha256:` and 64 hex digits."""
    try:
        with path.open("rb") as stream:
            return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def _opened(path: Path, name: str) -> BinaryIO:
    try:
        stream = cast(io.BufferedReader, path.open("rb", buffering=1 << 18))
        start = stream.peek(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        stream.close()
        raise InputError(f"{name}: the file is UTF-16. Save it as UTF-8.")
    if start.startswith(_GZIP):
        return io.BufferedReader(GzipStream(stream), 1 << 18)
    return stream


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while piece := stream.readline(1 << 20):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped


def _too_long(length: int, max_line: int) -> str:
    what = f"the line has {length:,} bytes, more than {max_line:,}."
    return f"{what} Write one object on one line (from a list: jq -c '.[]'), and texts in chunks.jsonl."


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
