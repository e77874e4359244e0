"""How a value is written into a file that people review: JSON on one line, in which no character can hide."""

import json
from typing import Any


def json_line(value: Any, *, sort_keys: bool = False) -> str:
    """Compact JSON that shows letters of every script and escapes what acts instead of showing.

    Control and direction characters, separators and characters without a shape would make a line read as something
    else in a review; they become JSON escapes, which read back as they were.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=sort_keys, allow_nan=False)
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]
