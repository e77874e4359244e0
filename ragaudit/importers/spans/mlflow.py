"""MLflow's spans: `mlflow.spanType`, `mlflow.spanInputs`, `mlflow.spanOutputs`, each JSON in a text."""

from collections.abc import Mapping
from typing import Any

from ragaudit.importers.passages import documents_in
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import Kind, Step, as_count, class_of, parsed, question_in, texts_in

NAME = "MLflow"
_KINDS = {
    "RETRIEVER": Kind.RETRIEVER,
    "RERANKER": Kind.RERANKER,
    "EMBEDDING": Kind.EMBEDDING,
    "CHAT_MODEL": Kind.LLM,
    "LLM": Kind.LLM,
}


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None."""
    a = span.attributes
    if "mlflow.spanType" not in a and "mlflow.spanInputs" not in a:
        return None
    kind = _KINDS.get(str(parsed(a.get("mlflow.spanType"))), Kind.OTHER)
    given, made = parsed(a.get("mlflow.spanInputs")), parsed(a.get("mlflow.spanOutputs"))
    inputs: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    is_list = kind in (Kind.RETRIEVER, Kind.RERANKER)
    return Step(
        span,
        kind,
        NAME,
        class_of(span.name),
        query=question_in(given),
        documents=documents_in(made) if is_list else None,
        inputs=documents_in(given) if kind is Kind.RERANKER else None,
        prompt=texts_in(given) or None if kind is Kind.LLM else None,
        answer=_answer(made) if kind in (Kind.LLM, Kind.OTHER) else None,
        top_k=as_count(inputs.get("top_k") or inputs.get("k")),
        filters=inputs.get("filters") or inputs.get("filter"),
        metadata={key: parsed(value) for key, value in a.items() if not key.startswith("mlflow.")},
    )


def _answer(made: Any) -> str | None:
    if isinstance(made, Mapping):
        made = next((made[key] for key in ("answer", "output", "response", "content", "text") if key in made), None)
    return made if isinstance(made, str) and made.strip() else None
