"""Ragas: evaluation datasets and results, from 0.1 to 0.4, as JSONL, JSON, CSV or Parquet."""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import records
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport

_OLD = {"question": "user_input", "contexts": "retrieved_contexts", "answer": "response", "ground_truth": "reference"}
"""Names of 0.1 -> names since 0.2."""


def sniff(sample: Sample) -> str | None:
    """By the column names."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    if "user_input" in first:
        return "records with user_input"
    return "records with question and contexts" if {"question", "contexts"} <= set(first) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a sample. The contexts are what the generator got, in the order of the list."""
    for number, (place, value) in enumerate(records(path, report), start=1):
        if not isinstance(value, dict):
            report.skip("the record is no object", place)
            continue
        named = ((str(key), item) for key, item in value.items() if item is not None)
        record: dict[str, Any] = {_OLD.get(key, key): item for key, item in named}
        question = record.get("user_input")
        if not isinstance(question, str):
            report.skip("no user_input as text (a conversation is not read)", place)
            continue
        yield Table.TRACES, _trace(record, question, number, place, options, report)


def _trace(
    record: dict[str, Any], question: str, number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    draft = Draft(f"{number}-{hashlib.sha256(question.encode()).hexdigest()[:8]}", question)
    ids, texts = listed(record.get("retrieved_context_ids")), listed(record.get("retrieved_contexts"))
    if texts is not None and ids is not None and len(ids) == len(texts):
        documents: list[Any] = [{"id": str(i), "text": str(t)} for i, t in zip(ids, texts, strict=True)]
    else:
        documents = [{"id": str(i)} for i in ids] if ids is not None else [str(t) for t in texts or ()]
    if ids is not None or texts is not None:
        hits = hits_of(documents, report, place, texts=options.texts)
        draft.observed("final_context_ids", [hit["id"] for hit in hits])
        draft.observed("context_texts", {hit["id"]: hit["text"] for hit in hits if "text" in hit} or None)
    set_gold(
        draft,
        listed(record.get("reference_context_ids")),
        listed(record.get("reference_contexts")),
        options.texts,
        report,
        place,
    )
    draft.observed("reference", record.get("reference"))
    if isinstance(record.get("response"), str):
        draft.observed("answer", {"text": record["response"]})
    draft.settle(options.k)
    return draft.row()


def listed(value: Any) -> list[Any] | None:
    """A list, also one that CSV holds as Python wrote it; None = there is none."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)  # reads literals only, and runs nothing
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return list(value) if isinstance(value, list | tuple) else None


FORMAT = Format(
    name="ragas",
    title="Ragas",
    reads="an EvaluationDataset or results as JSONL, JSON, CSV or Parquet",
    sniff=sniff,
    read=read,
    logs={
        "user_acl": "add a column user_acl, and import with: ragaudit import table --map user_acl=user_acl",
        "arms": "Ragas keeps the final context only: log the lists of each arm with ragaudit.record",
    },
)
