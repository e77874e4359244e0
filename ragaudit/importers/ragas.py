"""Ragas: evaluation datasets and results, from 0.1 to 0.4, as JSONL, JSON, CSV or Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaudit.importers.cells import id_text, listed
from ragaudit.importers.contexts import documents_of, set_context
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import objects
from ragaudit.importers.labels import set_gold
from ragaudit.importers.report import ImportReport

_OLD = {"question": "user_input", "contexts": "retrieved_contexts", "answer": "response", "ground_truth": "reference"}
"""Names of 0.1 -> names since 0.2."""


def sniff(sample: Sample) -> str | None:
    """By the column names."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    if "user_input" in first:
        return "records with user_input"
    is_old = {"question", "contexts"} <= set(first) and {"answer", "ground_truth", "ground_truths"} & set(first)
    return "records with question, contexts and answer" if is_old else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a sample. The contexts are what the generator got, in the order of the list."""
    for number, (place, value) in enumerate(objects(path, report), start=1):
        named = ((str(key), item) for key, item in value.items() if item is not None)
        record: dict[str, Any] = {_OLD.get(key, key): item for key, item in named}
        question = record.get("user_input")
        if isinstance(question, str) and any(isinstance(turn, dict) for turn in listed(question) or ()):
            question = None  # a cell of CSV with a conversation in it
        if not isinstance(question, str) or not question.strip():
            report.skip("no user_input as text (a conversation, or annotations of a metric, is no sample)", place)
            continue
        yield Table.TRACES, _trace(record, question, number, place, options, report)


def _trace(
    record: dict[str, Any], question: str, number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    draft = Draft(id_text(record.get("query_id")) or line_id(number, question), question)
    ids, texts = listed(record.get("retrieved_context_ids")), listed(record.get("retrieved_contexts"))
    set_context(draft, documents_of(ids, texts, report, place), report, place, options.texts)
    set_gold(
        draft,
        listed(record.get("reference_context_ids")),
        listed(record.get("reference_contexts")),
        options.texts,
        report,
        place,
    )
    draft.observed("reference", _reference(record))
    if isinstance(record.get("response"), str) and record["response"]:
        draft.observed("answer", {"text": record["response"]})
    draft.settle(options.k)
    return draft.row()


def _reference(record: dict[str, Any]) -> str | None:
    """The reference answer; 0.1 once had a list of them, of which the first is kept."""
    found = record.get("reference")
    if isinstance(found, str) and found:
        return found
    several = listed(record.get("ground_truths"))
    return str(several[0]) if several else None


FORMAT = Format(
    name="ragas",
    title="Ragas",
    reads="an EvaluationDataset or results as JSONL, JSON, CSV or Parquet",
    sniff=sniff,
    read=read,
    logs={
        "user_acl": "add a column user_acl, and import with: ragaudit import table --map user_acl=user_acl",
        "arms": "Ragas keeps the final context only: log the lists of each arm with ragaudit.record",
        "gold": "fill reference_context_ids, or pass --chunks to find the ids of reference_contexts",
    },
)
