"""One query on its way: its generator, the requests that are open, and the answers there are so far."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ragaudit.judge.progress import Tally
from ragaudit.judge.recording import request_key
from ragaudit.judge.tape import Tape
from ragaudit.model.judgement import Failure, Judgement, JudgeSample, Reply, Request

Steps = Generator[list[Request], list[Reply | Failure], Judgement]
"""What `protocol.judge` returns: yields requests that may run at the same time, is sent one answer for each."""


@dataclass(frozen=True)
class Outcome:
    """How a request came out, and where from."""

    key: str
    said: Reply | Failure
    from_tape: bool = False


class Walk:
    """Drives one generator. It is driven from one thread at a time."""

    def __init__(self, sample: JudgeSample, steps: Steps) -> None:
        self.sample = sample
        self.judgement: Judgement | None = None
        self._steps = steps
        self._batch: Sequence[Request] = ()
        self._outcomes: list[Outcome | None] = []
        self._past: list[Outcome] = []
        """How every request before this step came out, in order."""
        self._advance(None)

    def replay(self, tape: Tape, tally: Tally) -> bool:
        """Go as far as the tape reaches; True when that was the end."""
        while self.judgement is None:
            for place, request in enumerate(self._batch):
                if self._outcomes[place] is None:
                    key = request_key(request)
                    reply = tape.find(request, key=key, about=self.sample)
                    if reply is not None:
                        tally.replayed += 1
                        self._outcomes[place] = Outcome(key, reply, from_tape=True)
            if None in self._outcomes:
                return False
            self.answer(())
        return True

    def open_requests(self) -> list[Request]:
        """Requests of this step that have no answer yet."""
        return [request for request, outcome in zip(self._batch, self._outcomes, strict=True) if outcome is None]

    def answer(self, outcomes: Sequence[Outcome]) -> None:
        """Give the answers to the open requests, in order, and go to the next step."""
        given = iter(outcomes)
        complete = [outcome if outcome is not None else next(given) for outcome in self._outcomes]
        self._past += complete
        self._advance([outcome.said for outcome in complete])

    def _advance(self, answers: list[Reply | Failure] | None) -> None:
        try:
            self._batch = next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as end:
            self._batch = ()
            self.judgement = self._marked(end.value)
        self._outcomes = [None] * len(self._batch)

    def _marked(self, judgement: Judgement) -> Judgement:
        """The same with what the generator, which knows of no tape, cannot say of its calls."""
        calls = zip(judgement.calls, self._past, strict=True)
        marked = tuple(replace(call, key=past.key, from_tape=past.from_tape) for call, past in calls)
        return replace(judgement, calls=marked)
