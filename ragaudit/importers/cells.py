"""What a cell holds: lists, written as JSON, as Python prints them or joined by a sign; and ids, which stay text."""

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Mapping
from typing import Any
from uuid import UUID

JOINTS = ("|", ";", ",")
"""What lists in a cell are joined by. `|` always parts them, the others only where no part holds a blank."""
_ARRAY = re.compile(r"^array\((\[.*\])(?:, *dtype=\w+)?\)$", re.DOTALL)
_SIDE_BY_SIDE = re.compile(r"""['"]\s+['"]""")


def listed(value: Any) -> list[Any] | None:
    """A list, also one that a cell holds as Python or numpy printed it; None = there is none."""
    if isinstance(value, str):
        value = _printed(value.strip())
    return list(value) if isinstance(value, list | tuple) else None


def listing(value: Any) -> list[Any] | None:
    """A list out of a cell, however it is written; a single value is a list of one. None = the cell is empty."""
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return None if value is None or isinstance(value, Mapping) else [value]
    text = value.strip()
    if text.startswith(("[", "array(")):
        found = _json(text)
        if (read := found if isinstance(found, list) else listed(text)) is not None:
            return read
        if text.endswith("]"):
            text = text.strip("[]")  # [kb-1, 0012]: no quotes around its items
    for joint in JOINTS:
        parts = [part.strip() for part in text.split(joint) if part.strip()]
        if len(parts) > 1 and (joint == "|" or not any(re.search(r"\s", part) for part in parts)):
            return parts
    return [part.strip() for part in text.split("|") if part.strip()] or None


def joined_texts(value: Any) -> list[Any] | None:
    """Texts out of a cell: a list, or texts that were joined by `|`. A comma parts no texts."""
    if isinstance(value, str) and not value.strip().startswith("["):
        return [part.strip() for part in value.split("|") if part.strip()] or None
    return listing(value)


def plain(value: Any) -> Any:
    """A cell that holds JSON, or a word of Python's (`True`, `{'a': 1}`), as the value it stands for."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    found = _json(text)
    if found is None and text.startswith(("{", "[", "True", "False")):
        found = _literal(text)
    return value if found is None else found


def id_text(value: Any) -> str | None:
    """An id as text. None for what is none: a decimal number may once have been `12`, `012` or `12.0`."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int | UUID) and not isinstance(value, bool):
        return str(value)
    return None


def ids_in(value: Any) -> list[str] | None:
    """The ids of a cell. None when there is no list, or one of its items can be no id."""
    items = listing(value)
    ids = [id_text(item) for item in items or ()]
    return None if items is None or None in ids else [each for each in ids if each is not None]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _printed(text: str) -> Any:
    if not text.startswith(("[", "(", "array(")):
        return None
    if array := _ARRAY.match(text):
        text = array[1]
    value = _literal(text)
    if isinstance(value, list | tuple) and _SIDE_BY_SIDE.search(text):
        # numpy prints no commas, and Python takes 'a' 'b' for one text
        words = _words(text)
        return words if len(words) > len(value) else value
    return value


def _literal(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns of what it finds odd in a text that is none of its own
            return ast.literal_eval(text)  # reads literals only, and runs nothing
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _words(text: str) -> list[str]:
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                found.append(str(_literal(token.string)))
    except (tokenize.TokenError, SyntaxError):
        return []
    return found
