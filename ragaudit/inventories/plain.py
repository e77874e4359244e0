"""Values of any client as JSON can hold them."""

import math
from collections.abc import Mapping
from typing import Any

_DEEPEST = 40


def plain(value: Any, depth: int = 0) -> Any:
    """The value in JSON's terms: times in ISO 8601, ids and decimals as text, no NaN; bytes are left out as None."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return writable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > _DEEPEST or isinstance(value, (bytes, bytearray, memoryview)):
        return None
    if isinstance(value, Mapping):
        return {writable(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if hasattr(value, "tolist"):
        return plain(value.tolist(), depth + 1)
    return writable(str(value))


def writable(text: str) -> str:
    """The text without halves of surrogate pairs, which no file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text
