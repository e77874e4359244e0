"""A text as the finders read it: one spelling for what looks the same, with the way back to the original."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from html import unescape

MASK = "\0"
"""Stands in a shadow where nothing may be found: in a pseudonym that is there already."""


class Form(StrEnum):
    """What a text is written in, which decides how its characters may be escaped."""

    PLAIN = "plain"
    MARKDOWN = "markdown"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Shadow:
    """The text to search, and where each of its characters stands in the original (None = at the same place)."""

    text: str
    starts: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of the shadow (start < end) stands in the original; hidden characters inside it belong to it."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


class _Plain(dict[int, str | None]):
    """Full-width and other compatible forms, digits of any script, dashes and spaces; what has no shape is left out."""

    def __missing__(self, code: int) -> str | None:
        self[code] = found = _plain(chr(code))
        return found


def _plain(character: str) -> str | None:
    category = unicodedata.category(character)
    if category == "Cf" or "\ufe00" <= character <= "\ufe0f" or character == "\u034f" or character == MASK:
        return None
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category == "Pd":
        return "-"
    if category == "Zs":
        return " "
    folded = unicodedata.normalize("NFKC", character)
    return folded if len(folded) == 1 else character


_TABLE = _Plain()
_ESCAPES = {
    # a code that ragaudit's reports show in place of a character, an entity, an escaped sign
    Form.MARKDOWN: re.compile(
        r"(?:<|&lt;)U\+([0-9A-F]{4,6})>|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]{2,8});|\\[!-/:-@\[-`{-~]"
    ),
    Form.HTML: re.compile(r"(?:<|&lt;)U\+([0-9A-F]{4,6})(?:>|&gt;)|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]{2,8});"),
}


def shadow(text: str, form: Form = Form.PLAIN) -> Shadow:
    """Read the text as a person would see it."""
    escapes = _ESCAPES.get(form)
    if escapes is not None and escapes.search(text):
        return _kept(_units(text, escapes))
    if text.isascii() and MASK not in text:
        return Shadow(text)
    seen = text.translate(_TABLE)
    return Shadow(seen) if len(seen) == len(text) else _kept((c, n, n + 1) for n, c in enumerate(text))


def _kept(units: Iterator[tuple[str, int, int]]) -> Shadow:
    seen = [(shape, start, end) for c, start, end in units if (shape := _TABLE[ord(c)]) is not None]
    text = "".join(shape for shape, _, _ in seen)
    return Shadow(text, tuple(start for _, start, _ in seen), tuple(end for _, _, end in seen))


def _units(text: str, escapes: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
    at = 0
    for found in escapes.finditer(text):
        for n in range(at, found.start()):
            yield text[n], n, n + 1
        shown = _unescaped(found)
        if len(shown) == 1:
            yield shown, *found.span()
        else:
            for n in range(*found.span()):
                yield text[n], n, n + 1
        at = found.end()
    for n in range(at, len(text)):
        yield text[n], n, n + 1


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is not None:
        code = int(found[1], 16)
        return chr(code) if code <= 0x10FFFF else found[0]
    return found[0][1:] if found[0].startswith("\\") else unescape(found[0])
