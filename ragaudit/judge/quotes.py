"""Whether the words that a judge quotes stand in the text that it quotes them from."""

import re
import unicodedata

from ragaudit.judge.fence import shown

_GAP = re.compile(r"\.\.\.+|…|\[…\]|\[\.\.\.\]")
_SAME = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-"})
_DROPPED = {"Pi", "Pf", "Ps", "Pe", "Mn", "Cf", "Cc", "Zs", "Zl", "Zp"}
_MARKUP = frozenset("\"'*_#|>`~")
_LOOSE_ENDS = ".,;:!?。、，；：！？؟،۔।-"
_LEAST = 2
"""Letters or digits that a quote must have: one alone stands in almost any text."""


def is_quoted_from(quote: str, text: str) -> bool:
    """Are these the text's words? Case, white space, markup, quotation marks and left-out middles do not matter."""
    if sum(character.isalnum() for character in quote[:200]) < _LEAST:
        return False
    if quote in text:
        return True
    pieces = [piece for piece in (_folded(part).strip(_LOOSE_ENDS) for part in _GAP.split(quote)) if piece]
    if sum(character.isalnum() for piece in pieces for character in piece) < _LEAST:
        return False
    return _in_order(pieces, _folded(text)) or _in_order(pieces, _folded(shown(text)))


def _in_order(pieces: list[str], text: str) -> bool:
    start = 0
    for piece in pieces:
        found = text.find(piece, start)
        if found < 0:
            return False
        start = found + len(piece)
    return True


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_SAME).casefold()
    return "".join(
        character
        for character in plain
        if character not in _MARKUP and (character.isalnum() or unicodedata.category(character) not in _DROPPED)
    )
