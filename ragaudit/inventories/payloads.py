"""A row of a store -> a row of chunks.jsonl: who wrote it, where its text, source, ACL and own id stand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ragaudit.inventories.plain import plain, writable
from ragaudit.inventories.records import Record
from ragaudit.model.texts import content_hash

TEXTS = ("text", "content", "page_content", "document", "chunk_text", "body", "passage")
SOURCES = ("source_id", "document_id", "doc_id", "ref_doc_id", "source", "file_path", "file_name", "url")
"""Where an id of the source document is looked for, in this order, when no field is named."""
OWN_ID = "chunk_id"
ACL = "acl"

Note = Callable[[str, str], None]
"""Counts something worth knowing: what, and the key of the row."""


@dataclass(frozen=True)
class Fields:
    """Which field of the payload holds what. None = look in the usual places. A dot goes into an object."""

    text: str | None = None
    source: str | None = None
    acl: str | None = None
    id: str | None = None
    namespace: str | None = None
    embedding_model: str | None = None
    """The model of rows that name none."""


@dataclass(frozen=True)
class _Unwrapped:
    """The payload without the wrapping of the framework that wrote it."""

    metadata: dict[str, Any]
    text: str | None = None
    own_id: str | None = None
    source: str | None = None
    parent: str | None = None
    is_parent: bool = False
    node: str | None = None
    """The framework's id of the row."""


def chunk_row(record: Record, fields: Fields, note: Note, *, with_text: bool) -> dict[str, Any]:
    """The row for chunks.jsonl. Without a text it has no `text`, and a hash only where the text was there to hash."""
    inside = _unwrapped(record, note)
    metadata = inside.metadata
    text = _text(record, inside, metadata, fields)
    own = _own_id(record, inside, metadata, fields)
    if fields.id is not None and own is None:
        note(f"without {fields.id!r}: named by the store's id", record.key)
    chunk_id = own or record.key
    model = metadata.get("embedding_model")
    held = [place for place in record.arms.values() if place is not None]
    row: dict[str, Any] = {
        "chunk_id": chunk_id,
        "source_id": _source(inside, metadata, fields),
        "parent_id": inside.parent,
        "kind": "parent" if inside.is_parent else None,
        "aliases": _aliases(record, inside, chunk_id) or None,
        "text": text if with_text else None,
        "content_hash": _logged_hash(metadata) if text is None else content_hash(text),
        "metadata": metadata or None,
        "acl": _acl(metadata, fields, note, record.key),
        "embedding_model": model if isinstance(model, str) else fields.embedding_model if held else None,
        "dim": next((place.dim for place in held if place.dim is not None), None),
        "norm": next((place.norm for place in held if place.norm is not None), None),
        "in": {arm: place is not None for arm, place in record.arms.items()} or None,
        "indexed_at": _moment(metadata),
        "namespace": _namespace(record, metadata, fields),
        "language": metadata.get("language") if isinstance(metadata.get("language"), str) else None,
    }
    if text is None:
        note("rows without a text: spans cannot be looked for in them", record.key)
    return {name: value for name, value in row.items() if value is not None}


def _unwrapped(record: Record, note: Note) -> _Unwrapped:
    payload: dict[str, Any] = plain(record.payload)
    if isinstance(payload.get("_node_content"), (str, dict)):
        return _llamaindex(payload, record.key, note)
    if isinstance(payload.get("metadata"), dict) and set(payload) <= {"metadata", *TEXTS}:
        text = next((payload[name] for name in TEXTS if isinstance(payload.get(name), str)), None)
        return _Unwrapped(payload["metadata"], text)
    if isinstance(payload.get("meta"), dict) and "content" in payload:
        own = payload.get("id")
        content = payload["content"]
        return _Unwrapped(
            payload["meta"], content if isinstance(content, str) else None, None if own is None else str(own)
        )
    return _Unwrapped(payload)


def _llamaindex(payload: dict[str, Any], key: str, note: Note) -> _Unwrapped:
    node = payload.pop("_node_content")
    payload.pop("_node_type", None)
    if isinstance(node, str):
        try:
            node = msgspec.json.decode(node)
        except (msgspec.DecodeError, RecursionError):
            node = None
    if not isinstance(node, dict):
        note("rows whose _node_content is no JSON: read without it", key)
        return _Unwrapped(payload)
    return node_unwrapped(node, payload)


def node_unwrapped(node: Mapping[str, Any], beside: Mapping[str, Any]) -> _Unwrapped:
    """A node of LlamaIndex. Its text is prompted and embedded with its metadata before it; here it stands alone."""
    relations = node.get("relationships") if isinstance(node.get("relationships"), dict) else {}
    assert isinstance(relations, dict)
    mine = node.get("metadata")
    metadata = {**{k: v for k, v in beside.items() if k not in _REF_DOC}, **(mine if isinstance(mine, dict) else {})}
    text = node.get("text")
    if not text and isinstance(node.get("text_resource"), dict):
        text = node["text_resource"].get("text")
    source = _related(relations.get(_SOURCE)) or next((str(beside[n]) for n in _REF_DOC if beside.get(n)), None)
    return _Unwrapped(
        plain(metadata),
        writable(text) if isinstance(text, str) and text else None,
        source=source,
        parent=_related(relations.get(_PARENT)),
        is_parent=bool(relations.get(_CHILD)),
        node=_named(node.get("id_")),
    )


_REF_DOC = ("ref_doc_id", "doc_id", "document_id")
_SOURCE, _PARENT, _CHILD = "1", "4", "5"


def _related(relation: Any) -> str | None:
    found = relation.get("node_id") if isinstance(relation, dict) else None
    return None if found is None else str(found)


def _text(record: Record, inside: _Unwrapped, metadata: dict[str, Any], fields: Fields) -> str | None:
    """The text, and out of the metadata where it stood there."""
    if fields.text is not None:
        found = _at(metadata, fields.text)
        metadata.pop(fields.text, None)
        return found if isinstance(found, str) else None
    if record.text is not None:
        return writable(record.text)
    if inside.text is not None:
        return inside.text
    name = next((name for name in TEXTS if isinstance(metadata.get(name), str)), None)
    return None if name is None else str(metadata.pop(name))


def _aliases(record: Record, inside: _Unwrapped, chunk_id: str) -> list[str]:
    ids = dict.fromkeys(each for each in (record.key, record.own_id, inside.node) if each is not None)
    return [each for each in ids if each != chunk_id]


def _logged_hash(metadata: Mapping[str, Any]) -> str | None:
    """A hash that stands in for the text; hashes made in another way cannot be compared."""
    found = metadata.get("content_hash")
    return found if isinstance(found, str) and found.startswith("sha256:") else None


def _own_id(record: Record, inside: _Unwrapped, metadata: Mapping[str, Any], fields: Fields) -> str | None:
    if fields.id is not None:
        return _named(_at(metadata, fields.id))
    return inside.own_id or _named(metadata.get(OWN_ID)) or record.own_id


def _source(inside: _Unwrapped, metadata: Mapping[str, Any], fields: Fields) -> str | None:
    if fields.source is not None:
        return _named(_at(metadata, fields.source))
    return _named(metadata.get(SOURCES[0])) or inside.source or next(filter(None, map(_named, _values(metadata))), None)


def _values(metadata: Mapping[str, Any]) -> list[Any]:
    return [metadata.get(name) for name in SOURCES]


def _named(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else None


def _acl(metadata: Mapping[str, Any], fields: Fields, note: Note, key: str) -> list[str] | None:
    found = _at(metadata, fields.acl or ACL)
    if isinstance(found, str):
        found, is_split = _listed(found)
        if is_split:
            note("ACLs that are one text: read as a list", key)
    if isinstance(found, list):
        return [str(each) for each in found if each is not None]
    if found is not None:
        note("ACLs that are no list of names: left out. Name the field that is, with --acl-field", key)
    elif fields.acl is not None:
        note(f"without {fields.acl!r}: nothing says who may read them", key)
    return None


def _listed(text: str) -> tuple[list[Any], bool]:
    """An ACL of stores that hold no lists: JSON, or names with commas; and whether it had to be taken apart."""
    if text.startswith("["):
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return [text], False
        if isinstance(found, list):
            return found, True
    return [name for part in text.split(",") if (name := part.strip())], "," in text


def _namespace(record: Record, metadata: Mapping[str, Any], fields: Fields) -> str | None:
    return record.namespace if fields.namespace is None else _named(_at(metadata, fields.namespace))


def _moment(metadata: Mapping[str, Any]) -> str | None:
    found = metadata.get("indexed_at")
    return found if isinstance(found, str) else None


def _at(metadata: Mapping[str, Any], name: str) -> Any:
    """The value of a field: of its whole name, else along its dots."""
    if name in metadata:
        return metadata[name]
    value: Any = metadata
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
