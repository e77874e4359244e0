"""A summary in sentences that a model wrote: each is bound to facts, and what is not proved by them is dropped."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from ragaudit.experiments.guard import refuses
from ragaudit.judge.fence import fenced, key_for, shown
from ragaudit.judge.prompts import PromptSet
from ragaudit.model.diagnosis import STAGES
from ragaudit.model.judgement import Reply, Request
from ragaudit.report.facts import Fact

PROMPT = "narrative"
LONGEST = 400
"""Characters of a sentence."""
MOST = 12
"""Sentences that are read."""
_PARAMETERS = {"temperature": 0, "max_tokens": 1500}
_EXACT = re.compile(r"\d[\d.,]*\d|\d|[^\W\d]\w*[_@.=][\w@.=]+", re.ASCII)
"""What must stand in the facts letter by letter: numbers, and names such as `recall@k` or `rerank.top_n`."""
_COUNTS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_AMOUNTS = frozenset(
    ["half", "third", "quarter", "twice", "double", "triple", "dozen", "majority", "all", "every", "none", "never"]
)
"""Words that say how many without a number: they must stand in the facts too."""
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Sentence:
    """One sentence and the ids of the facts it rests on."""

    text: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class Narrative:
    """What is left of a model's summary. `dropped` says why sentences are not in it, and of each how many."""

    sentences: tuple[Sentence, ...]
    facts: tuple[Fact, ...]
    """Those that are cited."""
    model: str
    prompt: str
    """`narrative@1`."""
    dropped: Mapping[str, int] = field(default_factory=dict)


class _Written(msgspec.Struct):
    text: str
    facts: list[str] = []


class _Document(msgspec.Struct):
    sentences: list[_Written]


def request_of(facts: Iterable[Fact], model: str, api_base: str | None = None) -> Request:
    """The one call: the facts, fenced as data."""
    lines = shown("\n".join(f"{fact.id}: {fact.text}" for fact in facts))
    key = key_for([lines])
    messages, version = PromptSet.load(part="report").render(PROMPT, key=key, facts=fenced("facts", lines, key))
    return Request(
        model=model,
        messages=messages,
        prompt=PROMPT,
        version=version,
        api_base=api_base,
        parameters=dict(_PARAMETERS),
        purpose=PROMPT,
    )


def narrative_of(reply: Reply, request: Request, facts: Iterable[Fact]) -> Narrative:
    """Keep the sentences that their facts prove.

    A sentence is dropped when it cites no fact or one that there is none of, when a number or name in it stands in none
    of the facts it cites, when it is longer than 400 characters, and when the guard refuses it.
    """
    known = {fact.id: fact for fact in facts}
    kept: list[Sentence] = []
    dropped: Counter[str] = Counter()
    for written in _sentences(reply.text, dropped):
        why = _unproved(written, known)
        if why is None:
            kept.append(Sentence(" ".join(written.text.split()), tuple(dict.fromkeys(written.facts))))
        else:
            dropped[why] += 1
    cited = {fact_id for sentence in kept for fact_id in sentence.facts}
    return Narrative(
        tuple(kept),
        tuple(fact for fact in known.values() if fact.id in cited),
        request.model,
        f"{request.prompt}@{request.version}",
        dict(dropped),
    )


def _sentences(text: str, dropped: Counter[str]) -> list[_Written]:
    start, end = text.find("{"), text.rfind("}")
    try:
        found = msgspec.json.decode(text[start : end + 1], type=_Document).sentences
    except msgspec.DecodeError:
        dropped["the reply cannot be read"] += 1
        return []
    if len(found) > MOST:
        dropped[f"more than {MOST} sentences"] += len(found) - MOST
    return found[:MOST]


def _unproved(written: _Written, known: Mapping[str, Fact]) -> str | None:
    if not written.facts:
        return "no fact cited"
    if not all(fact_id in known for fact_id in written.facts):
        return "a fact cited that there is none of"
    if not written.text.strip() or len(written.text) > LONGEST:
        return "empty or too long"
    ground = " ".join(known[fact_id].text for fact_id in written.facts)
    if not _exact_in(written.text) <= _exact_in(ground):
        return "a number or name that its facts do not hold"
    return "refused by the guard" if refuses(written.text) else None


def _exact_in(text: str) -> set[str]:
    """Numbers (also those up to twelve in words), names with a mark in them, stages, and words for amounts."""
    words = set(_WORD.findall(text.lower()))
    counts = {str(n) for n, word in enumerate(_COUNTS) if n != 1 and word in words}  # "one" is hardly ever a number
    stages = {stage.label for stage in STAGES if re.search(rf"\b{re.escape(stage.label)}\b", text)}
    return set(_EXACT.findall(text)) | counts | stages | (words & _AMOUNTS)
