"""How much one answer may hold: characters and rows, what was left out, and how to ask for it."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from ragaudit.model.record import Concluded

MAX_CHARACTERS = 20_000
"""Of the text of an answer, and again of its structured content. Texts of queries and chunks count apart."""
MAX_ROWS = 100
"""Rows that may be asked for at once."""
ROWS = 20
"""Rows given unless asked for."""

Row = TypeVar("Row")


class Page(Concluded):
    """Which rows these are. Ask for the others with the tool's offset."""

    offset: int
    returned: int
    total: int
    next_offset: int | None
    """None = these are the last."""


def page(rows: Sequence[Row], offset: int, total: int, budget: int) -> tuple[list[Row], Page]:
    """The rows of one page that fit, in order, and where the next page starts.

    Args:
        rows: Those from `offset` on, as many as were asked for. The first always fits: each is bounded by itself.
        offset: Rows before them.
        total: Rows in all.
        budget: Characters as JSON.
    """
    kept: list[Row] = []
    for row in rows:
        budget -= size(row)
        if kept and budget < 0:
            break
        kept.append(row)
    after = offset + len(kept)
    return kept, Page(offset=offset, returned=len(kept), total=total, next_offset=after if after < total else None)


def size(value: Any) -> int:
    """Characters of a record or of plain data as JSON."""
    plain = value.model_dump(mode="json") if isinstance(value, Concluded) else value
    return len(json.dumps(plain, ensure_ascii=False))


def piece(text: str, offset: int = 0) -> tuple[str, int | None]:
    """The part of a text from `offset` on that fits, cut at a line's end, and where the next starts; None = the end."""
    if len(text) - offset <= MAX_CHARACTERS:
        return text[offset:], None
    end = text.rfind("\n", offset, offset + MAX_CHARACTERS) + 1 or offset + MAX_CHARACTERS
    return text[offset:end], end


def cut(text: str, how: str) -> str:
    """The start of a text that fits, and a line that says how to see the rest."""
    kept, after = piece(text)
    return text if after is None else f"{kept}... {len(text) - after:,} more characters: {how}\n"
