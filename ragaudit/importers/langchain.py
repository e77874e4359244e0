"""LangChain: callback events and `astream_events` (v2) that an application wrote down, one event a line."""

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import records
from ragaudit.importers.passages import documents_in
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_traces import About, TraceRows
from ragaudit.importers.run_values import answer_in, looks_like_hits, prompt_in, query_in
from ragaudit.importers.runs import Kind, Run
from ragaudit.importers.stage import check

_KINDS = {"retriever": Kind.RETRIEVER, "llm": Kind.LLM, "chat_model": Kind.LLM, "chain": Kind.OTHER, "tool": Kind.OTHER}
_NONE = (None, "", "None")
"""How logs write that a run has no parent."""
_ALONE = (
    "documents without a query are no trace. Log the retriever's run (callbacks, astream_events, LangSmith); "
    "as chunks they are read by: ragaudit inventory"
)


def sniff(sample: Sample) -> str | None:
    """By `on_retriever_start` and the like beside a run_id; documents alone are claimed to say why they will not do."""
    names = [str(v["event"]) for v in sample.values if isinstance(v, Mapping) and "event" in v and "run_id" in v]
    if any(name.startswith("on_") for name in names):
        return f"events such as {names[0][:40]}"
    return "documents of LangChain" if sample.values and all(map(_is_document, sample.values)) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a retrieval. Events are put together by run_id; what began and never ended is said.

    Raises:
        InputError: The file holds documents and no events.
    """
    check(options.stages)
    found: dict[str, dict[str, Any]] = {}
    above: dict[str, str] = {}
    documents = 0
    for number, (place, value) in enumerate(records(path, report)):
        if not isinstance(value, Mapping) or "event" not in value or value.get("run_id") in _NONE:
            documents += _is_document(value)
            report.skip("no event with a run_id", place)
            continue
        _take(value, f"{number:012}", place, found)
        line = [str(each) for each in (*_parents(value), value["run_id"])]
        above.update((inner, outer) for outer, inner in pairwise(line))
    if documents and not found:
        raise InputError(f"{path.name}: {_ALONE}")
    by_trace: dict[str, list[Run]] = {}
    roots: dict[str, str] = {}
    for run_id, raw in found.items():
        parent = next((each for each in _around(run_id, above) if each in found), None)
        by_trace.setdefault(_root(run_id, above, roots), []).append(_run(run_id, raw, parent, options))
    rows = TraceRows(options, report)
    for trace_id, runs in by_trace.items():
        yield from ((Table.TRACES, row) for row in rows.of(runs, About(trace_id)))
    rows.done(path.name)


def _take(event: Mapping[str, Any], number: str, place: str, found: dict[str, dict[str, Any]]) -> None:
    """Add an event to its run: `on_{kind}_{start|end|error}`; the number of the event is the time."""
    kind, _, what = str(event["event"]).removeprefix("on_").rpartition("_")
    if kind not in _KINDS or what not in ("start", "end", "error"):
        return
    run = found.setdefault(str(event["run_id"]), {"place": place, "start": number})
    run.setdefault("kind", kind)
    data = event.get("data")
    inside: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    for key in ("name", "tags", "metadata"):
        if event.get(key) not in (None, [], {}):
            run[key] = event[key]
    if (given := inside.get("input", _given(event))) not in (None, ""):
        run["input"] = given
    if what != "start":
        run["ended"] = True
        keys = ("documents", "outputs", "text", "response", "output")
        run["output"] = inside.get("output", next((event[k] for k in keys if event.get(k) is not None), None))
    if what == "error":
        run["error"] = str(event.get("error") or inside.get("error") or "error")


def _given(event: Mapping[str, Any]) -> Any:
    """What a callback was handed, by its own name for it."""
    return next((event[key] for key in ("query", "messages", "prompts", "inputs") if event.get(key) is not None), None)


def _run(run_id: str, raw: Mapping[str, Any], parent: str | None, options: Options) -> Run:
    name, kind, output = str(raw.get("name") or ""), _KINDS[raw["kind"]], raw.get("output")
    documents = documents_in(output)
    wanted = kind is Kind.RETRIEVER or name in options.stages
    is_hits = documents is not None and (wanted or (kind is Kind.OTHER and looks_like_hits(documents)))
    tags, metadata = raw.get("tags"), raw.get("metadata")
    return Run(
        id=run_id,
        name=name,
        kind=kind,
        place=str(raw["place"]),
        parent=parent,
        start=str(raw["start"]),
        query=query_in(_unquoted(raw.get("input"))),
        documents=documents if is_hits else None,
        prompt=prompt_in(raw.get("input")) if kind is Kind.LLM else None,
        answer=answer_in(output) if kind is Kind.LLM else None,
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        metadata=metadata if isinstance(metadata, Mapping) else {},
        error=raw.get("error"),
        is_finished=bool(raw.get("ended")),
    )


def _unquoted(value: Any) -> Any:
    """The text of an input that a handler wrote with `repr`; one that it cut, or that is no text, is none."""
    if not isinstance(value, str) or value[:1] not in ("'", '"', "{", "["):
        return value
    try:
        return ast.literal_eval(value)  # reads literals only, and runs nothing
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _parents(event: Mapping[str, Any]) -> list[Any]:
    """The runs around it, the outermost first: all of them in astream_events, the nearest one in a callback."""
    parents = event.get("parent_ids")
    if isinstance(parents, list):
        return parents
    return [] if event.get("parent_run_id") in _NONE else [event["parent_run_id"]]


def _around(run_id: str, above: Mapping[str, str]) -> Iterator[str]:
    """Ids of the runs around it, from the inside. A circle of parents ends where it would begin again."""
    seen = {run_id}
    while (outer := above.get(run_id)) is not None and outer not in seen:
        yield outer
        seen.add(outer)
        run_id = outer


def _root(run_id: str, above: Mapping[str, str], known: dict[str, str]) -> str:
    """The outermost run around it; `known` remembers those that were found before."""
    path: dict[str, None] = {}
    while run_id not in known and run_id not in path and run_id in above:
        path[run_id] = None
        run_id = above[run_id]
    root = known.get(run_id, run_id)
    known.update(dict.fromkeys(path, root))
    return root


def _is_document(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    made_by = value.get("id")
    is_dumped = value.get("lc") is not None and isinstance(made_by, list) and made_by[-1:] == ["Document"]
    return is_dumped or (value.get("type") == "Document" and "page_content" in value)


FORMAT = Format(
    name="langchain",
    title="LangChain events",
    reads="callback events or astream_events v2 as JSONL",
    sniff=sniff,
    read=read,
    logs={
        "user_acl": 'chain.invoke(question, config={"metadata": {"user_acl": user.principals}})',
        "index_revision": 'chain.invoke(question, config={"metadata": {"index_revision": INDEX_REVISION}})',
        "embedding_model": 'chain.invoke(question, config={"metadata": {"embedding_model": EMBEDDING_MODEL}})',
        "filters_applied": 'chain.invoke(question, config={"metadata": {"filters": search_kwargs["filter"]}})',
        "session_id": 'chain.invoke(question, config={"metadata": {"session_id": session.id}})',
        "k_final": 'chain.invoke(question, config={"metadata": {"k_final": K}})',
        "final_context_ids": "log on_chat_model_start with its messages: the chunks are found in the prompt",
        "answer": "log on_llm_end with the text of the generation",
        "timestamp": "events carry no time: use LangSmith runs, or ragaudit.record",
    },
)
