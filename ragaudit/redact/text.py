"""Puts pseudonyms in place of what is found in one text, until nothing is found any more."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from ragaudit.redact.addresses import emails, ips
from ragaudit.redact.credentials import credentials
from ragaudit.redact.finding import Found
from ragaudit.redact.names import Finder
from ragaudit.redact.numbers import cards, ibans, phones
from ragaudit.redact.pseudonyms import PSEUDONYM, Kind, Pseudonyms
from ragaudit.redact.shadow import MASK, Form, Shadow, shadow

_SHORT = 64
_REMEMBERED = 100_000


@dataclass(frozen=True)
class Redactor:
    """What is looked for, and the key under which it is replaced."""

    pseudonyms: Pseudonyms
    with_ips: bool = False
    names: Finder | None = None
    finders: Sequence[Finder] = field(init=False)
    _clean: set[tuple[str, bool]] = field(init=False, default_factory=set)
    """Short strings in which nothing was found: ids and names of fields come again and again."""

    def __post_init__(self) -> None:
        chosen: list[Finder] = [credentials, emails, ibans, cards, phones]
        chosen += [ips] if self.with_ips else []
        chosen += [self.names] if self.names is not None else []
        object.__setattr__(self, "finders", tuple(chosen))

    def redact(
        self,
        text: str,
        counts: Counter[Kind] | None = None,
        *,
        exact: bool = False,
        is_id: bool = False,
        form: Form = Form.PLAIN,
    ) -> str:
        """The text with a pseudonym for everything that was found; the same text when nothing was.

        Args:
            text: Any text.
            counts: Where to add how many of each kind were replaced.
            exact: The text is compared as it stands, so that two spellings of a value must stay two.
            is_id: The text is an id: a bare number in it is no phone and no card.
            form: How the text is escaped; pseudonyms are written so that they show.
        """
        short = len(text) <= _SHORT and form is Form.PLAIN
        if short and (text, is_id) in self._clean:
            return text
        while True:
            seen = shadow(text, form)
            found = self.find(seen, is_id=is_id)
            if not found:
                if short:
                    self._remember(text, is_id)
                return text
            pieces, at = [], 0
            for one in found:
                start, end = seen.original(one.start, one.end)
                spelling = seen.text[one.start : one.end] if form is not Form.PLAIN else text[start:end]
                name = self.pseudonyms.of(one.kind, one.value, spelling, exact=exact)
                pieces += [text[at:start], name if form is Form.PLAIN else escape(name, quote=False)]
                at = end
                if counts is not None:
                    counts[one.kind] += 1
            text = "".join([*pieces, text[at:]])

    def _remember(self, text: str, is_id: bool) -> None:
        if len(self._clean) >= _REMEMBERED:
            self._clean.clear()
        self._clean.add((text, is_id))

    def find(self, seen: Shadow, *, is_id: bool = False) -> list[Found]:
        """What is to be replaced, in order and without overlap: the first finder wins, then the longer value."""
        text = PSEUDONYM.sub(lambda known: MASK * len(known[0]), seen.text)
        kept: list[Found] = []
        taken = bytearray(len(text))
        for finder in self.finders:
            if is_id and finder in (cards, phones):
                continue
            for one in sorted(finder(text), key=lambda one: (one.start, -one.end)):
                if 1 not in taken[one.start : one.end] and MASK not in text[one.start : one.end]:
                    taken[one.start : one.end] = b"\1" * (one.end - one.start)
                    kept.append(one)
        return sorted(kept, key=lambda one: one.start)
