"""What a span means to a RAG pipeline, in the words of no dialect; and how values inside spans are read."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ragaudit.importers.spans.span import Span
from ragaudit.readers.lines import LineError, parse_json
from ragaudit.readers.problems import Problems

QUERY_KEYS = (
    "query_str",
    "query",
    "question",
    "user_input",
    "input",
    "text",
    "q",
    "prompt",
    "inputs",
    "str_or_query_bundle",
    "query_bundle",
    "data",
    "messages",
)
_NOT_A_QUERY = frozenset({"filters", "filter", "where", "metadata", "meta", "tags", "documents", "nodes"})
_METHOD = re.compile(r"^([A-Z]\w*)\.(_*[a-z]\w*)$")
MAX_GAP = 10_000
LIMIT = "The SDK drops the oldest attributes beyond 128: set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000"


class Kind(StrEnum):
    """What a step does."""

    RETRIEVER = "retriever"
    STORE = "store"
    """A vector store that was asked, seen by the store's own instrumentation."""
    RERANKER = "reranker"
    JOINER = "joiner"
    EMBEDDING = "embedding"
    PROMPT = "prompt"
    LLM = "llm"
    OTHER = "other"


LISTS = frozenset({Kind.RETRIEVER, Kind.STORE, Kind.RERANKER, Kind.JOINER})
"""The kinds that make a list of documents."""


@dataclass(frozen=True)
class Step:
    """One span with its meaning. `None` = not logged; an empty list of documents = it ran and found nothing."""

    span: Span
    kind: Kind
    dialect: str
    name: str
    query: str | None = None
    documents: list[Any] | None = None
    """What it gave back, best first, as `passages.hits_of` reads it."""
    inputs: list[Any] | None = None
    """What it was given: the candidates of a reranker."""
    unusable: str | None = None
    """Why its documents are not read although there are some."""
    prompt: str | None = None
    answer: str | None = None
    model: str | None = None
    """The embedding model, where the step says which."""
    top_k: int | None = None
    filters: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    named: bool = False
    """Its name was chosen for this step (a component, a data source), and is not that of a class or method."""
    guessed: bool = False
    """Nothing says its kind but its name."""


def class_of(name: str) -> str:
    """`BM25Retriever.retrieve` -> `BM25Retriever`; other names stay."""
    found = _METHOD.match(name)
    return found[1] if found else name


def parsed(value: Any) -> Any:
    """A value that may be JSON in a text, as what it stands for; a text that is no JSON stays a text."""
    if not isinstance(value, str) or value[:1].strip() not in ("{", "[", '"', ""):
        return value
    try:
        return parse_json(value.encode(), "", 1, Problems())
    except LineError:
        return value


def as_object(value: Any) -> dict[str, Any]:
    """Metadata: an object, JSON, or Python's own writing of a dict. Anything else is empty."""
    found = parsed(value)
    if isinstance(found, str):
        try:
            found = ast.literal_eval(found)  # reads literals only, and runs nothing
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return {}
    if not isinstance(found, Mapping):
        return {}
    return {str(key): item for key, item in found.items() if item is not None}


def as_count(value: Any) -> int | None:
    """A whole number from 1, also as float or text; None for everything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:9])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 1_000_000:
        return None
    return int(value) if value == int(value) else None


def question_in(value: Any, depth: int = 5) -> str | None:
    """The question inside the input of a step: the text itself, the value under a known key, the last user message."""
    if not (isinstance(value, str) and value.startswith('"')):  # quotes belong to the question
        value = parsed(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if depth == 0:
        return None
    if isinstance(value, list):
        turns = [turn for turn in reversed(value) if isinstance(turn, Mapping | str | list)]
        asked = [t for t in turns if isinstance(t, Mapping) and t.get("role", t.get("type")) in ("user", "human")]
        return next((found for turn in asked or turns if (found := _said(turn, depth - 1)) is not None), None)
    if not isinstance(value, Mapping):
        return None
    for key in QUERY_KEYS:
        if value.get(key) is not None and (found := question_in(value[key], depth - 1)) is not None:
            return found
    inner = (item for key, item in value.items() if isinstance(item, Mapping) and key not in _NOT_A_QUERY)
    return next((found for item in inner if (found := question_in(item, depth - 1)) is not None), None)


def texts_in(value: Any) -> str:
    """Every text inside a value, in order, a line each: enough to look whether a chunk stands in it."""
    return "\n".join(_texts(parsed(value)))


def indexed(attributes: Mapping[str, Any], prefix: str) -> dict[int, dict[str, Any]]:
    """`{prefix}.{i}.{rest}` by i, also where the list is one value: of Parquet, or JSON in a text."""
    if prefix in attributes and isinstance(whole := parsed(attributes[prefix]), list):
        return {i: dict(item) if isinstance(item, Mapping) else {"": item} for i, item in enumerate(whole)}
    found: dict[int, dict[str, Any]] = {}
    start = f"{prefix}."
    cut = len(start)
    for key in [key for key in attributes if key.startswith(start)]:
        number, _, rest = key[cut:].partition(".")
        if number.isdecimal() and number.isascii() and len(number) < 7:
            found.setdefault(int(number), {})[rest] = attributes[key]
    return found


def in_order(found: Mapping[int, Any]) -> tuple[list[Any], str | None]:
    """The items at the places their index says, `{}` where one is missing; and why they cannot be used, if so."""
    if not found:
        return [], None
    if 0 not in found:
        return [], f"its first ranks are missing. {LIMIT}"
    if max(found) - len(found) > MAX_GAP:
        return [], "its list has too many holes"
    return [found.get(i, {}) for i in range(max(found) + 1)], None


def subtree(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """`{prefix}.{name}` by name: metadata that was flattened."""
    start = f"{prefix}."
    return {key[len(start) :]: value for key, value in values.items() if key.startswith(start) and value is not None}


def _said(turn: Any, depth: int) -> str | None:
    """The text of a chat message in one of its forms, or of a bare text."""
    if not isinstance(turn, Mapping):
        return question_in(turn, depth)
    for key in ("content", "parts", "kwargs", "text"):
        if turn.get(key) is not None:
            found = question_in(turn[key], depth) if not isinstance(turn[key], Mapping) else _said(turn[key], depth - 1)
            if found is not None:
                return found
    return question_in(turn, depth)


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting.extend(reversed(list(item.values())))
        elif isinstance(item, list | tuple):
            waiting.extend(reversed(item))
