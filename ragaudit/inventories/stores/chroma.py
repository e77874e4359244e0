"""Chroma: a folder of a PersistentClient, or a server over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragaudit.errors import InputError
from ragaudit.inventories.clients import calls, chosen, client
from ragaudit.inventories.copies import copied
from ragaudit.inventories.records import Contents, Page, Reader, Record, Store, Where, lower, measured

ARM = "dense"
_METRICS = {
    "cosine": ("cosine", "1 - cosine similarity"),
    "l2": ("l2", "squared Euclidean distance"),
    "ip": ("dot", "1 - dot product"),
}
_FILE = "chroma.sqlite3"
_MODELS = ("embedding_model", "model_name", "model")


class _Chroma:
    resumes = True

    def __init__(self, where: Where, collection: Any) -> None:
        self._where = where
        self._collection = collection

    def contents(self) -> Contents:
        with calls(self._where):
            rows = int(self._collection.count())
            name = str(self._collection.name)
            metadata = dict(self._collection.metadata or {})
            settings = dict(self._collection.configuration_json or {})
        return Contents(
            collection=name,
            rows=rows,
            arms={self._where.arm(ARM): _arm(settings, metadata)},
            embedding_model=_model(settings, metadata),
            revision=_text(metadata.get("index_revision")),
            is_snapshot=not self._where.is_url,
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """By offset: Chroma lists rows in the order in which they were written."""
        include = ["documents", "metadatas", *(["embeddings"] if self._where.with_vectors else [])]
        start = int(after or 0)
        while True:
            with calls(self._where):
                got = self._collection.get(limit=size, offset=start, include=include)
            if not got["ids"]:
                return
            start += len(got["ids"])
            yield Page(list(_records(got, self._where.arm(ARM))), start)


def _records(got: Mapping[str, Any], arm: str) -> Iterator[Record]:
    ids = got["ids"]
    texts = got.get("documents") or [None] * len(ids)
    payloads = got.get("metadatas") or [None] * len(ids)
    vectors = got.get("embeddings")
    for n, key in enumerate(ids):
        vector = None if vectors is None else measured(vectors[n])
        held = {} if vectors is None else {arm: vector}
        yield Record(str(key), payloads[n] or {}, texts[n], held)


def _arm(settings: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    space = _space(settings, metadata)
    if space not in _METRICS:
        return {"ann": _ann(settings)}
    metric, formula = _METRICS[space]
    return {"metric": metric, "ann": _ann(settings), "score": lower(formula)}


def _ann(settings: Mapping[str, Any]) -> str | None:
    return next((name for name in ("hnsw", "spann") if settings.get(name)), None)


def _space(settings: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    for name in ("hnsw", "spann"):
        if isinstance(settings.get(name), dict) and settings[name].get("space"):
            return str(settings[name]["space"])
    return str(metadata.get("hnsw:space", ""))


def _model(settings: Mapping[str, Any], metadata: Mapping[str, Any]) -> str | None:
    """What the collection's metadata says, else the model that its embedding function was made with."""
    found = next((metadata[name] for name in _MODELS if metadata.get(name)), None)
    made = settings.get("embedding_function")
    config = made.get("config") if isinstance(made, dict) else None
    if found is None and isinstance(config, dict):
        found = next((config[name] for name in ("model_name", "model", "model_id") if config.get(name)), None)
    return _text(found)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    chromadb = client("chromadb", "chroma")
    errors = client("chromadb.errors", "chroma").ChromaError
    settings = client("chromadb.config", "chroma").Settings(anonymized_telemetry=False, allow_reset=False)
    with ExitStack() as stack:
        if where.is_url:
            opened = _server(where, chromadb, settings, errors)
        else:
            copy = stack.enter_context(_copied(where))
            with calls(where, errors, hint="Was it written by a newer chromadb than the one installed here?"):
                opened = chromadb.PersistentClient(path=str(copy), settings=settings)
        stack.callback(opened.close)
        with calls(where, errors):
            names = [str(each.name) for each in opened.list_collections()]
        name = chosen(where, names)
        with calls(where, errors):
            collection = opened.get_collection(name, embedding_function=None)
        yield _Chroma(where, collection)


def _copied(where: Where) -> AbstractContextManager[Path]:
    folder = Path(where.place)
    if not (folder / _FILE).is_file():
        raise InputError(f"{folder}: no {_FILE} in it. Name the folder that PersistentClient was given.")
    vectors = () if where.with_vectors else tuple(path.name for path in folder.iterdir() if path.is_dir())
    return copied(folder, leave_out=vectors)


def _server(where: Where, chromadb: Any, settings: Any, errors: type[Exception]) -> Any:
    parts = urlsplit(where.place)
    headers = {"x-chroma-token": where.key} if where.key else {}
    with calls(where, errors):
        port = parts.port or (443 if parts.scheme == "https" else 8000)
        return chromadb.HttpClient(
            host=parts.hostname or "", port=port, ssl=parts.scheme == "https", headers=headers, settings=settings
        )


STORE = Store("chroma", "Chroma", "the folder of a PersistentClient, or http://host:port", _open)
