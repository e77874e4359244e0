"""How fast and how much a model may be asked: concurrency that adapts, requests and tokens a minute, waits, budgets."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Protocol

from pydantic import Field

from ragaudit.model.judgement import Request
from ragaudit.model.record import Concluded

MAX_CONCURRENCY = 64
LONGEST_WAIT = 300.0
"""Seconds. A server that asks for a longer pause is not waited for: the call fails and says so."""
LONGEST_BACKOFF = 60.0
_EXPECTED_OUTPUT = 300
"""Tokens set aside for a reply until its true count is known."""


class Limits(Concluded):
    """What a run may use. None = no limit."""

    concurrency: int = Field(default=16, ge=1, le=MAX_CONCURRENCY)
    """Calls in flight at most; fewer after a 429, and back up again with each reply."""
    rpm: float | None = Field(default=None, gt=0)
    """Requests a minute."""
    tpm: float | None = Field(default=None, gt=0)
    """Tokens a minute, in and out."""
    max_cost: float | None = Field(default=None, ge=0)
    """US dollars. No call is started that would exceed it, going by the dearest call so far."""
    call_timeout: float = Field(default=120.0, gt=0)
    """Seconds for one attempt, until the last byte."""
    overall_timeout: float | None = Field(default=None, gt=0)
    """Seconds for the run; what is in flight then is abandoned."""
    attempts: int = Field(default=5, ge=1, le=20)
    """Tries of one call, the first included."""


class Clock(Protocol):
    """Time, passed in so that tests need not wait."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        ...

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The time of this machine."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Spacing:
    """Keeps a rate by spacing: no minute holds more than the rate and one call. There is no burst to be paid back."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = 0.0

    def reserve(self, amount: float, now: float) -> float:
        """Take an amount out of the rate; returns how many seconds to wait before using it."""
        start = max(now, self._free_at)
        self._free_at = start + amount * self._seconds_each
        return start - now

    def correct(self, amount: float) -> None:
        """Take more out, or give back, once the true amount is known."""
        self._free_at += amount * self._seconds_each


class Throttle:
    """Decides when an attempt may start: additive increase, multiplicative decrease, and the provider's own pauses."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.in_flight = 0
        self.allowed = float(limits.concurrency)
        self._most = limits.concurrency
        self._clock = clock
        self._requests = Spacing(limits.rpm)
        self._tokens = Spacing(limits.tpm)
        self._paused_until = 0.0
        self._cut_at = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[float]:
        """Wait for a turn and hold it. Yields the time at which the attempt started.

        Args:
            tokens: How many it will probably use.
        """
        while self.in_flight >= int(self.allowed):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()
                raise
        self.in_flight += 1
        try:
            now = self._clock.monotonic()
            wait = max(self._requests.reserve(1, now), self._tokens.reserve(tokens, now), self._paused_until - now)
            while wait > 0:
                await self._clock.sleep(wait)
                wait = self._paused_until - self._clock.monotonic()
            yield self._clock.monotonic()
        finally:
            self.in_flight -= 1
            self._wake()

    def answered(self, tokens: int, estimate: int) -> None:
        """A reply came: a little more may be in flight."""
        self.allowed = min(float(self._most), self.allowed + 1 / self.allowed)
        self._tokens.correct(tokens - estimate)
        self._wake()

    def pushed_back(self, started: float, retry_after: float | None) -> None:
        """The provider said 429: half as much in flight, once for all calls that were under way, and its pause."""
        now = self._clock.monotonic()
        if started >= self._cut_at:
            self.allowed = max(1.0, self.allowed / 2)
            self._cut_at = now
        if retry_after is not None:
            self._paused_until = max(self._paused_until, now + retry_after)

    def _wake(self) -> None:
        free = int(self.allowed) - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


def backoff(attempt: int, retry_after: float | None, random: Random) -> float:
    """Seconds before the next attempt: what the server asked for and a little, else doubling from 1 s, jittered.

    Args:
        attempt: The one that failed, from 1.
        retry_after: What the server asked for.
        random: Where the jitter comes from; spreads calls that failed together.
    """
    if retry_after is not None:
        return retry_after + random.uniform(0, min(1.0, 0.1 * retry_after + 0.1))
    return min(LONGEST_BACKOFF, 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)


def estimated_tokens(request: Request) -> int:
    """About how many tokens a call uses: four bytes of UTF-8 each, and a short reply."""
    text = sum(len(message.get("content", "").encode("utf-8", "replace")) for message in request.messages)
    return text // 4 + _EXPECTED_OUTPUT
