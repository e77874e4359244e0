"""The folder that LlamaIndex persists: docstore.json, the vector store beside it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragaudit.inventories.json_document import document
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where, higher, measured

ARM = "dense"
_DOCSTORE = "docstore.json"
_VECTORS = "default__vector_store.json"
_NODES = ("docstore/data",)


class _Folder:
    resumes = False

    def __init__(self, where: Where) -> None:
        folder = Path(where.place)
        self._where = where
        self._name = folder.name
        whole = document(folder / _DOCSTORE, "Name the folder that storage_context.persist() wrote.")
        self._nodes = {key: node for name in _NODES for key, node in (whole.get(name) or {}).items()}
        path = folder / _VECTORS
        self._vectors: Mapping[str, Any] | None = None
        if path.is_file():
            self._vectors = document(path, "A vector store of another library stands there: export that one.").get(
                "embedding_dict"
            )

    def contents(self) -> Contents:
        if self._vectors is None:
            return Contents(self._name, len(self._nodes), is_snapshot=True, restricted=(_ELSEWHERE,))
        arm = {"metric": "cosine", "ann": "exact", "score": higher("cosine similarity")}
        strays = len(self._vectors.keys() - self._nodes.keys())
        ghost = (f"{strays:,} vectors have no node in docstore.json: they can be found and not be read",)
        return Contents(
            self._name,
            len(self._nodes),
            arms={self._where.arm(ARM): arm},
            is_snapshot=True,
            notes=ghost if strays else (),
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        records: list[Record] = []
        for number, (key, kept) in enumerate(self._nodes.items(), start=1):
            node = kept.get("__data__") if isinstance(kept, dict) and "__data__" in kept else kept
            records.append(Record(key, {"_node_content": node}, arms=self._arms(key)))
            if len(records) == size:
                yield Page(records, number)
                records = []
        if records:
            yield Page(records, None)

    def _arms(self, key: str) -> Mapping[str, Held | None]:
        if self._vectors is None:
            return {}
        vector = self._vectors.get(key)
        held = measured(vector) if self._where.with_vectors else None if vector is None else Held(dim=len(vector))
        return {self._where.arm(ARM): held}


_ELSEWHERE = f"no {_VECTORS}: the vectors are in a store of their own, whose rows this export does not see"


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    yield _Folder(where)


STORE = Store("llamaindex", "LlamaIndex", "the folder of storage_context.persist()", _open)
