"""The JSON objects of a file, one at a time: one on each line, or pretty-printed, or the items of one list."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from ragaudit.readers.lines import MAX_LINE, read_lines
from ragaudit.readers.problems import Problems

_LIST = re.compile(rb"\[\s*(\{|$)")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]')
"""A text, closed or cut by the end of the line, or a bracket."""
_BETWEEN = b" \t\r\n,[]"


def read_objects(
    path: Path, name: str, problems: Problems, *, max_object: int = MAX_LINE
) -> Iterator[tuple[int, bytes]]:
    """Yield the text of each object with the line that it begins on.

    The first two lines say how the file is written. A file with one object on each line is passed on as it is, line
    by line. Objects that share a line are numbered on from it, so that no two have the same number. One that goes on
    over lines for more than `max_object` bytes ends the reading.

    Raises:
        InputError: The file cannot be opened, or is UTF-16.
    """
    lines = read_lines(path, name, problems)
    head = list(islice(lines, 2))
    every = chain(head, lines)
    yield from _spread(every, name, problems, max_object) if _spans_lines([line for _, line in head]) else every


def _spans_lines(head: list[bytes]) -> bool:
    """A list is opened, or an object that the next line goes on with. Where that one begins anew, the first was cut."""
    if not head:
        return False
    first = head[0].strip()
    if _LIST.match(first):
        return True
    goes_on = len(head) > 1 and not head[1].startswith(b"{")
    return goes_on and first.startswith(b"{") and first.endswith((b"{", b"[", b",", b":"))


def _spread(
    lines: Iterable[tuple[int, bytes]], name: str, problems: Problems, limit: int
) -> Iterator[tuple[int, bytes]]:
    """Cut the lines into objects by counting brackets. What stands between them is passed on, to be set aside."""
    parts: list[bytes] = []
    depth = size = last = number = 0
    in_list = False
    for at, line in lines:
        start = 0
        for token in _TOKEN.finditer(line):
            sign = token[0][:1]
            if sign == b'"':
                continue
            if depth == 0:
                if sign != b"{":
                    in_list = sign == b"["
                    continue
                if (between := line[start : token.start()].strip(_BETWEEN)) != b"":
                    last = max(at, last + 1)
                    yield last, between + b"\n"
                start = token.start()
                last = number = max(at, last + 1)
            depth += 1 if sign in b"{[" else -1
            if depth == 0:
                yield number, b"".join([*parts, line[start : token.end()], b"\n"])
                parts, size, start = [], 0, token.end()
        if depth:
            parts.append(line[start:])
            size += len(parts[-1])
            if size > limit:
                what = f"the object has more than {limit:,} bytes; nothing after it was read. Write one object on one"
                problems.set_aside("line_too_long", name, number, f"{what} line, and texts in chunks.jsonl.")
                return
        elif (between := line[start:].strip(_BETWEEN)) != b"":
            last = max(at, last + 1)
            yield last, between + b"\n"
    if depth:
        yield number, b"".join(parts).rstrip()
    elif in_list:
        what = "the list is not closed: was the writer stopped? Write the rest of it."
        problems.set_aside("cut", name, last + 1, what)
