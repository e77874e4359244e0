"""What a pane shows, before any terminal: lines of pieces, each with a role. Pure; a test reads it as text."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import cells, wrap


class Role(StrEnum):
    """How a piece is shown. A role adds weight or a hue to what the words and marks say already."""

    PLAIN = "plain"
    DIM = "dim"
    STRONG = "strong"
    HEAD = "head"
    LOST = "lost"
    KEPT = "kept"
    UNSCORED = "unscored"
    GOLD = "gold"
    LEAK = "leak"


class Piece(NamedTuple):
    """Some text in one role."""

    text: str
    role: Role = Role.PLAIN


Line = tuple[Piece, ...]

BLANK: Line = ()


def line(*pieces: str | tuple[str, Role]) -> Line:
    """A line of pieces; a bare string is plain."""
    return tuple(Piece(piece) if isinstance(piece, str) else Piece(*piece) for piece in pieces)


def head(title: str, width: int) -> Line:
    """A heading in a rule."""
    return line((f"-- {title} {'-' * max(0, width - cells(title) - 4)}"[: max(width, 0)], Role.HEAD))


def flowed(text: str, width: int, role: Role = Role.PLAIN, *, first: str = "", rest: str | None = None) -> list[Line]:
    """Text of ours or from outside, wrapped at white space."""
    indent = " " * cells(first) if rest is None else rest
    return [line((piece, role)) for piece in wrap(for_terminal(text), max(width, 8), first=first, rest=indent)]


def as_text(lines: Iterable[Line]) -> str:
    """The lines without their roles."""
    return "\n".join("".join(piece.text for piece in one).rstrip() for one in lines)


def width_of(one: Line) -> int:
    """Terminal cells that a line takes."""
    return sum(cells(piece.text) for piece in one)
