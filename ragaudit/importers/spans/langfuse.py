"""Langfuse's SDK before its server: `langfuse.observation.type`, input and output as text or JSON."""

from collections.abc import Mapping
from typing import Any

from ragaudit.importers.passages import documents_in
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import Kind, Step, class_of, parsed, question_in, subtree, texts_in

NAME = "Langfuse"
_KINDS = {"retriever": Kind.RETRIEVER, "embedding": Kind.EMBEDDING, "generation": Kind.LLM}


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None. It has no type for rerankers: they are plain spans."""
    a = span.attributes
    said = a.get("langfuse.observation.type")
    if said is None:
        return None
    kind = _KINDS.get(str(said).lower(), Kind.OTHER)
    given, made = parsed(a.get("langfuse.observation.input")), parsed(a.get("langfuse.observation.output"))
    model = a.get("langfuse.observation.model.name")
    own, whole = (subtree(a, f"langfuse.{each}.metadata") for each in ("observation", "trace"))
    return Step(
        span,
        kind,
        NAME,
        class_of(span.name),
        query=question_in(given),
        documents=documents_in(made) if kind is Kind.RETRIEVER else None,
        prompt=texts_in(given) or None if kind is Kind.LLM else None,
        answer=_text(made) if kind in (Kind.LLM, Kind.OTHER) else None,
        model=str(model) if kind is Kind.EMBEDDING and model else None,
        metadata={key: parsed(value) for key, value in {**whole, **own}.items()},
    )


def _text(made: Any) -> str | None:
    said = made.get("content") if isinstance(made, Mapping) else made
    return said if isinstance(said, str) and said.strip() else None
