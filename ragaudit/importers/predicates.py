"""Filters as tools write them -> clauses of DATA.md: {field: value}, a list is any of, {"gte": ...} a range."""

from collections.abc import Mapping
from typing import Any

_RANGES = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}
_EQUAL = frozenset({"==", "=", "$eq", "eq"})
_ANY_OF = frozenset({"in", "$in"})
_AND = frozenset({"and", "$and"})


def clauses_of(value: Any) -> dict[str, Any] | None:
    """The clauses of a filter of Haystack, Chroma and of plain objects; None where ours cannot say the same.

    All of it is understood, or none: half a filter would be another filter. Field names lose Haystack's `meta.`.
    """
    if not isinstance(value, Mapping) or not value:
        return None
    if "operator" in value:
        return _haystack(value)
    found: dict[str, Any] = {}
    for field, wanted in value.items():
        if str(field).lower() in _AND:
            clauses = _all_of(wanted)
        elif str(field).startswith("$"):
            return None
        else:
            clauses = _clause(str(field), wanted)
        if clauses is None or not _joined(found, clauses):
            return None
    return found


def _haystack(value: Mapping[str, Any]) -> dict[str, Any] | None:
    operator = str(value["operator"]).lower()
    if operator in _AND:
        return _all_of(value.get("conditions"))
    field = value.get("field")
    if not isinstance(field, str) or "value" not in value:
        return None
    return _operated(field.removeprefix("meta."), operator, value["value"])


def _clause(field: str, wanted: Any) -> dict[str, Any] | None:
    if not isinstance(wanted, Mapping):
        return {field: list(wanted) if isinstance(wanted, list | tuple) else wanted}
    if wanted and set(wanted) <= {"gte", "gt", "lte", "lt"}:
        return {field: dict(wanted)}
    found: dict[str, Any] = {}
    for operator, operand in wanted.items():
        clauses = _operated(field, str(operator), operand)
        if clauses is None or not _joined(found, clauses):
            return None
    return found or None


def _operated(field: str, operator: str, operand: Any) -> dict[str, Any] | None:
    if operator in _EQUAL:
        return None if isinstance(operand, list | tuple | Mapping) else {field: operand}
    if operator in _ANY_OF and isinstance(operand, list | tuple):
        return {field: list(operand)}
    return {field: {_RANGES[operator]: operand}} if operator in _RANGES else None


def _all_of(parts: Any) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for part in parts if isinstance(parts, list | tuple) else ():
        clauses = clauses_of(part)
        if clauses is None or not _joined(found, clauses):
            return None
    return found or None


def _joined(found: dict[str, Any], clauses: Mapping[str, Any]) -> bool:
    """Add the clauses in place; False where two on the same field are no range together."""
    for field, wanted in clauses.items():
        before = found.get(field)
        if before is None:
            found[field] = wanted
        elif isinstance(before, Mapping) and isinstance(wanted, Mapping) and before.keys().isdisjoint(wanted):
            found[field] = {**before, **wanted}
        else:
            return False
    return True
