"""OpenInference (Phoenix, Arize): `openinference.span.kind` and indexed documents."""

import re
from collections.abc import Mapping
from typing import Any

from ragaudit.importers.passages import documents_in
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import (
    LIMIT,
    Kind,
    Step,
    as_count,
    as_object,
    class_of,
    in_order,
    indexed,
    parsed,
    question_in,
    subtree,
    texts_in,
)

NAME = "OpenInference"
_KINDS = {
    "RETRIEVER": Kind.RETRIEVER,
    "RERANKER": Kind.RERANKER,
    "EMBEDDING": Kind.EMBEDDING,
    "LLM": Kind.LLM,
    "PROMPT": Kind.PROMPT,
}
_HAYSTACK_REPR = re.compile(r"^Document\(id=(.*?), (?:content|dataframe|blob|meta|score): ?", re.DOTALL)


def step_of(span: Span) -> Step | None:
    """The step of a span of this dialect, else None."""
    a = span.attributes
    said = a.get("openinference.span.kind")
    if said is None:
        return None
    name = class_of(span.name)
    kind = _kind(str(said).upper(), name, a)
    given = parsed(a.get("input.value"))
    documents, unusable, inputs = _lists(span, kind)
    return Step(
        span,
        kind,
        NAME,
        name,
        query=question_in(a.get("reranker.query") or a.get("input.value")),
        documents=documents,
        inputs=inputs,
        unusable=unusable,
        prompt=_prompt(a, kind),
        answer=_answer(a, kind),
        model=_text(a.get("embedding.model_name")),
        top_k=as_count(a.get("reranker.top_k") or _of(given, "top_k", "k")),
        filters=_of(given, "filters", "filter", "where"),
        metadata=as_object(a.get("metadata")) or subtree(a, "metadata"),
    )


def _kind(said: str, name: str, a: Mapping[str, Any]) -> Kind:
    kind = _KINDS.get(said, Kind.OTHER)
    if kind is Kind.LLM and name.endswith("PromptBuilder"):
        return Kind.PROMPT
    if kind is Kind.OTHER and any(key.startswith("retrieval.documents") for key in a):
        return Kind.RETRIEVER  # a TOOL or CHAIN that holds a list all the same
    return Kind.JOINER if kind is Kind.OTHER and name.endswith("Joiner") else kind


def _lists(span: Span, kind: Kind) -> tuple[list[Any] | None, str | None, list[Any] | None]:
    """(documents, why they are unusable, inputs)."""
    a = span.attributes
    if kind is Kind.RERANKER:
        found, why = _documents(span, "reranker.output_documents")
        given, lost = _documents(span, "reranker.input_documents")
        whole = _whole(a)
        return (found or whole), why or lost, (None if lost else given or None)
    if kind is Kind.JOINER:
        written = parsed(a.get("output.value"))
        reprs = written.get("documents") if isinstance(written, Mapping) else None
        ids = [_HAYSTACK_REPR.match(item) for item in reprs if isinstance(item, str)] if isinstance(reprs, list) else []
        known = [{"id": found[1]} for found in ids if found]
        return (known if known and len(known) == len(ids) else None), None, None
    if kind is not Kind.RETRIEVER:
        return None, None, None
    found, why = _documents(span, "retrieval.documents")
    whole = _whole(a)
    if whole is not None and (why or not found):
        return whole, None, None
    if whole is not None and len(whole) == len(found):
        found = [{**of_whole, **document} for of_whole, document in zip(whole, found, strict=True)]
    return (found or None), why, None


def _documents(span: Span, prefix: str) -> tuple[list[Any], str | None]:
    found, why = in_order(indexed(span.attributes, prefix))
    if found and (span.dropped or _begins_in_the_middle(found)):
        why = why or f"attributes of its span were dropped. {LIMIT}"
    return [] if why else [_document(item) for item in found], why


def _begins_in_the_middle(found: list[dict[str, Any]]) -> bool:
    """The first document lacks what all others have: the drop of the oldest attributes ended within it."""
    own = ("document.id", "document.content", "document.score")
    first, *others = found
    return any(name not in first and all(name in each for each in others) for name in own) if others else False


def _document(item: Mapping[str, Any]) -> dict[str, Any]:
    inner = item.get("document")
    fields = inner if isinstance(inner, Mapping) else subtree(item, "document")
    meta = as_object(fields["metadata"]) if "metadata" in fields else subtree(fields, "metadata")
    kept = {name: fields[name] for name in ("id", "content", "score") if fields.get(name) not in (None, "")}
    if meta:
        kept["metadata"] = meta
    return kept


def _whole(a: Mapping[str, Any]) -> list[Any] | None:
    """The documents as the output's JSON has them: LangChain writes their ids there only. Texts of `repr` are none."""
    output = parsed(a.get("output.value"))
    if isinstance(output, str) or output is None:
        return None
    whole = documents_in(output)
    return whole if whole is not None and all(isinstance(item, Mapping) for item in whole) else None


def _prompt(a: Mapping[str, Any], kind: Kind) -> str | None:
    if kind is Kind.PROMPT:
        return texts_in(a.get("output.value")) or None
    if kind is not Kind.LLM:
        return None
    messages, _ = in_order(indexed(a, "llm.input_messages"))
    prompts, _ = in_order(indexed(a, "llm.prompts"))
    found = [text for message in messages for text in _message(message)]
    found += [texts_in(prompt) for prompt in prompts]
    return "\n".join(found) or texts_in(a.get("input.value")) or None


def _message(item: Mapping[str, Any]) -> list[str]:
    contents, _ = in_order(indexed(item, "message.contents"))
    parts = [str(part["message_content.text"]) for part in contents if part.get("message_content.text")]
    said = item.get("message.content")
    return ([said] if isinstance(said, str) else []) + parts


def _answer(a: Mapping[str, Any], kind: Kind) -> str | None:
    """What the model said, or what the step gave back as plain text."""
    if kind is Kind.LLM:
        messages, _ = in_order(indexed(a, "llm.output_messages"))
        if found := [text for message in messages for text in _message(message)]:
            return "\n".join(found)
    output = parsed(a.get("output.value"))
    return output if kind in (Kind.LLM, Kind.OTHER) and isinstance(output, str) and output.strip() else None


def _of(value: Any, *keys: str) -> Any:
    if not isinstance(value, Mapping):
        return None
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
