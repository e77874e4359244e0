"""Runs the judge over samples: tape first, model where the tape ends, judgements in the order of the samples."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ragaudit.errors import JudgeError
from ragaudit.judge.limits import Clock, Limits, SystemClock
from ragaudit.judge.progress import JudgeProgress, Tally
from ragaudit.judge.redact import shown
from ragaudit.judge.tape import Tape
from ragaudit.judge.walk import Steps, Walk
from ragaudit.model.judgement import Judgement, JudgeSample

if TYPE_CHECKING:
    from ragaudit.judge.client import Client
    from ragaudit.judge.how import HowToJudge
    from ragaudit.judge.kept import KeptJudgements
    from ragaudit.judge.live import LiveJudge
    from ragaudit.judge.prompts import PromptSet

_POLL_SECONDS = 0.1
"""How often a wait looks whether it should stop."""


class Judging(Protocol):
    """How one sample is judged: `protocol.judge`."""

    def __call__(self, sample: JudgeSample, prompts: "PromptSet", how: "HowToJudge", /) -> Steps:
        """Start judging."""
        ...


def _silent(progress: JudgeProgress) -> None:
    """No progress wanted."""


def _never() -> bool:
    return False


def run(
    samples: Iterable[JudgeSample],
    *,
    prompts: "PromptSet",
    how: "HowToJudge",
    tape: Tape,
    client: "Client | None",
    limits: Limits | None = None,
    so_far: Tally | None = None,
    progress: Callable[[JudgeProgress], None] = _silent,
    stop: Callable[[], bool] = _never,
    pause: Callable[[], bool] = _never,
    judge: Judging | None = None,
    kept: "KeptJudgements | None" = None,
    clock: Clock | None = None,
) -> Generator[Judgement, None, None]:
    """Judge samples; yields in their order, as they are done.

    Samples are read in the caller's thread and only a bounded number ahead, so that any number can stream. Every reply
    is on the tape before it is used: a run that was stopped, or crashed, asks nothing twice when it is run again.

    Args:
        samples: The queries, with all that may be read of them.
        prompts: The prompts.
        how: How to ask.
        tape: Recorded replies.
        client: Who is asked where the tape ends; None = nobody.
        limits: How much and how fast. A call that is not allowed any more comes out as a Failure of kind `budget`.
        so_far: What earlier calls of `run` used of the same limits; this one adds to it. None = there were none.
        progress: Told the counts while waiting and after each sample, in the caller's thread.
        stop: Asked about ten times a second; True = start no more calls, wait a moment for those in flight, read no
            more samples, and finish those already read with what there is.
        pause: Asked as often; while True no call is started and no sample read. What is in flight goes on.
        judge: How one sample is judged.
        kept: Judgements that need not be made again from their replies. They are those of `protocol.judge`. None = each
            one is made from the tape.
        clock: For the overall time limit.

    Raises:
        TapeMissError: A reply is not on the tape and may not be recorded.
        JudgeError: The model refuses every request, or is needed and there is none.
        InputError: A cassette or cache is damaged or cannot be written.
    """
    if judge is None:
        from ragaudit.judge.protocol import judge as standard

        judge = standard
    tally = Tally() if so_far is None else so_far

    def walk(sample: JudgeSample) -> Walk:
        return Walk(sample, judge(sample, prompts, how))

    return _Run(
        walk, kept, tape, client, limits or Limits(), tally, progress, stop, pause, clock or SystemClock()
    ).over(iter(samples))


class _Run:
    def __init__(
        self,
        walk: Callable[[JudgeSample], Walk],
        kept: "KeptJudgements | None",
        tape: Tape,
        client: "Client | None",
        limits: Limits,
        tally: Tally,
        progress: Callable[[JudgeProgress], None],
        stop: Callable[[], bool],
        pause: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._walk = walk
        self._kept = kept
        self._tape = tape
        self._client = client
        self._limits = limits
        self._progress = progress
        self._stop = stop
        self._pause = pause
        self._clock = clock
        self._tally = tally
        if tally.started is None:
            tally.started = clock.monotonic()
        self._live: LiveJudge | None = None
        self._is_stopped = False
        self._is_paused = False

    def over(self, samples: Iterator[JudgeSample]) -> Generator[Judgement, None, None]:
        read_ahead = 8 * self._limits.concurrency
        window: deque[Judgement | tuple[JudgeSample, Future[Judgement]]] = deque()
        order = 0
        is_over = False
        try:
            while True:
                # Ahead only while the model is at work: what the tape answers is yielded at once.
                while not is_over and len(window) < (1 if self._live is None else read_ahead):
                    if self._should_pause() and window:
                        break
                    sample = None if self._held_and_stopped() else next(samples, None)
                    if sample is None:
                        is_over = True
                    else:
                        window.append(self._start(order, sample))
                        order += 1
                if not window:
                    break
                judgement = self._result(window.popleft())
                self._tally.samples += 1
                self._report()
                yield judgement
            self._raise_if_nothing_was_answered()
        finally:
            if self._live is not None:
                self._live.shutdown()

    def _start(self, order: int, sample: JudgeSample) -> "Judgement | tuple[JudgeSample, Future[Judgement]]":
        known = None if self._kept is None else self._kept.find(sample)
        if known is not None:
            self._tally.replayed += len(known.calls)
            return known
        walk = self._walk(sample)
        if walk.replay(self._tape, self._tally):
            assert walk.judgement is not None
            return self._keep(sample, walk.judgement)
        if self._live is None:
            self._live = self._go_live(walk)
        return sample, self._live.submit(order, walk)

    def _keep(self, sample: JudgeSample, judgement: Judgement) -> Judgement:
        if self._kept is not None:
            self._kept.keep(sample, judgement)
        return judgement

    def _go_live(self, walk: Walk) -> "LiveJudge":
        if self._client is None:
            about = f"{shown(walk.sample.query_id)} {shown(walk.sample.query)}"
            raise JudgeError(f"judge: {about} has to be asked about, and no model is set. Set judge.model.")
        from ragaudit.judge.live import LiveJudge

        limit, started = self._limits.overall_timeout, self._tally.started
        left = None if limit is None or started is None else limit - (self._clock.monotonic() - started)
        return LiveJudge(self._client, self._tape, self._limits, self._tally, seconds_left=left)

    def _result(self, entry: "Judgement | tuple[JudgeSample, Future[Judgement]]") -> Judgement:
        if isinstance(entry, Judgement):
            return entry
        sample, coming = entry
        while not wait([coming], timeout=_POLL_SECONDS).done:
            self._raise_if_fatal()
            self._should_stop()
            self._should_pause()
            self._report()
        self._raise_if_fatal()
        return self._keep(sample, coming.result())

    def _held_and_stopped(self) -> bool:
        """Wait while paused; whether to stop."""
        while not self._should_stop() and self._should_pause():
            self._report()
            time.sleep(_POLL_SECONDS)
        return self._is_stopped

    def _report(self) -> None:
        waiting = "" if self._live is None else self._live.waiting()
        self._progress(replace(self._tally.now(), waiting=waiting))

    def _should_pause(self) -> bool:
        wanted = self._pause() and not self._is_stopped
        if wanted != self._is_paused:
            self._is_paused = wanted
            if self._live is not None:
                self._live.pause(wanted)
        return wanted

    def _should_stop(self) -> bool:
        if not self._is_stopped and self._stop():
            self._is_stopped = True
            if self._live is not None:
                self._live.stop()
        return self._is_stopped

    def _raise_if_fatal(self) -> None:
        if self._live is not None and self._live.fatal is not None:
            raise self._live.fatal

    def _raise_if_nothing_was_answered(self) -> None:
        """A short run ends before it can be given up: it must not end well either."""
        if self._live is not None:
            self._live.give_up_if_hopeless()
            self._raise_if_fatal()
