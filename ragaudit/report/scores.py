"""How far the scores of gold stand from the rest, for each arm on its own: a sample of the queries, as quantiles."""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragaudit.model.diagnosis import Diagnosis, Outcome, State
from ragaudit.model.trace import Trace

SAMPLED = 2_000
"""Queries whose scores are looked at, spread evenly over the run."""

DEPTH = 100
"""Hits of one list."""

MAX_ARMS = 12

_Key = tuple[str, str]


@dataclass(frozen=True)
class Band:
    """Scores of `n` hits: the median, the middle half (25 to 75 %), and all but the ends (5 to 95 %)."""

    n: int
    low: float
    lower: float
    median: float
    upper: float
    high: float


@dataclass(frozen=True)
class ArmScores:
    """One arm under one embedding model. Its scores compare with no other arm's and with no other model's."""

    arm: str
    model: str
    """Empty where the arm's queries name one model only."""
    gold: Band | None
    others: Band | None


@dataclass
class ScoreSample:
    """The scores of a sample, held as plain numbers."""

    every: int = 1
    seen: int = 0
    queries: int = 0
    _gold: dict[_Key, "array[float]"] = field(default_factory=dict)
    _others: dict[_Key, "array[float]"] = field(default_factory=dict)

    def spread_over(self, n: int) -> None:
        """Take every so many queries, so that at most SAMPLED of `n` are looked at."""
        self.every = max(1, math.ceil(n / SAMPLED))

    def wants(self) -> bool:
        """Whether the next query is one of the sample."""
        self.seen += 1
        return (self.seen - 1) % self.every == 0

    def add(self, diagnosis: Diagnosis, trace: Trace | None) -> None:
        """Put the scores of a query's arms to gold and others.

        A query without gold that counts says nothing; a gold id that its user may not read, or that is in doubt, is
        neither gold nor other.
        """
        if trace is None or diagnosis.outcome is Outcome.LABEL_ISSUE:
            return
        counting = [g for g in diagnosis.gold if g.eligible is not False and g.outcome is not Outcome.LABEL_ISSUE]
        if not counting:
            return
        self.queries += 1
        for arm, hits in (trace.arms or {}).items():
            key = arm, trace.embedding_model or ""
            if key not in self._gold and len(self._gold) >= MAX_ARMS:
                continue
            known = {
                step.rank: gold in counting
                for gold in diagnosis.gold
                for step in gold.journey
                if step.list == f"arm:{arm}" and step.state is State.PRESENT
            }
            gold_scores = self._gold.setdefault(key, array("d"))
            other_scores = self._others.setdefault(key, array("d"))
            for rank, hit in enumerate(hits[:DEPTH], start=1):
                score = hit.value
                if score is None or not math.isfinite(score):
                    continue
                if known.get(rank, False):
                    gold_scores.append(score)
                elif rank not in known:
                    other_scores.append(score)

    def arms(self) -> list[ArmScores]:
        """Every arm that has a score, in the order of the log."""
        models = Counter(arm for arm, _ in self._gold)
        found = [
            ArmScores(arm, model if models[arm] > 1 else "", _band(scores), _band(self._others[arm, model]))
            for (arm, model), scores in self._gold.items()
        ]
        return [each for each in found if each.gold is not None or each.others is not None]


def _band(scores: Sequence[float]) -> Band | None:
    if not scores:
        return None
    ordered = sorted(scores)
    low, lower, median, upper, high = (quantile(ordered, q) for q in (0.05, 0.25, 0.5, 0.75, 0.95))
    return Band(len(ordered), low, lower, median, upper, high)


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of sorted values, linear between neighbours (type 7 of Hyndman and Fan 1996)."""
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
