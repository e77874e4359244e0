"""JSON out of a model's reply: fenced, wrapped in prose, slightly broken or cut off; never evaluated, never guessed."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

LONGEST = 100_000
"""Characters of a reply that are read; a longer one is unreadable."""
DEEPEST = 12
"""Levels of nesting that the tolerant reader follows; nothing that is asked for has more than five."""
_STARTS = 20
"""Places where an object may begin that are tried, so that a reply of brackets costs nothing."""

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_SPACE = re.compile(r"[\s\ufeff]*")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]+")
_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_CLOSING: Final = {'"': '"', "'": "'", "“": "”"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a pair, maybe without its other half, which no file can hold: the tolerant reader looks at it."""
_KEY = re.compile(r'"\s*:')
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Conflict:
    """What stands under a key that one object holds twice with different values."""


CONFLICT: Final = Conflict()


@dataclass(frozen=True)
class Read(Generic[T]):
    """What a reply holds. Not `complete`: the text ended within it, and only its finished parts are here."""

    value: T
    complete: bool = True


@dataclass(frozen=True)
class Unreadable:
    """There is no usable JSON in the reply; `problem` is said to the model when it is asked once more."""

    problem: str


def read_exactly(text: str, form: msgspec.json.Decoder[T], keys: Callable[[T], int]) -> T | None:
    """The reply where it is the form that was asked for and nothing else; None = `read_json` has to look at it.

    Args:
        text: The reply.
        form: What was asked for.
        keys: How many keys a value of the form has, all of its objects together. More in the text: one stands twice.
    """
    if len(text) > LONGEST or "\\u" in text:
        return None
    try:
        value = form.decode(text)
    except ValueError:
        return None
    each_once = keys(value)
    return value if text.count(":") == each_once or len(_KEY.findall(text)) == each_once else None


def read_json(text: str, pick: Callable[[Any], T | None]) -> Read[T] | Unreadable:
    """The one JSON value in the reply that is what was asked for.

    A reply that holds two different ones is unreadable: it is not ours to choose. Where the text ends within the value,
    its finished members are read and the unfinished one is left out.

    Args:
        text: The reply.
        pick: The wanted part of a value, None when the value has not the form that was asked for.
    """
    if len(text) > LONGEST:
        return Unreadable("it is far too long")
    text = _THOUGHT.sub("", text, count=1)
    strict = _strict(text)
    values = [strict] if strict is not None else list(_values(text))
    found: list[Read[T]] = []
    for read in values:
        wanted = pick(read.value)
        if wanted is not None and not any(_same(wanted, other.value) for other in found):
            found.append(Read(wanted, read.complete))
    if not found:
        return Unreadable("the JSON has not the form that was asked for" if values else "it holds no JSON")
    if len(found) > 1:
        return Unreadable("it holds more than one JSON value, and they differ")
    return found[0]


def _strict(text: str) -> Read[Any] | None:
    """The whole text as JSON, in C; None = not plain JSON, which the tolerant reader looks at."""
    plain = text.strip()
    if not plain.startswith(("{", "[")) or _SURROGATE.search(plain):
        return None
    try:
        value = _DECODER.decode(plain)
    except (ValueError, RecursionError):
        return None
    return Read(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    made = {}
    for key, value in pairs:
        made[key] = CONFLICT if key in made and not _same(made[key], value) else value
    return made


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _number(digits: str) -> float:
    if len(digits) > 40 or not math.isfinite(value := float(digits)):
        raise ValueError(digits)
    return value


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse, parse_int=_number, parse_float=_number
)


def _values(text: str) -> Iterator[Read[Any]]:
    """Every object or list in the text that stands in no other."""
    place = 0
    for _ in range(_STARTS):
        start = min((at for at in (text.find("{", place), text.find("[", place)) if at >= 0), default=-1)
        if start < 0:
            return
        scanner = _Scanner(text, start)
        try:
            value = scanner.value(0)
        except _NotJson:
            place = start + 1
            continue
        yield Read(value, complete=not scanner.cut)
        place = scanner.at


class _NotJson(ValueError):
    """What stands here is no JSON, also with all tolerance."""


class _Cut(Exception):
    """The text ended within a string, a number or a word."""


class _Scanner:
    """A forgiving recursive reader; after `value`, `at` is behind it, and `cut` says whether the text ended within."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.cut = False

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise _NotJson
        character = self._next()
        if character == "{":
            return self._members(depth)
        if character == "[":
            return self._items(depth)
        if character in _CLOSING:
            return self._string(_CLOSING[character])
        if found := _NUMBER.match(self.text, self.at):
            self.at = found.end()
            if self.at == len(self.text):
                raise _Cut
            return float(found[0])
        if found := _WORD.match(self.text, self.at):
            if found.end() == len(self.text):
                raise _Cut
            if found[0] in _WORDS:
                self.at = found.end()
                return _WORDS[found[0]]
        raise _NotJson

    def _next(self) -> str:
        """The next character that is not white space; the place moves to it."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        if self.at >= len(self.text):
            raise _Cut
        return self.text[self.at]

    def _members(self, depth: int) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        self.at += 1
        try:
            while (character := self._next()) != "}":
                if character == ",":
                    self.at += 1
                    continue
                if character in _CLOSING:
                    key = self._string(_CLOSING[character])
                elif found := _WORD.match(self.text, self.at):
                    key = found[0]
                    self.at = found.end()
                else:
                    raise _NotJson
                if self._next() != ":":
                    raise _NotJson
                self.at += 1
                pairs.append((key, self._whole_value(depth, keeps_rows=True)))
                self._after("}")
            self.at += 1
        except _Cut:
            self.cut = True
            self.at = len(self.text)
        return _object(pairs)

    def _items(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        try:
            while (character := self._next()) != "]":
                if character == ",":
                    self.at += 1
                    continue
                items.append(self._whole_value(depth, keeps_rows=False))
                self._after("]")
            self.at += 1
        except _Cut:
            self.cut = True
            self.at = len(self.text)
        return items

    def _whole_value(self, depth: int, *, keeps_rows: bool) -> Any:
        """A member; one that the text ends within is kept only if it is a table of rows, whose last one is gone."""
        value = self.value(depth + 1)
        if self.cut:
            is_table = bool(value) and not (
                isinstance(value, dict) and any(isinstance(inner, list) for inner in value.values())
            )
            if depth > 0 or not keeps_rows or not is_table:
                raise _Cut
        return value

    def _after(self, closing: str) -> None:
        if self.cut:
            raise _Cut
        if self._next() not in (",", closing):
            raise _NotJson

    def _string(self, closing: str) -> str:
        self.at += 1
        made: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                made.append(self._escape())
                continue
            self.at += 1
            if character == closing and self._ends():
                return "".join(made).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            made.append(character)
        raise _Cut

    def _ends(self) -> bool:
        """A quotation mark ends the string only before a separator: apostrophes and unescaped quotes stand in it."""
        found = _SPACE.match(self.text, self.at)
        after = found.end() if found else self.at
        return after >= len(self.text) or self.text[after] in ",:]}"

    def _escape(self) -> str:
        character = self.text[self.at + 1 : self.at + 2]
        if character == "u":
            digits = self.text[self.at + 2 : self.at + 6]
            if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
                raise _Cut if len(digits) < 4 else _NotJson
            self.at += 6
            return chr(int(digits, 16))
        self.at += 2
        return _ESCAPES.get(character, character)
