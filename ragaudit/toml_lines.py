"""Where in the text of a TOML file a key stands, for messages: tomllib does not say."""

import re
from collections import Counter

_HEADER = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")

Path = tuple[str | int, ...]


def line_of(text: str, path: Path) -> int | None:
    """The line, from 1, of the key with this path, else of the innermost key or table around it; None = not found.

    Args:
        text: The file, which tomllib could read.
        path: Names of tables and the key; an integer is a place in an array of tables.
    """
    table: Path = ()
    arrays: Counter[Path] = Counter()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                arrays[table] += 1
                table = (*table, arrays[table] - 1)
            here = table
        elif key := _KEY.match(line):
            here = (*table, *_parts(key[1]))
        else:
            continue
        depth = len(path) if here[: len(path)] == path else len(here) if path[: len(here)] == here else 0
        if depth and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple("".join(part) for part in _PART.findall(dotted))
