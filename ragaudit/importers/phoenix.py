"""Phoenix: its dataframe of spans as Parquet, answers of its REST interface, and annotations beside them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import records
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import stages
from ragaudit.importers.spans.context import Whole
from ragaudit.importers.spans.decoding import holds_spans
from ragaudit.importers.spans.feedback import row
from ragaudit.importers.spans.importer import LOGS, fill, rows_of_spans, rows_of_trace, spans_of, steps_of
from ragaudit.importers.spans.span import iso_time, nanoseconds, span_id_of
from ragaudit.importers.spans.spool import Spool
from ragaudit.importers.spans.step import Step

Annotations = dict[str, dict[str, Mapping[str, Any]]]
"""Span id -> what was said about it, by the id of the annotation: an export may hold it twice."""

EXPORT = "Export the spans: client.spans.get_spans_dataframe(project_identifier=...).to_parquet(...)"
_SPANS = (".parquet", ".pq", ".json", ".jsonl", ".gz")


def sniff(sample: Sample) -> str | None:
    """By the columns of the dataframe and the keys of the REST answers."""
    if sample.path.is_dir():
        has = any("annotations" in name for name in sample.names) and any("spans" in name for name in sample.names)
        return "a folder with spans and annotations" if has else None
    first = next((value for value in sample.values if isinstance(value, Mapping)), {})
    if holds_spans(first) == "Phoenix's spans":
        return "columns of its spans" if "context.span_id" in first else "spans with span_kind"
    if any("annotator_kind" in each for each in _annotations_in(first)):
        return "annotations of spans"
    return None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """The traces of a file of spans; of a folder, the traces and the feedback that annotations of people give.

    Raises:
        ConfigError: `--stage` names no list.
        InputError: The file is an export that does not say enough; the message says which one does.
    """
    if path.is_dir():
        yield from _folder(path, options, report)
        return
    _refuse(path)
    found = list(_annotated(path, ImportReport())) if path.suffix in (".csv", ".json") else []
    if found:
        why = "an annotation names a span only: put it and the export of the spans into one folder, and pass that"
        for place, _ in found:
            report.skip(why, place)
        return
    yield from rows_of_spans(spans_of(records(path, report), report), path.name, options, report)


def _refuse(path: Path) -> None:
    """Refuse the helpers' exports that lost what an audit needs."""
    if path.suffix.lower() != ".csv":
        return
    columns = set(next((value for _, value in records(path, ImportReport())), {}))
    if "document_position" in columns and "document" in columns:
        raise InputError(
            f"{path.name}: get_retrieved_documents keeps no id and no span name, so that arms, merged and reranked "
            f"lists cannot be told apart. {EXPORT}"
        )
    if {"input", "output", "context"} <= columns:
        raise InputError(
            f"{path.name}: its context joins the documents of all retriever spans, which is not what the prompt held. "
            f"{EXPORT}"
        )
    if "context.span_id" in columns:
        raise InputError(
            f"{path.name}: CSV holds the lists of spans as Python prints them, which cannot be read back for sure. "
            f"{EXPORT}"
        )


def _folder(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    stages.check(options.stages)
    said: Annotations = {}
    with Spool() as spool:
        for file in sorted(path.iterdir()):
            if not file.is_file():
                continue
            try:
                _refuse(file)
                notes = list(_annotated(file, report)) if "annotations" in file.name else []
                if not notes and file.suffix in _SPANS:
                    fill(spool, spans_of(records(file, report), report), report)
            except InputError as error:
                report.skip(str(error).partition(": ")[2], file.name)
                continue
            for _, note in notes:
                about = said.setdefault(str(span_id_of(note.get("span_id"))), {})
                about.setdefault(str(note.get("id") or len(about)), note)
        for spans in spool.traces():
            whole = Whole.of(spans, steps_of(spans))
            place = f"{path.name}: trace {whole.trace_id}"
            for table, found in rows_of_trace(whole, spool, place, options, report):
                yield table, found
                if table is Table.TRACES:
                    yield from _feedback(found, whole, said, report, place)
    for span_id in said:
        report.skip("an annotation of a span that is not in the folder", span_id)


def _feedback(
    trace: Mapping[str, Any], whole: Whole, said: Annotations, report: ImportReport, place: str
) -> Iterator[Row]:
    """The annotations by people of the spans of one trace; each is taken out of `said`."""
    steps = {step.span.span_id: step for step in whole.steps}
    for span in whole.spans:
        for note in said.pop(span.span_id, {}).values():
            result = note.get("result")
            values = result if isinstance(result, Mapping) else {k: note.get(f"result.{k}") for k in ("label", "score")}
            rating = values.get("score") if values.get("score") not in (None, "") else values.get("label")
            if note.get("annotator_kind") != "HUMAN":
                report.note("annotations by models or code: not read as feedback", place)
                continue
            if rating in (None, ""):
                continue
            name = note.get("name") or note.get("annotation_name")
            time = iso_time(nanoseconds(note.get("updated_at") or note.get("created_at")))
            event = row(str(trace["query_id"]), trace.get("session_id"), name, _number(rating), time)
            if (chunk_id := _chunk_at(steps.get(span.span_id), note.get("document_position"))) is not None:
                event["chunk_ids"] = [chunk_id]
            yield Table.FEEDBACK, event


def _chunk_at(step: Step | None, position: Any) -> str | None:
    """The id of the document at a position of a span's list, from 0."""
    if step is None or not step.documents or isinstance(position, bool) or not isinstance(position, int):
        return None
    hits = hits_of(step.documents, ImportReport(), "")
    return next((str(hit["id"]) for hit in hits if hit["rank"] == position + 1), None)


def _annotated(path: Path, report: ImportReport) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, value in records(path, report):
        yield from ((place, note) for note in _annotations_in(value) if "annotator_kind" in note)


def _annotations_in(value: Any) -> list[Mapping[str, Any]]:
    """The annotations of one record: of a page of the REST interface, or the record itself."""
    page = value.get("data") if isinstance(value, Mapping) else None
    items = page if isinstance(page, list) else [value]
    return [item for item in items if isinstance(item, Mapping)]


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


FORMAT = Format(
    name="phoenix",
    title="Phoenix",
    reads="spans as Parquet or REST JSON, or a folder that also holds the annotations of spans",
    sniff=sniff,
    read=read,
    logs=LOGS,
)
