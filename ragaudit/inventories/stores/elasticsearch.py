"""Elasticsearch and OpenSearch over HTTP: a point in time, read with search_after."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from ragaudit.errors import ConfigError
from ragaudit.inventories.clients import calls, chosen
from ragaudit.inventories.http_json import Refused, Server
from ragaudit.inventories.records import (
    KEY_VARIABLE,
    Contents,
    Held,
    Page,
    Reader,
    Record,
    Store,
    Where,
    higher,
    measured,
)
from ragaudit.inventories.secrets import public

ARM = "dense"
LEXICAL = "bm25"
KEEP_ALIVE = "5m"
_DENSE = ("dense_vector", "knn_vector")
_SPARSE = ("sparse_vector", "rank_features")
_METRICS = {
    "cosine": "cosine",
    "cosinesimil": "cosine",
    "dot_product": "dot",
    "max_inner_product": "dot",
    "innerproduct": "dot",
    "l2_norm": "l2",
    "l2": "l2",
}


class _Index:
    def __init__(self, where: Where, server: Server, name: str, version: Mapping[str, Any]) -> None:
        self._where = where
        self._server = server
        self._name = name
        self._path = quote(name, safe="*,")
        self._is_opensearch = is_opensearch = version.get("distribution") == "opensearch"
        self._version = _numbers(str(version.get("number", "")))
        # a point in time ends with the connection, and `_shard_doc` means something in one of them only
        self.resumes = is_opensearch
        mappings = self._ask("GET", f"/{self._path}/_mapping")
        self._indices = sorted(mappings)
        fields: dict[str, Mapping[str, Any]] = {}
        for index in mappings.values():
            fields.update(_fields(index.get("mappings", {}).get("properties", {})))
        self._dense = {path: field for path, field in fields.items() if field.get("type") in _DENSE}
        self._sparse = [path for path, field in fields.items() if field.get("type") in _SPARSE]
        self._texts = [path for path, field in fields.items() if field.get("type") == "text"]
        self._read = {path for path in (*self._dense, *self._sparse) if where.with_vectors and self._gives_out(path)}

    def contents(self) -> Contents:
        rows = int(self._ask("GET", f"/{self._path}/_count")["count"])
        stats, hidden = self._stats(), self._hidden()
        arms: dict[str, dict[str, Any]] = {}
        for path, field in self._dense.items():
            known = {"chunks": self._with(path), "tombstones": stats["deleted"] if stats else None}
            arms[self._dense_arm(path)] = _arm(field) | {name: n for name, n in known.items() if n is not None}
        for path in self._sparse:
            arms[self._where.arm(path)] = {"score": higher("sparse dot product")}
        if self._texts:
            arms[self._where.arm(LEXICAL)] = {"score": higher("BM25")}
        notes = (
            [] if stats else ["this user may not read the index statistics: writes meanwhile show only in the count"]
        )
        if self._where.with_vectors:
            kept = [path for path in (*self._dense, *self._sparse) if path not in self._read]
            notes += [
                f"{path} is not in _source: which rows have it, and how long it is, cannot be read" for path in kept
            ]
        if hidden is None:
            notes.append("document level security cannot be asked for here: if this user has it, pass --complete no")
        return Contents(
            collection=self._name,
            rows=rows,
            arms=arms,
            revision=self._indices[0] if len(self._indices) == 1 else None,
            mark=f"{stats['written']}:{stats['removed']}" if stats else None,
            restricted=hidden or (),
            notes=tuple(notes),
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """In the order of the shards (Elasticsearch) or of the ids (OpenSearch)."""
        pit = self._open_pit()
        try:
            while True:
                found = self._ask("POST", "/_search", self._body(pit, after, size))
                pit = found.get("pit_id", pit)
                hits = found["hits"]["hits"]
                failed = found.get("_shards", {}).get("failed", 0)
                if failed or found.get("timed_out"):
                    with calls(self._where, hint="Run the same command again when all shards are there."):
                        raise OSError(f"{failed} shards did not answer")
                if not hits:
                    return
                after = hits[-1]["sort"]
                yield Page([self._record(hit) for hit in hits], after)
        finally:
            self._close_pit(pit)

    def _body(self, pit: str, after: Any, size: int) -> dict[str, Any]:
        hidden = [path for path in (*self._dense, *self._sparse) if path not in self._read]
        body = {
            "size": size,
            "pit": {"id": pit, "keep_alive": KEEP_ALIVE},
            "sort": [{"_id": "asc"}] if self._is_opensearch else [{"_shard_doc": "asc"}],
            "track_total_hits": False,
            "_source": self._source({"excludes": hidden} if hidden else {}),
        }
        return body if after is None else {**body, "search_after": after}

    def _source(self, wanted: dict[str, Any]) -> Any:
        """Since 9.2 Elasticsearch leaves vectors out unless asked for."""
        if self._read and not self._is_opensearch and self._version >= (9, 2):
            wanted = {**wanted, "exclude_vectors": False}
        return wanted or True

    def _gives_out(self, path: str) -> bool:
        """Whether the field can be read back: a mapping may leave it out of `_source`. True where no row has it."""
        source: dict[str, Any] = {"includes": [path]}
        if not self._is_opensearch and self._version >= (9, 2):
            source["exclude_vectors"] = False
        body = {"size": 1, "query": {"exists": {"field": path}}, "_source": source}
        hits = self._ask("POST", f"/{self._path}/_search", body)["hits"]["hits"]
        return not hits or _at(hits[0].get("_source") or {}, path) is not None

    def _with(self, path: str) -> int | None:
        """How many rows have the field; None when the server does not count that."""
        try:
            body = {"query": {"exists": {"field": path}}}
            return int(self._ask("POST", f"/{self._path}/_count", body)["count"])
        except Refused:
            return None

    def _record(self, hit: Mapping[str, Any]) -> Record:
        source = dict(hit.get("_source") or {})
        arms: dict[str, Held | None] = {}
        for path in self._dense:
            vector = _taken(source, path)
            if path in self._read:
                arms[self._dense_arm(path)] = measured(vector)
        for path in self._sparse:
            weights = _taken(source, path)
            if path in self._read:
                arms[self._where.arm(path)] = Held() if weights else None
        if self._texts:
            held = any(_at(source, path) not in (None, "") for path in self._texts)
            arms[self._where.arm(LEXICAL)] = Held() if held else None
        metadata = source.pop("metadata", None)
        whole = {**source, **metadata} if isinstance(metadata, dict) else source
        return Record(str(hit["_id"]), whole, arms=arms, namespace=str(hit.get("_index", self._name)))

    def _dense_arm(self, path: str) -> str:
        return self._where.arm(ARM if len(self._dense) == 1 else path)

    def _stats(self) -> dict[str, int] | None:
        try:
            found = self._ask("GET", f"/{self._path}/_stats/docs,indexing")
        except Refused:
            return None
        primaries = found["_all"]["primaries"]
        return {
            "deleted": int(primaries["docs"]["deleted"]),
            "written": int(primaries["indexing"]["index_total"]),
            "removed": int(primaries["indexing"]["delete_total"]),
        }

    def _hidden(self) -> tuple[str, ...] | None:
        """How the user's role narrows what they see; None = it cannot be asked.

        Elasticsearch says so when security is on, except to an API key that has rights of its own.
        """
        if self._is_opensearch:
            return None
        try:
            found = self._ask("GET", "/_security/user/_privileges")
        except Refused:
            has_signed_in = self._where.key is not None or bool(urlsplit(self._where.place).username)
            return None if has_signed_in else ()
        narrowed = any(one.get("query") for one in found.get("indices", []))
        return ("document level security narrows what this user sees",) if narrowed else ()

    def _open_pit(self) -> str:
        if self._is_opensearch:
            path = f"/{self._path}/_search/point_in_time?keep_alive={KEEP_ALIVE}"
            return str(self._ask("POST", path)["pit_id"])
        return str(self._ask("POST", f"/{self._path}/_pit?keep_alive={KEEP_ALIVE}")["id"])

    def _close_pit(self, pit: str) -> None:
        """It would end by itself after some minutes: a refusal is no fault."""
        try:
            if self._is_opensearch:
                self._ask("DELETE", "/_search/point_in_time", {"pit_id": [pit]})
            else:
                self._ask("DELETE", "/_pit", {"id": pit})
        except Refused:
            pass

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return _asked(self._where, self._server, method, path, body)


def _asked(where: Where, server: Server, method: str, path: str, body: Any = None) -> Any:
    with calls(where):
        try:
            return server.ask(method, path, body)
        except Refused as error:
            said = where.secrets.clean(str(error))
            hint = f"Set {KEY_VARIABLE}, or check its rights." if error.status in (401, 403) else "Check the name."
            raise Refused(error.status, f"{public(where.place)}: {said}. {hint}") from None


def _numbers(version: str) -> tuple[int, ...]:
    """`9.2.1` as (9, 2), so that versions can be compared."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _fields(properties: Mapping[str, Any], prefix: str = "") -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for name, field in properties.items():
        if isinstance(field.get("properties"), dict):
            found |= _fields(field["properties"], f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = field
    return found


def _arm(field: Mapping[str, Any]) -> dict[str, Any]:
    method = field.get("method") or {}
    said = field.get("similarity") or field.get("space_type") or method.get("space_type")
    options = field.get("index_options") or {}
    indexed = field.get("index", True)
    ann = options.get("type") or method.get("name") or ("hnsw" if indexed else "exact")
    metric = _METRICS.get(str(said))
    facts = {"metric": metric, "ann": ann, "score": higher(f"from {said}") if said else None}
    return {name: value for name, value in facts.items() if value is not None}


def _at(source: Mapping[str, Any], path: str) -> Any:
    value: Any = source
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _taken(source: dict[str, Any], path: str) -> Any:
    """The value, and out of the source: vectors are measured, not kept."""
    *parents, last = path.split(".")
    inner: Any = source
    for part in parents:
        inner = inner.get(part) if isinstance(inner, dict) else None
    return inner.pop(last, None) if isinstance(inner, dict) else None


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    if not where.is_url or not where.place.startswith(("http://", "https://")):
        raise ConfigError("elasticsearch, opensearch: pass the address as --url https://host:9200, not a path.")
    server = Server(where.place, where.key)
    version = _asked(where, server, "GET", "/").get("version", {})
    name = where.collection
    if name is None:
        listed = _asked(where, server, "GET", "/_cat/indices?format=json&h=index")
        names = [str(row["index"]) for row in listed if not str(row["index"]).startswith(".")]
        name = chosen(where, names, "index")
    yield _Index(where, server, name, version)


STORE = Store("elasticsearch", "Elasticsearch and OpenSearch", "https://host:9200", _open)
