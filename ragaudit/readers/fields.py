"""Single values as files hold them: ids, numbers, free-form objects, and the words for what is wrong with them."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from ragaudit.model.faults import first_fault
from ragaudit.model.ids import as_id
from ragaudit.readers.lines import LineError
from ragaudit.readers.problems import Problems

_FIELD = re.compile(r"[^.:\[]*")
_EPOCHS = ((1e11, 1), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Below the first number a time counts in seconds, milliseconds, microseconds, nanoseconds: years 1973 to 5138."""


class Odd:
    """What was odd but usable in one record: how often each kind occurred in each of its fields, and where first."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, kind: str, message: str) -> None:
        """Count one more; of a kind, the first message of each field is kept: a message begins with its field."""
        field = _FIELD.match(message)
        key = (kind, field[0] if field else "")
        times, first = self.found.get(key, (0, message))
        self.found[key] = (times + 1, first)

    def report(self, problems: Problems, name: str, number: int) -> None:
        """Note all of it at the record's line."""
        for (kind, _), (times, message) in self.found.items():
            problems.note(kind, name, number, message, times)


def id_of(value: Any, path: str) -> str:
    """The id as a string, which is never empty."""
    key = name_of(value, path)
    if not key:
        raise LineError(f"{path}: is empty. Log the id, as the store holds it.")
    return key


def name_of(value: Any, path: str) -> str:
    """As a string. Only strings, integers and UUIDs are ids: 12.0 may once have been "12" or "012"."""
    if isinstance(value, str):
        return value
    text = as_id(value)
    if isinstance(text, str):
        return text
    raise LineError(f"{path}: {shown(value)} is no id. Log ids as text, as the store holds them.")


def ids_of(value: Any, path: str) -> tuple[str, ...]:
    """A list of ids."""
    return tuple(id_of(item, f"{path}[{n}]") for n, item in enumerate(items_of(value, path, "ids")))


def items_of(value: Any, path: str, what: str) -> Sequence[Any]:
    """The items of a list."""
    if isinstance(value, list | tuple):
        return value
    raise LineError(f"{path}: {shown(value)} is no list. Log a list of {what}, or null when it was not observed.")


def table_of(value: Any, path: str) -> Mapping[Any, Any]:
    """The pairs of an object."""
    if isinstance(value, Mapping):
        return value
    raise LineError(f"{path}: {shown(value)} is no object. Log {{...}}, or null when it was not observed.")


def number_of(value: Any, path: str, odd: Odd) -> float | None:
    """A score. NaN and Infinity are no measurement: they become None and are counted."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        odd.add("not_a_number", f"{path}: {shown(value)} was read as null. Log a finite number, or null.")
        return None
    raise LineError(f"{path}: {shown(value)} is no number. Log a number, or null.")


def revision_of(value: Any, path: str, odd: Odd) -> Any:
    """A revision that counts up is read as text; whatever else is no text is left for the record to refuse."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def time_of(value: Any, path: str, odd: Odd) -> Any:
    """A time since 1970, in seconds or a thousandth, millionth, billionth of them, as ISO 8601 in UTC."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    unit = next((per_second for below, per_second in _EPOCHS if 1e8 <= value < below), None)
    if unit is None:
        raise LineError(f"{path}: {shown(value)} is no time. Log ISO 8601, as 2026-10-01T12:00:00Z, or null.")
    return datetime.fromtimestamp(value / unit, UTC).isoformat()


def rank_of(value: Any, path: str, odd: Odd) -> int | None:
    """The logged rank, as it stands. It is only a claim, since the position decides: an unreadable one is dropped."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    kind = "not_a_number" if isinstance(value, float) and not math.isfinite(value) else "rank_not_integer"
    odd.add(kind, f"{path}: {shown(value)} is no rank and was read as null; the position in the list counts.")
    return None


def finite(value: Any, path: str, odd: Odd) -> Any:
    """A free-form value with every NaN and Infinity in it replaced by None, and counted."""
    if isinstance(value, float):
        return number_of(value, path, odd)
    if isinstance(value, dict):
        return {key: finite(item, f"{path}.{key}", odd) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item, f"{path}[{n}]", odd) for n, item in enumerate(value)]
    return value


def shown(value: Any) -> str:
    """What a value is, for a message. Texts are not quoted: they may be secret, and they may be long."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            if value != value:
                return "NaN"
            return f"the number {str(value)[:24]}" if abs(value) < 1e300 else "an infinite number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def quoted(text: str) -> str:
    """An id for a message: escaped, and cut when it is long."""
    return repr(text if len(text) <= 80 else text[:79] + "…")


def explained(error: ValidationError, record: Any, prefix: str = "") -> str:
    """The first thing that pydantic found wrong, with the path of the field: `answer.supported_by[0]: ...`."""
    fault = first_fault(error, lambda loc: walkable(loc, record))
    path = path_of(fault.path, prefix)
    if not fault.wanted:
        return f"{path}: missing. Log it."
    return f"{path}: must be {fault.wanted}, not {shown(fault.found)}. Log it so, or null when it was not observed."


def path_of(parts: Iterable[str | int], prefix: str = "") -> str:
    """`("arms", "dense", 3)` -> `arms.dense[3]`."""
    path = prefix
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def walkable(loc: tuple[str | int, ...], record: Any) -> tuple[str | int, ...]:
    """The part of a location that names keys of the record; pydantic appends the branch of a union."""
    found: list[str | int] = []
    for part in loc:
        is_key = isinstance(record, Mapping) and part in record
        is_place = isinstance(record, list | tuple) and isinstance(part, int) and part < len(record)
        if not is_key and not is_place:
            break
        found.append(part)
        record = record[part]
    return tuple(found)
