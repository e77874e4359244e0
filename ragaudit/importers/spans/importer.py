"""`spans`: span files of OpenTelemetry, in the dialects of OpenInference, GenAI, OpenLLMetry, Haystack and MLflow."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import Placed, first_records, records
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import stages
from ragaudit.importers.spans.assembly import rows_of
from ragaudit.importers.spans.context import Whole
from ragaudit.importers.spans.decoding import holds_spans, spans_in
from ragaudit.importers.spans.dialects import step_of
from ragaudit.importers.spans.feedback import feedback_of
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.spool import Spool
from ragaudit.importers.spans.step import Step


def sniff(sample: Sample) -> str | None:
    """By the envelope: OTLP requests, or an SDK's spans; of a folder, by its first file."""
    if sample.path.is_dir():
        first = next(iter(_files(sample.path)), None)
        why = None if first is None else _why(first_records(first, 1))
        return None if why is None else f"a folder of files with {why}"
    return _why(sample.values)


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace for each trace id, or several where a trace holds several retrievals.

    The files of a folder are read as one: a Collector that starts a new file cuts through queries.

    Raises:
        ConfigError: `--stage` names no list.
        InputError: The file cannot be read.
    """
    files = _files(path) if path.is_dir() else [path]
    found = chain.from_iterable(spans_of(records(file, report), report) for file in files)
    yield from rows_of_spans(found, path.name, options, report)


def _files(folder: Path) -> list[Path]:
    """The files of a folder that may hold spans, by name."""
    return sorted(each for each in folder.iterdir() if each.is_file() and {".json", ".jsonl"} & set(each.suffixes))


def _why(values: Iterable[Any]) -> str | None:
    return next((why for value in values if (why := holds_spans(value)) is not None), None)


def spans_of(found: Iterable[Placed], report: ImportReport) -> Iterator[tuple[str, Span]]:
    """The spans of records, each with its place."""
    for place, record in found:
        for span in spans_in(record, report, place):
            yield place, span


def rows_of_spans(
    found: Iterable[tuple[str, Span]], name: str, options: Options, report: ImportReport
) -> Iterator[Row]:
    """The rows of spans that may come in any order.

    Raises:
        ConfigError: `--stage` names no list.
    """
    stages.check(options.stages)
    unmatched = set(options.stages)
    with Spool() as spool:
        fill(spool, found, report)
        for spans in spool.traces():
            whole = Whole.of(spans, steps_of(spans))
            unmatched -= {n for step in whole.steps for n in (step.span.name, step.name, _arm(step))}
            yield from rows_of_trace(whole, spool, f"{name}: trace {whole.trace_id}", options, report)
    for stage in sorted(unmatched):
        report.note(f"--stage {stage}: no span has this name", name)


def fill(spool: Spool, found: Iterable[tuple[str, Span]], report: ImportReport) -> None:
    """Take the spans in; one that came before is counted."""
    for place, span in found:
        try:
            if not spool.add(span):
                report.note("spans that came twice: counted once, by span id", place)
        except (OverflowError, RecursionError, UnicodeEncodeError):
            report.skip("a span holds a value that no span can hold", place)


def rows_of_trace(
    whole: Whole,
    spool: Spool,
    place: str,
    options: Options,
    report: ImportReport,
    given: Mapping[str, Any] | None = None,
) -> Iterator[Row]:
    """The rows of one trace, and its feedback; `given` holds fields that stand outside the spans."""
    for row in rows_of(whole, options, report, place, given):
        if not spool.is_new(row["query_id"]):
            report.note("a query id came again: the trace's id is added to it", place)
            row["query_id"] = f"{row['query_id']}~{whole.trace_id[:12]}"
            if not spool.is_new(row["query_id"]):
                report.skip("a trace that came twice", place)
                continue
        yield Table.TRACES, row
        for event in feedback_of(whole, row["query_id"], row.get("session_id"), report, place):
            yield Table.FEEDBACK, event


def steps_of(spans: Iterable[Span]) -> list[Step]:
    """The steps of those spans that some dialect knows."""
    return [step for span in spans if (step := step_of(span)) is not None]


def _arm(step: Step) -> str:
    return str(step.metadata.get("arm"))


METADATA = (
    'put it into the metadata of the root span: with using_attributes(metadata={{"{0}": ...}}) of openinference, '
    'or span.set_attribute("metadata", json.dumps({{"{0}": ...}}))'
)
LOGS = {
    "user_acl": METADATA.format("user_acl"),
    "index_revision": METADATA.format("index_revision"),
    "k_final": METADATA.format("k_final"),
    "embedding_model": METADATA.format("embedding_model"),
    "filters_applied": 'span.set_attribute("metadata", json.dumps({"filters": {...}})) on each retriever span',
    "fused": 'span.set_attribute("metadata", json.dumps({"stage": "fused"})) on the span that merges the arms',
    "rerank_input": "a RERANKER span with reranker.input_documents; a LangChain compressor writes none",
    "after_rerank": "a RERANKER span, or --stage NAME=after_rerank where the span has another kind",
    "arms": "a RETRIEVER span for each arm, inside the span of the query",
    "answer": 'span.set_attribute("output.value", answer) on the root span',
    "session_id": 'span.set_attribute("session.id", session_id)',
    "gold": "spans hold none: pass labels to the audit with --qrels qrels.tsv",
    "reference": "spans hold none: put it into gold rows of your own, by query_id",
}

FORMAT = Format(
    name="spans",
    title="OpenTelemetry spans",
    reads="OTLP JSON(L) of a Collector's file exporter, or an SDK's spans: OpenInference, GenAI, OpenLLMetry, Langfuse",
    sniff=sniff,
    read=read,
    logs=LOGS,
)
