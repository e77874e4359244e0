"""What judging would take, before anything is sent: calls, tokens, price, and how much of it is on the tape already."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ragaudit.judge.cassette import Cassette
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.price import Price, price_of
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.protocol import judge
from ragaudit.judge.recording import request_key
from ragaudit.model.judgement import Failure, Judgement, JudgeSample, Reply, Request

BYTES_PER_TOKEN = 4
"""The usual rule of thumb, on UTF-8. No tokenizer is loaded: the estimate is good to about a quarter."""

CLAIM_BYTES = 80
"""A claim for each 80 bytes of reference or answer: about 20 tokens."""

VERDICT_TOKENS = 50
"""Of reply for each row of verdicts: an id, two lists, a quote."""

_LABEL = re.compile(r"^<(c[0-9]+|answer|reference):", re.MULTILINE)
_MOST_ROWS = 200
_PIECES = 100

Lookup = Callable[[Request], Reply | None]
"""The recorded reply to a request, None when there is none."""


@dataclass(frozen=True)
class Load:
    """Calls and their estimated tokens. What is on the tape is counted apart: it costs nothing."""

    calls: int = 0
    on_tape: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Load") -> "Load":
        return Load(
            self.calls + other.calls,
            self.on_tape + other.on_tape,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True)
class Plan:
    """What a run would send. `expected` = the context supports every claim; `most` = it supports none.

    Repair calls and second questions about missing verdicts come on top; a good model needs few.
    """

    model: str
    mode: str
    samples: int
    without_call: int
    """Samples that are decided without asking: no context, no answer, nothing to divide."""
    expected: Load
    most: Load
    price: Price | None

    @property
    def usd(self) -> float | None:
        """Price of the expected calls that are not on the tape; None = the model's price is not known."""
        return self._cost(self.expected)

    @property
    def most_usd(self) -> float | None:
        """Price of the most that may be asked."""
        return self._cost(self.most)

    def _cost(self, load: Load) -> float | None:
        if self.price is None:
            return None
        # A call is never as long as the whole load, so the price for long prompts does not apply to the sum.
        return load.input_tokens * self.price.input + load.output_tokens * self.price.output


def plan(samples: Iterable[JudgeSample], *, prompts: PromptSet, how: HowToJudge, lookup: Lookup) -> Plan:
    """Walk through the protocol with imagined replies wherever none is recorded. Nothing is sent or written.

    Args:
        samples: What would be judged; read once.
        prompts: The prompts that would ask.
        how: The settings that shape the calls.
        lookup: What is on the tape.
    """
    count = without = 0
    expected, most = Load(), Load()
    for sample in samples:
        count += 1
        light = _walk(judge(sample, prompts, how), sample, lookup, supported=True)
        expected += light
        if light == Load():
            without += 1
        else:
            most += _walk(judge(sample, prompts, how), sample, lookup, supported=False)
    return Plan(how.model, how.mode, count, without, expected, most, price_of(how.model, how.api_base))


def recorded(cassette: Path | None, cache: Path | None) -> Lookup:
    """What is on the tape, without recording and without complaint about what is not."""
    from ragaudit.judge.cache import ReplyCache

    tape = None if cassette is None else Cassette.open(cassette, records=False)
    rows = None if cache is None else ReplyCache.open(cache, records=False)

    def lookup(request: Request) -> Reply | None:
        key = request_key(request)
        reply = tape.find(key) if tape is not None else None
        return rows.find(key) if reply is None and rows is not None else reply

    return lookup


def nothing_recorded(_: Request) -> None:
    """The lookup of a run that asks everything again."""


def _walk(
    asking: Generator[list[Request], list[Reply | Failure], Judgement],
    sample: JudgeSample,
    lookup: Lookup,
    *,
    supported: bool,
) -> Load:
    load = Load()
    answers: list[Reply | Failure] | None = None
    while True:
        try:
            batch = next(asking) if answers is None else asking.send(answers)
        except StopIteration:
            return load
        answers = []
        for request in batch:
            reply = lookup(request)
            if reply is not None:
                load += Load(calls=1, on_tape=1)
            else:
                reply = _imagined(request, sample, supported)
                load += Load(1, 0, _tokens(_sent(request)), reply.output_tokens)
            answers.append(reply)


def _imagined(request: Request, sample: JudgeSample, supported: bool) -> Reply:
    """A reply of the usual form and length. What it says about ids that were not asked is ignored by the reader."""
    if request.prompt == "claims":
        said: object = {
            side: [{"quote": piece, "claim": f"{place}: {piece}"} for place, piece in enumerate(_pieces_of(text))]
            for side, text in (("reference", sample.reference), ("answer", sample.answer))
            if text
        } | {"abstained": False}
        text = json.dumps(said, ensure_ascii=False)
        return Reply(text=text, finish_reason="stop", output_tokens=_tokens(text))
    labels = ["answer", "reference", *(f"c{n}" for n in range(1, _MOST_ROWS + 1))]
    if request.prompt == "matrix":
        shown = dict.fromkeys(_LABEL.findall(request.messages[-1]["content"]))
        yes = [{"text": label, "quote": ""} for label in shown] if supported else []
        ids = [f"{letter}{n}" for letter in "ra" for n in range(1, _PIECES + 1)]
        said = {"verdicts": [{"id": each, "supported": yes, "contradicted": []} for each in ids]}
        rows = _rows_asked(request, ids)
    else:
        words = ("irrelevant", "relevant") if request.prompt == "relevance" else ("missing", "supported")
        said = {"verdicts": dict.fromkeys(labels, words[supported])}
        rows = 1
    return Reply(text=json.dumps(said), finish_reason="stop", output_tokens=VERDICT_TOKENS * rows)


def _rows_asked(request: Request, ids: Iterable[str]) -> int:
    """How many claims the messages name, one a line."""
    known = set(ids)
    lines = (line for message in request.messages for line in message["content"].splitlines())
    return max(1, sum(line.partition(":")[0] in known for line in lines))


def _pieces_of(text: str) -> Iterator[str]:
    n = min(_PIECES, max(1, round(len(text.encode("utf-8", "replace")) / CLAIM_BYTES)))
    size = max(1, -(-len(text) // n))
    yield from (text[start : start + size] for start in range(0, len(text), size))


def _sent(request: Request) -> str:
    return "".join(message["content"] for message in request.messages)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
