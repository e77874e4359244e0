"""Finds the answer's words in a text, and says how much folding it took. Language-neutral: no word lists."""

import re
import unicodedata

from ragaudit.model.texts import folded
from ragaudit.model.trace import SpanFound

_SPACE = re.compile(r"\s+")
# Zero-width characters, soft hyphen and byte order mark: invisible, left behind by extractors.
_INVISIBLE = dict.fromkeys([0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
# A word broken over a line end keeps its hyphen before the newline.
_LINE_HYPHEN = re.compile(r"[-\u2010\u2011]\s*\n\s*")


def squeezed(text: str) -> str:
    """Everything a broken extraction changes folded away: compatibility forms, invisible marks, all whitespace."""
    joined = _LINE_HYPHEN.sub("", text).translate(_INVISIBLE)
    return _SPACE.sub("", unicodedata.normalize("NFKC", joined)).casefold()


def find(span: str, text: str) -> SpanFound:
    """How the span stands in the text.

    True = word for word (case and whitespace runs aside); "normalised" = only after folding compatibility forms and
    spaces inside words, which a search for those words would not survive; "partial" = at least two fifths of it, at
    its start or its end; False = not there.
    """
    if not span.strip():
        return None
    if span in text or folded(span) in folded(text):
        return True
    needle, hay = squeezed(span), squeezed(text)
    if not needle:
        return None
    if needle in hay:
        return "normalised"
    part = max(3, -(-len(needle) * 2 // 5))
    if part < len(needle) and (needle[:part] in hay or needle[-part:] in hay):
        return "partial"
    return False
