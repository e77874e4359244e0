"""Values of the application as plain JSON values, copied at once: what is changed later is not seen."""

import datetime
import decimal
import enum
import math
import numbers
import uuid
from collections.abc import Mapping
from typing import Any

DEPTH = 6
ITEMS = 200
"""Items kept of one object or list: longer ones are vectors and the like, and are left out whole."""


class UnusableError(TypeError):
    """A value that cannot be recorded. Its message says the kind of problem, and no value of the application."""


class _Left:
    """What cannot be written."""


_LEFT = _Left()


def plain(value: Any) -> Any:
    """The value as JSON has it; None for what JSON does not have. Unknown objects are left out of what holds them."""
    found = _plain(value, DEPTH)
    return None if found is _LEFT else found


def table(value: Any) -> dict[str, Any]:
    """An object with plain values.

    Raises:
        UnusableError: It is none.
    """
    found = plain(value)
    if not isinstance(found, dict):
        raise UnusableError("is no object")
    return found


def words(value: Any) -> list[str]:
    """A list of texts: principals, names. A single text is a list of one.

    Raises:
        UnusableError: It is no list of texts.
    """
    if isinstance(value, str):
        return [value]
    return [chunk_id(item) for item in value]


def chunk_id(value: Any) -> str:
    """An id as text.

    Raises:
        UnusableError: It is neither text, integer nor UUID.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, uuid.UUID) or (isinstance(value, numbers.Integral) and not isinstance(value, bool)):
        return str(value)
    raise UnusableError("an id that is neither text, integer nor UUID")


def number(value: Any) -> float | None:
    """A finite number, also of numpy and the like; None for everything else."""
    if type(value) is not float and (value is None or isinstance(value, bool | str | bytes)):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if kind is dict and len(value) <= ITEMS and depth:
        pairs = [(str(key), _plain(item, depth - 1)) for key, item in value.items()]
        return {key: item for key, item in pairs if item is not _LEFT}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _LEFT
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth)
    if isinstance(value, str | uuid.UUID | decimal.Decimal):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return _plain(float(value), depth)
    if depth == 0:
        return _LEFT
    if isinstance(value, Mapping):
        return _plain(dict(value), depth) if len(value) <= ITEMS else _LEFT
    if isinstance(value, list | tuple | set | frozenset):
        items = [_plain(item, depth - 1) for item in value] if len(value) <= ITEMS else None
        return _LEFT if items is None else [item for item in items if item is not _LEFT]
    return _LEFT
