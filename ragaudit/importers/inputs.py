"""Records of a file, one by one, whatever holds them: JSONL, one JSON document, CSV, Parquet; plain or gzip."""

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError, MissingExtraError
from ragaudit.importers.report import ImportReport
from ragaudit.readers.lines import LineError, parse_json, read_lines
from ragaudit.readers.parquet import is_parquet, parquet_rows
from ragaudit.readers.problems import Problems

MAX_DOCUMENT = 1024 * 1024 * 1024
"""Bytes of one JSON document, which is held in memory whole. JSONL has no limit."""
HEAD = 64 * 1024
_TRIES = 3
_DATA = re.compile(r"^[^.].*\.(jsonl?|ndjson|csv|tsv|parquet)(\.gz)?$", re.IGNORECASE)

Placed = tuple[str, Any]
"""(`file:line` or `file[n]`, the record)."""


def records(path: Path, report: ImportReport) -> Iterator[Placed]:
    """Every record of a file: lines of JSONL, items of a JSON array, rows of CSV or Parquet, or one JSON document.

    Lines that are no JSON are skipped and counted. CSV cells stay text.

    Raises:
        InputError: The file cannot be opened, is one JSON document over 1 GB, or no JSON at all.
        MissingExtraError: Parquet, and pyarrow is not installed.
    """
    if is_parquet(path):
        for number, row in parquet_rows(path, path.name):
            yield f"{path.name}:{number}", row
    elif (ending := _ending(path)) in (".csv", ".tsv"):
        yield from _csv(path, ending, report)
    else:
        yield from _json(path, report)


def files_in(path: Path) -> list[Path]:
    """The file itself, or the data files of a folder by name; hidden files and folders in it are left out."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.is_file() and _DATA.search(each.name))


def objects(path: Path, report: ImportReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records that are objects; any other is skipped and counted."""
    for place, value in records(path, report):
        if isinstance(value, dict):
            yield place, value
        else:
            report.skip("the record is no object", place)


def document(path: Path) -> Any:
    """The one JSON document of a file.

    Raises:
        InputError: The file cannot be read, is over 1 GB, or no JSON.
    """
    problems = Problems()
    pieces, size = [], 0
    for _, line in read_lines(path, path.name, problems):
        size += len(line)
        if size > MAX_DOCUMENT:
            raise InputError(f"{path.name}: one JSON document of more than 1 GB. Export it as JSONL, a record a line.")
        pieces.append(line)
    try:
        return parse_json(b"".join(pieces), path.name, 1, problems)
    except LineError as error:
        raise InputError(f"{path.name}: {error}") from None


def head(path: Path) -> str:
    """The first 64 kB as text, for a look at what a file is. Empty for Parquet and for what is no text.

    Raises:
        InputError: The file cannot be opened.
    """
    if is_parquet(path):
        return ""
    size, pieces = 0, []
    for _, line in read_lines(path, path.name, Problems(), max_line=HEAD):
        pieces.append(line)
        size += len(line)
        if size >= HEAD:
            break
    text = b"".join(pieces)[:HEAD]
    return "" if b"\0" in text else text.decode("utf-8", errors="replace")


def first_records(path: Path, most: int = 20) -> tuple[Any, ...]:
    """The first records, for a look; empty when the file holds none that can be read."""
    try:
        return tuple(value for _, value in islice(records(path, ImportReport()), most))
    except InputError:
        return ()


def look_at(path: Path, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first records of a sample; of a folder, those of its first files."""
    if not path.is_dir():
        return values
    found: list[Any] = []
    for file in files_in(path)[:8]:
        with suppress(MissingExtraError):  # other files of the folder may tell
            found += first_records(file, 3)
    return tuple(found)


def _json(path: Path, report: ImportReport) -> Iterator[Placed]:
    """JSONL when the first line is a whole document and more follows, else one document; items of an array."""
    problems = Problems()
    lines = read_lines(path, path.name, problems)
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip()[:1] not in (b"{", b"["):
        raise InputError(f"{path.name}: holds no JSON, CSV or Parquet by its start and its name. Check the format.")
    if not _is_whole(first[1]):
        yield from _objects(path, report) if first[1].strip() == b"{" else _items(path, document(path))
        return
    second = next(lines, None)
    value = parse_json(first[1], path.name, first[0], problems)
    if second is None:
        yield from _items(path, value)
        return
    yield f"{path.name}:{first[0]}", value
    for number, line in chain([second], lines):
        yield from _line(path, number, line, problems, report)
    for problem in problems.messages:
        report.note(problem.message, problem.place)


def _objects(path: Path, report: ImportReport) -> Iterator[Placed]:
    """Objects written over several lines, one after the other, as a console exporter does; each ends in a bare `}`."""
    problems = Problems()
    pieces: list[bytes] = []
    start, size, tries = 1, 0, _TRIES
    for number, line in read_lines(path, path.name, problems):
        start = start if pieces else number
        pieces.append(line)
        size += len(line)
        if size > MAX_DOCUMENT:
            raise InputError(f"{path.name}: one JSON document of more than 1 GB. Export it as JSONL, a record a line.")
        if line.rstrip() != b"}" or not tries:
            continue
        try:
            value = parse_json(b"".join(pieces), path.name, start, problems)
        except LineError:
            tries -= 1  # without indentation a bare `}` ends inner objects too
            continue
        yield path.name if start == 1 else f"{path.name}:{start}", value
        pieces, size = [], 0
    if pieces:
        yield from _line(path, start, b"".join(pieces), problems, report)


def _line(path: Path, number: int, line: bytes, problems: Problems, report: ImportReport) -> Iterator[Placed]:
    place = f"{path.name}:{number}"
    try:
        yield place, parse_json(line, path.name, number, problems)
    except LineError as error:
        report.skip(f"the line {error}", place)


def _items(path: Path, value: Any) -> Iterator[Placed]:
    if isinstance(value, list):
        yield from ((f"{path.name}[{n}]", item) for n, item in enumerate(value))
    else:
        yield path.name, value


def _is_whole(line: bytes) -> bool:
    try:
        parse_json(line, "", 1, Problems())
    except LineError:
        return False
    return True


def _ending(path: Path) -> str:
    """The suffix in small letters, the one before `.gz` where there is that."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def _csv(path: Path, ending: str, report: ImportReport) -> Iterator[Placed]:
    """Rows under a header. Columns are apart by commas, or by semicolons where the header has no comma; TSV by tabs."""
    csv.field_size_limit(1 << 27)
    lines = _text(path, report)
    first = next(lines, "")
    comma = ";" if ";" in first and "," not in first else ","
    reader = csv.DictReader(chain([first], lines), delimiter="\t" if ending == ".tsv" else comma)
    try:
        for row in reader:
            yield f"{path.name}:{reader.line_num}", {key: value for key, value in row.items() if key is not None}
    except csv.Error as error:
        raise InputError(f"{path.name}:{reader.line_num}: is no CSV ({error}). Export it again.") from None


def _text(path: Path, report: ImportReport) -> Iterator[str]:
    for number, line in read_lines(path, path.name, Problems(), blank=True):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            report.note("bytes that are not UTF-8 were read as U+FFFD: save the file as UTF-8", f"{path.name}:{number}")
            yield line.decode("utf-8", errors="replace")
