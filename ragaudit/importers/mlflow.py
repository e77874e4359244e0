"""MLflow 3 (and 2): traces as JSON, with assessments: feedback, and expectations that are gold."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import records
from ragaudit.importers.labels import set_gold
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import stages
from ragaudit.importers.spans.context import Whole
from ragaudit.importers.spans.decoding import spans_in
from ragaudit.importers.spans.feedback import row
from ragaudit.importers.spans.importer import LOGS, rows_of_trace, steps_of
from ragaudit.importers.spans.span import iso_time, items_of, nanoseconds
from ragaudit.importers.spans.spool import Spool
from ragaudit.importers.spans.step import parsed

_CONTEXT = "expected_retrieved_context"


def sniff(sample: Sample) -> str | None:
    """By a trace's two halves, `info` and `data.spans`."""
    first = next((value for value in sample.values if isinstance(value, Mapping)), {})
    if _trace_of(first) is not None:
        return "traces with info and data.spans"
    return "the columns of search_traces" if {"trace_id", "trace_metadata", "spans"} <= set(first) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a record, and its feedback.

    Raises:
        ConfigError: `--stage` names no list.
        InputError: A CSV without the whole traces in it.
    """
    stages.check(options.stages)
    with Spool() as spool:
        for place, value in records(path, report):
            trace = _trace_of(value)
            if trace is None:
                if path.suffix.lower() == ".csv":
                    raise InputError(
                        f"{path.name}: has no whole traces in a column `trace`. Export them: "
                        "json.dump([json.loads(t.to_json()) for t in mlflow.search_traces(return_type='list')], file)"
                    )
                report.skip("no trace: it has no info and data.spans", place)
                continue
            yield from _rows(trace, spool, place, options, report)


def _trace_of(value: Any) -> Mapping[str, Any] | None:
    """A trace: the record itself, or JSON in the column `trace` of a table, or a text that is JSON."""
    value = parsed(value)
    if isinstance(value, Mapping) and "trace" in value:
        value = parsed(value["trace"])
    inside = value.get("data") if isinstance(value, Mapping) else None
    has_spans = isinstance(inside, Mapping) and isinstance(inside.get("spans"), list)
    return value if has_spans and isinstance(value.get("info"), Mapping) else None


def _rows(trace: Mapping[str, Any], spool: Spool, place: str, options: Options, report: ImportReport) -> Iterator[Row]:
    info = trace["info"]
    spans = [span for raw in trace["data"]["spans"] for span in spans_in(raw, report, place)]
    if not spans:
        report.skip("a trace without spans", place)
        return
    assessments = [each for each in items_of(info.get("assessments")) if isinstance(each, Mapping)]
    given = _given(info, assessments, options, report, place)
    for table, found in rows_of_trace(Whole.of(spans, steps_of(spans)), spool, place, options, report, given):
        yield table, found
        if table is Table.TRACES:
            yield from _feedback(found, assessments, report, place)


def _given(
    info: Mapping[str, Any],
    assessments: list[Mapping[str, Any]],
    options: Options,
    report: ImportReport,
    place: str,
) -> dict[str, Any]:
    """What stands beside the spans: ids, session, what was expected."""
    said = _table(info.get("trace_metadata") or info.get("request_metadata"))
    tags = _table(info.get("tags"))
    query_id = tags.get("query_id") or info.get("trace_id") or info.get("request_id")
    draft = Draft("", "")
    draft.observed("query_id", query_id)
    session = said.get("mlflow.trace.session")
    draft.observed("session_id", None if session is None else str(session))
    expected = {str(e.get("assessment_name")): _expected(e["expectation"]) for e in assessments if e.get("expectation")}
    if isinstance(reference := expected.get("expected_response"), str):
        draft.observed("reference", reference)
    _gold(draft, expected.get(_CONTEXT), options, report, place)
    row_so_far = draft.row()
    return {
        name: row_so_far[name] for name in ("session_id", "reference", "gold_ids", "gold_groups") if name in row_so_far
    } | {"query_id": str(query_id)}


def _gold(draft: Draft, context: Any, options: Options, report: ImportReport, place: str) -> None:
    """Expected chunks by id, else by text through the inventory; a document's address names no chunk."""
    items = [each if isinstance(each, Mapping) else {"content": each} for each in items_of(context)]
    ids = [next((each[key] for key in ("chunk_id", "id", "doc_id") if each.get(key)), None) for each in items]
    texts = [next((each[key] for key in ("content", "page_content", "text") if each.get(key)), None) for each in items]
    if ids and all(each is not None for each in ids):
        set_gold(draft, ids, None, options.texts, report, place)
    elif texts and all(each is not None for each in texts):
        set_gold(draft, None, texts, options.texts, report, place)
    elif items:
        report.note("expected documents that are named by address only: no chunk, so left out", place)


def _feedback(
    trace: Mapping[str, Any], assessments: list[Mapping[str, Any]], report: ImportReport, place: str
) -> Iterator[Row]:
    for each in assessments:
        feedback, source = each.get("feedback"), _table(each.get("source"))
        if not isinstance(feedback, Mapping) or feedback.get("value") is None or each.get("valid") is False:
            continue
        if source.get("source_type") != "HUMAN":
            report.note("assessments by models or code: not read as feedback", place)
            continue
        time = iso_time(nanoseconds(each.get("last_update_time") or each.get("create_time")))
        event = row(
            str(trace["query_id"]), trace.get("session_id"), each.get("assessment_name"), feedback["value"], time
        )
        yield Table.FEEDBACK, event


def _expected(expectation: Any) -> Any:
    """The value, which MLflow writes plainly or as JSON in a text."""
    value = _table(expectation)
    packed = value.get("serialized_value")
    return parsed(packed.get("value")) if isinstance(packed, Mapping) else value.get("value")


def _table(value: Any) -> Mapping[str, Any]:
    found = parsed(value)
    return found if isinstance(found, Mapping) else {}


FORMAT = Format(
    name="mlflow",
    title="MLflow",
    reads="traces as JSON or JSONL (trace.to_json()), or the CSV of search_traces with its column trace",
    sniff=sniff,
    read=read,
    logs=LOGS
    | {
        "user_acl": 'mlflow.get_current_active_span().set_attribute("user_acl", [...]) in the root span',
        "index_revision": 'mlflow.get_current_active_span().set_attribute("index_revision", revision)',
        "k_final": 'mlflow.get_current_active_span().set_attribute("k_final", k) in the root span',
        "filters_applied": "give `filters` as an argument to the function under @mlflow.trace(span_type='RETRIEVER')",
        "fused": 'mlflow.get_current_active_span().set_attribute("stage", "fused") in the function that merges',
        "gold": "mlflow.log_expectation(trace_id=..., name='expected_retrieved_context', value=[{'id': chunk_id}])",
        "reference": "mlflow.log_expectation(trace_id=..., name='expected_response', value=text)",
        "session_id": 'mlflow.update_current_trace(metadata={"mlflow.trace.session": session_id})',
    },
)
