"""Documents as tools log them -> hits: LangChain, LlamaIndex, Haystack, plain objects, bare texts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ragaudit.importers.cells import id_text
from ragaudit.importers.matching import PART, Texts, text_id
from ragaudit.importers.report import ImportReport

TEXT_KEYS = ("page_content", "pageContent", "content", "text", "document", "chunk", "passage", "body", "contents")
ID_KEYS = ("id", "id_", "chunk_id", "doc_id", "document_id", "node_id", "_id")
META_ID_KEYS = ("chunk_id", "_id", "doc_id", "document_id", "id")
SCORE_KEYS = ("score", "relevance_score", "similarity", "similarity_score", "_score")
META_SCORE_KEYS = ("relevance_score", "score", "_distance")
LIST_KEYS = (
    "documents",
    "docs",
    "results",
    "matches",
    "chunks",
    "hits",
    "nodes",
    "source_nodes",
    "contexts",
    "passages",
    "output",
    "data",
)
META_KEYS = ("metadata", "meta", "payload", "extra_info")
SOURCE_KEYS = ("source_id", "ref_doc_id", "doc_uri")
HASHED = "ids of hits: none was logged, the hash of the text stands for it"
"""The note for a hit that is known by its text alone."""


def documents_in(value: Any) -> list[Any] | None:
    """The list of documents in an output: the value itself, or the one under a known key; None = there is none.

    A JSON text is read first.
    """
    found = documents_at(value)
    return None if found is None else found[1]


def documents_at(value: Any, deepest: int = 4) -> tuple[str, list[Any]] | None:
    """The same with the keys that lead to the list, as `results.matches`; empty = the value itself."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, list):
        return ("", value) if all(isinstance(item, dict | str) or _is_pair(item) for item in value) else None
    if isinstance(value, Mapping) and deepest > 0:
        for key in LIST_KEYS:
            if key in value and (found := documents_at(value[key], deepest - 1)) is not None:
                return f"{key}.{found[0]}".rstrip("."), found[1]
    return None


def hits_of(
    documents: Iterable[Any], report: ImportReport, place: str, *, texts: Texts | None = None
) -> list[dict[str, Any]]:
    """Hits as DATA.md has them, best first, one for each document.

    An id is looked for at the document, then in its metadata; a text without one is looked up in `texts`, else it gets
    its content hash as id. Which of these held is noted in the report. One that has neither is left out, and keeps its
    rank. A score is kept as logged.
    """
    made = (_hit(document, rank, report, place, texts) for rank, document in enumerate(documents, start=1))
    return [hit for hit in made if hit is not None]


def _hit(document: Any, rank: int, report: ImportReport, place: str, texts: Texts | None) -> dict[str, Any] | None:
    score: Any = None
    if _is_pair(document):
        document, score = document
    if isinstance(document, str):
        document = {"text": document}
    elif not isinstance(document, dict):
        document = {"id": document}  # a bare number; what can be no id is left out below
    inner = document.get("node") or document.get("document") or document.get("kwargs")
    if isinstance(inner, dict):  # NodeWithScore, a scored wrapper, a serialised constructor
        score = document.get("score", score)
        document = inner
    meta: dict[str, Any] = _of_type(document, META_KEYS, dict) or {}
    text: str | None = _of_type(document, TEXT_KEYS, str)
    if score is None:
        score = _first(document, SCORE_KEYS)
    if score is None and meta:
        score = _first(meta, META_SCORE_KEYS)
    chunk_id, how = _id(document, meta, text, texts)
    report.note(how, place)
    if chunk_id is None:
        return None
    hit: dict[str, Any] = {"id": chunk_id, "rank": rank}
    if isinstance(score, int | float) and not isinstance(score, bool):
        hit["score"] = float(score)
    if text is not None:
        hit["text"] = text
    source = _first(document, SOURCE_KEYS) or _first(meta, SOURCE_KEYS) or _llama_source(document)
    if source is not None:
        hit["source_id"] = str(source)
    if meta:
        hit["metadata"] = {key: value for key, value in meta.items() if value is not None}
    return hit


def _id(
    document: Mapping[str, Any], meta: Mapping[str, Any], text: str | None, texts: Texts | None
) -> tuple[str | None, str]:
    if (found := _first(document, ID_KEYS)) is not None:
        return _checked(found, "ids of hits: the document's own id")
    for key in META_ID_KEYS:
        if meta.get(key) is not None:
            return _checked(meta[key], f"ids of hits: metadata.{key}")
    if text is not None and texts is not None and (match := texts.find(text)) is not None:
        if match.method != PART or len(match.ids) == 1:
            return match.ids[0], f"ids of hits: looked up by text in the inventory ({match.method})"
        return text_id(text), "ids of hits: the text is part of several chunks, its hash stands for it"
    if text is not None:
        return text_id(text), HASHED
    return None, "hits without id and text: left out"


def _checked(found: Any, how: str) -> tuple[str | None, str]:
    key = id_text(found)
    return (key, how) if key is not None else (None, "hits whose id is no text and no whole number: left out")


def _first(values: Mapping[str, Any], keys: Iterable[str]) -> Any:
    for key in keys:
        if key in values and (found := values[key]) is not None and found != "":
            return found
    return None


def _of_type(values: Mapping[str, Any], keys: Iterable[str], kind: type) -> Any:
    for key in keys:
        if key in values and isinstance(values[key], kind):
            return values[key]
    return None


def _llama_source(document: Mapping[str, Any]) -> Any:
    relations = document.get("relationships")
    source = relations.get("1") if isinstance(relations, dict) else None
    return source.get("node_id") if isinstance(source, dict) else None


def _is_pair(item: Any) -> bool:
    """`[document, score]`, as vector stores give it."""
    return (
        isinstance(item, list | tuple)
        and len(item) == 2
        and isinstance(item[0], dict | str)
        and isinstance(item[1], int | float)
    )
