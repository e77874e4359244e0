"""Parser: Markdown to blocks of plain text. Tables keep their cell separator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .corpus import Source

ParseFault = Literal["tables_dropped", "quotes_dropped", "words_broken", "nothing_extracted"]


@dataclass(frozen=True)
class Block:
    """One heading, paragraph, table or footer."""

    kind: Literal["heading", "paragraph", "table"]
    text: str


@dataclass(frozen=True)
class Parsed:
    """What the parser got out of a source."""

    blocks: tuple[Block, ...]
    tables_in_source: int
    tables_extracted: int

    @property
    def text(self) -> str:
        """The extracted text as one string."""
        return "\n\n".join(block.text for block in self.blocks)


def parse(source: Source, fault: ParseFault | None = None) -> Parsed:
    """Extract blocks; a fault makes the parser lose text the way real parsers do."""
    raw = [part.strip() for part in re.split(r"\n\s*\n", source.text) if part.strip()]
    n_tables = sum(part.startswith("|") for part in raw)
    blocks = [block for part in raw if (block := _block(part, fault)) is not None]
    if fault == "nothing_extracted":
        blocks = []
    kept = sum(block.kind == "table" for block in blocks)
    return Parsed(tuple(blocks), n_tables, kept)


def _block(part: str, fault: ParseFault | None) -> Block | None:
    if part == "---" or part.startswith("# "):
        return None
    if part.startswith("## "):
        return Block("heading", part[3:].strip())
    if part.startswith("|"):
        return None if fault == "tables_dropped" else Block("table", _table(part))
    if part.startswith("> "):
        return None if fault == "quotes_dropped" else Block("paragraph", part[2:].strip())
    if fault == "words_broken":
        part = re.sub(r"\b(\w{4})(\w{3,})\b", "\\1-\n\\2", part)
    return Block("paragraph", part)


def _table(part: str) -> str:
    rows = [line.strip().strip("|").strip() for line in part.splitlines()]
    return "\n".join(row for row in rows if not re.fullmatch(r"[-| :]+", row))
