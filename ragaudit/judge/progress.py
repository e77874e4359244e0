"""Where a judge run stands: counts that add up, whatever happened."""

from collections import Counter
from dataclasses import dataclass, field

from ragaudit.model.judgement import Failure, Reply


@dataclass(frozen=True)
class JudgeProgress:
    """A moment of a run. Every request of the run is in exactly one of `from_tape`, `shared`, `replies`, `failed`."""

    samples: int = 0
    """Queries that are finished."""
    from_tape: int = 0
    """Requests answered by the cassette or the cache."""
    shared: int = 0
    """Requests that were the same as one already under way, and got its reply."""
    replies: int = 0
    """Requests the model answered."""
    failed: dict[str, int] = field(default_factory=dict)
    """Kind of failure -> requests. What came too late for the budget was never sent."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    """What the model's replies cost in this run, as far as prices are known; the tape costs nothing."""
    unpriced: int = 0
    """Replies whose price is not known."""
    in_flight: int = 0
    waiting: str = ""
    """What calls wait for beside their replies, in words: a rate limit, another try."""

    @property
    def requests(self) -> int:
        """All requests that have come out one way or another."""
        return self.from_tape + self.shared + self.replies + sum(self.failed.values())


class Tally:
    """Adds up what happens, over one call of `run` or several that share their limits.

    Each counter is written by one thread only, so that none needs a lock: the caller's thread writes `started`,
    `samples` and `replayed`, the thread that asks the model all others.
    """

    def __init__(self) -> None:
        self.started: float | None = None
        """When the first call of `run` began, as its clock counts; None = it has not."""
        self.samples = 0
        self.replayed = 0
        self.found_later = 0
        self.shared = 0
        self.replies = 0
        self.failed: Counter[str] = Counter()
        self.input_tokens = 0
        self.output_tokens = 0
        self.usd = 0.0
        self.dearest: float | None = None
        """What the dearest call cost; None = no price of a call is known yet."""
        self.unpriced = 0
        self.in_flight = 0

    def answered(self, reply: Reply) -> None:
        """A reply came from the model."""
        self.replies += 1
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        self.usd += reply.usd or 0.0
        self.unpriced += reply.usd is None

    def failed_with(self, failure: Failure) -> None:
        """A request gave nothing."""
        self.failed[failure.kind] += 1

    def now(self) -> JudgeProgress:
        """The counts as they stand."""
        return JudgeProgress(
            self.samples,
            self.replayed + self.found_later,
            self.shared,
            self.replies,
            dict(self.failed),
            self.input_tokens,
            self.output_tokens,
            self.usd,
            self.unpriced,
            self.in_flight,
        )
