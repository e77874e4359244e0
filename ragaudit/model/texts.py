"""What makes two texts the same: content hash, folded form, an id for a text without one. Which stand in a prompt."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

SHORTEST = 16
"""Characters; a shorter text is in many prompts by chance."""
_SPACE = re.compile(r"\s+")


def folded(text: str) -> str:
    """Case and runs of whitespace folded: differences that no reader and no tokenizer would notice."""
    # Not casefold: it would expand ligatures, and a search for "office" does not find a text with one.
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip().lower().replace("ß", "ss")


def content_hash(text: str) -> str:
    """`sha256:` over the text, NFC-normalised with whitespace collapsed: DATA.md's identity of a text."""
    canonical = _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()
    return "sha256:" + hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def text_id(text: str) -> str:
    """An id for a text that nobody gave one: its content hash, short. The same text gets the same id everywhere."""
    return "text-" + content_hash(text).removeprefix("sha256:")[:16]


def packed(candidates: Iterable[tuple[str, str]], prompt: str) -> list[str] | None:
    """The ids of the candidates whose text stands in the prompt, in the order of their places there.

    Args:
        candidates: (id, text); the same id counts once.
        prompt: The rendered prompt.

    Returns:
        None when no candidate has a text long enough to be looked for: then nothing was observed.
    """
    hay = folded(prompt)
    places: dict[str, int] = {}
    looked = False
    for chunk_id, text in candidates:
        needle = folded(text)
        if len(needle) < SHORTEST:
            continue
        looked = True
        place = hay.find(needle)
        if place >= 0:
            places.setdefault(chunk_id, place)
    return sorted(places, key=lambda chunk_id: places[chunk_id]) if looked else None
