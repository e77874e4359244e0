"""What of a row may be written: all texts, their hashes, or none; and what the user's own hook makes of them.

Runs in the writer's thread. In the modes `hash` and `none` the question, the answer, the reference and the rewrites are
left out too, and of metadata only the fields that a filter of the query names are kept.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ragaudit.model.texts import content_hash
from ragaudit.record.guard import Faults, shielded

MODES = ("full", "hash", "none")
Redact = Callable[[str], str]

_LISTS = ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank")
_TEXTS = ("reference", "notes")


def withheld(row: dict[str, Any], mode: str, redact: Redact | None, faults: Faults) -> dict[str, Any]:
    """The row as it may be written; the row itself is changed. A text that the hook fails on is left out."""
    if mode == "full":
        if redact is not None:
            _each_text(row, lambda text: _redacted(text, redact, faults))
        return row
    if mode == "hash":
        packed = packed_texts(row)
        if packed:
            row["context_hashes"] = {chunk_id: content_hash(text) for chunk_id, text in packed.items()}
    fields = _filtered(row)
    kept = [(hit, {name: v for name, v in hit.pop("metadata", {}).items() if name in fields}) for hit in _hits(row)]
    _each_text(row, lambda text: None)
    for hit, metadata in kept:
        if metadata:
            hit["metadata"] = metadata
    row.pop("query_rewrite", None)
    row.pop("conversation", None)
    return row


def packed_texts(row: dict[str, Any]) -> dict[str, str]:
    """Id -> text of the packed chunks: as packed, else as a list had it."""
    texts = {hit["id"]: hit["text"] for hit in _hits(row) if "text" in hit} | row.get("context_texts", {})
    return {chunk_id: texts[chunk_id] for chunk_id in row.get("final_context_ids", ()) if chunk_id in texts}


def _redacted(text: str, redact: Redact, faults: Faults) -> str | None:
    found = shielded(faults, "redact", lambda: redact(text))
    if found is not None and not isinstance(found, str):
        faults.add("redact", "the hook returned no text")
        return None
    return found


def _each_text(row: dict[str, Any], change: Callable[[str], str | None]) -> None:
    """Apply to every text of a row; None removes it, of the mandatory `query_text` it leaves the empty text."""
    row["query_text"] = change(row["query_text"]) or ""
    holders = [*((row, name) for name in _TEXTS), *((hit, "text") for hit in _hits(row))]
    holders += [(row["answer"], "text")] if isinstance(row.get("answer"), dict) else []
    holders += [(state, name) for state in (row.get("arm_status") or {}).values() for name in ("query_text", "error")]
    holders += [(gold, name) for gold in row.get("gold") or () for name in ("span", "note")]
    holders += [(row["context_texts"], chunk_id) for chunk_id in list(row.get("context_texts") or {})]
    for holder, name in holders:
        if isinstance(holder.get(name), str):
            _put(holder, name, change(holder[name]))
    for name in ("query_rewrite", "conversation"):
        if row.get(name) is not None:
            _put(row, name, _changed(row[name], change))
    for hit in _hits(row):
        if "metadata" in hit:
            hit["metadata"] = _changed(hit["metadata"], change)
    for probe in row.get("probes") or ():
        for name in ("value", "note") if isinstance(probe, dict) else ():
            if isinstance(probe.get(name), str | list):
                _put(probe, name, _changed(probe[name], change))
    if row.get("context_texts") == {}:
        del row["context_texts"]


def _changed(value: Any, change: Callable[[str], str | None]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: found for key, item in value.items() if (found := _changed(item, change)) is not None}
    if isinstance(value, list):
        return [found for item in value if (found := _changed(item, change)) is not None]
    return value


def _put(holder: dict[str, Any], name: str, text: Any) -> None:
    if text is None:
        del holder[name]
    else:
        holder[name] = text


def _hits(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for hits in (row.get("arms") or {}).values():
        yield from hits
    for name in _LISTS:
        value = row.get(name)
        if isinstance(value, dict):
            for hits in value.values():
                yield from hits
        else:
            yield from value or ()


def _filtered(row: dict[str, Any]) -> set[str]:
    filters = [row.get("filters_applied"), *(s.get("filter") for s in (row.get("arm_status") or {}).values())]
    return {name for one in filters if isinstance(one, dict) for name in one}
