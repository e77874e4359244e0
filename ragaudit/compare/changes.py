"""How each query of two runs came out: worse, better, otherwise, or the same; the worst first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ragaudit.compare.variables import Pairs
from ragaudit.metrics.paired import DECIMALS
from ragaudit.model.comparison import LOWER_IS_BETTER, FrozenQuery, QueryChange, Transition
from ragaudit.model.diagnosis import Outcome

TELLING = ("recall@k", "context_recall", "mrr@k", "ndcg@k", "faithfulness", "hallucination", "answer_recall")
"""The first of these metrics that moved says whether a query that fails, or passes, in both runs is worse or better."""


class Way(StrEnum):
    """What became of one query, in the order of the list."""

    WORSE = "worse"
    """It newly leaks or newly fails, or the first telling metric that moved is worse."""
    BETTER = "better"
    """It newly passes or no longer leaks, or that metric is better."""
    OTHER = "other"
    """Another stage, or another metric; no telling one moved."""
    SAME = "same"


class Came(NamedTuple):
    """One query with what became of it."""

    way: Way
    change: QueryChange


def came(pairs: Pairs, *, comparable: bool = True) -> tuple[Came, ...]:
    """Every paired query, worse before better before other before the same; within each the largest change first.

    Args:
        pairs: (before, after).
        comparable: Whether metrics of the two runs compare; if not (another K, other gold), outcomes alone count.
    """
    found = []
    for was, now in pairs:
        change = change_of(was, now)
        if not comparable:
            change = change.model_copy(update={"differences": {}})
        found.append((_way(was, now, change), change, newly_failing(was, now) or newly_passing(was, now)))
    order = list(Way)
    found.sort(key=lambda one: (order.index(one[0]), not one[1].leaks, not one[2], -_size(one[1]), one[1].query_id))
    return tuple(Came(way=way, change=change) for way, change, _ in found)


def change_of(was: FrozenQuery, now: FrozenQuery) -> QueryChange:
    """What differs between the two."""
    return QueryChange(
        query_id=now.query_id,
        before=was.state,
        after=now.state,
        leaks=tuple(chunk_id for chunk_id in now.leaks if chunk_id not in was.leaks),
        differences={
            metric: round(now.metrics[metric] - was.metrics[metric], DECIMALS)
            for metric in was.metrics
            if metric in now.metrics and now.metrics[metric] != was.metrics[metric]
        },
    )


def transitions(changes: Iterable[QueryChange]) -> tuple[Transition, ...]:
    """How many queries went from which state to which other one, most frequent first."""
    moved = Counter((change.before, change.after) for change in changes if change.before != change.after)
    return tuple(
        Transition(before=before, after=after, n=n)
        for (before, after), n in sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    )


def newly(pairs: Pairs, changes: Sequence[QueryChange], *, failing: bool) -> tuple[QueryChange, ...]:
    """Queries that fail and did not, or that failed and no longer do; the largest change of recall, then MRR, first."""
    found = [
        change
        for (was, now), change in zip(pairs, changes, strict=True)
        if (newly_failing(was, now) if failing else newly_passing(was, now))
    ]
    sign = 1.0 if failing else -1.0
    return tuple(
        sorted(
            found,
            key=lambda change: (
                not change.leaks,
                *(sign * change.differences.get(metric, 0.0) for metric in ("recall@k", "mrr@k", "ndcg@k")),
                change.query_id,
            ),
        )
    )


def newly_failing(was: FrozenQuery, now: FrozenQuery) -> bool:
    """It fails and did not."""
    return now.outcome is Outcome.FAIL and was.outcome is not Outcome.FAIL


def newly_passing(was: FrozenQuery, now: FrozenQuery) -> bool:
    """Its evidence arrives and did not."""
    return now.arrived and not was.arrived


def _way(was: FrozenQuery, now: FrozenQuery, change: QueryChange) -> Way:
    if change.leaks or newly_failing(was, now):
        return Way.WORSE
    if newly_passing(was, now) or set(was.leaks) - set(now.leaks):
        return Way.BETTER
    telling = _telling(change)
    if telling is not None:
        return Way.WORSE if telling < 0 else Way.BETTER
    return Way.OTHER if change.differences or change.before != change.after else Way.SAME


def _telling(change: QueryChange) -> float | None:
    """The first telling difference, above 0 for better."""
    moved = next((metric for metric in TELLING if metric in change.differences), None)
    if moved is None:
        return None
    return change.differences[moved] * (-1.0 if moved in LOWER_IS_BETTER else 1.0)


def _size(change: QueryChange) -> float:
    return abs(_telling(change) or 0.0)
