"""A FAISS index and its docstore as JSON, as LangChain keeps them in one folder. Pickles are refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ragaudit.errors import InputError
from ragaudit.inventories.faiss_index import FaissIndex, read_head
from ragaudit.inventories.json_document import document
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where, higher, lower

ARM = "dense"
DOCSTORE = "docstore.json"
_SCORES = {"dot": higher("inner product"), "l2": lower("squared Euclidean distance")}
RECIPE = (
    'json.dump({"docstore": {i: {"page_content": d.page_content, "metadata": d.metadata} '
    'for i, d in db.docstore._dict.items()}, "index_to_docstore_id": db.index_to_docstore_id}, '
    f'open("{DOCSTORE}", "w"), default=str)'
)


class _Folder:
    resumes = True

    def __init__(self, where: Where, index: FaissIndex, stream: BinaryIO, docs: dict[str, Any]) -> None:
        self._where = where
        self._index = index
        self._stream = stream
        self._docs: dict[str, Any] = docs.get("docstore") or {}
        places: dict[str, Any] = docs.get("index_to_docstore_id") or {}
        self._places = {str(key): int(place) for place, key in places.items() if str(place).isdigit()}

    def contents(self) -> Contents:
        index = self._index
        arm: dict[str, Any] = {"ann": "exact" if index.kind == "flat" else index.kind}
        if index.metric:
            arm |= {"metric": index.metric, "score": _SCORES[index.metric]}
        ghosts = index.rows - sum(0 <= place < index.rows for key, place in self._places.items() if key in self._docs)
        said = (f"{ghosts:,} vectors have no document: they can be found and not be read",) if ghosts > 0 else ()
        unread = (f"a {index.kind} index keeps its vectors packed: their lengths are not read",)
        return Contents(
            index.path.parent.name or index.path.name,
            len(self._docs),
            arms={self._where.arm(ARM): arm},
            is_snapshot=True,
            mark=str(index.path.stat().st_mtime_ns),
            notes=said + (unread if index.vectors_at is None else ()),
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        done = int(after or 0)
        keys = list(self._docs)
        while done < len(keys):
            part = keys[done : done + size]
            done += len(part)
            yield Page([self._record(key) for key in part], done)

    def _record(self, key: str) -> Record:
        kept = self._docs[key]
        kept = kept if isinstance(kept, dict) else {}
        place = self._places.get(key, -1)
        held: Held | None = self._index.held(self._stream, place, with_vectors=self._where.with_vectors)
        return Record(key, kept, arms={self._where.arm(ARM): held})


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    folder = Path(where.place)
    found = sorted(folder.glob("*.faiss")) if folder.is_dir() else [folder]
    if len(found) != 1:
        raise InputError(f"{folder}: holds {len(found)} *.faiss files. Name the file.")
    index = read_head(found[0])
    docs = found[0].parent / DOCSTORE
    if not docs.is_file():
        pickled = found[0].with_suffix(".pkl")
        why = (
            f"{pickled.name} is a Python pickle: reading it runs what is in it, so it is not read. " * pickled.is_file()
        )
        raise InputError(f"{folder}: no {DOCSTORE}. {why}Write one where your application runs: {RECIPE}")
    with found[0].open("rb") as stream:
        yield _Folder(where, index, stream, document(docs, f"Write it as: {RECIPE}"))


STORE = Store("faiss", "FAISS and a docstore", "the folder with index.faiss and docstore.json", _open)
