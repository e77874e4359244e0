"""OpenLLMetry (Traceloop): `traceloop.entity.*` as JSON, and vector stores whose hits are events of the span."""

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragaudit.importers.passages import documents_in
from ragaudit.importers.spans import genai
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import (
    Kind,
    Step,
    as_count,
    as_object,
    class_of,
    parsed,
    question_in,
    subtree,
    texts_in,
)

NAME = "OpenLLMetry"
_ASKED = ("query", "query_points", "search", "similarity_search", "hybrid_search")


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None."""
    a = span.attributes
    if "db.system" in a:
        return _store(span)
    if "traceloop.span.kind" not in a and "traceloop.entity.name" not in a:
        return None if "traceloop.workflow.name" not in a else _with_defaults(span)
    name = class_of(str(a.get("traceloop.entity.name") or span.name))
    operation = a.get("gen_ai.operation.name")
    kind = genai.KINDS.get(str(operation), Kind.OTHER)
    guessed = kind is Kind.OTHER
    if guessed:
        kind = _kind_by_name(name, a)
    given, made = parsed(a.get("traceloop.entity.input")), parsed(a.get("traceloop.entity.output"))
    is_list = kind in (Kind.RETRIEVER, Kind.RERANKER, Kind.JOINER)
    return Step(
        span,
        kind,
        NAME,
        name,
        query=question_in(given) or (question_in(a.get("gen_ai.input.messages")) if kind is Kind.RERANKER else None),
        documents=_documents(made) if is_list else None,
        inputs=_documents(given) if kind is Kind.RERANKER else None,
        prompt=(genai.prompt_of(a) or texts_in(given) or None) if kind is Kind.LLM else None,
        answer=(genai.answer_of(a) or _plain(made)) if kind in (Kind.LLM, Kind.OTHER) else None,
        model=genai.model_of(a, kind) if kind is Kind.EMBEDDING else None,
        top_k=as_count(a.get("rerank.top_n")),
        metadata=subtree(a, "traceloop.association.properties"),
        guessed=guessed,
    )


def _with_defaults(span: Span) -> Step | None:
    """A span of GenAI inside a Traceloop workflow: the same fields, with the workflow's properties."""
    step = genai.step_of(span)
    if step is None:
        return None
    properties = subtree(span.attributes, "traceloop.association.properties")
    return replace(step, dialect=NAME, metadata={**properties, **step.metadata})


def _kind_by_name(name: str, a: Mapping[str, Any]) -> Kind:
    folded = name.lower()
    if "rerank" in folded:
        return Kind.RERANKER
    if "retriever" in folded and "queryengine" not in folded:
        return Kind.RETRIEVER
    if "gen_ai.output.messages" in a or "llm" in folded:
        return Kind.LLM
    return Kind.OTHER


def _documents(value: Any) -> list[Any] | None:
    """The documents; LlamaIndex writes each as JSON in a text of its own."""
    found = documents_in(value)
    return None if found is None else [parsed(item) for item in found]


def _plain(value: Any) -> str | None:
    """The text of an output: itself, or the one under the key that a chain or a response has it under."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("outputs", "response", "answer", "text") if key in value), None)
    return value if isinstance(value, str) and value.strip() else None


def _store(span: Span) -> Step | None:
    """A vector store that was searched; other operations (`add`, `upsert`) are no steps of a query."""
    a = span.attributes
    system = str(a["db.system"]).lower()
    operation = str(a.get("db.operation") or span.name.rpartition(".")[2]).lower()
    if operation not in _ASKED:
        return Step(span, Kind.OTHER, NAME, span.name)
    hits = [hit for event in span.events if (hit := _hit(event.attributes)) is not None]
    asked = as_count(a.get(f"db.{system}.query.embeddings_count"))
    unusable = "one call asked several queries, whose hits cannot be told apart" if asked and asked > 1 else None
    if not hits and unusable is None:
        unusable = f"{system}'s instrumentation records no hits"
    return Step(
        span,
        Kind.STORE,
        NAME,
        span.name,
        documents=None if unusable else hits,
        unusable=unusable,
        top_k=as_count(a.get(f"db.{system}.query.n_results") or a.get("db.vector.query.top_k")),
        filters=_where(a.get(f"db.{system}.query.where")),
        metadata=subtree(a, "traceloop.association.properties"),
    )


def _hit(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """One hit out of an event: `db.query.result.id`, `.distance` or `.score`, `.document`, `.metadata`."""
    fields = {key.rpartition(".")[2]: value for key, value in attributes.items() if ".result." in key}
    if "id" not in fields:
        return None
    hit = {"id": fields["id"], "score": fields.get("distance", fields.get("score"))}
    if isinstance(fields.get("document"), str):
        hit["text"] = fields["document"]
    if meta := as_object(fields.get("metadata")):
        hit["metadata"] = meta
    return hit


def _where(value: Any) -> Any:
    found = parsed(value)
    if isinstance(found, str):
        try:
            return ast.literal_eval(found)  # reads literals only, and runs nothing
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return found
