"""Lists of hits in the shapes that libraries return, recognised by their attributes: nothing is imported.

Ids, pairs, dictionaries, LangChain `Document`, LlamaIndex `NodeWithScore`, Haystack `Document`, Qdrant `ScoredPoint`,
and the answers of Chroma, Qdrant, Pinecone and Elasticsearch that hold a list.
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ragaudit.model.texts import text_id
from ragaudit.record.plain import UnusableError, chunk_id, number, plain

Row = dict[str, Any]
"""A hit with the field names of DATA.md."""

_IDS = ("id", "id_", "chunk_id", "doc_id", "document_id", "node_id", "_id")
_META_IDS = ("chunk_id", "_id", "doc_id", "document_id", "id")
_TEXTS = ("page_content", "content", "text", "document", "chunk", "passage")
_METAS = ("metadata", "meta", "payload", "_source", "fields")
_SCORES = ("score", "relevance_score", "similarity", "_score", "distance", "_distance")
_SOURCES = ("source_id", "ref_doc_id", "doc_uri", "source")
_OWN = frozenset({"id", "rank", "score", "text", "source_id", "metadata"})
_LISTS = ("points", "matches", "source_nodes", "documents", "results", "hits")


def hits_of(value: Any) -> list[Row]:
    """The hits, best first, in the order given. Scores are copied now: libraries change them in place.

    Raises:
        UnusableError: It is no list, or one item has neither an id nor a text. Then nothing of the list is recorded.
    """
    return [_hit(item, rank) for rank, item in enumerate(_items(value), start=1)]


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        if isinstance(value.get("ids"), list | tuple):
            return _columns(value)
        inner = next((value[key] for key in _LISTS if value.get(key) is not None), None)
        if inner is None:
            raise UnusableError("an object without a list of hits")
        return _items(inner)
    if isinstance(value, str | bytes):
        raise UnusableError("a text is no list of hits")
    for name in _LISTS:
        inner = getattr(value, name, None)
        if isinstance(inner, list | tuple):
            return list(inner)
    if not isinstance(value, Collection):  # an iterator is the application's to read
        raise UnusableError("is no list of hits")
    return list(value)


def _columns(value: Mapping[str, Any]) -> Iterator[Row]:
    """Chroma: columns, each a list (or, for a query, a list with one list for each query text)."""

    def column(name: str) -> list[Any] | None:
        found = value.get(name)
        if found and isinstance(found[0], list | tuple):
            if len(found) > 1:
                raise UnusableError("the results of several queries: record each with its own")
            found = found[0]
        return list(found) if found is not None else None

    ids = column("ids") or []
    others = {name: column(name) for name in ("distances", "documents", "metadatas")}
    for n, one in enumerate(ids):
        row = {name: None if cells is None else cells[n] for name, cells in others.items()}
        yield {"id": one, "score": row["distances"], "text": row["documents"], "metadata": row["metadatas"]}


def _hit(item: Any, rank: int) -> Row:
    if type(item) is dict and item.keys() <= _OWN and type(found := item.get("id")) is str:  # the common case, fast
        return _row(found, rank, item.get("score"), item.get("text"), item.get("source_id"), item.get("metadata"))
    item, score, text = _taken_apart(item)
    if isinstance(item, str):
        return _row(item, rank, score, text, None, None)
    inner = _get(item, ("node", "document"))
    if inner is not None and not isinstance(inner, str):
        score = score if score is not None else _get(item, _SCORES)
        item = inner
    meta = next((found for name in _METAS if isinstance(found := _get(item, (name,)), Mapping)), {})
    text = text if isinstance(text, str) else next((t for n in _TEXTS if isinstance(t := _get(item, (n,)), str)), None)
    text = text if text is not None else next((meta[n] for n in _TEXTS if isinstance(meta.get(n), str)), None)
    found = _get(item, _IDS)
    if meta is _get(item, ("payload",)):  # a store whose own ids are numbers: the application's stands beside the text
        found = meta.get("chunk_id", found)
    nested = meta.get("metadata") if isinstance(meta.get("metadata"), Mapping) else meta.get("meta")
    if isinstance(nested, Mapping):  # a Qdrant point that LangChain or Haystack wrote: the payload has their own id
        found = next((meta[n] for n in _META_IDS if meta.get(n) is not None), found)
        meta = nested
    elif isinstance(meta.get("_node_content"), str):  # the same by LlamaIndex, with the node as JSON
        node = json.loads(meta["_node_content"])
        found, text = node.get("id_", found), text or node.get("text") or None
        meta = {key: each for key, each in meta.items() if not key.startswith("_node_")}
    if found is None:
        found = next((meta[n] for n in _META_IDS if meta.get(n) is not None), None)
    if found is None and text is not None:
        found = text_id(text)
    if score is None:
        score = _get(item, _SCORES)
    if score is None:
        score = next((meta[n] for n in _SCORES if number(meta.get(n)) is not None), None)
    source = _get(item, ("source_id", "ref_doc_id"))
    source = source if source is not None else next((meta[n] for n in _SOURCES if meta.get(n) is not None), None)
    if found is None:
        raise UnusableError("a hit without id and text")
    return _row(chunk_id(found), rank, score, text, source, meta)


def _taken_apart(item: Any) -> tuple[Any, Any, Any]:
    """(hit, score, text) of an id, `(hit, score)`, `(id, score, text)` or `(id, text)`."""
    score: Any = None
    text: Any = None
    if isinstance(item, tuple | list):
        if not 1 <= len(item) <= 3:
            raise UnusableError("a hit of more than id, score and text")
        item, *rest = item
        for each in rest:
            if isinstance(each, str):
                text = each
            else:
                score = each
    if isinstance(item, int | uuid.UUID):
        item = chunk_id(item)
    return item, score, text


def _row(found: str, rank: int, score: Any, text: Any, source: Any, meta: Any) -> Row:
    row: Row = {"id": found, "rank": rank}
    if (value := number(score)) is not None:
        row["score"] = value
    if isinstance(text, str):
        row["text"] = text
    if isinstance(source, str | int) and not isinstance(source, bool):
        row["source_id"] = str(source)
    if isinstance(meta, Mapping) and meta:
        kept = {key: each for key, each in (plain(meta) or {}).items() if each is not None and each != text}
        if kept:
            row["metadata"] = kept
    return row


def _get(item: Any, names: Iterable[str]) -> Any:
    """The first of these keys or attributes that says something."""
    for name in names:
        found = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
        if found is not None and not callable(found):
            return found
    return None
