"""LlamaIndex: instrumentation events, responses, retrieval evaluations and data sets, told apart record by record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table, alone
from ragaudit.importers.inputs import files_in, objects
from ragaudit.importers.llamaindex_events import SOURCE_NODES, Events, Query, runs_of
from ragaudit.importers.llamaindex_sets import DataSets, what_set
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_traces import About, TraceRows
from ragaudit.importers.stage import check

_STORAGE = frozenset({"docstore.json", "index_store.json"})
_STORED = frozenset({"docstore/data", "index_store/data"})
_INVENTORY = "is a persisted index, no traces. Read it with: ragaudit inventory"
_RESPONSE = frozenset({"response", "source_nodes"})


def sniff(sample: Sample) -> str | None:
    """By the names of its classes and fields."""
    if sample.names.issuperset(_STORAGE):
        return "a persisted index (docstore.json, index_store.json)"
    for value in sample.values:
        if not isinstance(value, Mapping):
            continue
        if _is_event(value):
            return f"events such as {str(value['class_name'])[:40]}"
        if not _STORED.isdisjoint(value):
            return "a file of a persisted index"
        if _RESPONSE.issubset(value):
            return "responses with source_nodes"
        if (what := what_set(value)) is not None:
            return what
    folder_has = {name for name in sample.names if name.endswith((".json", ".jsonl"))}
    is_pair = any("dataset" in name for name in folder_has) and any("predictions" in name for name in folder_has)
    return "a data set and its predictions" if is_pair else None


def read_all(paths: Sequence[Path], options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a query. A LabelledRagDataset and its predictions are two inputs, or stand in one folder.

    Raises:
        InputError: It is a persisted index, or predictions do not fit their data set.
    """
    check(options.stages)
    for path in paths:
        if path.is_dir() and {file.name for file in files_in(path)} >= _STORAGE:
            raise InputError(f"{path}: {_INVENTORY}")
    events, sets = Events(report), DataSets(options, report)
    rows = TraceRows(replace(options, stages={SOURCE_NODES: "final", **options.stages}), report)
    placed = (each for path in paths for file in files_in(path) for each in objects(file, report))
    for number, (place, value) in enumerate(placed, start=1):
        if _is_event(value):
            for query in events.take(value, place):
                yield from _traces(query, rows, report)
        elif _RESPONSE.issubset(value):
            yield from _response(value, number, place, options, report)
        elif not _STORED.isdisjoint(value):
            raise InputError(f"{place}: {_INVENTORY}")
        elif (found := sets.take(value, number, place)) is not None:
            yield from found
        else:
            report.skip("no event, response, evaluation or data set of LlamaIndex", place)
    yield from sets.joined()
    for query in events.rest():
        yield from _traces(query, rows, report)
    if options.stages:
        rows.done(paths[0].name)


def _traces(query: Query, rows: TraceRows, report: ImportReport) -> Iterator[Row]:
    if not query.steps:
        report.skip("no retrieval in the query", query.place)
        return
    about = About(query.id, query.text, query.answer, query.timestamp, metadata=query.tags)
    yield from ((Table.TRACES, row) for row in rows.of(list(runs_of(query, report)), about))


def _response(
    value: Mapping[str, Any], number: int, place: str, options: Options, report: ImportReport
) -> Iterator[Row]:
    """A response: its nodes are what the synthesizer got, after all postprocessing; a cut inside it is not visible."""
    question = next((value[key] for key in ("query", "query_str", "question") if isinstance(value.get(key), str)), None)
    nodes = value["source_nodes"]
    if question is None or not isinstance(nodes, list):
        report.skip("a response without the text of its query: log it beside the source_nodes", place)
        return
    draft = Draft(str(value.get("query_id") or line_id(number, question)), question)
    hits = hits_of([node for node in nodes if isinstance(node, Mapping)], report, place, texts=options.texts)
    draft.derived("final_context_ids", list(dict.fromkeys(hit["id"] for hit in hits)))
    draft.observed("context_texts", {hit["id"]: hit["text"] for hit in hits if "text" in hit} or None)
    report.note(
        "final context: the source_nodes of the response; what the synthesizer cut of them is not logged", place
    )
    if isinstance(value["response"], str):
        draft.observed("answer", {"text": value["response"]})
    draft.settle(options.k)
    yield Table.TRACES, draft.row()


def _is_event(value: Mapping[str, Any]) -> bool:
    return str(value.get("class_name", "")).endswith("Event") and "span_id" in value


FORMAT = Format(
    name="llamaindex",
    title="LlamaIndex",
    reads="instrumentation events (JSONL), responses, RetrievalEvalResult, EmbeddingQA and labelled RAG data sets",
    sniff=sniff,
    read=alone(read_all),
    read_all=read_all,
    logs={
        "user_acl": 'with instrument_tags({"user_acl": user.principals}): query_engine.query(question)',
        "index_revision": 'with instrument_tags({"index_revision": INDEX_REVISION}): query_engine.query(question)',
        "embedding_model": 'with instrument_tags({"embedding_model": EMBEDDING_MODEL}): query_engine.query(question)',
        "filters_applied": 'with instrument_tags({"filters": filters}): query_engine.query(question)',
        "session_id": 'with instrument_tags({"session_id": session.id}): query_engine.query(question)',
        "arms": "get_dispatcher().add_event_handler(handler), where the handler writes RetrievalEndEvent when it comes",
        "fused": "get_dispatcher().add_event_handler(handler): the RetrievalEndEvent of QueryFusionRetriever",
        "after_rerank": "get_dispatcher().add_event_handler(handler): ReRankStartEvent and ReRankEndEvent",
        "gold": "EmbeddingQAFinetuneDataset.save_json: relevant_docs holds the gold ids",
    },
)
