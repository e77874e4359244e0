"""Milvus: a server, or a file of milvus-lite."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.inventories.clients import calls, chosen, client
from ragaudit.inventories.copies import copied
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where, higher, lower, measured

ARM = "dense"
_METRICS = {
    "COSINE": ("cosine", higher("cosine similarity")),
    "IP": ("dot", higher("inner product")),
    "L2": ("l2", lower("squared Euclidean distance")),
    "BM25": (None, higher("BM25")),
}
_DENSE = ("FLOAT_VECTOR", "FLOAT16_VECTOR", "BFLOAT16_VECTOR", "INT8_VECTOR")
_SPARSE = "SPARSE_FLOAT_VECTOR"


class _Milvus:
    resumes = True

    def __init__(self, where: Where, opened: Any, name: str, error: type[Exception]) -> None:
        self._where = where
        self._client = opened
        self._name = name
        self._error = error
        with calls(where, error):
            described = opened.describe_collection(name)
            indexes = [opened.describe_index(name, each) or {} for each in opened.list_indexes(name)]
        fields = {field["name"]: field for field in described["fields"]}
        self._key = next(each for each, field in fields.items() if field.get("is_primary"))
        self._is_text_key = fields[self._key]["type"].name == "VARCHAR"
        self._kinds = {each: field["type"].name for each, field in fields.items() if "VECTOR" in field["type"].name}
        self._made = {out for function in described.get("functions") or () for out in _outputs(function)}
        self._indexes = {str(index.get("field_name")): index for index in indexes}
        self._described = described

    def contents(self) -> Contents:
        with calls(self._where, self._error):
            rows = int(self._client.query(self._name, filter="", output_fields=["count(*)"])[0]["count(*)"])
        properties = self._described.get("properties") or {}
        return Contents(
            collection=self._name,
            rows=rows,
            arms={self._arm(name): self._facts(name) for name in self._kinds},
            embedding_model=properties.get("embedding_model"),
            revision=properties.get("index_revision"),
            is_snapshot=not self._where.is_url,
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """By the primary key: the client's iterator goes in its order."""
        wanted = "" if after is None else f"{self._key} > {json.dumps(after) if self._is_text_key else int(after)}"
        columns = ["*"] if self._where.with_vectors else self._scalars()
        with calls(self._where, self._error):
            rows = self._client.query_iterator(self._name, batch_size=size, filter=wanted, output_fields=columns)
        try:
            while True:
                with calls(self._where, self._error):
                    batch = rows.next()
                if not batch:
                    return
                last = batch[-1][self._key]
                yield Page([self._record(dict(row)) for row in batch], last if self._is_text_key else int(last))
        finally:
            with calls(self._where, self._error):
                rows.close()

    def _record(self, row: dict[str, Any]) -> Record:
        arms: dict[str, Held | None] = {}
        for name, kind in self._kinds.items():
            vector = row.pop(name, None)
            if name in self._made:
                arms[self._arm(name)] = Held()  # made by the server from a text, and never given out
            elif self._where.with_vectors:
                arms[self._arm(name)] = _held(vector, kind)
        key = str(row.pop(self._key))
        inner = row.pop("metadata", None)
        whole = {**row, **inner} if isinstance(inner, dict) else row
        if self._where.id_field == self._key:
            whole[self._key] = key
        return Record(key, whole, arms=arms)

    def _scalars(self) -> list[str]:
        names = [field["name"] for field in self._described["fields"] if field["name"] not in self._kinds]
        return [*names, *(["$meta"] if self._described.get("enable_dynamic_field") else [])]

    def _arm(self, vector: str) -> str:
        dense = [name for name, kind in self._kinds.items() if kind != _SPARSE]
        return self._where.arm(ARM if dense == [vector] else vector)

    def _facts(self, vector: str) -> Mapping[str, Any]:
        index = self._indexes.get(vector, {})
        metric, score = _METRICS.get(str(index.get("metric_type", "")).upper(), (None, None))
        facts = {"metric": metric, "ann": str(index["index_type"]).lower() if index.get("index_type") else None}
        return {name: value for name, value in {**facts, "score": score}.items() if value is not None}


def _outputs(function: Mapping[str, Any]) -> list[str]:
    return [str(each) for each in function.get("output_field_names") or ()]


def _held(vector: Any, kind: str) -> Held | None:
    if kind == _SPARSE:
        return Held() if vector else None
    return measured(vector) if kind in _DENSE[:1] else None if vector is None else Held()


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    library = client("pymilvus", "milvus")
    error = client("pymilvus.exceptions", "milvus").MilvusException
    if not where.is_url and not Path(where.place).exists():
        raise InputError(f"{where.place}: no such file. Name the file that MilvusClient was given.")
    with ExitStack() as stack:
        place = (
            where.place if where.is_url else str(stack.enter_context(copied(Path(where.place), leave_out=("LOCK",))))
        )
        with calls(where, error):
            opened = library.MilvusClient(place, **({"token": where.key} if where.key else {}))
        stack.callback(opened.close)
        with calls(where, error):
            names = [str(name) for name in opened.list_collections()]
        name = chosen(where, names)
        _loaded(where, opened, name, error)
        yield _Milvus(where, opened, name, error)


def _loaded(where: Where, opened: Any, name: str, error: type[Exception]) -> None:
    """Rows are read of a loaded collection only. A file is loaded here; a server's state is not ours to change."""
    with calls(where, error):
        state = str(opened.get_load_state(name).get("state"))
        is_loaded = "Loaded" in state and "Not" not in state
        if not is_loaded and not where.is_url:
            opened.load_collection(name)
    if not is_loaded and where.is_url:
        raise InputError(f"{name}: the collection is not loaded. Load it where your application runs, and try again.")


STORE = Store("milvus", "Milvus", "http://host:19530, or a file of milvus-lite", _open)
