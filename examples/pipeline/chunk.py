"""Chunker: by heading, to a token target, with one sentence of overlap; tables repeat their header row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .corpus import Source
from .parse import Block, Parsed
from .tokens import count_tokens, sentences

ChunkFault = Literal["fixed_window", "tail_dropped", "header_not_repeated"]
TARGET_TOKENS = 120
WINDOW_WORDS = 32
TABLE_ROWS = 5


@dataclass(frozen=True)
class Piece:
    """A chunk before it has an id."""

    heading: str
    text: str


def chunk(source: Source, parsed: Parsed, fault: ChunkFault | None = None) -> list[Piece]:
    """Cut a parsed source into pieces; each begins with title and heading."""
    sections = _sections(parsed.blocks)
    pieces: list[Piece] = []
    for heading, blocks in sections:
        prefix = f"{source.title}: {heading}" if heading else source.title
        bodies = _windows(blocks) if fault == "fixed_window" else _bodies(blocks, fault)
        pieces.extend(Piece(heading, f"{prefix}\n\n{body}") for body in bodies)
    return pieces[:-1] if fault == "tail_dropped" else pieces


def _sections(blocks: tuple[Block, ...]) -> list[tuple[str, list[Block]]]:
    sections: list[tuple[str, list[Block]]] = []
    for block in blocks:
        if block.kind == "heading":
            sections.append((block.text, []))
        elif sections:
            sections[-1][1].append(block)
        else:
            sections.append(("", [block]))
    return [(heading, content) for heading, content in sections if content]


def _bodies(blocks: list[Block], fault: ChunkFault | None) -> list[str]:
    units: list[str] = []
    for block in blocks:
        if block.kind == "table":
            units.extend(_table_units(block.text, repeat_header=fault != "header_not_repeated"))
        else:
            units.extend(sentences(block.text))
    bodies: list[str] = []
    current: list[str] = []
    for unit in units:
        is_full = current and count_tokens(" ".join([*current, unit])) > TARGET_TOKENS
        if is_full or ("\n" in unit and current):
            bodies.append(_join(current))
            current = [] if "\n" in unit or "\n" in current[-1] else current[-1:]
        current.append(unit)
    if current:
        bodies.append(_join(current))
    return bodies


def _table_units(table: str, repeat_header: bool) -> list[str]:
    header, *rows = table.splitlines()
    size = TABLE_ROWS + 1 if len(rows) == TABLE_ROWS + 1 else TABLE_ROWS
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    return ["\n".join([header, *group] if repeat_header or n == 0 else group) for n, group in enumerate(groups)]


def _windows(blocks: list[Block]) -> list[str]:
    words = " ".join(block.text for block in blocks).split(" ")
    return [" ".join(words[start : start + WINDOW_WORDS]) for start in range(0, len(words), WINDOW_WORDS)]


def _join(units: list[str]) -> str:
    if any("\n" in unit for unit in units):
        return "\n\n".join(units)
    return "".join(units) if units[0].endswith("。") else " ".join(units)
