"""Generator: extracts the best sentence or table cell from the prompt, or abstains. No model is called."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .rerank import Idf
from .tokens import sentences, stem, stems, words

ABSTENTION = "The passages do not hold the answer."
THRESHOLD = 0.3
_PASSAGE = re.compile(r"^\[\d+\] ", re.M)


@dataclass(frozen=True)
class Answer:
    """What the generator wrote and why it stopped."""

    text: str
    abstained: bool
    finish_reason: str


def generate(prompt: str, idf: Idf, max_tokens: int, fault: str | None = None, memory: str = "") -> Answer:
    """Answer the question at the end of a prompt.

    Args:
        prompt: the rendered prompt; nothing else is read.
        idf: weights of stems.
        max_tokens: the output limit in words.
        fault: `ignores_context`, `blends_numbers` or `answers_always`.
        memory: what the model believes without context; used by `ignores_context`.
    """
    context, _, question = prompt.rpartition("\n\nQuestion: ")
    if fault == "ignores_context":
        return _limited(memory, max_tokens)
    passages = [part.strip() for part in _PASSAGE.split(context)[1:]]
    parts = [part.strip() for part in re.split(r"(?<=[?\uff1f])\s*", question) if part.strip()]
    found = [_best(part, passages, idf, 0.0 if fault == "answers_always" else THRESHOLD) for part in parts]
    kept = list(dict.fromkeys(text for text in found if text))
    if not kept:
        return Answer(ABSTENTION, True, "stop")
    text = " ".join(kept)
    if fault == "blends_numbers":
        text = _blend(text, passages)
    return _limited(text, max_tokens)


def _best(question: str, passages: list[str], idf: Idf, threshold: float) -> str:
    wanted = {stem(word) for word in words(question)}
    total = sum(idf.get(item, 4.0) for item in wanted) or 1.0
    best, best_score = "", threshold
    for passage in passages:
        head, _, body = passage.partition("\n\n")
        in_head = wanted & stems(head)
        for unit, text in _units(body, wanted):
            in_unit = wanted & stems(unit)
            score = sum(idf.get(item, 4.0) for item in in_unit)
            score += 0.5 * sum(idf.get(item, 4.0) for item in in_head - in_unit)
            if score / total > best_score + 1e-9:
                best, best_score = text, score / total
    return best


def _units(body: str, wanted: set[str]) -> list[tuple[str, str]]:
    """Text to match, and text to answer with, for each sentence and table row."""
    found: list[tuple[str, str]] = []
    header: list[str] | None = None
    for line in body.splitlines():
        if " | " not in line:
            header = None
            found.extend((sentence, sentence.strip()) for sentence in sentences(line))
            continue
        cells = [cell.strip() for cell in line.split(" | ")]
        if header is None:
            header = cells
            if any(char.isdigit() for char in line):
                found.append((line, f"{cells[0]}: {cells[1]}"))
            continue
        matches = [len(wanted & stems(name)) for name in header[1:]]
        column = 1 + matches.index(max(matches))
        text = f"{cells[0]}: {header[column]} {cells[column]}"
        found.append((line + " " + header[column], text))
    return found


def _blend(text: str, passages: list[str]) -> str:
    """Fault: the first number of the answer is exchanged for one of another passage."""
    number = re.search(r"\d[\d,.]*\d|\d", text)
    if number is None:
        return text
    home = [passage for passage in passages if number.group() in passage]
    for passage in passages:
        for other in re.findall(r"\d[\d,.]*\d|\d", passage.partition("\n\n")[2]):
            if all(other not in own for own in home):
                return text.replace(number.group(), other, 1)
    return text


def _limited(text: str, max_tokens: int) -> Answer:
    pieces = text.split(" ")
    if len(pieces) <= max_tokens:
        return Answer(text, False, "stop")
    return Answer(" ".join(pieces[:max_tokens]), False, "length")
