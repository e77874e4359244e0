"""Metadata filters of libraries -> the form of DATA.md: {field: value}, a list is any of, {"gte": ...} is a range.

Recognised by shape: plain dictionaries (also Chroma's and LangChain's, with `$` operators), LlamaIndex
`MetadataFilters`, Haystack filters, Qdrant `Filter`. A filter that this form cannot say (or, not, a function) is None:
not recorded, rather than recorded as something else.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ragaudit.record.plain import plain

_SIGNS = {"==": "eq", "eq": "eq", "in": "in", "any": "in", ">=": "gte", ">": "gt", "<=": "lte", "<": "lt", "!=": "ne"}
_SIGNS |= {"not in": "nin", "nin": "nin", "gte": "gte", "gt": "gt", "lte": "lte", "lt": "lt", "ne": "ne"}


class _CannotSayError(Exception):
    """The filter has a part that the form of DATA.md does not have."""


def filter_of(value: Any) -> dict[str, Any] | None:
    """The filter, `{}` when there is none, None when its form is not known."""
    if value is None:
        return {}
    try:
        found = dict(_joined(_clauses(value)))
    except _CannotSayError:
        return None
    return found


def _clauses(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping):
        if "conditions" in value:
            yield from _all_of(value.get("operator"), value["conditions"])
        elif "field" in value and "operator" in value:
            yield _clause(value["field"], value["operator"], value.get("value"))
        else:
            yield from _fields(value)
    elif isinstance(filters := getattr(value, "filters", None), list):  # LlamaIndex
        yield from _all_of(getattr(value, "condition", None) or "and", filters)
    elif hasattr(value, "key") and hasattr(value, "operator"):
        yield _clause(value.key, value.operator, value.value)
    elif hasattr(value, "must"):  # Qdrant
        if getattr(value, "should", None) or getattr(value, "must_not", None):
            raise _CannotSayError
        for one in value.must or ():
            yield from _qdrant(one)
    else:
        raise _CannotSayError


def _fields(value: Mapping[Any, Any]) -> Iterable[tuple[str, Any]]:
    for field, condition in value.items():
        if field == "$and":
            for part in condition:
                yield from _clauses(part)
        elif str(field).startswith("$") or (found := plain(condition)) is None:
            raise _CannotSayError
        else:
            yield str(field), found


def _all_of(operator: Any, parts: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    if _word(operator) != "and":
        raise _CannotSayError
    for part in parts:
        yield from _clauses(part)


def _clause(field: Any, operator: Any, value: Any) -> tuple[str, Any]:
    sign = _SIGNS.get(_word(operator))
    found = plain(value)
    if sign is None or found is None:
        raise _CannotSayError
    return str(field).removeprefix("meta."), found if sign in ("eq", "in") else {sign: found}


def _qdrant(condition: Any) -> Iterable[tuple[str, Any]]:
    field = str(getattr(condition, "key", None) or "").removeprefix("metadata.").removeprefix("meta.")
    match, bounds = getattr(condition, "match", None), getattr(condition, "range", None)
    wanted = getattr(match, "value", None) if getattr(match, "value", None) is not None else getattr(match, "any", None)
    if bounds is not None:
        wanted = {
            name: found for name in ("gte", "gt", "lte", "lt") if (found := getattr(bounds, name, None)) is not None
        }
    if not field or plain(wanted) is None:
        raise _CannotSayError
    yield field, plain(wanted)


def _joined(clauses: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """Two ranges on one field are one condition; two other clauses on one field are more than the form can say."""
    found: dict[str, Any] = {}
    for field, condition in clauses:
        before = found.get(field)
        if before is None:
            found[field] = condition
        elif isinstance(before, dict) and isinstance(condition, dict) and not before.keys() & condition.keys():
            found[field] = {**before, **condition}
        else:
            raise _CannotSayError
    return found.items()


def _word(operator: Any) -> str:
    return str(getattr(operator, "value", operator)).lower()
