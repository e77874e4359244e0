"""Fits text into the columns of a terminal: widths in cells, cutting, padding, wrapping, headings."""

import unicodedata
from collections.abc import Iterator, Sequence

WIDTH = 80


def cells(text: str) -> int:
    """How many terminal cells the text takes: CJK takes two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells, ending in `...` when something was left out."""
    if cells(text) <= width:
        return text
    room = max(width - 3, 0)
    taken = 0
    for place, character in enumerate(text):
        taken += _cells_of(character)
        if taken > room:
            return text[:place] + "..."[:width]
    return text


def pad(text: str, width: int) -> str:
    """The text cut or filled with spaces to exactly `width` cells."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def wrap(text: str, width: int = WIDTH, *, first: str = "", rest: str = "") -> list[str]:
    """The text in lines of at most `width` cells, broken at white space; a word that is too long is split."""
    return flow(text.split(), width, first=first, rest=rest)


def flow(parts: Sequence[str], width: int = WIDTH, *, joint: str = " ", first: str = "", rest: str = "") -> list[str]:
    """Parts that stay whole, in lines of at most `width` cells; one that is longer than a line is split.

    Args:
        parts: Words, or phrases that should not be broken.
        width: Cells a line.
        joint: What stands between two parts of a line.
        first: What the first line starts with.
        rest: What every other line starts with.
    """
    lines: list[str] = []
    line, empty = first, True
    room = max(width - max(cells(first), cells(rest)), 2)
    for part in (piece for whole in parts for piece in _pieces(whole, room)):
        if not empty and cells(line) + cells(joint) + cells(part) > width:
            lines.append(line)
            line, empty = rest, True
        line += part if empty else joint + part
        empty = False
    return [*lines, line]


def heading(title: str, width: int = WIDTH) -> str:
    """A title in a rule: `-- Losses by stage --------`."""
    return pad(f"-- {title} ", width).rstrip() + " " + "-" * max(width - cells(f"-- {title} "), 0)


def _pieces(word: str, width: int) -> Iterator[str]:
    """The word in pieces of at most `width` cells, in one pass: a chunk may be a single word of 40,000 characters."""
    start = taken = 0
    if cells(word) > width:
        for place, character in enumerate(word):
            size = _cells_of(character)
            if taken + size > width and place > start:
                yield word[start:place]
                start, taken = place, 0
            taken += size
    yield word[start:]


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
