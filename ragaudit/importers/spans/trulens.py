"""TruLens's spans: `ai.observability.span_type`, contexts as texts without ids."""

import re
from collections.abc import Mapping
from typing import Any

from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import Kind, Step, as_count, class_of, question_in, subtree, texts_in

NAME = "TruLens"
BASE = "ai.observability"
_SAYS_NOTHING = re.compile(r"_*a?(retrieve|query|search|run|invoke|call|get_relevant_documents)_*")
_KINDS = {
    "retrieval": Kind.RETRIEVER,
    "reranking": Kind.RERANKER,
    "embedding": Kind.EMBEDDING,
    "generation": Kind.LLM,
}


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None. Spans of evaluations are no steps of a query."""
    a = span.attributes
    said = a.get(f"{BASE}.span_type")
    if said is None:
        return None
    kind = _KINDS.get(str(said), Kind.OTHER)
    own = subtree(a, f"{BASE}.{said}")
    name = _name(span.name)
    query = own.get("query_text") or own.get("input") or (a.get(f"{BASE}.call.kwargs.query") if own else None)
    documents = inputs = None
    if kind is Kind.RETRIEVER:
        documents = _scored(own.get("retrieved_contexts"), own.get("retrieved_scores"))
    elif kind is Kind.RERANKER:
        inputs = _scored(own.get("input_context_texts"), own.get("input_context_scores"))
        documents = _reranked(own, inputs)
    return Step(
        span,
        kind,
        NAME,
        name,
        query=question_in(query),
        documents=documents,
        inputs=inputs,
        prompt=texts_in(list(subtree(a, f"{BASE}.call.kwargs").values())) or None if kind is Kind.LLM else None,
        answer=_text(own.get("output") or a.get(f"{BASE}.call.return")) if kind in (Kind.LLM, Kind.OTHER) else None,
        model=_text(a.get(f"{BASE}.cost.model")) if kind is Kind.RETRIEVER else None,
        top_k=as_count(own.get("num_contexts") if kind is Kind.RETRIEVER else own.get("top_n")),
    )


def _name(path: str) -> str:
    """The function's own name, or that of its class where it is called what every retriever's is."""
    method = path.rpartition(".")[2]
    return class_of(".".join(path.split(".")[-2:])) if _SAYS_NOTHING.fullmatch(method) else method


def _scored(texts: Any, scores: Any) -> list[Any] | None:
    if not isinstance(texts, list):
        return None
    paired = scores if isinstance(scores, list) and len(scores) == len(texts) else [None] * len(texts)
    return [{"text": str(text), "score": score} for text, score in zip(texts, paired, strict=True)]


def _reranked(own: Mapping[str, Any], inputs: list[Any] | None) -> list[Any] | None:
    """`output_ranks` are places in the list of inputs, best first; 0-based."""
    ranks = own.get("output_ranks")
    if inputs is None or not isinstance(ranks, list):
        return None
    places = [
        rank for rank in ranks if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < len(inputs)
    ]
    if len(places) != len(ranks):
        return None
    scores = own.get("output_context_scores")
    texts = [inputs[place]["text"] for place in places]
    return _scored(texts, scores)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
