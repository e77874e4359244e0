"""Grader: is an answer correct by the reference, and supported by the prompt? Token tests, no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .generate import Answer
from .tokens import sentences, words

CORRECT_SHARE = 0.9


@dataclass(frozen=True)
class Grade:
    """The judgements of one answer."""

    correct: bool
    supported: bool
    supported_by: tuple[str, ...]


def grade(answer: Answer, reference: str, texts: Sequence[tuple[str, str]], answerable: bool) -> Grade:
    """Judge one answer.

    Args:
        answer: what was written.
        reference: the reference answer.
        texts: (id, text) of every passage in the rendered prompt.
        answerable: whether the corpus holds an answer; if not, only abstaining is correct.
    """
    by = tuple(dict.fromkeys(source for part in _parts(answer.text) if (source := _holder(part, texts))))
    supported = answer.abstained or all(_holder(part, texts) for part in _parts(answer.text))
    if not answerable or answer.abstained:
        return Grade(answer.abstained and not answerable, supported, () if answer.abstained else by)
    return Grade(holds(reference, answer.text), supported, by)


def holds(reference: str, text: str) -> bool:
    """Every number and nearly every word of the reference occur in the text."""
    wanted = set(words(reference))
    present = set(words(text))
    numbers = {word for word in wanted if any(char.isdigit() for char in word)}
    return numbers <= present and len(wanted & present) >= CORRECT_SHARE * len(wanted)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in sentences(text) if re.search(r"\w", part)]


def _holder(part: str, texts: Sequence[tuple[str, str]]) -> str | None:
    wanted = set(words(part))
    for chunk_id, text in texts:
        if wanted <= set(words(text)):
            return chunk_id
    return None
