"""Open RAG Eval: its CSV of passages, one row each. passage_id counts the passages of a query, and is no id."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from ragaudit.importers.cells import id_text
from ragaudit.importers.contexts import set_context
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import Placed, objects
from ragaudit.importers.report import ImportReport


def sniff(sample: Sample) -> str | None:
    """By the column names."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    return "rows with query_run and passage_id" if {"query_run", "passage_id", "passage"} <= set(first) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace for each run of a query; its rows stand together, as the connector writes them."""
    for number, (_, group) in enumerate(groupby(objects(path, report), key=_run), start=1):
        placed = list(group)
        place, first = placed[0]
        question = first.get("query")
        if not isinstance(question, str) or not question.strip():
            report.skip("no query as text", place)
            continue
        yield Table.TRACES, _trace(placed, question, number, place, options, report)


def _run(placed: Placed) -> tuple[Any, ...]:
    return tuple(placed[1].get(name) for name in ("query_id", "query", "query_run"))


def _trace(
    placed: list[Placed], question: str, number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    first = placed[0][1]
    query = id_text(first.get("query_id")) or line_id(number, question)
    run = str(first.get("query_run") or "1")
    draft = Draft(query if run == "1" else f"{query}#run-{run}", question)
    if run != "1":
        report.note("a query was run several times: each run is a trace, named QUERY#run-N", place)
    report.note("passage_id counts the passages of each query: not taken for an id", place)
    passages = [row["passage"] for _, row in placed if isinstance(row.get("passage"), str) and row["passage"].strip()]
    set_context(draft, passages, report, place, options.texts)
    answer = next((row["generated_answer"] for _, row in placed if row.get("generated_answer")), None)
    draft.observed("answer", None if answer is None else {"text": answer})
    draft.settle(options.k)
    return draft.row()


FORMAT = Format(
    name="open-rag-eval",
    title="Open RAG Eval",
    reads="the CSV of a connector, one passage a row",
    sniff=sniff,
    read=read,
    logs={
        "gold": "Open RAG Eval needs no gold, an audit does: pass qrels (--qrels), or let the judge find evidence",
        "arms": "the CSV keeps the final context only: log the lists of each arm with ragaudit.record",
        "user_acl": "the CSV has no column for it: log traces with ragaudit.record",
    },
)
