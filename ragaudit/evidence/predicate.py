"""Evaluates a logged metadata filter on a chunk, and tells a real mismatch from one of type or case."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

ACL_KEY = "acl"
_EQUAL = {"eq", "$eq", "="}
_AMONG = {"in", "$in", "any"}
_NOT = {"ne", "$ne", "nin", "$nin", "not"}
_RANGE = {"gte": ">=", "$gte": ">=", "gt": ">", "$gt": ">", "lte": "<=", "$lte": "<=", "lt": "<", "$lt": "<"}


class Match(StrEnum):
    """How one clause meets one value."""

    YES = "yes"
    TYPE = "type"
    """Only when both sides are read as text: 3 against "3"."""
    CASE = "case"
    """Only when case is folded: "None" against "none"."""
    NO = "no"
    UNKNOWN = "unknown"
    """The chunk's metadata does not show this field, or the clause is of a form that is not known."""


def clauses(filters: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """The metadata clauses of a filter: (field, condition). ACL clauses stand under `acl` and are not among them."""
    for field, condition in (filters or {}).items():
        if field != ACL_KEY:
            yield field, condition


def match(condition: Any, metadata: Mapping[str, Any] | None, field: str) -> Match:
    """How this field of the chunk meets the condition. Multi-valued metadata matches when any value does."""
    if metadata is None or field not in metadata:
        return Match.UNKNOWN
    stored = metadata[field]
    values = list(stored) if isinstance(stored, (list, tuple)) else [stored]
    if isinstance(condition, Mapping):
        return _worst(_operator(name, wanted, values) for name, wanted in condition.items())
    wanted = list(condition) if isinstance(condition, (list, tuple)) else [condition]
    return _among(wanted, values)


def _operator(name: str, wanted: Any, values: list[Any]) -> Match:
    if name in _EQUAL or name in _AMONG:
        return _among(list(wanted) if isinstance(wanted, (list, tuple)) else [wanted], values)
    if name in _NOT:
        found = _among(list(wanted) if isinstance(wanted, (list, tuple)) else [wanted], values)
        return Match.NO if found is Match.YES else Match.YES if found is Match.NO else Match.UNKNOWN
    if name in _RANGE:
        return Match.YES if any(_ranges(_RANGE[name], value, wanted) for value in values) else Match.NO
    return Match.UNKNOWN


def _ranges(sign: str, value: Any, bound: Any) -> bool:
    number = isinstance(value, (int, float)) and isinstance(bound, (int, float))
    if not number and not (isinstance(value, str) and isinstance(bound, str)):
        return False
    return bool({">=": value >= bound, ">": value > bound, "<=": value <= bound, "<": value < bound}[sign])


def _among(wanted: list[Any], values: list[Any]) -> Match:
    pairs = [(want, value) for want in wanted for value in values]
    if any(type(want) is type(value) and want == value for want, value in pairs):
        return Match.YES
    if any(_numbers_equal(want, value) for want, value in pairs):
        return Match.YES
    if any(_text(want) == _text(value) for want, value in pairs):
        return Match.TYPE
    if any(_text(want).strip().casefold() == _text(value).strip().casefold() for want, value in pairs):
        return Match.CASE
    return Match.NO


def _numbers_equal(a: Any, b: Any) -> bool:
    plain = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (a, b))
    return plain and bool(a == b)


def _text(value: Any) -> str:
    return str(value)


def _worst(found: Iterator[Match]) -> Match:
    order = [Match.NO, Match.TYPE, Match.CASE, Match.UNKNOWN, Match.YES]
    return min(found, key=order.index, default=Match.UNKNOWN)
