"""The first call: a reference and an answer split into atomic claims, each with the words it came from."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ragaudit.judge.fence import fenced, one_line, shown
from ragaudit.judge.how import HowToJudge, closed, request
from ragaudit.judge.parse import read_json
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.quotes import is_quoted_from
from ragaudit.model.judgement import Claim, JudgeSample, Request, Side

MOST_CLAIMS = 100
"""Of one text; a reply with more is a model that does not stop."""
_CLAIM_CHARS = 2_000
_LETTERS = {Side.REFERENCE: "r", Side.ANSWER: "a"}
_BREAK = re.compile(r"(?<=[.!?。！？؟।\n])\s*|\s+")
_SHORTEST = 200
"""A text that is shorter is not halved when the reply about it was cut off."""


class Draft(NamedTuple):
    """A claim as the model wrote it, before it has an id."""

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
    item = closed({"quote": {"type": "string"}, "claim": {"type": "string"}})
    properties: dict[str, Any] = {
        part.side.value: {"type": "array", "items": item} for part in parts
    }
    if any(part.side is Side.ANSWER for part in parts):
        properties["abstained"] = {"type": "boolean"}
    return request(
        how,
        prompts,
        "claims",
        purpose="claims",
        schema=closed(properties),
        key=key,
        question=fenced("question", shown(sample.query), key),
        texts="\n".join(fenced(part.side.value, shown(part.text), key) for part in parts),
    )


def read_claims(text: str, parts: Sequence[Part], *, may_abstain: bool) -> ClaimsRead | str:
    """The claims in a reply, or what is wrong with all of it.

    No claims of a text that is not blank is a failure of the judge, unless the text is an answer that abstains.

    Args:
        text: The reply.
        parts: The texts that were asked about.
        may_abstain: False when it is known that the answer is one, whatever the judge thinks.
    """
    sides = [part.side for part in parts]
    read = read_json(text, lambda value: _fits(value, sides))
    if not hasattr(read, "value"):
        return read.problem
    if not read.complete:
        return "it ends in the middle"
    said = read.value if isinstance(read.value, dict) else {sides[0].value: read.value}
    abstained = may_abstain and said.get("abstained") is True and Side.ANSWER in sides
    drafts: dict[Side, tuple[Draft, ...]] = {}
    problems: dict[Side, str] = {}
    for part in parts:
        if abstained and part.side is Side.ANSWER:
            drafts[part.side] = ()
            continue
        found = _drafts(said.get(part.side.value), part.side)
        if isinstance(found, str):
            problems[part.side] = found
        elif not found and not part.path:
            problems[part.side] = f'"{part.side.value}" has no claims, but the text is not empty'
        else:
            drafts[part.side] = found
    return ClaimsRead(drafts, abstained, problems)


def numbered(side: Side, drafts: Iterable[Draft], text: str) -> tuple[Claim, ...]:
    """The claims with our ids, in order; a claim that is said twice counts once."""
    claims: list[Claim] = []
    seen: set[str] = set()
    for draft in drafts:
        if (folded := draft.text.casefold()) in seen:
            continue
        seen.add(folded)
        claims.append(
            Claim(
                id=f"{_LETTERS[side]}{len(claims) + 1}",
                side=side,
                text=draft.text,
                quote=draft.quote,
                quote_found=draft.quote is not None and is_quoted_from(draft.quote, text),
            )
        )
    return tuple(claims)


def halved(part: Part) -> tuple[Part, Part] | None:
    """The text in two, cut near its middle where a line, a sentence or at least a word ends; None = too short.

    Only for a reply that did not fit: what a claim is stays the model's to say.
    """
    if len(part.text) < _SHORTEST:
        return None
    middle = len(part.text) // 2
    places = [found.end() for found in _BREAK.finditer(part.text, middle // 2, middle + middle // 2) if found.end()]
    ends = [place for place in places if part.text[:place].rstrip()[-1:] in ".!?。！？؟।" or part.text[place - 1] == "\n"]
    place = min(ends or places or [middle], key=lambda at: abs(at - middle))
    return (
        part._replace(text=part.text[:place].strip(), path=(*part.path, 0)),
        part._replace(text=part.text[place:].strip(), path=(*part.path, 1)),
    )


def _fits(value: Any, sides: Sequence[Side]) -> bool:
    if isinstance(value, list):
        return len(sides) == 1 and all(isinstance(item, dict | str) for item in value)
    return isinstance(value, dict) and any(side.value in value for side in sides)


def _drafts(items: Any, side: Side) -> tuple[Draft, ...] | str:
    if not isinstance(items, list):
        return f'"{side.value}" is not a list'
    if len(items) > MOST_CLAIMS:
        return f'"{side.value}" has more than {MOST_CLAIMS} claims'
    drafts = []
    for item in items:
        claim, quote = (item.get("claim"), item.get("quote")) if isinstance(item, dict) else (item, None)
        if not isinstance(claim, str) or not (line := one_line(claim)) or len(line) > _CLAIM_CHARS:
            return f'an entry of "{side.value}" has no "claim"'
        drafts.append(Draft(line, quote if isinstance(quote, str) and quote.strip() else None))
    return tuple(drafts)
