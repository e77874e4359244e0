"""Streams one file of a bundle or one report through the redactor. What cannot be read never reaches the output."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from ragaudit.errors import InputError
from ragaudit.readers.lines import LineError, parse_json, read_lines
from ragaudit.readers.objects import read_objects
from ragaudit.readers.parquet import is_parquet, parquet_rows
from ragaudit.readers.problems import Problems
from ragaudit.redact.fields import Walker
from ragaudit.redact.shadow import Form

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of a JSON document, which is read whole."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line of a report or of ragaudit.toml; longer ones are set aside."""
_BLOCK = 1 << 18
_KEY_OPEN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?!.*-----END )", re.DOTALL)

Write = Callable[[str], object]
Step = Callable[[int], None]


def json_lines(
    path: Path, name: str, walker: Walker, problems: Problems, write: Write, prepare: Callable[[Any], Any], step: Step
) -> None:
    """A row a line, from JSON Lines or Parquet. A row that cannot be read is set aside with its place."""
    rows: Iterator[tuple[int, Any]] = (
        parquet_rows(path, name) if is_parquet(path) else read_objects(path, name, problems)
    )
    for number, raw in rows:
        try:
            value = parse_json(raw, name, number, problems) if isinstance(raw, bytes) else raw
            if not isinstance(value, dict):
                raise LineError("holds no object. Write one JSON object a line.")
            write(_json(walker.row(prepare(value), name)) + "\n")
        except LineError as error:
            problems.set_aside(error.kind, name, number, str(error))
            continue
        problems.done(name, number)
        step(problems.tally(name).rows)


def json_document(path: Path, name: str, walker: Walker, problems: Problems, write: Write) -> None:
    """One JSON value.

    Raises:
        InputError: It is no JSON, or larger than `MAX_DOCUMENT`.
    """
    if path.stat().st_size > MAX_DOCUMENT:
        raise InputError(
            f"{name}: is larger than {MAX_DOCUMENT:,} bytes. Redact the traces and write the report again."
        )
    try:
        value = parse_json(path.read_bytes().removeprefix(b"\xef\xbb\xbf") + b"\n", name, 1, problems)
        write(_json(walker.row(value, name), indent=1) + "\n")
    except LineError as error:
        raise InputError(f"{name}: {error}") from None
    problems.done(name, 1)


def qrels(path: Path, name: str, walker: Walker, problems: Problems, write: Write) -> None:
    """Query ids and chunk ids in columns; the grade and the layout stay."""
    for number, raw in read_lines(path, name, problems, max_line=MAX_LINE):
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        tabs = text.split("\t")
        parts = tabs if len(tabs) in (3, 4) else text.split()
        if len(parts) not in (3, 4):
            problems.set_aside("unreadable", name, number, f"has {len(parts)} columns. Write `query id grade`.")
            continue
        shown = [walker.line(part.strip(), name) for part in parts[:-1]]
        write(("\t" if parts is tabs else " ").join([*shown, parts[-1].strip()]) + "\n")
        problems.done(name, number)


def text_file(path: Path, name: str, walker: Walker, problems: Problems, write: Write, form: Form) -> None:
    """A report or ragaudit.toml, a block of lines at a time; a private key is never cut by the end of a block."""
    block, size = [], 0
    for number, raw in _all_lines(path, name, problems):
        try:
            block.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            problems.set_aside("unreadable", name, number, "is not UTF-8. Write the file as UTF-8.")
            continue
        problems.done(name, number)
        size += len(raw)
        if size > _BLOCK and (size > 2 * _BLOCK or not _KEY_OPEN.search("".join(block[-400:]))):
            write(walker.text("".join(block), name, form))
            block, size = [], 0
    write(walker.text("".join(block), name, form))


def _all_lines(path: Path, name: str, problems: Problems) -> Iterator[tuple[int, bytes]]:
    """As `read_lines`, and blank lines too."""
    last = 0
    for number, raw in read_lines(path, name, problems, max_line=MAX_LINE):
        for blank in range(last + 1, number):
            yield blank, b"\n"
        last = number
        yield number, raw


@contextmanager
def written(path: Path, *, packed: bool) -> Iterator[Write]:
    """A new text file to write to, gzip where asked for (no time in it: equal runs, equal bytes)."""
    with path.open("xb") as file:
        if not packed:
            yield lambda text: file.write(text.encode("utf-8"))
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as zipped:
            stream = cast(BinaryIO, zipped)
            yield lambda text: stream.write(text.encode("utf-8"))


def _json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if indent is None else None, indent=indent)
    except (TypeError, ValueError, RecursionError):
        raise LineError("holds a value that JSON cannot write. Write texts, numbers, lists and objects.") from None
