"""Haystack's own tracing: one span a component, with its name, type, input and output."""

from collections.abc import Iterable, Mapping
from typing import Any

from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import Kind, Step, as_count, parsed, question_in, texts_in

NAME = "Haystack tracing"
_OWN = frozenset({"id", "content", "blob", "score", "embedding", "sparse_embedding", "dataframe", "meta"})
_KINDS = (
    ("Retriever", Kind.RETRIEVER),
    ("Ranker", Kind.RERANKER),
    ("Reranker", Kind.RERANKER),
    ("Joiner", Kind.JOINER),
    ("Embedder", Kind.EMBEDDING),
    ("PromptBuilder", Kind.PROMPT),
    ("Generator", Kind.LLM),
)
SILENT = "Haystack's content tracing was off: set HAYSTACK_CONTENT_TRACING_ENABLED=true"


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None."""
    a = span.attributes
    if "haystack.pipeline.input_data" in a or span.name == "haystack.pipeline.run":
        return Step(span, Kind.OTHER, NAME, span.name, query=question_in(a.get("haystack.pipeline.input_data")))
    if "haystack.component.name" not in a:
        return None
    name, kind = str(a["haystack.component.name"]), kind_of(str(a.get("haystack.component.type") or ""))
    given, made = parsed(a.get("haystack.component.input")), parsed(a.get("haystack.component.output"))
    return component(span, name, kind, given, made)


def component(span: Span, name: str, kind: Kind, given: Any, made: Any) -> Step:
    """A component with what it was given and what it gave back, each None when content tracing was off."""
    inputs = given if isinstance(given, Mapping) else {}
    outputs = made if isinstance(made, Mapping) else {}
    is_list = kind in (Kind.RETRIEVER, Kind.RERANKER, Kind.JOINER)
    replies = outputs.get("replies")
    return Step(
        span,
        kind,
        NAME,
        name,
        query=question_in({key: inputs[key] for key in ("query", "question", "text") if inputs.get(key)}),
        documents=_documents(outputs.get("documents")) if is_list else None,
        inputs=_documents(inputs.get("documents")) if kind is Kind.RERANKER else None,
        unusable=SILENT if is_list and given is None and made is None else None,
        prompt=_prompt(kind, inputs, outputs),
        answer=texts_in(replies[:1]) or None if kind is Kind.LLM and isinstance(replies, list) else None,
        top_k=as_count(inputs.get("top_k")),
        filters=inputs.get("filters"),
        named=True,
    )


def kind_of(component_type: str) -> Kind:
    """By the end of the class name: `InMemoryBM25Retriever`, `DocumentJoiner`."""
    return next((kind for end, kind in _KINDS if component_type.endswith(end)), Kind.OTHER)


def _prompt(kind: Kind, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> str | None:
    if kind is Kind.PROMPT:
        return texts_in(outputs.get("prompt")) or None
    if kind is Kind.LLM:
        return texts_in([inputs.get("prompt"), inputs.get("messages")]) or None
    return None


def _documents(value: Any) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    return list(_each(value))


def _each(items: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """`to_dict()` writes metadata between the fields of the document: what is not its own is metadata."""
    for item in items:
        if not isinstance(item, Mapping):
            yield {}
            continue
        inner = item.get("meta")
        meta = {key: value for key, value in item.items() if key not in _OWN and value is not None}
        meta |= inner if isinstance(inner, Mapping) else {}
        own = {key: item[key] for key in ("id", "content", "score") if item.get(key) is not None}
        yield own | ({"metadata": meta} if meta else {})
