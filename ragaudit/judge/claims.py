"""The first call: a reference and an answer split into atomic claims, each with the words it came from."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder

from ragaudit.judge.fence import fenced, one_line, shown
from ragaudit.judge.how import HowToJudge, closed, request
from ragaudit.judge.parse import Unreadable, read_exactly, read_json
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.quotes import is_quoted_from
from ragaudit.model.judgement import Claim, JudgeSample, Request, Side

MOST_CLAIMS = 100
"""Of one text; a reply with more is a model that does not stop."""
_CLAIM_CHARS = 2_000
_WORDS = re.compile(r"[^\W_]")
_LETTERS = {Side.REFERENCE: "r", Side.ANSWER: "a"}
_BREAKS = (re.compile(r"\n\s*"), re.compile(r"[.!?؟।]\s+|[。！？]\s*"), re.compile(r"\s+"))
_SHORTEST = 200
"""A text that is shorter is not halved when the reply about it was cut off."""


_Pairs: TypeAlias = list[tuple[Any, Any]] | None
"""(claim, quote) of each entry of a list; None = there is no list."""


class _Item(Struct, forbid_unknown_fields=True):
    quote: str
    claim: str


class _Form(Struct, forbid_unknown_fields=True):
    """What the prompt `claims` asks for."""

    abstained: bool | UnsetType = UNSET
    reference: list[_Item] | UnsetType = UNSET
    answer: list[_Item] | UnsetType = UNSET

    def pairs(self, side: Side) -> _Pairs:
        items = self.reference if side is Side.REFERENCE else self.answer
        return None if items is UNSET else [(item.claim, item.quote) for item in items]


_FORM = Decoder(_Form)


class Draft(NamedTuple):
    """A claim as the model wrote it, before it has an id. `text` is one line that may stand between marks."""

    text: str
    quote: str | None


class Part(NamedTuple):
    """A text to split, or a piece of one whose reply did not fit; `path` puts the pieces back in order."""

    side: Side
    text: str
    path: tuple[int, ...] = ()


@dataclass(frozen=True)
class ClaimsRead:
    """What a reply said. `problems` has the sides whose claims are unusable, and why; the others are kept."""

    drafts: Mapping[Side, tuple[Draft, ...]]
    abstained: bool = False
    problems: Mapping[Side, str] = field(default_factory=dict)


def claims_request(
    how: HowToJudge, prompts: PromptSet, sample: JudgeSample, parts: Sequence[Part], *, key: str
) -> Request:
    """Ask for the claims of one text, or of a reference and an answer at once."""
    return request(
        how,
        prompts,
        "claims",
        purpose="claims",
        schema=_schema(tuple(part.side for part in parts)),
        key=key,
        question=fenced("question", shown(sample.query), key),
        texts="\n".join(fenced(part.side.value, shown(part.text), key) for part in parts),
    )


def _schema(sides: tuple[Side, ...]) -> dict[str, Any]:
    item = closed({"quote": {"type": "string"}, "claim": {"type": "string"}})
    # First: a small model that begins with the list leaves it empty.
    properties: dict[str, Any] = {"abstained": {"type": "boolean"}} if Side.ANSWER in sides else {}
    properties |= {side.value: {"type": "array", "items": item} for side in sides}
    return closed(properties)


def read_claims(text: str, parts: Sequence[Part], *, may_abstain: bool) -> ClaimsRead | str:
    """The claims in a reply, or what is wrong with all of it.

    No claims of a text that is not blank is a failure of the judge, unless the text is an answer that abstains.

    Args:
        text: The reply.
        parts: The texts that were asked about.
        may_abstain: False when it is known that the answer is one, whatever the judge thinks.
    """
    sides = [part.side for part in parts]
    form = read_exactly(text, _FORM, _keys)
    pairs = {side: None if form is None else form.pairs(side) for side in sides}
    if form is not None and any(some is not None for some in pairs.values()):
        declines = form.abstained is True
    else:
        read = read_json(text, lambda value: _lists(value, sides))
        if isinstance(read, Unreadable):
            return read.problem
        if not read.complete:
            return "it ends in the middle"
        declines = read.value.get("abstained") is True
        pairs = {side: _pairs(read.value.get(side.value)) for side in sides}
    abstained = may_abstain and declines and Side.ANSWER in sides
    drafts: dict[Side, tuple[Draft, ...]] = {}
    problems: dict[Side, str] = {}
    for part in parts:
        if abstained and part.side is Side.ANSWER:
            drafts[part.side] = ()
            continue
        found = _drafts(pairs[part.side], part)
        if isinstance(found, str):
            problems[part.side] = found
        elif not found and not part.path:
            problems[part.side] = f'"{part.side.value}" has no claims, but the text is not empty'
        else:
            drafts[part.side] = found
    return ClaimsRead(drafts, abstained, problems)


def numbered(side: Side, drafts: Iterable[Draft], text: str) -> tuple[Claim, ...]:
    """The claims with our ids, in order; a claim that is said twice counts once."""
    distinct: dict[str, Draft] = {}
    for draft in drafts:
        distinct.setdefault(draft.text.casefold(), draft)
    return tuple(
        Claim(
            id=f"{_LETTERS[side]}{place}",
            side=side,
            text=draft.text,
            quote=draft.quote,
            quote_found=draft.quote is not None and is_quoted_from(draft.quote, text),
        )
        for place, draft in enumerate(distinct.values(), start=1)
    )


def halved(part: Part) -> tuple[Part, Part] | None:
    """The text in two, cut near its middle where a line, a sentence or at least a word ends; None = too short.

    Only for a reply that did not fit: what a claim is stays the model's to say.
    """
    if len(part.text) < _SHORTEST:
        return None
    middle = len(part.text) // 2
    quarter = middle // 2
    found = ([match.end() for match in ends.finditer(part.text, quarter, middle + quarter)] for ends in _BREAKS)
    place = min(next((places for places in found if places), [middle]), key=lambda at: abs(at - middle))
    return (
        part._replace(text=part.text[:place].strip(), path=(*part.path, 0)),
        part._replace(text=part.text[place:].strip(), path=(*part.path, 1)),
    )


def _lists(value: Any, sides: Sequence[Side]) -> dict[str, Any] | None:
    """The object with a list for each text; a bare list is that of the only text. None = neither of them."""
    if isinstance(value, list):
        is_claims = bool(value) and len(sides) == 1 and all(isinstance(item, dict | str) for item in value)
        return {sides[0].value: value} if is_claims else None
    return value if isinstance(value, dict) and any(side.value in value for side in sides) else None


def _keys(form: _Form) -> int:
    lists = [some for some in (form.reference, form.answer) if some is not UNSET]
    return (form.abstained is not UNSET) + len(lists) + 2 * sum(map(len, lists))


def _pairs(items: Any) -> _Pairs:
    if not isinstance(items, list):
        return None
    return [(item.get("claim"), item.get("quote")) if isinstance(item, dict) else (item, None) for item in items]


def _drafts(pairs: _Pairs, part: Part) -> tuple[Draft, ...] | str:
    side = part.side
    if pairs is None:
        return f'"{side.value}" is not a list'
    if len(pairs) > MOST_CLAIMS:
        return f'"{side.value}" has more than {MOST_CLAIMS} claims'
    drafts = []
    for claim, quote in pairs:
        line = one_line(claim) if isinstance(claim, str) else ""
        if len(line) > _CLAIM_CHARS or not _WORDS.search(line):
            return f'an entry of "{side.value}" has no "claim" in words'
        drafts.append(Draft(line, quote if isinstance(quote, str) and quote.strip() else None))
    quotes = [draft.quote for draft in drafts if draft.quote is not None]
    if quotes and not any(is_quoted_from(quote, part.text) for quote in quotes):
        return f'no "quote" of "{side.value}" stands in the text'
    return tuple(drafts)
