"""Builders for judge tests: a sample, a judge that knows the truth, and a driver that plays replies to the protocol."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.protocol import HowToJudge, judge
from ragaudit.model.judgement import Failure, Judgement, JudgeSample, Reply, Request, SampleChunk

PROMPTS = PromptSet.load(None)
PLANS = "Free keys expire after 30 days."
LIMITS = "The limit is 100 calls a minute."
WEATHER = "It rained in Bergen."

Answer = str | Reply | Failure


def a_sample(chunks: Iterable[str] | None = (PLANS, LIMITS, WEATHER), **given: Any) -> JudgeSample:
    """A query about keys; chunk texts get the ids k1, k2, ..., candidates d1, d2, ..."""
    defaults: dict[str, Any] = {
        "query_id": "q1",
        "query": "When do free keys expire?",
        "answer": "After 30 days.",
        "reference": "Free keys expire after 30 days.",
        "chunks": None if chunks is None else some_chunks("k", chunks),
    }
    given["candidates"] = some_chunks("d", given.get("candidates", ()))
    return JudgeSample(**(defaults | given))


def some_chunks(letter: str, texts: Iterable[str]) -> tuple[SampleChunk, ...]:
    """One chunk a text, numbered."""
    return tuple(
        SampleChunk(id=f"{letter}{place}", text=text, where=f"dense#{place}") for place, text in enumerate(texts, 1)
    )


def how(**given: Any) -> HowToJudge:
    """The matrix mode, unless told otherwise."""
    return HowToJudge(**({"model": "test/judge"} | given))


def ask_judge(
    sample: JudgeSample,
    says: Callable[[Request], Answer] | Iterable[Answer],
    settings: HowToJudge | None = None,
    prompts: PromptSet = PROMPTS,
) -> tuple[Judgement, list[Request]]:
    """Play the judge: `says` is a function of the request, or the replies in order; each must be used up."""
    steps = judge(sample, prompts, settings or how())
    script = None if callable(says) else iter(says)
    requests: list[Request] = []
    sent: list[Reply | Failure] | None = None
    while True:
        try:
            batch = next(steps) if sent is None else steps.send(sent)
        except StopIteration as end:
            assert script is None or next(script, None) is None, "a scripted reply was not asked for"
            return end.value, requests
        assert batch, "an empty batch asks nothing"
        requests += batch
        sent = [_reply(says(request) if callable(says) else next(script)) for request in batch]


def _reply(said: Answer) -> Reply | Failure:
    return Reply(text=said, finish_reason="stop", input_tokens=10, output_tokens=5) if isinstance(said, str) else said


def cut_off(text: str = '{"verdicts": [{"id": "r1", "suppor') -> Reply:
    """A reply that reached its limit."""
    return Reply(text=text, finish_reason="length", input_tokens=10, output_tokens=99)


def texts_of(request: Request) -> dict[str, str]:
    """Name -> text of everything that stands between marks in the last user message of the first question."""
    content = next(message["content"] for message in request.messages if message["role"] == "user")
    key = re.match(r"KEY: (\w+)\n", content)
    assert key is not None
    marks = re.findall(rf"<(\w+):{key[1]}>\n(.*?)\n</\1:{key[1]}>", content, re.DOTALL)
    return dict(marks)


def rows_of(request: Request) -> dict[str, str]:
    """Claim id -> claim of a matrix request."""
    return dict(line.split(": ", 1) for line in texts_of(request)["claims"].splitlines())


def claims_reply(
    reference: Iterable[str] | None = None, answer: Iterable[str] | None = None, abstained: bool | None = False
) -> str:
    """A reply to the claims prompt; each claim quotes itself."""
    said: dict[str, Any] = {}
    for side, claims in (("reference", reference), ("answer", answer)):
        if claims is not None:
            said[side] = [{"quote": claim, "claim": claim} for claim in claims]
    if answer is not None and abstained is not None:
        said["abstained"] = abstained
    return json.dumps(said, ensure_ascii=False)


def row(claim_id: str, supported: Iterable[Any] = (), contradicted: Iterable[Any] = ()) -> dict[str, Any]:
    """One row of a matrix reply; a text is its label, or (label, quote)."""
    lists = {"supported": supported, "contradicted": contradicted}
    return {"id": claim_id} | {
        name: [
            {"text": one[0], "quote": one[1]} if isinstance(one, tuple) else {"text": one, "quote": ""} for one in ones
        ]
        for name, ones in lists.items()
    }


def matrix_reply(*rows: Mapping[str, Any]) -> str:
    """A reply to the matrix prompt."""
    return json.dumps({"verdicts": list(rows)}, ensure_ascii=False)


class Oracle:
    """A judge that knows the truth about claims and texts, and answers every prompt in its form.

    Args:
        reference: claims of the reference.
        answer: claims of the answer.
        supports: claim -> texts that support it, each with the words that do, or None for no quote.
        contradicts: the same for the texts that contradict it.
        declines: the answer does.
    """

    def __init__(
        self,
        reference: Iterable[str] = (),
        answer: Iterable[str] = (),
        supports: Mapping[str, Mapping[str, str | None]] | None = None,
        contradicts: Mapping[str, Mapping[str, str | None]] | None = None,
        *,
        declines: bool = False,
        relevant: Iterable[str] = (),
    ) -> None:
        self.claims = {"reference": list(reference), "answer": list(answer)}
        self.verdicts = {"supported": supports or {}, "contradicted": contradicts or {}}
        self.declines = declines
        self.relevant = set(relevant)

    def __call__(self, request: Request) -> str:
        """The reply to a request."""
        texts = texts_of(request)
        match request.prompt:
            case "claims":
                asked = {side: self.claims[side] for side in ("reference", "answer") if side in texts}
                return claims_reply(asked.get("reference"), asked.get("answer"), self.declines)
            case "matrix":
                return matrix_reply(*(self._row(each, claim, texts) for each, claim in rows_of(request).items()))
            case "claim":
                return self._words(texts["claim"], texts)
            case "relevance":
                words = {
                    name: "relevant" if text in self.relevant else "irrelevant"
                    for name, text in texts.items()
                    if name != "question"
                }
                return json.dumps({"verdicts": words})
        raise AssertionError(request.prompt)

    def _row(self, claim_id: str, claim: str, texts: Mapping[str, str]) -> dict[str, Any]:
        said = {
            verdict: [(name, quotes[text] or "") for name, text in texts.items() if text in quotes]
            for verdict, quotes in ((verdict, table.get(claim, {})) for verdict, table in self.verdicts.items())
        }
        return row(claim_id, said["supported"], said["contradicted"])

    def _words(self, claim: str, texts: Mapping[str, str]) -> str:
        words: dict[str, str] = {}
        quotes: list[dict[str, str]] = []
        for name, text in texts.items():
            if name == "claim":
                continue
            words[name] = "missing"
            for verdict, table in self.verdicts.items():
                if text in table.get(claim, {}):
                    words[name] = verdict
                    quotes.append({"text": name, "quote": table[claim][text] or ""})
        return json.dumps({"verdicts": words, "quotes": quotes}, ensure_ascii=False)
