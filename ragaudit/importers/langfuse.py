"""Langfuse: traces (v1), observations (v2), blob-storage and batch exports, with scores and data-set items."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ragaudit.importers.formats import Format, Options, Row, Sample, Table, alone
from ragaudit.importers.inputs import files_in, look_at, records
from ragaudit.importers.passages import documents_at
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_traces import About, TraceRows
from ragaudit.importers.run_values import (
    Labels,
    answer_in,
    decoded,
    decoded_list,
    decoded_map,
    filter_in,
    labels_in,
    limit_in,
    looks_like_hits,
    prompt_in,
    query_in,
)
from ragaudit.importers.runs import Kind, Run, moment
from ragaudit.importers.spans.feedback import row as feedback_row
from ragaudit.importers.stage import check

_TYPES = {
    "RETRIEVER": Kind.RETRIEVER,
    "GENERATION": Kind.LLM,
    "EMBEDDING": Kind.EMBEDDING,
    "SPAN": Kind.OTHER,
    "EVENT": Kind.OTHER,
    "CHAIN": Kind.OTHER,
    "AGENT": Kind.OTHER,
    "TOOL": Kind.OTHER,
    "EVALUATOR": Kind.OTHER,
    "GUARDRAIL": Kind.OTHER,
}
_CUT = 200
"""Characters after which the v2 API cuts a value of metadata, unless `expandMetadata` asks for it whole."""
_NAMES = {
    "traceId": "trace_id",
    "parentObservationId": "parent_observation_id",
    "startTime": "start_time",
    "userId": "user_id",
    "sessionId": "session_id",
    "statusMessage": "status_message",
    "dataType": "data_type",
    "stringValue": "string_value",
    "observationId": "observation_id",
    "expectedOutput": "expected_output",
    "sourceTraceId": "source_trace_id",
    "datasetItemId": "dataset_item_id",
    "providedModelName": "model",
    "provided_model_name": "model",
    "modelParameters": "model_parameters",
}
"""camelCase of the API -> snake_case of the blob export."""


@dataclass
class _Found:
    """Everything of one input, by what it is, with the names of the blob export."""

    observations: dict[str, dict[str, Any]] = field(default_factory=dict)
    traces: dict[str, dict[str, Any]] = field(default_factory=dict)
    scores: list[dict[str, Any]] = field(default_factory=list)
    labels: dict[str, Labels] = field(default_factory=dict)
    """Trace or data-set item -> its labels."""
    items: dict[str, str] = field(default_factory=dict)
    """Trace -> data-set item."""


def sniff(sample: Sample) -> str | None:
    """By the shapes of its API. Spans of its SDK before ingestion are OpenTelemetry, and not claimed here."""
    for value in look_at(sample.path, sample.values):
        if not isinstance(value, Mapping):
            continue
        page = value.get("data")
        first = page[0] if isinstance(page, list) and page and isinstance(page[0], Mapping) else value
        if isinstance(first.get("observations"), list) and ("htmlPath" in first or "projectId" in first):
            return "traces with observations"
        if first.get("type") in _TYPES and ("parentObservationId" in first or "parent_observation_id" in first):
            return f"observations with {'parentObservationId' if 'traceId' in first else 'parent_observation_id'}"
    return None


def read_all(paths: Sequence[Path], options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a retrieval. Observations, traces, scores and items may be several inputs, or a folder."""
    check(options.stages)
    found = _Found()
    for file in (file for path in paths for file in files_in(path)):
        for place, value in records(file, report):
            _take(value, place, found, report)
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for raw in found.observations.values():
        by_trace.setdefault(str(raw["trace_id"]), []).append(raw)
    rows = TraceRows(options, report)
    query_ids: dict[str, str] = {}
    for trace_id, observations in by_trace.items():
        if not any("output" in raw or "input" in raw for raw in observations):
            why = "content missing: no observation holds input or output, ask the API for fields=core,basic,io"
            report.skip(why, observations[0]["place"])
            continue
        runs = [_run(raw, options, report) for raw in observations]
        for row in rows.of(runs, _about(trace_id, observations, found)):
            query_ids.setdefault(trace_id, row["query_id"])
            yield Table.TRACES, row
    for trace_id, trace in found.traces.items():
        if trace_id not in by_trace:
            report.skip("a trace without its observations: export them too (GET /traces/ID holds them)", trace["place"])
    rows.done(paths[0].name)
    yield from _feedback(found, query_ids, report)


def _take(value: Any, place: str, found: _Found, report: ImportReport) -> None:
    """Sort a record, and everything inside it, by what it is."""
    waiting: deque[Any] = deque([value])
    while waiting:
        raw = waiting.popleft()
        if not isinstance(raw, Mapping):
            report.skip("the record is no object", place)
            continue
        if isinstance(raw.get("data"), list):
            waiting.extend(raw["data"])
            continue
        record: dict[str, Any] = {_NAMES.get(str(key), str(key)): item for key, item in raw.items()} | {"place": place}
        if "resourceSpans" in raw or isinstance(raw.get("attributes"), Mapping | list):
            report.skip("OpenTelemetry spans, as the SDK sends them: ragaudit import spans", place)
        elif "data_type" in record and "name" in record:
            found.scores.append(record)
        elif "dataset_item_id" in record and "trace_id" in record:
            found.items[str(record["trace_id"])] = str(record["dataset_item_id"])
        elif "expected_output" in record and "type" not in record:
            labels = labels_in(record["expected_output"]) | labels_in(decoded_map(record.get("metadata")))
            for key in ("id", "source_trace_id"):
                if record.get(key) is not None:
                    found.labels[str(record[key])] = labels
        elif record.get("type") in _TYPES and record.get("trace_id") and record.get("id"):
            _keep(record, found, report)
        elif "id" in record and ("observations" in record or "user_id" in record or "timestamp" in record):
            found.traces[str(record["id"])] = record
            inside = [*(record.pop("observations", None) or ()), *decoded_list(record.pop("scores", None))]
            waiting.extend({"trace_id": record["id"], **each} for each in inside if isinstance(each, Mapping))
        else:
            report.skip("no trace, observation, score or item of Langfuse", place)


def _keep(record: dict[str, Any], found: _Found, report: ImportReport) -> None:
    """Take an observation once. Two exporters, or a page that overlaps, give it again: the fuller one stands."""
    key = str(record["id"])
    if key in found.observations:
        report.note("observations that come twice: taken once, by id", record["place"])
        record = {**found.observations[key], **{name: value for name, value in record.items() if value is not None}}
    found.observations[key] = record


def _run(raw: Mapping[str, Any], options: Options, report: ImportReport) -> Run:
    name, place = str(raw.get("name") or ""), str(raw["place"])
    kind = _TYPES[raw["type"]]
    inputs, outputs = decoded(raw.get("input")), decoded(raw.get("output"))
    wanted = kind is Kind.RETRIEVER or name in options.stages
    at = documents_at(outputs)
    is_hits = at is not None and (wanted or (kind is Kind.OTHER and looks_like_hits(at[1])))
    if at is not None and is_hits:
        report.note(f"hits taken from output{'.' if at[0] else ''}{at[0]}", place)
    elif wanted and outputs is not None:
        report.note("a retriever whose output holds no list of hits: its list is absent", place)
    if kind is Kind.RETRIEVER and "output" not in raw:
        report.note("content missing: a retriever without input and output is not one that found nothing", place)
    metadata, is_cut = _whole_metadata(raw.get("metadata"))
    if is_cut:
        report.note(f"metadata of {_CUT} characters: cut by the API and left out, ask with expandMetadata", place)
    failed = raw.get("level") == "ERROR"
    return Run(
        id=str(raw["id"]),
        name=name,
        kind=kind,
        place=place,
        parent=str(raw["parent_observation_id"]) if raw.get("parent_observation_id") else None,
        start=moment(raw.get("start_time")),
        query=query_in(inputs),
        documents=at[1] if at is not None and is_hits else None,
        prompt=prompt_in(inputs) if kind is Kind.LLM else None,
        answer=None if is_hits else answer_in(outputs),
        model=str(raw["model"]) if kind is Kind.EMBEDDING and raw.get("model") else None,
        limit=limit_in(inputs, metadata),
        filter=filter_in(inputs, metadata),
        tags=tuple(str(tag) for tag in decoded_list(metadata.get("tags"))),
        metadata=metadata,
        error=str(raw.get("status_message") or "error") if failed else None,
    )


def _about(trace_id: str, observations: list[dict[str, Any]], found: _Found) -> About:
    """What stands at the trace; in v2 user and session stand at each observation."""
    trace = found.traces.get(trace_id, {})
    session = next((str(raw["session_id"]) for raw in (trace, *observations) if raw.get("session_id")), None)
    asked, said = decoded(trace.get("input")), decoded(trace.get("output"))
    labels = found.labels.get(trace_id, found.labels.get(found.items.get(trace_id, ""), Labels()))
    starts = sorted(str(raw["start_time"]) for raw in observations if raw.get("start_time"))
    at = trace.get("timestamp") or next(iter(starts), None)
    metadata = decoded_map(trace.get("metadata"))
    return About(trace_id, query_in(asked), answer_in(said), _iso(at), session, metadata, labels)


def _iso(time: Any) -> str | None:
    """A time as ISO 8601, None for what is no time; ClickHouse writes a blank and no zone, and means UTC."""
    if not isinstance(time, str):
        return None
    text = time.replace(" ", "T", 1)
    try:
        zone = datetime.fromisoformat(text).tzinfo
    except ValueError:
        return None
    return f"{text}Z" if zone is None and " " in time else text


def _feedback(found: _Found, query_ids: Mapping[str, str], report: ImportReport) -> Iterator[Row]:
    for raw in found.scores:
        trace_id = str(raw.get("trace_id"))
        if raw.get("source") == "EVAL":
            report.skip("scores by an evaluator: no user gave them", raw["place"])
        elif raw.get("data_type") == "CORRECTION":
            report.skip("corrections: a text, no rating", raw["place"])
        elif trace_id not in query_ids:
            report.skip("scores on a trace that gave none", raw["place"])
        else:
            rating = raw["value"] if raw.get("value") is not None else raw.get("string_value")
            session = raw.get("session_id") or found.traces.get(trace_id, {}).get("session_id")
            event = feedback_row(query_ids[trace_id], session, raw.get("name"), rating, _iso(raw.get("timestamp")))
            yield Table.FEEDBACK, event | ({} if raw.get("source") is None else {"source": raw["source"]})


def _whole_metadata(metadata: Any) -> tuple[dict[str, Any], bool]:
    """The metadata without values that were cut, and whether one was: half a list of principals is another list."""
    found = decoded(metadata)
    values = found if isinstance(found, Mapping) else {}
    whole = {key: value for key, value in values.items() if not (isinstance(value, str) and len(value) == _CUT)}
    return decoded_map(whole), len(whole) < len(values)


FORMAT = Format(
    name="langfuse",
    title="Langfuse",
    reads="traces (v1), observations (v2), blob or batch export as JSON, JSONL, CSV or Parquet; a folder of them",
    sniff=sniff,
    read=alone(read_all),
    read_all=read_all,
    logs={
        "user_acl": 'langfuse.update_current_trace(metadata={"user_acl": user.principals})',
        "index_revision": 'langfuse.update_current_trace(metadata={"index_revision": INDEX_REVISION})',
        "embedding_model": 'langfuse.update_current_trace(metadata={"embedding_model": EMBEDDING_MODEL})',
        "filters_applied": 'langfuse.update_current_span(metadata={"filters": filters, "top_k": k})',
        "k_final": 'langfuse.update_current_trace(metadata={"k_final": K})',
        "session_id": "langfuse.update_current_trace(session_id=session.id)",
        "arms": '@observe(as_type="retriever") on the function that searches, one for each arm',
        "fused": '@observe(as_type="retriever", name="rrf") on the function that merges',
        "after_rerank": '@observe(as_type="retriever", name="rerank") on the function that reranks',
        "final_context_ids": "log the prompt: the model's call as a generation with its input",
        "gold": 'langfuse.create_dataset_item(..., metadata={"gold_ids": [...]}) and export the items too',
        "reference": "langfuse.create_dataset_item(..., expected_output=...) and export the items too",
    },
)
