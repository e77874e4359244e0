"""Finds the chunk that a text is: where a tool logs texts without ids, or gold is given as text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.evidence.spans import content_hash, folded, squeezed

PART = "part of the chunk"
SHORTEST = 24
"""A text with fewer characters, spaces not counted, is not searched for inside chunks: it would be found by chance."""


@dataclass(frozen=True)
class Match:
    """The chunks that a text is, and how: `same text`, `same text after folding`, `part of the chunk`."""

    ids: tuple[str, ...]
    method: str


@dataclass
class Texts:
    """Chunk texts by what identifies them. Several chunks may hold the same text."""

    _exact: dict[str, list[str]] = field(default_factory=dict)
    _folded: dict[str, list[str]] = field(default_factory=dict)
    _squeezed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, chunks: Iterable[Mapping[str, Any]]) -> "Texts":
        """From rows of chunks.jsonl; those without a text are left out."""
        found = cls()
        for chunk in chunks:
            if isinstance(text := chunk.get("text"), str) and chunk.get("chunk_id") is not None:
                found.add(str(chunk["chunk_id"]), text)
        return found

    def __bool__(self) -> bool:
        """Whether there is any text in it."""
        return bool(self._exact)

    def add(self, chunk_id: str, text: str) -> None:
        """Take a chunk in."""
        self._exact.setdefault(content_hash(text), []).append(chunk_id)
        self._folded.setdefault(folded(text), []).append(chunk_id)
        self._squeezed[chunk_id] = squeezed(text)

    def find(self, text: str) -> Match | None:
        """The chunks with this text, else those that differ by case and spaces only, else those it is part of."""
        if same := self._exact.get(content_hash(text)):
            return Match(tuple(same), "same text")
        if same := self._folded.get(folded(text)):
            return Match(tuple(same), "same text after folding")
        needle = squeezed(text)
        if len(needle) < SHORTEST:
            return None
        around = tuple(chunk_id for chunk_id, hay in self._squeezed.items() if needle in hay)
        return Match(around, PART) if around else None


def text_id(text: str) -> str:
    """An id for a text that nobody gave one: its content hash, short. The same text gets the same id everywhere."""
    return "text-" + content_hash(text).removeprefix("sha256:")[:16]
