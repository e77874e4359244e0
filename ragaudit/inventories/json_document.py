"""One JSON document that is held in memory whole: what frameworks persist, and then load whole themselves."""

from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.readers.lines import LineError, parse_json
from ragaudit.readers.problems import Problems

MOST = 2 * 1024**3
"""Bytes."""


def document(path: Path, hint: str) -> dict[str, Any]:
    """The object in a file.

    Raises:
        InputError: It is not there, over 2 GB, no JSON, or no object.
    """
    try:
        if path.stat().st_size > MOST:
            raise InputError(f"{path}: more than 2 GB of JSON. Export it as JSONL and use `ragaudit inventory file`.")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). {hint}") from None
    try:
        value = parse_json(raw.removeprefix(b"\xef\xbb\xbf") + b"\n", path.name, 1, Problems())
    except LineError:
        raise InputError(f"{path}: is no JSON. {hint}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: holds no object. {hint}")
    return value
