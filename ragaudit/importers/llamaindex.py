"""LlamaIndex: instrumentation events, responses, retrieval evaluations and data sets, told apart record by record."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import files_in, records
from ragaudit.importers.labels import set_gold
from ragaudit.importers.llamaindex_events import SOURCE_NODES, Events, Query, runs_of
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_traces import About, rows_of
from ragaudit.importers.run_values import query_in
from ragaudit.importers.runs import checked_stages

_STORAGE = frozenset({"docstore.json", "index_store.json"})
_QA = frozenset({"queries", "corpus", "relevant_docs"})
_RESULT = frozenset({"query", "expected_ids", "retrieved_ids"})
_RESPONSE = frozenset({"response", "source_nodes"})


def sniff(sample: Sample) -> str | None:
    """By the names of its classes and fields."""
    if _STORAGE <= sample.names:
        return "a persisted index (docstore.json, index_store.json)"
    for value in sample.values:
        if not isinstance(value, Mapping):
            continue
        if _is_event(value):
            return f"events such as {str(value['class_name'])[:40]}"
        for names, what in ((_QA, "an EmbeddingQAFinetuneDataset"), (_RESULT, "RetrievalEvalResult")):
            if names <= set(value):
                return f"{what}, by {', '.join(sorted(names))}"
        if _RESPONSE <= set(value):
            return "responses with source_nodes"
        if any(_is_example(each) for each in _items(value, "examples")):
            return "a LabelledRagDataset"
        if any("contexts" in each and "response" in each for each in _items(value, "predictions")):
            return "predictions of a LabelledRagDataset"
    folder_has = {name for name in sample.names if name.endswith((".json", ".jsonl"))}
    is_pair = any("dataset" in name for name in folder_has) and any("predictions" in name for name in folder_has)
    return "a data set and its predictions" if is_pair else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a query. A folder with a LabelledRagDataset and its predictions is read as one, joined by position.

    Raises:
        InputError: It is a persisted index, or holds predictions without their data set.
    """
    checked_stages(options.stages)
    files = files_in(path)
    if path.is_dir() and {file.name for file in files} >= _STORAGE:
        raise InputError(f"{path}: is a persisted index, no traces. Read it with: ragaudit inventory llamaindex {path}")
    events = Events(report)
    examples: list[tuple[str, Mapping[str, Any]]] = []
    predictions: list[Mapping[str, Any]] = []
    number = 0
    for file in files:
        for place, value in records(file, report):
            number += 1
            if not isinstance(value, Mapping):
                report.skip("the record is no object", place)
            elif _is_event(value):
                for query in events.take(value, place):
                    yield from _traces(query, options, report)
            elif set(value) >= _QA:
                yield from _qa(value, place, options, report)
            elif set(value) >= _RESULT:
                yield Table.TRACES, _result(value, number, place, options, report)
            elif set(value) >= _RESPONSE:
                yield from _response(value, number, place, options, report)
            elif found := _items(value, "examples"):
                examples += [(f"{place}#{n}", each) for n, each in enumerate(found, start=1)]
            elif found := _items(value, "predictions"):
                predictions += found
            else:
                report.skip("no event, response, evaluation or data set of LlamaIndex", place)
    yield from _rag(examples, predictions, path, options, report)
    for query in events.rest():
        yield from _traces(query, options, report)


def _traces(query: Query, options: Options, report: ImportReport) -> Iterator[Row]:
    if not query.steps:
        report.skip("no retrieval in the query", query.place)
        return
    about = About(query.id, query.text, query.answer, query.timestamp, query.tags)
    stages = replace(options, stages={SOURCE_NODES: "final", **options.stages})
    yield from ((Table.TRACES, row) for row in rows_of(list(runs_of(query, report)), about, stages, report))


def _qa(value: Mapping[str, Any], place: str, options: Options, report: ImportReport) -> Iterator[Row]:
    """Queries, gold and chunks; there is no retrieval in it, so the queries wait for one."""
    queries, corpus, relevant = (value[key] for key in ("queries", "corpus", "relevant_docs"))
    if not all(isinstance(each, Mapping) for each in (queries, corpus, relevant)):
        report.skip("queries, corpus and relevant_docs are no objects", place)
        return
    for chunk_id, text in corpus.items():
        yield Table.CHUNKS, {"chunk_id": str(chunk_id), "text": str(text)}
    for query_id, text in queries.items():
        draft = Draft(str(query_id), str(text))
        gold = relevant.get(query_id)
        if isinstance(gold, list):
            set_gold(draft, gold, None, None, report, place)
            if any(str(each) not in corpus for each in gold):
                report.note("gold ids that the corpus does not hold", place)
        report.note("labels without a retrieval: an audit needs lists for these queries, from a run", place)
        draft.settle(options.k)
        yield Table.TRACES, draft.row()


def _result(
    value: Mapping[str, Any], number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    """One evaluated query: the list of one retriever, of which nothing says whether the prompt got all of it."""
    draft = Draft(_query_id(number, str(value["query"])), str(value["query"]))
    ids, texts = value.get("retrieved_ids") or [], value.get("retrieved_texts") or []
    documents = [
        {"id": str(each), **({"text": texts[n]} if n < len(texts) and isinstance(texts[n], str) else {})}
        for n, each in enumerate(ids)
    ]
    draft.observed("arms", {"retriever": hits_of(documents, report, place, texts=options.texts)})
    expected = value.get("expected_ids")
    set_gold(draft, expected if isinstance(expected, list) else None, None, None, report, place)
    draft.settle(options.k)
    return draft.row()


def _response(
    value: Mapping[str, Any], number: int, place: str, options: Options, report: ImportReport
) -> Iterator[Row]:
    """A response: its nodes are what the synthesizer got, after all postprocessing; a cut inside it is not visible."""
    question = query_in(value)
    nodes = value["source_nodes"]
    if question is None or not isinstance(nodes, list):
        report.skip("a response without the text of its query: log it beside the source_nodes", place)
        return
    draft = Draft(str(value.get("query_id") or _query_id(number, question)), question)
    hits = hits_of([node for node in nodes if isinstance(node, Mapping)], report, place, texts=options.texts)
    draft.derived("final_context_ids", [hit["id"] for hit in hits])
    draft.observed("context_texts", {hit["id"]: hit["text"] for hit in hits if "text" in hit} or None)
    report.note(
        "final context: the source_nodes of the response; what the synthesizer cut of them is not logged", place
    )
    if isinstance(value["response"], str):
        draft.observed("answer", {"text": value["response"]})
    draft.settle(options.k)
    yield Table.TRACES, draft.row()


def _rag(
    examples: list[tuple[str, Mapping[str, Any]]],
    predictions: list[Mapping[str, Any]],
    path: Path,
    options: Options,
    report: ImportReport,
) -> Iterator[Row]:
    """Examples with their predictions, which know their place in the list and nothing else."""
    if predictions and not examples:
        raise InputError(
            f"{path.name}: predictions do not hold their queries. Put rag_dataset.json beside it, and pass the folder."
        )
    if predictions and len(predictions) != len(examples):
        what = f"{len(examples)} examples and {len(predictions)} predictions"
        raise InputError(f"{path.name}: {what}: they belong together by position. Export them again.")
    if predictions:
        report.note("predictions joined with their examples by position", examples[0][0])
    for number, (place, example) in enumerate(examples, start=1):
        question = query_in(example)
        if question is None:
            report.skip("an example without a query", place)
            continue
        draft = Draft(_query_id(number, question), question)
        reference = example.get("reference_answer")
        draft.observed("reference", reference if isinstance(reference, str) else None)
        contexts = example.get("reference_contexts")
        set_gold(draft, None, contexts if isinstance(contexts, list) else None, options.texts, report, place)
        if predictions:
            _predicted(draft, predictions[number - 1], place, options, report)
        else:
            report.note("labels without a retrieval: an audit needs lists for these queries, from a run", place)
        draft.settle(options.k)
        yield Table.TRACES, draft.row()


def _predicted(draft: Draft, prediction: Mapping[str, Any], place: str, options: Options, report: ImportReport) -> None:
    contexts = prediction.get("contexts")
    if isinstance(contexts, list):
        hits = hits_of([str(each) for each in contexts], report, place, texts=options.texts)
        draft.observed("final_context_ids", [hit["id"] for hit in hits])
        draft.observed("context_texts", {hit["id"]: hit["text"] for hit in hits if "text" in hit} or None)
    if isinstance(prediction.get("response"), str):
        draft.observed("answer", {"text": prediction["response"]})


def _is_event(value: Mapping[str, Any]) -> bool:
    return str(value.get("class_name", "")).endswith("Event") and "span_id" in value


def _is_example(value: Mapping[str, Any]) -> bool:
    return "query" in value and ("reference_contexts" in value or "reference_answer" in value)


def _items(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = value.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _query_id(number: int, question: str) -> str:
    return f"{number}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


FORMAT = Format(
    name="llamaindex",
    title="LlamaIndex",
    reads="instrumentation events (JSONL), responses, RetrievalEvalResult, EmbeddingQA and labelled RAG data sets",
    sniff=sniff,
    read=read,
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
