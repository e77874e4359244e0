"""The part of a run that asks a model: an event loop in a thread of its own, started by the first miss of the tape.

A thread, because the caller may be slow, may be inside an event loop itself, and may stop listening at any time.
"""

import asyncio
import heapq
import warnings
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from threading import Thread

from ragaudit.errors import JudgeError
from ragaudit.judge.client import Client, Closing, Waiting
from ragaudit.judge.limits import Limits
from ragaudit.judge.progress import Tally
from ragaudit.judge.recording import request_key
from ragaudit.judge.tape import Tape
from ragaudit.judge.walk import Outcome, Walk
from ragaudit.model.judgement import Failure, Judgement, Reply, Request

GRACE_SECONDS = 5.0
"""How long what is in flight may still take after a stop: it is paid for already."""
_LET_GO_SECONDS = 2.0
"""How long tasks and connections are waited for at the end."""
_HOPELESS = 3
"""Refused requests in a row, without one reply, after which asking on is pointless."""


class LiveJudge:
    """Answers walks that the tape alone could not. All its state belongs to the loop's thread."""

    def __init__(self, client: Client, tape: Tape, limits: Limits, tally: Tally, *, seconds_left: float | None) -> None:
        self.fatal: JudgeError | None = None
        """Why the run cannot go on; the runner raises it."""
        self._client = client
        self._tape = tape
        self._limits = limits
        self._tally = tally
        self._under_way: dict[str, asyncio.Task[Outcome]] = {}
        self._calls: set[asyncio.Task[Reply | Failure]] = set()
        self._free = limits.concurrency
        self._turns: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._call_ended = asyncio.Event()
        self._may_start = asyncio.Event()
        self._may_start.set()
        self._refused_in_a_row: list[Failure] = []
        self._closed: Failure | None = None
        """What comes of every call that is not started yet, once none may start any more."""
        self._abandoned: Failure | None = None
        """What comes of the calls that were in flight when they were given up."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="ragaudit-judge", daemon=True)
        self._thread.start()
        if seconds_left is not None and seconds_left <= 0:
            self._closed = self._too_late()
        elif seconds_left is not None:
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds_left, self._time_is_up)

    def submit(self, order: int, walk: Walk) -> "Future[Judgement]":
        """Carry a walk on from where the tape ended. Lower orders get their turn first."""
        return asyncio.run_coroutine_threadsafe(self._finish(order, walk), self._loop)

    def pause(self, is_paused: bool) -> None:
        """Start no call until told otherwise; what is in flight goes on."""
        self._loop.call_soon_threadsafe(self._may_start.clear if is_paused else self._may_start.set)

    def waiting(self) -> str:
        """What calls wait for beside their replies; empty = nothing, or the client cannot tell."""
        return self._client.waiting() if isinstance(self._client, Waiting) else ""

    def stop(self) -> None:
        """Start nothing more; what is in flight has a moment to end."""
        self._loop.call_soon_threadsafe(self._stop)

    def shutdown(self) -> None:
        """Abandon what is in flight and end the thread. What was recorded stays recorded."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._let_go())
            self._loop.close()
            self._tape.release()

    async def _let_go(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        with warnings.catch_warnings():
            # LiteLLM makes some of its coroutines in a thread: cancelled at that moment, they are never awaited.
            warnings.filterwarnings("ignore", message="coroutine .* was never awaited", category=RuntimeWarning)
            for task in tasks:
                task.cancel()
            if tasks:
                # Not for ever: a library's task may refuse to be cancelled.
                ended, _ = await asyncio.wait(tasks, timeout=_LET_GO_SECONDS)
                for task in ended:
                    if not task.cancelled():
                        task.exception()  # seen, so that nothing about it is written to stderr
                await asyncio.sleep(0.02)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LET_GO_SECONDS):
                if isinstance(self._client, Closing):
                    await self._client.aclose()
                await self._loop.shutdown_asyncgens()

    async def _finish(self, order: int, walk: Walk) -> Judgement:
        while walk.judgement is None:
            waiting = [self._answer(order, walk, request) for request in walk.open_requests()]
            walk.answer(await asyncio.gather(*waiting))
        return walk.judgement

    async def _answer(self, order: int, walk: Walk, request: Request) -> Outcome:
        key = request_key(request)
        task = self._under_way.get(key)
        if task is not None:
            outcome = await task
            if isinstance(outcome.said, Reply):
                self._tally.shared += 1
            else:
                self._tally.failed_with(outcome.said)
            return Outcome(key, outcome.said, from_tape=isinstance(outcome.said, Reply))
        # Another sample, or another process, may have recorded it since this one was looked up.
        reply = self._tape.find(request, key=key, about=walk.sample)
        if reply is not None:
            self._tally.found_later += 1
            return Outcome(key, reply, from_tape=True)
        task = self._under_way[key] = self._loop.create_task(self._ask(order, key, request))
        try:
            return await task
        finally:
            self._under_way.pop(key, None)

    async def _ask(self, order: int, key: str, request: Request) -> Outcome:
        await self._turn(order)
        try:
            await self._may_start.wait()
            said = await self._within_budget() or await self._call(request)
            if isinstance(said, Reply):
                self._tape.record(request, said, key=key)
                self._tally.answered(said)
                self._refused_in_a_row.clear()
                self._note_price(said, request)
            else:
                self._tally.failed_with(said)
                self._consider(said)
            return Outcome(key, said)
        finally:
            self._give_turn_on()

    async def _call(self, request: Request) -> Reply | Failure:
        call = self._loop.create_task(self._client.complete(request))
        self._calls.add(call)
        self._tally.in_flight += 1
        try:
            return await call
        except asyncio.CancelledError:
            if self._abandoned is None or not call.cancelled():
                raise
            return self._abandoned
        finally:
            self._calls.discard(call)
            self._tally.in_flight -= 1
            self._call_ended.set()

    async def _turn(self, order: int) -> None:
        """Wait until fewer calls than allowed are in flight; the earliest query goes first, so that queries finish."""
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        heapq.heappush(self._turns, (order, next(self._order), turn))
        await turn

    def _give_turn_on(self) -> None:
        while self._turns:
            turn = heapq.heappop(self._turns)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _within_budget(self) -> Failure | None:
        """None when a call may start; otherwise why it may not. Waits where calls in flight may leave enough."""
        most = self._limits.max_cost
        while self._closed is None and most is not None:
            in_flight, spent, dearest = len(self._calls), self._tally.usd, self._tally.dearest
            # The first call goes alone: until it is back nobody knows what one costs.
            if (
                spent < most
                and spent + (in_flight + 1) * (dearest or 0.0) <= most
                and (dearest is not None or not in_flight)
            ):
                break
            if not in_flight:
                self._closed = Failure(kind="budget", message=f"not sent: ${spent:.4f} of max_cost ${most:g} is spent")
                break
            self._call_ended.clear()
            await self._call_ended.wait()
        return self._closed

    def _note_price(self, reply: Reply, request: Request) -> None:
        if reply.usd is not None:
            if reply.input_tokens:  # a request that was turned away says nothing about what the others cost
                self._tally.dearest = max(self._tally.dearest or 0.0, reply.usd)
        elif self._limits.max_cost is not None:
            self._closed = Failure(kind="budget", message="max_cost: the price of the model is not known")
            self.fatal = JudgeError(f"judge.max_cost: the price of {request.model} is not known. Remove the limit.")

    def give_up_if_hopeless(self) -> None:
        """Called at the end: a run in which nothing was answered, and something was refused, failed."""
        if self._refused_in_a_row and self._nothing_was_judged():
            self._give_up(self._refused_in_a_row[-1])

    def _nothing_was_judged(self) -> bool:
        progress = self._tally.now()
        return progress.replies == 0 and progress.from_tape == 0

    def _consider(self, failure: Failure) -> None:
        """Give up when it is plain that no request will be answered."""
        if failure.kind not in ("auth", "bad_request") or self._closed is not None:
            self._refused_in_a_row.clear()
            return
        self._refused_in_a_row.append(failure)
        is_hopeless = len(self._refused_in_a_row) >= _HOPELESS
        if (failure.kind == "auth" and self._tally.replies == 0) or (is_hopeless and self._nothing_was_judged()):
            self._give_up(failure)
        elif is_hopeless and failure.kind == "auth":
            self._closed = Failure(kind="auth", message=f"not sent: {failure.message}")

    def _give_up(self, failure: Failure) -> None:
        hint = (
            "Check the API key in the environment" if failure.kind == "auth" else "Check judge.model and its settings"
        )
        self.fatal = JudgeError(f"judge: the model refuses the requests: {failure.message}. {hint}.")
        self._closed = Failure(kind="cancelled", message="the run was given up")

    def _stop(self) -> None:
        if self._closed is None:
            self._closed = Failure(kind="cancelled", message="not sent: the run was stopped")
        self._call_ended.set()
        self._may_start.set()
        self._loop.call_later(GRACE_SECONDS, self._abandon, Failure(kind="cancelled", message="stopped in flight"))

    def _time_is_up(self) -> None:
        if self._closed is None:
            self._closed = self._too_late()
        self._call_ended.set()
        self._may_start.set()
        limit = f"{self._limits.overall_timeout:g} s"
        self._abandon(Failure(kind="timeout", message=f"in flight when overall_timeout of {limit} was over"))

    def _too_late(self) -> Failure:
        return Failure(
            kind="budget", message=f"not sent: overall_timeout of {self._limits.overall_timeout:g} s is over"
        )

    def _abandon(self, failure: Failure) -> None:
        self._abandoned = failure
        for call in self._calls:
            call.cancel()
