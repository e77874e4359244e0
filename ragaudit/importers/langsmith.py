"""LangSmith: runs of LangChain and of @traceable functions, with feedback and examples, as JSONL, JSON or Parquet."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.importers.formats import Format, Options, Row, Sample, Table, alone
from ragaudit.importers.inputs import files_in, look_at, records
from ragaudit.importers.passages import documents_in
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_traces import SESSION_KEYS, About, TraceRows
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
from ragaudit.importers.runs import Kind, Run, moment, root_of
from ragaudit.importers.spans.feedback import row as feedback_row
from ragaudit.importers.stage import check

_KINDS = {
    "retriever": Kind.RETRIEVER,
    "llm": Kind.LLM,
    "chat_model": Kind.LLM,
    "prompt": Kind.PROMPT,
    "embedding": Kind.EMBEDDING,
}
_READ = (
    "id",
    "name",
    "run_type",
    "trace_id",
    "parent_run_id",
    "dotted_order",
    "start_time",
    "end_time",
    "inputs",
    "outputs",
    "extra",
    "tags",
    "error",
    "reference_example_id",
    "feedback_stats",
)
"""The fields of a run that are kept; the rest (events, serialized) is the bulk of it."""
_ORDER_MARK = "Z"
"""Between time and id in a segment of `dotted_order`."""


@dataclass
class _Found:
    """Everything of one input, by what it is."""

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    feedback: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    examples: dict[str, Labels] = field(default_factory=dict)


def sniff(sample: Sample) -> str | None:
    """By run_type, which no other tool has, beside an id."""
    for value in look_at(sample.path, sample.values):
        if not isinstance(value, Mapping):
            continue
        if "run_type" in value and "id" in value:
            return "runs with run_type" + (" and child_runs" if value.get("child_runs") else "")
        if isinstance(value.get("post"), list) or isinstance(value.get("patch"), list):
            return "batches of runs with post and patch"
    return None


def read_all(paths: Sequence[Path], options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a retrieval. Runs, feedback and examples may be several inputs, or a folder."""
    check(options.stages)
    found = _Found()
    for file in (file for path in paths for file in files_in(path)):
        for place, value in records(file, report):
            _take(value, place, found, report)
    by_trace: dict[str, list[str]] = {}
    for run_id, raw in found.runs.items():
        by_trace.setdefault(_place_in_tree(raw)[0], []).append(run_id)
    rows = TraceRows(options, report)
    query_ids: dict[str, str] = {}
    for trace_id, run_ids in by_trace.items():
        runs = [_run(found.runs[run_id], options) for run_id in run_ids]
        for row in rows.of(runs, _about(trace_id, runs, found)):
            query_ids.setdefault(trace_id, row["query_id"])
            yield Table.TRACES, row
        for run_id in run_ids:
            found.runs[run_id] |= {"inputs": None, "outputs": None}
    rows.done(paths[0].name)
    yield from _feedback(found, query_ids, report)


def _take(value: Any, place: str, found: _Found, report: ImportReport) -> None:
    """Sort a record, and everything that hangs below it, by what it is."""
    waiting: deque[tuple[Any, Mapping[str, Any]]] = deque([(value, {})])
    while waiting:
        record, parent = waiting.popleft()
        if not isinstance(record, Mapping):
            report.skip("the record is no object", place)
        elif isinstance(record.get("post"), list) or isinstance(record.get("patch"), list):
            waiting.extend((each, {}) for part in ("post", "patch") for each in record.get(part) or ())
        elif "run_id" in record and "key" in record:
            found.feedback.append((place, dict(record)))
        elif "run_type" in record or "dotted_order" in record or record.get("id") in found.runs:
            run = _merged(record, parent, place, found, report)
            waiting.extend((child, run) for child in record.get("child_runs") or ())
        elif "id" in record and "outputs" in record:
            labels = labels_in(decoded_map(record.get("metadata")))
            found.examples[str(record["id"])] = labels_in(decoded(record["outputs"])) | labels
        else:
            report.skip("no run, feedback or example of LangSmith", place)


def _merged(
    record: Mapping[str, Any], parent: Mapping[str, Any], place: str, found: _Found, report: ImportReport
) -> dict[str, Any]:
    """The run with all that is known of it: a batch posts it and patches it later, in any order."""
    run_id = str(record.get("id"))
    if run_id in found.runs:
        report.note("runs that come in parts (post and patch): merged by id", place)
    run = found.runs.setdefault(run_id, {"place": place})
    run |= {k: v for k in _READ if (v := record.get(k)) is not None and not (k in run and v in ({}, []))}
    if parent:
        run.setdefault("parent_run_id", parent.get("id"))
        run.setdefault("trace_id", parent.get("trace_id") or parent.get("id"))
    return run


def _run(raw: Mapping[str, Any], options: Options) -> Run:
    name = str(raw.get("name") or "")
    kind = _KINDS.get(str(raw.get("run_type")), Kind.OTHER)
    inputs, outputs, extra = decoded(raw.get("inputs")), decoded(raw.get("outputs")), decoded_map(raw.get("extra"))
    _, parent, start = _place_in_tree(raw)
    wanted = kind is Kind.RETRIEVER or name in options.stages
    documents = documents_in(outputs)
    is_hits = documents is not None and (wanted or (kind is Kind.OTHER and looks_like_hits(documents)))
    error = raw.get("error")
    return Run(
        id=str(raw.get("id")),
        name=name,
        kind=kind,
        place=str(raw["place"]),
        parent=parent,
        start=start,
        query=query_in(inputs),
        documents=documents if is_hits else None,
        prompt=prompt_in(_unwrapped(outputs))
        if kind is Kind.PROMPT
        else prompt_in(inputs)
        if kind is Kind.LLM
        else None,
        answer=None if is_hits else answer_in(outputs),
        model=_model(extra) if kind is Kind.EMBEDDING else None,
        limit=limit_in(inputs, extra.get("invocation_params")),
        filter=filter_in(inputs),
        tags=tuple(str(tag) for tag in decoded_list(raw.get("tags"))),
        metadata=decoded_map(extra.get("metadata")),
        error=str(error) if error else None,
        is_finished=raw.get("end_time") is not None or outputs is not None,
    )


def _place_in_tree(raw: Mapping[str, Any]) -> tuple[str, str | None, str]:
    """(trace id, parent's id, time of start), out of `dotted_order` where the fields are missing."""
    order = str(raw.get("dotted_order") or "")
    segments = [segment.partition(_ORDER_MARK) for segment in order.split(".")] if order else []
    parent = raw.get("parent_run_id") or (segments[-2][2] if len(segments) > 1 else None)
    trace = raw.get("trace_id") or (segments[0][2] if segments else None) or (raw.get("id") if not parent else "")
    start = moment(segments[-1][0]) if segments else moment(raw.get("start_time"))
    return str(trace), str(parent) if parent else None, start


def _about(trace_id: str, runs: list[Run], found: _Found) -> About:
    root = found.runs[root_of(runs).id]
    example = root.get("reference_example_id")
    labels = found.examples.get(str(example), Labels())
    started = root.get("start_time")
    return About(trace_id, timestamp=started if isinstance(started, str) else None, labels=labels)


def _feedback(found: _Found, query_ids: Mapping[str, str], report: ImportReport) -> Iterator[Row]:
    """What users said. `session_id` of a run is the project, so the session is the thread that metadata names."""
    seen: Counter[str] = Counter()
    for place, raw in found.feedback:
        source = decoded(raw.get("feedback_source"))
        run = found.runs.get(str(raw["run_id"]))
        trace_id = _place_in_tree(run)[0] if run is not None else str(raw.get("trace_id"))
        if isinstance(source, Mapping) and source.get("type") == "model":
            report.skip("feedback by an evaluator: no user said it", place)
            continue
        if trace_id not in query_ids:
            report.skip("feedback on a run that gave no trace", place)
            continue
        rating = raw.get("score") if raw.get("score") is not None else raw.get("value")
        metadata = decoded_map(decoded_map((found.runs.get(trace_id) or {}).get("extra")).get("metadata"))
        session = next((str(metadata[key]) for key in SESSION_KEYS if metadata.get(key) is not None), None)
        seen[trace_id] += 1
        yield Table.FEEDBACK, feedback_row(query_ids[trace_id], session, raw.get("key"), rating, raw.get("created_at"))
    for run in found.runs.values():
        if run.get("feedback_stats") and not seen[_place_in_tree(run)[0]]:
            report.note("feedback_stats are averages, not events: export the feedback beside the runs", run["place"])


def _unwrapped(outputs: Any) -> Any:
    return outputs.get("output", outputs) if isinstance(outputs, Mapping) else outputs


def _model(extra: Mapping[str, Any]) -> str | None:
    parameters = extra.get("invocation_params")
    found = parameters.get("model") if isinstance(parameters, Mapping) else None
    return found if isinstance(found, str) else None


FORMAT = Format(
    name="langsmith",
    title="LangSmith",
    reads="runs as JSONL, nested JSON (child_runs) or bulk-export Parquet; a folder of runs, feedback and examples",
    sniff=sniff,
    read=alone(read_all),
    read_all=read_all,
    logs={
        "user_acl": 'chain.invoke(question, config={"metadata": {"user_acl": user.principals}})',
        "index_revision": 'chain.invoke(question, config={"metadata": {"index_revision": INDEX_REVISION}})',
        "embedding_model": 'chain.invoke(question, config={"metadata": {"embedding_model": EMBEDDING_MODEL}})',
        "filters_applied": 'chain.invoke(question, config={"metadata": {"filters": search_kwargs["filter"]}})',
        "k_final": 'chain.invoke(question, config={"metadata": {"k_final": K}})',
        "session_id": 'chain.invoke(question, config={"metadata": {"session_id": session.id}})',
        "arms": '@traceable(run_type="retriever") on the function that searches, one for each arm',
        "fused": '@traceable(run_type="retriever", name="rrf") on the function that merges',
        "after_rerank": '@traceable(run_type="retriever", name="rerank") on the function that reranks',
        "gold": 'client.create_example(inputs=..., outputs={"answer": ..., "gold_ids": [...]}) and export the examples',
        "reference": 'client.create_example(inputs=..., outputs={"answer": ...}) and export the examples',
    },
)
