"""An inventory as a file: JSONL or Parquet, `ragaudit.inventory/1` or the columns of your own export."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where
from ragaudit.readers.lines import LineError, parse_json, read_lines
from ragaudit.readers.parquet import is_parquet, parquet_rows
from ragaudit.readers.problems import Problems

ARM = "dense"
MANIFEST = "_manifest"
_FORMAT = "ragaudit.inventory/1"
_IDS = ("chunk_id", "id", "_id")
_STORE_ID = "store_id"


class _File:
    resumes = True

    def __init__(self, where: Where) -> None:
        self._where = where
        self._path = Path(where.place)
        self._unreadable = 0
        self._manifest = self._first()

    def contents(self) -> Contents:
        said = self._manifest
        size, changed = self._path.stat().st_size, self._path.stat().st_mtime_ns
        rows = said.get("row_count")
        complete = said.get("complete")
        lost = (f"{self._unreadable:,} lines could not be read",) if self._unreadable else ()
        return Contents(
            collection=str(said.get("collection") or self._path.name),
            rows=rows if isinstance(rows, int) else None,
            arms={self._where.arm(ARM): {"metric": said["metric"]} if isinstance(said.get("metric"), str) else {}},
            embedding_model=_text(said.get("embedding_model")),
            revision=_text(said.get("index_revision")),
            mark=f"{size}:{changed}",
            is_declared_complete=complete if isinstance(complete, bool) else None,
            restricted=lost,
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        records: list[Record] = []
        done = int(after or 0)
        for number, row in self._rows():
            if number <= done or MANIFEST in row:
                continue
            records.append(self._record(number, row))
            if len(records) == size:
                yield Page(records, number)
                records = []
        if records:
            yield Page(records, None)

    def _record(self, number: int, row: Mapping[str, Any]) -> Record:
        own = next((row[name] for name in self._ids() if row.get(name) is not None), None)
        key = next((row[name] for name in (_STORE_ID, *self._ids()) if row.get(name) is not None), None)
        if key is None:
            known = ", ".join(str(name)[:40] for name in list(row)[:8])
            raise InputError(f"{self._path.name}:{number}: no id (it has {known}). Name its field with --id-field.")
        metadata = row.get("metadata") if isinstance(row.get("metadata"), dict) else {}
        hidden = ("metadata", _STORE_ID, *_VECTORS, *(name for name in _IDS if self._where.id_field is None))
        payload = {name: value for name, value in row.items() if name not in hidden and value is not None}
        arms: dict[str, Held | None] = {self._where.arm(ARM): None if row.get("deleted") is True else Held()}
        return Record(str(key), {**(metadata or {}), **payload}, arms=arms, own_id=None if own is None else str(own))

    def _ids(self) -> tuple[str, ...]:
        return _IDS if self._where.id_field is None else (self._where.id_field,)

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        name = self._path.name
        if is_parquet(self._path):
            yield from parquet_rows(self._path, name)
            return
        problems = Problems()
        for number, line in read_lines(self._path, name, problems):
            try:
                row = parse_json(line, name, number, problems)
            except LineError:
                row = None
            if isinstance(row, dict):
                yield number, row
            else:
                problems.set_aside("not_json", name, number, "is no JSON object")
        self._unreadable = problems.tally(name).set_aside

    def _first(self) -> Mapping[str, Any]:
        """The manifest: an object on the first line, bare or under `_manifest`; empty when there is none."""
        if not self._path.is_file():
            raise InputError(f"{self._path}: no such file. Check the path.")
        first = next((row for _, row in self._rows()), None)
        if first is None:
            raise InputError(f"{self._path}: no rows in it. Write one JSON object a line, one for each chunk.")
        said = first.get(MANIFEST)
        if isinstance(said, dict) and said.get("format") not in (None, _FORMAT):
            raise InputError(f"{self._path}: its format is {said['format']!r}. Write {_FORMAT!r}.")
        return said if isinstance(said, dict) else {}


_VECTORS = ("vector", "embedding", "embeddings", "vectors")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    yield _File(where)


STORE = Store("file", "a file of chunks", "chunks as JSONL (plain or gzip) or Parquet", _open)
