"""Builders for tests of tape, client and runner: a request, a reply, a toy protocol, a clock that does not wait."""

import asyncio
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from ragaudit.model.judgement import Failure, JudgeCall, Judgement, JudgeSample, Reply, Request


def a_request(text: str = "Is the sky blue?", **over: Any) -> Request:
    given = {
        "model": "openai/m",
        "parameters": {"temperature": 0},
        "messages": ({"role": "system", "content": "You judge."}, {"role": "user", "content": text}),
        "prompt": "matrix",
        "version": 1,
    }
    return Request(**(given | over))


def a_reply(text: str = "yes", **over: Any) -> Reply:
    given = {"text": text, "finish_reason": "stop", "input_tokens": 10, "output_tokens": 2, "model": "m"}
    return Reply(**(given | over))


def some_samples(n: int) -> list[JudgeSample]:
    return [JudgeSample(query_id=f"q{i}", query=f"question {i}") for i in range(n)]


def toy(
    *steps: Sequence[str], requests: Callable[[str], Request] = a_request
) -> Callable[..., Generator[list[Request], list[Reply | Failure], Judgement]]:
    """A protocol that asks for the given texts, step by step; `{id}` and `{said}` (the step before) are filled in."""

    def judge(
        sample: JudgeSample, prompts: object = None, how: object = None
    ) -> Generator[list[Request], list[Reply | Failure], Judgement]:
        calls: list[JudgeCall] = []
        said = ""
        for step in steps or (("first {id}",), ("second {id} {said}",)):
            asked = [requests(text.format(id=sample.query_id, said=said)) for text in step]
            answers = yield asked
            for answer in answers:
                failed = answer if isinstance(answer, Failure) else None
                calls.append(
                    JudgeCall(
                        purpose="toy",
                        prompt="toy@1",
                        usd=None if failed else answer.usd,
                        error=failed and f"{failed.kind}: {failed.message}",
                        raw=None if failed else answer.text,
                    )
                )
            said = "/".join(a.text if isinstance(a, Reply) else a.kind for a in answers)
        return Judgement(query_id=sample.query_id, calls=tuple(calls))

    return judge


class FakeClient:
    """Answers at once, or after being let go; remembers what it was asked."""

    def __init__(self, answer: Callable[[Request], Reply | Failure] | None = None) -> None:
        self.asked: list[str] = []
        self.most_in_flight = 0
        self.closed = 0
        self._in_flight = 0
        self._answer = answer or (lambda request: a_reply(f"re: {request.messages[-1]['content']}"))

    async def complete(self, request: Request) -> Reply | Failure:
        self.asked.append(request.messages[-1]["content"])
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            await self.work(request)
            return self._answer(request)
        finally:
            self._in_flight -= 1

    async def work(self, request: Request) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        self.closed += 1


class FakeClock:
    """Time that passes only when somebody waits."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.waits: list[float] = []
        self._now = now

    def monotonic(self) -> float:
        return self._now

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._now += seconds
        await asyncio.sleep(0)


class NoJitter:
    """A random source in the middle of every range."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


def texts(judgements: Iterable[Judgement]) -> list[str]:
    return [call.raw or call.error or "" for judgement in judgements for call in judgement.calls]
