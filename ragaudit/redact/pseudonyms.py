"""Pseudonyms under a secret key: the same value gives the same one in every file and run, and nobody can go back."""

import hashlib
import hmac
import re
import unicodedata
from enum import StrEnum

MIN_KEY = 16
"""Bytes that a key must have at least."""


class Kind(StrEnum):
    """What a value is. The word stands in its pseudonym."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IBAN = "iban"
    IP = "ip"
    SECRET = "secret"
    NAME = "name"
    TEXT = "text"
    HASH = "hash"


_LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowel, so that no word arises
_DIGITS = "23456789"
_LENGTH = 12
PSEUDONYM = re.compile(
    f"<(?:{'|'.join(Kind)})-[{_DIGITS}{_LETTERS}][{_LETTERS}]{{{_LENGTH - 1}}}>", re.IGNORECASE | re.ASCII
)
"""A pseudonym in a shadow. One digit at most, and no vowel: nothing that is to be hidden has this form."""
_SPACE = re.compile(r"\s+")


class Pseudonyms:
    """Gives each value its pseudonym.

    Twelve letters of twenty, or a digit of eight and eleven letters: two values may in principle share one, and would
    then be one value to every join.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, kind: Kind, value: str, spelling: str, *, exact: bool = False) -> str:
        """The pseudonym of a value, `<email-bdfhkmpqrtvx>`.

        A digit stands in it when the value has one: the diagnosis takes words with digits for literals. Characters that
        hide or look like others, which a text gets from a bad parse, make the hyphen a full-width one, so that the
        audit finds the value in the same way as before.

        Args:
            kind: What the value is.
            value: The value in its one spelling.
            spelling: As it stands in the file.
            exact: For what is compared as it stands (ids, principals, filters): other spellings of a value differ in
                the case of their letters, and by the hyphen when more than case was different.
        """
        code = self._code(f"{kind}\0{value}", literal=any(c.isdigit() or c == "_" for c in value))
        name = f"{kind}-{code}"
        written = _SPACE.sub(" ", unicodedata.normalize("NFC", spelling))
        if exact and written != value:
            name = self._marked(name, written)
        odd = written.casefold() != value.casefold() if exact else _has_odd(written, value)
        return f"<{name.replace('-', '－', 1) if odd else name}>"

    def _code(self, message: str, *, literal: bool) -> str:
        number = int.from_bytes(hmac.digest(self._key, message.encode("utf-8", "surrogatepass"), hashlib.sha256))
        letters = []
        for _ in range(_LENGTH):
            number, place = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[place])
        if literal:
            letters[0] = _DIGITS[number % len(_DIGITS)]
        return "".join(letters)

    def _marked(self, name: str, written: str) -> str:
        bits = int.from_bytes(
            hmac.digest(self._key, f"spelling\0{written}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        )
        marked = "".join(c.upper() if bits >> n & 1 else c for n, c in enumerate(name))
        return marked if marked != name else name.upper()


def _has_odd(written: str, value: str) -> bool:
    return not written.isascii() and value.isascii()
