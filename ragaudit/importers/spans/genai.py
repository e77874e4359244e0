"""OpenTelemetry's GenAI conventions: `gen_ai.operation.name` and a list of {id, score} as JSON."""

from collections.abc import Mapping
from typing import Any

from ragaudit.importers.spans.span import Span, items_of
from ragaudit.importers.spans.step import (
    Kind,
    Step,
    as_count,
    as_object,
    in_order,
    indexed,
    parsed,
    question_in,
    subtree,
    texts_in,
)

NAME = "OTel GenAI"
KINDS = {
    "retrieval": Kind.RETRIEVER,
    "vector_db_retrieve": Kind.RETRIEVER,
    "rerank": Kind.RERANKER,
    "reranker": Kind.RERANKER,
    "embeddings": Kind.EMBEDDING,
    "chat": Kind.LLM,
    "text_completion": Kind.LLM,
    "generate_content": Kind.LLM,
}


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None."""
    a = span.attributes
    operation = a.get("gen_ai.operation.name")
    if operation is None:
        return None
    kind = KINDS.get(str(operation), Kind.OTHER)
    documents = inputs = None
    if kind is Kind.RETRIEVER:
        documents = _list(a.get("gen_ai.retrieval.documents"))
    elif kind is Kind.RERANKER:
        inputs = _list(a.get("gen_ai.rerank.input_documents"))
        documents = _reranked(_list(a.get("gen_ai.rerank.output_documents")), inputs)
    source = a.get("gen_ai.data_source.id")
    return Step(
        span,
        kind,
        NAME,
        str(source) if source is not None else span.name,
        query=question_in(
            a.get("gen_ai.retrieval.query.text") or a.get("gen_ai.retrieval.query_text") or a.get("gen_ai.rerank.query")
        ),
        documents=documents,
        inputs=inputs,
        prompt=prompt_of(a) if kind is Kind.LLM else None,
        answer=answer_of(a) if kind is Kind.LLM else None,
        model=model_of(a, kind),
        top_k=as_count(_first(a, "gen_ai.retrieval.top_k", "gen_ai.rerank.top_n", "gen_ai.request.top_k"))
        if kind in (Kind.RETRIEVER, Kind.RERANKER)
        else None,
        metadata=as_object(a.get("metadata")) or subtree(a, "metadata"),
        named=source is not None,
    )


def prompt_of(a: Mapping[str, Any]) -> str | None:
    """System instructions and messages, new and old spelling."""
    found = [texts_in(a.get(name)) for name in ("gen_ai.system_instructions", "gen_ai.input.messages")]
    old, _ = in_order(indexed(a, "gen_ai.prompt"))
    found += [str(item["content"]) for item in old if item.get("content")]
    return "\n".join(text for text in found if text) or None


def answer_of(a: Mapping[str, Any]) -> str | None:
    """The text of the output messages."""
    messages = parsed(a.get("gen_ai.output.messages"))
    old, _ = in_order(indexed(a, "gen_ai.completion"))
    said = [
        str(part["content"])
        for message in items_of(messages)
        if isinstance(message, Mapping)
        for part in items_of(message.get("parts"))
        if isinstance(part, Mapping) and isinstance(part.get("content"), str)
    ]
    said += [str(item["content"]) for item in old if item.get("content")]
    return "\n".join(said) or None


def model_of(a: Mapping[str, Any], kind: Kind) -> str | None:
    """The model of an embedding step; on a retrieval it hints at it."""
    found = _first(a, "gen_ai.request.model", "gen_ai.response.model")
    return str(found) if kind in (Kind.EMBEDDING, Kind.RETRIEVER) and found not in (None, "unknown") else None


def _list(value: Any) -> list[Any] | None:
    found = parsed(value)
    return [each if isinstance(each, Mapping) else {} for each in found] if isinstance(found, list) else None


def _reranked(outputs: list[Any] | None, inputs: list[Any] | None) -> list[Any] | None:
    """Outputs that only point into the inputs by a 0-based `index`, resolved."""
    if outputs is None or inputs is None:
        return outputs
    return [{**_at(inputs, item.get("index")), **item, "score": _score(item)} for item in outputs]


def _at(items: list[Any], index: Any) -> Mapping[str, Any]:
    is_place = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < len(items)
    found = items[index] if is_place else {}
    return found if isinstance(found, Mapping) else {}


def _score(item: Mapping[str, Any]) -> Any:
    return item.get("relevance_score", item.get("score"))


def _first(values: Mapping[str, Any], *keys: str) -> Any:
    return next((values[key] for key in keys if values.get(key) not in (None, "")), None)
