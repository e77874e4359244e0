"""LanceDB: a folder or an address. The version that is there when the export begins is read to its end."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.inventories.clients import calls, chosen, client
from ragaudit.inventories.payloads import TEXTS
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where, higher, lower, measured

ARM = "dense"
LEXICAL = "bm25"
_METRICS = {
    "cosine": ("cosine", lower("cosine distance")),
    "l2": ("l2", lower("squared Euclidean distance")),
    "dot": ("dot", lower("1 - dot product")),
}


class _Table:
    resumes = True

    def __init__(self, where: Where, table: Any) -> None:
        self._where = where
        self._table = table
        with calls(where):
            fields = {field.name: field.type for field in table.schema}
            self._described = table.schema.metadata or {}
            self._indexes = [(index, table.index_stats(index.name)) for index in table.list_indices()]
        self._vectors = [name for name, kind in fields.items() if str(kind).startswith("fixed_size_list")]
        self._columns = [name for name in fields if name not in self._vectors]
        self._texts = {name for index, _ in self._indexes if index.index_type == "FTS" for name in index.columns}

    def contents(self) -> Contents:
        with calls(self._where):
            version, rows = int(self._table.version), int(self._table.count_rows())
        arms = {self._arm(name): self._vector_arm(name) for name in self._vectors}
        if self._texts:
            arms[self._where.arm(LEXICAL)] = {"score": higher("BM25")}
        return Contents(
            collection=str(self._table.name),
            rows=rows,
            arms=arms,
            embedding_model=_model(self._described),
            revision=f"version {version}",
            mark=str(version),
            is_snapshot=True,
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """By place in the version that was read before; from the start when that one is gone."""
        start = int(after["offset"]) if after else 0
        if after:
            with calls(self._where, hint="The version that was being read is gone: pass --restart."):
                self._table.checkout(after["version"])
        version = int(self._table.version)
        columns = self._columns + (self._vectors if self._where.with_vectors else [])
        while True:
            with calls(self._where):
                search = self._table.search().select(columns).with_row_id(True).limit(size).offset(start)
                rows = search.to_arrow().to_pylist()
            if not rows:
                return
            start += len(rows)
            yield Page([self._record(row) for row in rows], {"version": version, "offset": start})

    def _record(self, row: dict[str, Any]) -> Record:
        arms: dict[str, Held | None] = {}
        if self._where.with_vectors:
            arms = {self._arm(name): measured(row.pop(name)) for name in self._vectors}
        if self._texts:
            arms[self._where.arm(LEXICAL)] = Held() if any(row.get(name) for name in self._texts) else None
        key = f"_rowid:{row.pop('_rowid')}"
        own = row.get("id") if self._where.id_field is None else None
        if own is not None:
            del row["id"]
        inner = row.pop("metadata", None)
        inside = inner if isinstance(inner, dict) else {} if inner is None else {"metadata": inner}
        whole = {name: value for name, value in {**row, **inside}.items() if value is not None}
        text = next((row[name] for name in TEXTS if isinstance(row.get(name), str)), None)
        return Record(key, whole, text if "_node_content" in whole else None, arms, own_id=_text(own))

    def _arm(self, vector: str) -> str:
        return self._where.arm(ARM if len(self._vectors) == 1 else vector)

    def _vector_arm(self, vector: str) -> dict[str, Any]:
        found = next(((i, stats) for i, stats in self._indexes if vector in i.columns and stats is not None), None)
        if found is None:
            return {"ann": "exact"}
        index, stats = found
        metric, score = _METRICS.get(str(stats.distance_type).lower(), (None, None))
        facts = {
            "metric": metric,
            "ann": str(stats.index_type).lower(),
            "score": score,
            "rows_at_build": int(stats.num_indexed_rows),
            "built_at": index.created_at.isoformat() if getattr(index, "created_at", None) else None,
        }
        return {name: value for name, value in facts.items() if value is not None}


def _model(described: Mapping[bytes, bytes]) -> str | None:
    """The model of the embedding function that LanceDB keeps with the table."""
    try:
        functions = json.loads(described.get(b"embedding_functions", b"[]"))
        return _text(functions[0]["model"]["name"])
    except (ValueError, LookupError, TypeError):
        return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    lancedb = client("lancedb", "lancedb")
    if not where.is_url and not Path(where.place).is_dir():
        raise InputError(f"{where.place}: no such folder. Name the folder that lancedb.connect() was given.")
    with calls(where):
        database = lancedb.connect(where.place, **({"api_key": where.key} if where.key else {}))
        names = [str(name) for name in database.list_tables().tables]
    name = chosen(where, names, "table")
    with calls(where):
        table = database.open_table(name)
        table.checkout(table.version)  # reads stay on this version, and the handle refuses to write
    yield _Table(where, table)


STORE = Store("lancedb", "LanceDB", "the folder of lancedb.connect()", _open)
