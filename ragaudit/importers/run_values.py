"""What the inputs and outputs of a logged run hold: the query, the prompt, the answer, limit and filter, the labels."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.importers.conventions import GOLD_IDS
from ragaudit.importers.passages import ID_KEYS, META_KEYS, TEXT_KEYS
from ragaudit.importers.predicates import clauses_of

QUERY_KEYS = ("query", "question", "input", "user_input", "user_query", "query_str", "search_query", "text", "prompt")
ANSWER_KEYS = ("answer", "output", "response", "result", "text", "content", "completion", "generations", "choices")
LIMIT_KEYS = ("k", "top_k", "top_n", "limit", "similarity_top_k", "n_results")
FILTER_KEYS = ("filters", "filter", "where")
GOLD_TEXT_KEYS = ("reference_contexts", "gold_texts", "expected_contexts")
REFERENCE_KEYS = (
    "reference",
    "expected_output",
    "expectedOutput",
    "reference_answer",
    "ground_truth",
    "answer",
    "output",
)
_DEEPEST = 6
"""Levels that are looked into; a deeper text is not what these keys mean."""


@dataclass(frozen=True)
class Labels:
    """What a data set says of a query; None = it does not say."""

    reference: str | None = None
    gold_ids: tuple[Any, ...] | None = None
    gold_texts: tuple[Any, ...] | None = None

    def __or__(self, other: "Labels") -> "Labels":
        """These, and the other's where these are silent."""
        return Labels(
            self.reference if self.reference is not None else other.reference,
            self.gold_ids if self.gold_ids is not None else other.gold_ids,
            self.gold_texts if self.gold_texts is not None else other.gold_texts,
        )


def decoded(value: Any) -> Any:
    """A JSON text as what it stands for; everything else as it is: a number in a text stays text."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def decoded_list(value: Any) -> list[Any]:
    """A list, or the JSON text of one; empty when it is none."""
    found = decoded(value)
    return found if isinstance(found, list) else []


def decoded_map(value: Any) -> dict[str, Any]:
    """An object whose values may be JSON texts, without its nulls; empty when it is none."""
    found = decoded(value)
    return {str(k): decoded(v) for k, v in found.items() if v is not None} if isinstance(found, Mapping) else {}


def query_in(inputs: Any) -> str | None:
    """The question in the inputs of a run: a text, a known key, or the last message of a person."""
    if isinstance(inputs, str):
        return inputs if inputs.strip() else None
    if not isinstance(inputs, Mapping):
        return None
    if isinstance(messages := inputs.get("messages"), list) and (said := _last_by_person(messages)):
        return said
    for key in QUERY_KEYS:
        found = inputs.get(key)
        if isinstance(found, Mapping):
            found = query_in(found)
        if isinstance(found, str) and found.strip():
            return found
    texts = [value for value in inputs.values() if isinstance(value, str) and value.strip()]
    return texts[0] if len(texts) == 1 else None


def prompt_in(inputs: Any) -> str | None:
    """The text of the prompt that a model was sent: messages in any form, prompts, or one text."""
    if isinstance(inputs, Mapping):
        inputs = next(
            (inputs[k] for k in ("messages", "prompts", "prompt", "input", "contents") if inputs.get(k)), None
        )
    return _text_of(inputs, _DEEPEST) or None


def answer_in(outputs: Any) -> str | None:
    """The text of an answer: as it is, under a known key, of a generation or a choice."""
    return _answer(outputs, _DEEPEST)


def limit_in(*places: Any) -> int | None:
    """How many hits were asked for, where the inputs say it."""
    found = _first(places, LIMIT_KEYS)
    if isinstance(found, str) and found.isascii() and found.isdigit():  # metadata that a tool keeps as text
        found = int(found[:9])
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def filter_in(*places: Any) -> dict[str, Any] | None:
    """The filter that was sent, as clauses of ours, where the inputs say it. `{}` = sent, and empty."""
    found = decoded(_first(places, FILTER_KEYS))
    return {} if found == {} else clauses_of(found)


def labels_in(value: Any) -> Labels:
    """Reference and gold in the outputs of an example or in metadata. A bare text is the reference."""
    value = decoded(value)
    if isinstance(value, str):
        return Labels(value) if value.strip() else Labels()
    if not isinstance(value, Mapping):
        return Labels()
    reference = next((text for key in REFERENCE_KEYS if (text := answer_in(decoded(value.get(key)))) is not None), None)
    return Labels(reference, _listed(value, GOLD_IDS), _listed(value, GOLD_TEXT_KEYS))


def looks_like_hits(value: Any) -> bool:
    """A list of documents and nothing else: each with a text or with an id and its score or metadata; no messages."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, Mapping) and "role" not in item and _is_hit(item) for item in value)


def _is_hit(item: Mapping[str, Any]) -> bool:
    inner = next((item[k] for k in ("node", "document", "kwargs") if isinstance(item.get(k), Mapping)), item)
    if any(isinstance(inner.get(key), str) for key in TEXT_KEYS):
        return any(key in inner for key in (*ID_KEYS, *META_KEYS, "score", "page_content", "pageContent"))
    has_id = any(inner.get(key) is not None for key in ID_KEYS)
    return has_id and any(key in item or key in inner for key in ("score", *META_KEYS))


def _last_by_person(messages: list[Any]) -> str | None:
    flat = messages[0] if messages and isinstance(messages[0], list) else messages
    for message in reversed(flat):
        if isinstance(message, Mapping):
            inner = message["kwargs"] if isinstance(message.get("kwargs"), Mapping) else message
            if inner.get("role", inner.get("type")) in ("user", "human"):
                return _text_of(inner.get("content"), _DEEPEST) or None
    return None


def _text_of(value: Any, depth: int) -> str:
    """All text of messages, parts and prompts, in order."""
    if isinstance(value, str):
        return value
    if depth == 0:
        return ""
    if isinstance(value, list):
        return "\n".join(text for item in value if (text := _text_of(item, depth - 1)))
    if isinstance(value, Mapping):
        inner = value["kwargs"] if isinstance(value.get("kwargs"), Mapping) else value
        return _text_of(next((inner[k] for k in ("content", "text", "parts") if inner.get(k)), None), depth - 1)
    return ""


def _answer(value: Any, depth: int) -> str | None:
    if isinstance(value, str):
        return value
    if depth == 0:
        return None
    if isinstance(value, list):
        parts = [text for item in value if (text := _answer(item, depth - 1))]
        return parts[-1] if parts else None
    if isinstance(value, Mapping):
        keys = ("message", "kwargs", *ANSWER_KEYS)
        return next((text for key in keys if value.get(key) and (text := _answer(value[key], depth - 1))), None)
    return None


def _first(places: tuple[Any, ...], keys: tuple[str, ...]) -> Any:
    maps = [place for place in places if isinstance(place, Mapping)]
    return next((place[key] for place in maps for key in keys if place.get(key) is not None), None)


def _listed(value: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    found = next((item for key in keys if isinstance(item := decoded(value.get(key)), list)), None)
    return None if found is None else tuple(found)
