"""Qdrant: a server, or a local folder of qdrant-client."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError, InputError
from ragaudit.inventories.clients import calls, chosen, client
from ragaudit.inventories.copies import copied
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where, higher, lower, measured

ARM = "dense"
_METRICS = {
    "Cosine": ("cosine", higher("cosine similarity")),
    "Dot": ("dot", higher("dot product")),
    "Euclid": ("l2", lower("Euclidean distance")),
    "Manhattan": ("l1", lower("Manhattan distance")),
}


class _Qdrant:
    resumes = True

    def __init__(self, where: Where, opened: Any, name: str, errors: tuple[type[Exception], ...]) -> None:
        self._where = where
        self._client = opened
        self._name = name
        self._errors = errors
        self._arms: dict[str, str] = {}

    def contents(self) -> Contents:
        with calls(self._where, *self._errors):
            found = self._client.get_collection(self._name)
            rows = int(self._client.count(self._name, exact=True).count)
        params, arms = found.config.params, {}
        dense = params.vectors if isinstance(params.vectors, dict) else {"": params.vectors}
        for name, vectors in dense.items():
            if vectors is None:
                continue
            arm = self._where.arm(name or ARM)
            self._arms[name] = arm
            metric, score = _METRICS.get(str(vectors.distance.value), (str(vectors.distance.value).lower(), None))
            arms[arm] = {"metric": metric, "ann": self._ann(), **({"score": score} if score else {})}
        for name in params.sparse_vectors or {}:
            arm = self._where.arm(name)
            self._arms[name] = arm
            arms[arm] = {"score": higher("sparse dot product")}
        metadata = getattr(found.config, "metadata", None) or {}
        model = metadata.get("embedding_model")
        return Contents(
            collection=self._name,
            rows=rows,
            arms=arms,
            embedding_model=model if isinstance(model, str) else None,
            revision=str(metadata["index_revision"]) if metadata.get("index_revision") else None,
            is_snapshot=not self._where.is_url,
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """By scrolling: points come in the order of their ids."""
        while True:
            with calls(self._where, *self._errors):
                points, after = self._client.scroll(
                    self._name, limit=size, offset=after, with_payload=True, with_vectors=self._where.with_vectors
                )
            yield Page([self._record(point) for point in points], None if after is None else _plain_id(after))
            if after is None:
                return

    def _record(self, point: Any) -> Record:
        arms: Mapping[str, Held | None] = {}
        if self._where.with_vectors:
            vectors = point.vector if isinstance(point.vector, dict) else {"": point.vector}
            arms = {arm: _held(vectors.get(name)) for name, arm in self._arms.items()}
        return Record(str(point.id), point.payload or {}, arms=arms)

    def _ann(self) -> str:
        return "hnsw" if self._where.is_url else "exact"


def _held(vector: Any) -> Held | None:
    if hasattr(vector, "indices"):
        # a sparse vector: its width is the vocabulary, its length is no embedding's
        return Held() if vector.indices else None
    return None if not vector else measured(vector)


def _plain_id(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    with ExitStack() as stack:
        if not where.is_url:
            _check(where)
        library = client("qdrant_client", "qdrant")
        errors = (client("qdrant_client.http.exceptions", "qdrant").ApiException,)
        place = where.place if where.is_url else str(stack.enter_context(copied(Path(where.place))))
        with calls(where, *errors):
            if where.is_url:
                opened = library.QdrantClient(url=place, api_key=where.key, timeout=60, check_compatibility=False)
            else:
                opened = library.QdrantClient(path=place)
        stack.callback(opened.close)
        with calls(where, *errors):
            names = [str(each.name) for each in opened.get_collections().collections]
            if where.is_url and where.collection not in names:
                names += [str(each.alias_name) for each in opened.get_aliases().aliases]
        yield _Qdrant(where, opened, chosen(where, names), errors)


def _check(where: Where) -> None:
    """A folder is opened by a client that unpickles every point: that runs whatever is in them."""
    folder = Path(where.place)
    if not (folder / "meta.json").is_file():
        raise InputError(f"{folder}: no meta.json in it. Name the folder that QdrantClient(path=...) was given.")
    if not where.is_trusted:
        raise ConfigError(
            f"{folder}: qdrant-client keeps the points of a local folder as Python pickles, and reading a pickle runs "
            "what is in it. Pass --trusted if this folder is your own."
        )


STORE = Store("qdrant", "Qdrant", "http://host:6333, or the folder of QdrantClient(path=...)", _open)
