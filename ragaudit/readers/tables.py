"""sources.jsonl, chunks.jsonl and index.json -> Inventory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ragaudit.errors import InputError
from ragaudit.model.inventory import Chunk, Index, Inventory, Source
from ragaudit.readers.fields import Odd, explained, finite, quoted, revision_of, shown, time_of
from ragaudit.readers.lines import LineError, parse_json
from ragaudit.readers.objects import read_objects
from ragaudit.readers.parquet import is_parquet, parquet_rows
from ragaudit.readers.problems import Problems

_Row = TypeVar("_Row", Source, Chunk)
_NUMBERED: Mapping[str, Callable[[Any, str, Odd], Any]] = {
    "revision": revision_of,
    **dict.fromkeys(("updated_at", "indexed_at", "visible_at", "snapshot_at", "built_at"), time_of),
}
"""Fields that hold text, and that stores export as numbers."""


def read_inventory(
    sources: Path | None, chunks: Path | None, index: Path | None, names: Mapping[Path, str], problems: Problems
) -> Inventory:
    """Read what is there. None for a path = that table was not given.

    A row whose other fields are unusable is kept without them. When rows had to be set aside the index is marked
    incomplete, since absence from what was read then proves nothing.
    """
    source_rows = (
        None if sources is None else _table(sources, names[sources], Source, lambda row: row.source_id, problems)
    )
    chunk_rows = None if chunks is None else _table(chunks, names[chunks], Chunk, lambda row: row.chunk_id, problems)
    revision = None if index is None else _index(index, names[index], problems)
    if any(path is not None and problems.tally(names[path]).lost for path in (sources, chunks)):
        revision = (revision or Index()).model_copy(update={"complete": False})
    return Inventory.of(source_rows, chunk_rows, revision)


def _table(
    path: Path, name: str, record: type[_Row], key: Callable[[_Row], str], problems: Problems
) -> dict[str, _Row]:
    found: dict[str, _Row] = {}
    for number, row in _rows(path, name, record, problems):
        if not key(row):
            problems.set_aside("unreadable", name, number, "the id is empty. Export the id, as the store holds it.")
            continue
        if key(row) in found:
            what = f"id {quoted(key(row))} stands in the file before; the first row counts. Export each id once."
            problems.set_aside("duplicate_id", name, number, what)
            continue
        found[key(row)] = row
        problems.done(name, number)
    problems.tally(name).complete = True
    if not found:
        problems.refuse_if_all_lost(name)
    return found


def _rows(path: Path, name: str, record: type[_Row], problems: Problems) -> Iterator[tuple[int, _Row]]:
    records: Iterable[tuple[int, Any]] = (
        parquet_rows(path, name) if is_parquet(path) else read_objects(path, name, problems)
    )
    for number, raw in records:
        try:
            if isinstance(raw, bytes):
                if b"NaN" not in raw and b"Infinity" not in raw:
                    try:
                        yield number, record.model_validate_json(raw)
                        continue
                    except ValidationError:
                        pass  # read again below, field by field
                raw = parse_json(raw, name, number, problems)
            yield number, _patient(raw, record, name, number, problems)
        except RecursionError:
            problems.set_aside("unreadable", name, number, "is nested too deeply to read. Export flat records.")
        except LineError as error:
            problems.set_aside(error.kind, name, number, str(error))


def _patient(value: Any, record: type[Any], name: str, number: int, problems: Problems) -> Any:
    """The record without the fields that cannot be read; only the id is indispensable."""
    if not isinstance(value, dict):
        raise LineError(f"holds {shown(value)}, not an object. Write one JSON object on one line.")
    odd = Odd()
    fields = {key: finite(item, key, odd) for key, item in value.items() if item is not None}
    if isinstance(fields.get("acl"), list):
        fields["acl"] = [str(one) if type(one) is int else one for one in fields["acl"]]
    _number_as_text(fields, odd)
    for arm in fields["arms"].values() if isinstance(fields.get("arms"), dict) else ():
        _number_as_text(arm, odd)
    odd.report(problems, name, number)
    while True:
        try:
            return record.model_validate(fields)
        except ValidationError as error:
            bad = str(error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"][0])
            message = explained(error, fields)
            if bad not in fields or bad in ("source_id", "chunk_id"):
                raise LineError(message) from None
            del fields[bad]
            instead = "The row is used without it."
            if record is Index and bad == "complete":
                fields[bad], instead = False, "It is read as false."
            problems.note("field_dropped", name, number, f"{message} {instead}")


def _number_as_text(fields: Any, odd: Odd) -> None:
    """Read revisions and times that are numbers as text, in place. Other numbers are left for the record to refuse."""
    for key in _NUMBERED.keys() & fields.keys() if isinstance(fields, dict) else ():
        with suppress(LineError):
            fields[key] = _NUMBERED[key](fields[key], key, odd)


def _index(path: Path, name: str, problems: Problems) -> Index:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    try:
        value = parse_json(raw.removeprefix(b"\xef\xbb\xbf") + b"\n", name, 1, problems)
        index = _patient(value, Index, name, 1, problems)
    except LineError as error:
        raise InputError(f"{name}: {error}") from None
    problems.done(name, 1)
    problems.tally(name).complete = True
    assert isinstance(index, Index)
    return index
