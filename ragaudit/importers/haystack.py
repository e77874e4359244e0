"""Haystack: its own tracing, the outputs of a pipeline that someone saved, and the in-memory document store."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.cells import listing
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import records
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import stages
from ragaudit.importers.spans.assembly import rows_of
from ragaudit.importers.spans.context import Whole
from ragaudit.importers.spans.decoding import holds_spans, spans_in
from ragaudit.importers.spans.importer import rows_of_spans, spans_of
from ragaudit.importers.spans.native_haystack import component, kind_of
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import Kind, Step

_OUTPUTS = ("pipeline_output", "pipeline_outputs", "result", "outputs", "output")
_QUESTIONS = ("query", "question", "query_text", "user_input")
_BESIDE = (*_QUESTIONS, "query_id")
_ORDER = (Kind.RETRIEVER, Kind.JOINER, Kind.RERANKER, Kind.PROMPT, Kind.LLM, Kind.OTHER)
_WORDS = (("join", Kind.JOINER), ("fus", Kind.JOINER), ("rrf", Kind.JOINER), ("rank", Kind.RERANKER))


def sniff(sample: Sample) -> str | None:
    """By the attributes of its spans, the outputs of components, and the type of the store."""
    first = next((value for value in sample.values if isinstance(value, Mapping)), {})
    if any(_is_component(span) for span in _first_spans(sample)):
        return "spans with haystack.component.name"
    if _is_store(first):
        return "an InMemoryDocumentStore"
    if _outputs_of(first):
        return "the outputs of components"
    return "columns of evaluators" if _is_evaluation(first) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """Traces of spans or of saved outputs; chunks of a store.

    Raises:
        ConfigError: `--stage` names no list.
        InputError: It is the report of an evaluation, whose columns have names that its author chose.
    """
    stages.check(options.stages)
    found = records(path, report)
    first = next(found, None)
    if first is None:
        return
    if _is_evaluation(first[1]):
        raise InputError(
            f"{path.name}: a report of evaluators has the columns that its author chose. As CSV: "
            "ragaudit import table --map query_text=question --map final_context=contexts --map gold_ids=gold_ids"
        )
    if holds_spans(first[1]) is not None:
        yield from rows_of_spans(spans_of(_again(first, found), report), path.name, options, report)
        return
    for place, value in _again(first, found):
        if _is_store(value):
            yield from _chunks(value, report, place)
        else:
            yield from _row(value, options, report, place)


def _again(first: tuple[str, Any], rest: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    yield first
    yield from rest


def _row(value: Any, options: Options, report: ImportReport, place: str) -> Iterator[Row]:
    """One saved run: the outputs of its components, and the question beside them."""
    outputs = _outputs_of(value)
    if not outputs:
        report.skip("no outputs of components: save Pipeline.run(..., include_outputs_from={...})", place)
        return
    question = next((value[name] for name in _QUESTIONS if isinstance(value.get(name), str)), None)
    if question is None:
        report.skip("no question beside the outputs: save {'query': ..., 'pipeline_output': ...}", place)
        return
    steps = sorted((_step(name, made) for name, made in outputs.items()), key=lambda step: _ORDER.index(step.kind))
    root = Step(Span(place, "run", "run"), Kind.OTHER, steps[0].dialect, "run", query=question)
    whole = Whole.of([root.span, *(step.span for step in steps)], [root, *steps])
    given = {"query_id": str(value["query_id"])} if value.get("query_id") is not None else {}
    for row in rows_of(whole, options, report, place, given):
        yield Table.TRACES, row


def _chunks(store: Mapping[str, Any], report: ImportReport, place: str) -> Iterator[Row]:
    """The documents of a store as chunks."""
    for n, document in enumerate(store["documents"]):
        if not isinstance(document, Mapping) or document.get("id") in (None, ""):
            report.skip("a document without an id", f"{place}[{n}]")
            continue
        inner = document.get("meta")
        meta: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        acl = listing(meta.get("acl"))
        row = {
            "chunk_id": str(document["id"]),
            "source_id": None if meta.get("source_id") is None else str(meta["source_id"]),
            "text": document.get("content"),
            "metadata": {key: each for key, each in meta.items() if each is not None} or None,
            "acl": None if acl is None else [str(each) for each in acl if each is not None],
            "embedding_model": meta.get("embedding_model"),
        }
        yield Table.CHUNKS, {key: each for key, each in row.items() if each is not None}


def _first_spans(sample: Sample) -> Iterator[Span]:
    for value in sample.values:
        if holds_spans(value) is not None:
            yield from spans_in(value, ImportReport(), "")


def _is_component(span: Span) -> bool:
    return any(key.startswith(("haystack.component.", "haystack.pipeline.")) for key in span.attributes)


def _is_store(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and str(value.get("type")).endswith("InMemoryDocumentStore")
        and isinstance(value.get("documents"), list)
    )


def _is_evaluation(value: Any) -> bool:
    return isinstance(value, Mapping) and any(str(key).endswith("Evaluator") for key in value)


def _outputs_of(value: Any) -> Mapping[str, Any]:
    """Component -> its outputs: under a key of whoever saved it, or the record itself."""
    if not isinstance(value, Mapping):
        return {}
    inner = next((value[name] for name in _OUTPUTS if isinstance(value.get(name), Mapping)), None)
    if inner is None and all(isinstance(made, Mapping) or name in _BESIDE for name, made in value.items()):
        inner = value
    found = {str(name): made for name, made in (inner or {}).items() if isinstance(made, Mapping)}
    return found if any(isinstance(made.get("documents"), list) for made in found.values()) else {}


def _step(name: str, made: Mapping[str, Any]) -> Step:
    """A component, of which the outputs are known and the kind is guessed from them and its name."""
    kind = Kind.OTHER
    if isinstance(made.get("documents"), list):
        by_name = kind_of(name)
        kind = next((each for word, each in _WORDS if word in name.lower()), Kind.RETRIEVER)
        kind = by_name if by_name is not Kind.OTHER else kind
    elif "prompt" in made:
        kind = Kind.PROMPT
    elif "replies" in made:
        kind = Kind.LLM
    return replace(component(Span("", f"run/{name}", name, "run"), name, kind, None, made), guessed=True)


FORMAT = Format(
    name="haystack",
    title="Haystack",
    reads="spans of its tracing, outputs saved with include_outputs_from, or an in-memory document store",
    sniff=sniff,
    read=read,
    logs={
        "arms": 'pipeline.run(..., include_outputs_from={"dense", "bm25"}), or HAYSTACK_CONTENT_TRACING_ENABLED=true',
        "fused": 'pipeline.run(..., include_outputs_from={"joiner"})',
        "after_rerank": 'pipeline.run(..., include_outputs_from={"ranker"})',
        "filters_applied": "HAYSTACK_CONTENT_TRACING_ENABLED=true: the spans hold the filters of each retriever",
        "k_final": "pass --k: what top_k of the ranker is",
        "user_acl": "Haystack has no field for it: log it with ragaudit.record",
        "index_revision": "write it into the meta of every document when you index",
        "embedding_model": "write it into the meta of every document when you index",
        "session_id": "Haystack has no field for it: log it with ragaudit.record",
        "gold": "spans hold none: pass labels to the audit with --qrels qrels.tsv",
    },
)
