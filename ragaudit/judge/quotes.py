"""Whether the words that a judge quotes stand in the text that it quotes them from."""

import re
import unicodedata

from ragaudit.judge.fence import shown

_GAP = re.compile(r"\.\.\.+|…|\[…\]|\[\.\.\.\]")
_SAME = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-"})
_DROPPED = {"Pi", "Pf", "Ps", "Pe", "Mn", "Cf", "Cc", "Zs", "Zl", "Zp"}
_MARKUP = frozenset("\"'*_#|>`~")
_LOOSE_ENDS = ".,;:!?。、，；：！？؟،۔।"
_ENOUGH = re.compile(r"[^\W_].*?[^\W_]", re.DOTALL)
"""Letters or digits that a quote must have: one alone stands in almost any text."""


def is_quoted_from(quote: str, text: str) -> bool:
    """Are these the text's words? Case, white space, markup, quotation marks and left-out middles do not matter."""
    if not _ENOUGH.search(quote):
        return False
    if quote in text and not (quote[0].isdigit() or quote[-1].isdigit()):
        return True
    pieces = [piece for piece in (_folded(part).strip(_LOOSE_ENDS) for part in _GAP.split(quote)) if piece]
    if not _ENOUGH.search("".join(pieces)):
        return False
    return _in_order(pieces, _folded(text)) or _in_order(pieces, _folded(shown(text)))


def _in_order(pieces: list[str], text: str) -> bool:
    start = 0
    for piece in pieces:
        found = text.find(piece, start)
        while found >= 0 and _cuts_a_number(text, found, found + len(piece)):
            found = text.find(piece, found + 1)
        if found < 0:
            return False
        start = found + len(piece)
    return True


def _cuts_a_number(text: str, start: int, end: int) -> bool:
    """`30 days` does not stand in `130 days`."""
    return any(0 < place < len(text) and text[place - 1 : place + 1].isdigit() for place in (start, end))


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).translate(_SAME).casefold()
    return "".join(
        character
        for character in plain
        if character not in _MARKUP and (character.isalnum() or unicodedata.category(character) not in _DROPPED)
    )
