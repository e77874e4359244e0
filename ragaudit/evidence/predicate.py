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
    LOOSE = "loose"
    """Not word for word, which is how a store compares; but the row has no value there (null), or a language of which
    one side names a region and the other does not (es, es-MX): that does not prove that the row is another's."""
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
    found = _compared(condition, values)
    is_null = bool(values) and all(value is None for value in values)
    if found is Match.NO and (is_null or (_is_language(field) and _same_language(condition, values))):
        return Match.LOOSE
    return found


def _compared(condition: Any, values: list[Any]) -> Match:
    if isinstance(condition, Mapping):
        return _worst(_operator(name, wanted, values) for name, wanted in condition.items())
    return _among(_listed(condition), values)


def _operator(name: str, wanted: Any, values: list[Any]) -> Match:
    if name in _EQUAL or name in _AMONG:
        return _among(_listed(wanted), values)
    if name in _NOT:
        found = _among(_listed(wanted), values)
        return Match.NO if found is Match.YES else Match.YES if found is Match.NO else Match.UNKNOWN
    if name in _RANGE:
        return _best(_ranges(_RANGE[name], value, wanted) for value in values)
    return Match.UNKNOWN


def _ranges(sign: str, value: Any, bound: Any) -> Match:
    """A number in words is compared as a number: in the range, it differs from what was asked for in type alone."""
    alike = isinstance(value, str) and isinstance(bound, str)
    if not alike and not (isinstance(value, (int, float)) and isinstance(bound, (int, float))):
        a, b = _number(value), _number(bound)
        if a is None or b is None:
            return Match.NO if value is None else Match.UNKNOWN
        return Match.TYPE if _ranges(sign, a, b) is Match.YES else Match.NO
    held = {">=": value >= bound, ">": value > bound, "<=": value <= bound, "<": value < bound}[sign]
    return Match.YES if held else Match.NO


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None


def _is_language(field: str) -> bool:
    return field.rsplit(".", 1)[-1].casefold() in ("lang", "language")


def _same_language(condition: Any, values: list[Any]) -> bool:
    """Some value and some wanted one are one language, and only one of the two names a region."""
    wanted = [tag for tag in _listed(condition) if isinstance(tag, str)]
    return any(_adds_region(a, b) or _adds_region(b, a) for a in wanted for b in values if isinstance(b, str))


def _adds_region(short: str, long: str) -> bool:
    return long.casefold().replace("_", "-").startswith(f"{short.casefold()}-")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


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


_ORDER = (Match.NO, Match.LOOSE, Match.TYPE, Match.CASE, Match.UNKNOWN, Match.YES)
"""From the worst to the best."""


def _worst(found: Iterator[Match]) -> Match:
    return min(found, key=_ORDER.index, default=Match.UNKNOWN)


def _best(found: Iterator[Match]) -> Match:
    return max(found, key=_ORDER.index, default=Match.NO)
