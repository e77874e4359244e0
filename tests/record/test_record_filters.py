"""Filters of libraries in the form that the audit evaluates, or nothing."""

from types import SimpleNamespace as Shape
from typing import Any

import pytest

from ragaudit.record.filters import filter_of

HAYSTACK = {"field": "meta.tenant", "operator": "==", "value": "acme"}
SINCE = {"field": "meta.year", "operator": ">=", "value": 2020}
UNTIL = {"field": "meta.year", "operator": "<", "value": 2026}


def llama(operator: str, value: Any) -> Any:
    return Shape(key="tenant", operator=Shape(value=operator), value=value)


KNOWN: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": (None, {}),
    "plain": ({"tenant": "acme", "kind": ["a", "b"]}, {"tenant": "acme", "kind": ["a", "b"]}),
    "Chroma": (
        {"$and": [{"tenant": {"$eq": "acme"}}, {"n": {"$gte": 3}}]},
        {"tenant": {"$eq": "acme"}, "n": {"$gte": 3}},
    ),
    "Haystack": (HAYSTACK, {"tenant": "acme"}),
    "Haystack, a range": (
        {"operator": "AND", "conditions": [HAYSTACK, SINCE, UNTIL]},
        {"tenant": "acme", "year": {"gte": 2020, "lt": 2026}},
    ),
    "LlamaIndex": (Shape(filters=[llama("==", "acme")], condition=Shape(value="and")), {"tenant": "acme"}),
    "LlamaIndex in": (Shape(filters=[llama("in", ["a", "b"])], condition=None), {"tenant": ["a", "b"]}),
    "Qdrant": (
        Shape(
            must=[
                Shape(key="metadata.tenant", match=Shape(value="acme"), range=None),
                Shape(key="n", match=None, range=Shape(gte=3, lt=None, gt=None, lte=None)),
            ],
            should=None,
            must_not=None,
        ),
        {"tenant": "acme", "n": {"gte": 3}},
    ),
}


@pytest.mark.parametrize(("given", "expected"), KNOWN.values(), ids=KNOWN)
def test_a_filter_is_read_as_clauses_that_all_hold(given: Any, expected: dict[str, Any]) -> None:
    assert filter_of(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"$or": [{"a": 1}, {"b": 2}]},
        {"operator": "OR", "conditions": [HAYSTACK]},
        {"operator": "AND", "conditions": [{"operator": "NOT", "conditions": [HAYSTACK]}]},
        {"operator": "AND", "conditions": [HAYSTACK, {**HAYSTACK, "value": "globex"}]},
        Shape(filters=[llama("text_match", "x")], condition="and"),
        Shape(must=[], should=[1], must_not=None),
        {"tenant": object()},
        lambda document: True,
        "tenant = 'acme'",
    ],
    ids=["or", "Haystack or", "not", "twice", "text match", "should", "object", "function", "text"],
)
def test_what_this_form_cannot_say_is_not_recorded(given: Any) -> None:
    assert filter_of(given) is None
