"""RAGChecker: its inputs and its outputs. It knows reference answers, and no gold passages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.cells import id_text, listed
from ragaudit.importers.contexts import are_counters, set_context
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import document
from ragaudit.importers.report import ImportReport


def sniff(sample: Sample) -> str | None:
    """By the names of a result."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    results = first.get("results")
    inner = results[0] if isinstance(results, list) and results else None
    return "results with retrieved_context" if isinstance(inner, dict) and "retrieved_context" in inner else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a result.

    Raises:
        InputError: It is no file of RAGChecker.
    """
    whole = document(path)
    results = whole.get("results") if isinstance(whole, dict) else None
    if not isinstance(results, list):
        raise InputError(f"{path.name}: holds no list under `results`. Check the format.")
    counters = are_counters(
        (passage.get("doc_id"), passage.get("text"))
        for result in results
        if isinstance(result, dict)
        for passage in listed(result.get("retrieved_context")) or ()
        if isinstance(passage, dict)
    )
    for number, result in enumerate(results, start=1):
        place = f"{path.name}: results[{number - 1}]"
        question = result.get("query") if isinstance(result, dict) else None
        if not isinstance(question, str) or not question.strip():
            report.skip("no query as text", place)
            continue
        yield Table.TRACES, _trace(result, question, number, place, counters, options, report)


def _trace(
    result: dict[str, Any],
    question: str,
    number: int,
    place: str,
    counters: bool,
    options: Options,
    report: ImportReport,
) -> dict[str, Any]:
    draft = Draft(id_text(result.get("query_id")) or line_id(number, question), question)
    passages = result.get("retrieved_context")
    if isinstance(passages, list):
        kept = [each for each in passages if isinstance(each, dict)]
        if counters:
            report.note("doc_id names different texts in different queries: a counter, not taken for an id", place)
            kept = [{"text": each.get("text")} for each in kept]
        set_context(draft, kept, report, place, options.texts)
    if isinstance(result.get("gt_answer"), str):
        draft.observed("reference", result["gt_answer"])
    if isinstance(result.get("response"), str):
        draft.observed("answer", {"text": result["response"]})
    draft.settle(options.k)
    return draft.row()


FORMAT = Format(
    name="ragchecker",
    title="RAGChecker",
    reads="checking_inputs.json or checking_outputs.json",
    sniff=sniff,
    read=read,
    logs={
        "gold": "RAGChecker keeps no gold passages: pass qrels to the audit (--qrels), or let the judge find evidence",
        "arms": "RAGChecker keeps the final context only: log the lists of each arm with ragaudit.record",
        "user_acl": "RAGChecker has no field for it: log traces with ragaudit.record",
    },
)
