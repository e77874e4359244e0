"""Home-made logs: any CSV, JSONL, JSON or Parquet whose columns the user names (`--map query_text=question`)."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import records
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import documents_in, hits_of
from ragaudit.importers.ragas import listed
from ragaudit.importers.report import ImportReport

LISTS = ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank")
IDS = ("final_context_ids", "prompt_ids")
TEXTS = ("query_text", "query_id", "index_revision", "embedding_model", "session_id", "timestamp", "reference", "notes")
OTHERS = ("k_final", "user_acl", "filters_applied", "query_rewrite", "slices", "prompt_tokens", "answerable")
OWN = ("gold_ids", "gold_texts", "final_context", "answer")
FIELDS = (*TEXTS, *OTHERS, *LISTS, *IDS, *OWN)
"""What `--map` may name, beside `arms.NAME`. `gold_texts` are looked up with `--chunks`; `final_context` is a list of
documents (ids, texts or both), `answer` the text of the answer."""


def sniff(sample: Sample) -> str | None:
    """Records whose columns are fields of ours."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    return "records with query_text" if isinstance(first.get("query_text"), str) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a record.

    Raises:
        ConfigError: `--map` names a field that there is none of.
    """
    columns = _columns(options.columns)
    for number, (place, value) in enumerate(records(path, report), start=1):
        if not isinstance(value, Mapping):
            report.skip("the record is no object", place)
            continue
        row = {field: found for field, column in columns.items() if (found := at(value, column)) not in (None, "")}
        question = row.get("query_text")
        if not isinstance(question, str) or not question.strip():
            report.skip(f"no text in the column {columns['query_text']} (query_text)", place)
            continue
        yield Table.TRACES, _trace(row, question, number, place, options, report)


def at(record: Mapping[str, Any], column: str) -> Any:
    """The value of a column; `meta.user.id` looks into objects when no column has that whole name."""
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def listing(value: Any) -> list[Any] | None:
    """A list out of a cell: JSON, Python's own writing, or texts joined by `|`; a single text is a list of one."""
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return None if value is None or isinstance(value, Mapping) else [value]
    text = value.strip()
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            found = listed(text)
        if isinstance(found, list):
            return found
    return [part.strip() for part in text.split("|") if part.strip()]


def _columns(given: Mapping[str, str]) -> dict[str, str]:
    for field in given:
        if field not in FIELDS and not field.startswith("arms."):
            raise ConfigError(f"--map {field}: no such field. Use arms.NAME, or one of: {', '.join(FIELDS)}.")
    return {field: field for field in FIELDS} | dict(given)


def _trace(
    row: dict[str, Any], question: str, number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    fallback = f"{number}-{hashlib.sha256(question.encode()).hexdigest()[:8]}"
    draft = Draft(str(row["query_id"]) if "query_id" in row else fallback, question)
    for name in TEXTS[2:]:
        draft.observed(name, str(row[name]) if name in row else None)
    draft.observed("user_acl", listing(row.get("user_acl")))
    for name in OTHERS:
        if name != "user_acl" and name in row:
            draft.observed(name, _plain(row[name]))
    arms = {
        field.removeprefix("arms."): _hits(value, place, options, report)
        for field, value in row.items()
        if field.startswith("arms.")
    }
    draft.observed("arms", {name: hits for name, hits in arms.items() if hits is not None} or None)
    for name in LISTS:
        draft.observed(name, _hits(row.get(name), place, options, report))
    for name in IDS:
        ids = listing(row.get(name))
        draft.observed(name, None if ids is None else [str(each) for each in ids])
    _final_context(draft, row, place, options, report)
    set_gold(draft, listing(row.get("gold_ids")), listing(row.get("gold_texts")), options.texts, report, place)
    if isinstance(answer := row.get("answer"), str):
        draft.observed("answer", {"text": answer})
    draft.settle(options.k)
    return draft.row()


def _final_context(draft: Draft, row: Mapping[str, Any], place: str, options: Options, report: ImportReport) -> None:
    hits = _hits(row.get("final_context"), place, options, report)
    if hits is not None:
        draft.observed("final_context_ids", [hit["id"] for hit in hits])
        draft.observed("context_texts", {hit["id"]: hit["text"] for hit in hits if "text" in hit} or None)


def _hits(value: Any, place: str, options: Options, report: ImportReport) -> list[dict[str, Any]] | None:
    """Hits out of a cell: documents as objects, [id, score] pairs, or ids."""
    if value is None:
        return None
    items = documents_in(value) if not isinstance(value, list) else value
    if items is None:
        items = listing(value) or []
    documents = [item if isinstance(item, Mapping) else _bare(item) for item in items]
    return hits_of(documents, report, place, texts=options.texts)


def _bare(item: Any) -> dict[str, Any]:
    """A bare value: a text with spaces in it is a text, everything else an id; [id, score] is both."""
    if isinstance(item, list | tuple) and len(item) == 2:
        return {"id": str(item[0]), "score": item[1]}
    return {"text": item} if isinstance(item, str) and " " in item.strip() else {"id": str(item)}


def _plain(value: Any) -> Any:
    """A cell of CSV that holds JSON, as the value it stands for; everything else as it is."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


FORMAT = Format(
    name="table",
    title="Your own log",
    reads="CSV, TSV, JSONL, JSON or Parquet with one query a record; --map FIELD=COLUMN names the columns",
    sniff=sniff,
    read=read,
)
