"""TruLens: events of its OpenTelemetry spans, as JSON, JSONL or the CSV of its table."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.importers.formats import Format, Options, Row, Sample
from ragaudit.importers.inputs import records
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import stages
from ragaudit.importers.spans.context import Whole
from ragaudit.importers.spans.importer import fill, rows_of_trace, steps_of
from ragaudit.importers.spans.span import Span, nanoseconds, span_id_of
from ragaudit.importers.spans.spool import Spool
from ragaudit.importers.spans.step import as_object
from ragaudit.importers.spans.trulens import BASE


def sniff(sample: Sample) -> str | None:
    """By the columns of its table of events."""
    first = next((value for value in sample.values if isinstance(value, Mapping)), {})
    return "events with record_attributes" if {"record_attributes", "trace", "record"} <= set(first) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a record of the app. Its contexts are texts: their ids come from an inventory, or are text ids.

    Raises:
        ConfigError: `--stage` names no list.
    """
    stages.check(options.stages)
    with Spool() as spool:
        fill(spool, _spans(path, report), report)
        for spans in spool.traces():
            reference = next((s.attributes[_TRUTH] for s in spans if s.attributes.get(_TRUTH)), None)
            given = {} if reference is None else {"reference": str(reference)}
            place = f"{path.name}: trace {spans[0].trace_id}"
            yield from rows_of_trace(Whole.of(spans, steps_of(spans)), spool, place, options, report, given)


def _spans(path: Path, report: ImportReport) -> Iterator[tuple[str, Span]]:
    for place, value in records(path, report):
        span = _span(value) if isinstance(value, Mapping) else None
        if span is None:
            report.skip("no event of a span: it has no trace, or its record_attributes cannot be read", place)
        elif str(span.attributes.get(f"{BASE}.span_type")).startswith("eval"):
            report.skip("a span of an evaluation, not of a query", place)
        else:
            yield place, span


def _span(event: Mapping[str, Any]) -> Span | None:
    """The span of an event; ids are decimal there, and stay as they are. The table's CSV holds Python's dicts."""
    attributes, record, trace = (as_object(event.get(name)) for name in ("record_attributes", "record", "trace"))
    trace_id, span_id = span_id_of(trace.get("trace_id")), span_id_of(trace.get("span_id"))
    if trace_id is None or span_id is None or not attributes:
        return None
    return Span(
        trace_id,
        span_id,
        str(record.get("name") or attributes.get("name") or ""),
        span_id_of(trace.get("parent_id") or record.get("parent_span_id")),
        nanoseconds(event.get("start_timestamp")),
        nanoseconds(event.get("timestamp")),
        attributes,
    )


_TRUTH = f"{BASE}.record_root.ground_truth_output"

FORMAT = Format(
    name="trulens",
    title="TruLens",
    reads="events of its spans as JSON, JSONL or CSV (record, record_attributes, trace)",
    sniff=sniff,
    read=read,
    logs={
        "arms": "@instrument(span_type=SpanAttributes.SpanType.RETRIEVAL) on the function of each arm",
        "after_rerank": "@instrument(span_type=SpanAttributes.SpanType.RERANKING), with output_ranks",
        "user_acl": "TruLens has no field for it: log it with ragaudit.record",
        "index_revision": "TruLens has no field for it: log it with ragaudit.record",
        "k_final": "pass --k",
        "gold": "TruLens has texts only: pass labels to the audit with --qrels qrels.tsv",
    },
)
