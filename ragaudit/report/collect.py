"""What one pass over the results of a run keeps for its report: counts over all of them, and a bounded few to show."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ragaudit.model.diagnosis import Checkpoint, Outcome, Stage, State, Step
from ragaudit.model.result import QueryResult, Summary
from ragaudit.model.trace import Trace
from ragaudit.report.example import worst_stage, worth
from ragaudit.report.scores import ScoreSample

MAX_ROWS = 200
MAX_LISTED = 50

WAY = (
    Checkpoint.INDEXED,
    Checkpoint.RETRIEVED,
    Checkpoint.FUSED,
    Checkpoint.FILTERED,
    Checkpoint.RERANKED,
    Checkpoint.PACKED,
    Checkpoint.PROMPTED,
)
"""From the index to the prompt."""

TraceOf = Callable[[str], Trace | None]
"""The trace of a query, if the run has it."""


@dataclass
class Collected:
    """What the pass keeps. Its size does not grow with the run."""

    failing: list[QueryResult] = field(default_factory=list)
    n_failing: int = 0
    log: Counter[str] = field(default_factory=Counter)
    label_issues: list[str] = field(default_factory=list)
    n_label_issues: int = 0
    n_gold: int = 0
    """Gold ids that count: their query's user may read them, and nobody doubts them."""
    way: dict[Checkpoint, Counter[State]] = field(default_factory=lambda: {place: Counter() for place in WAY})
    """How many of those ids were present, absent or not observed at each checkpoint."""
    scores: ScoreSample = field(default_factory=ScoreSample)
    best: dict[Stage, tuple[int, QueryResult]] = field(default_factory=dict)
    """The failing query of each stage that shows best how a diagnosis reads, with its worth."""

    @property
    def worked(self) -> list[QueryResult]:
        """One failing query a stage: the one that shows best first, then in the order of the stages."""
        ordered = sorted(self.best.items(), key=lambda item: list(Stage).index(item[0]))
        first = max(self.best.values(), key=lambda item: item[0], default=(0, None))[1]
        rest = [result for _, (_, result) in ordered if result is not first]
        return rest if first is None else [first, *rest]


def collect(
    summary: Summary, results: Iterable[QueryResult], max_rows: int = MAX_ROWS, traces: TraceOf | None = None
) -> Collected:
    """Look at every result once.

    Args:
        summary: The run.
        results: Its queries, leaks first.
        max_rows: How many failing queries are kept; the rest are counted.
        traces: Where the scores of a sample of the queries come from; None = no scores.
    """
    kept = Collected()
    kept.scores.spread_over(sum(summary.outcomes.values()))
    worst = worst_stage(summary)
    for result in results:
        diagnosis = result.diagnosis
        kept.log.update(dict.fromkeys(diagnosis.log, 1))
        _follow(kept, result)
        if traces is not None and kept.scores.wants():
            kept.scores.add(diagnosis, traces(diagnosis.query_id))
        if diagnosis.outcome is Outcome.LABEL_ISSUE:
            kept.n_label_issues += 1
            if len(kept.label_issues) < MAX_LISTED:
                kept.label_issues.append(diagnosis.query_id)
        if diagnosis.outcome is not Outcome.FAIL:
            continue
        kept.n_failing += 1
        if len(kept.failing) < max_rows:
            kept.failing.append(result)
        value = worth(result, worst)
        if value > kept.best.get(diagnosis.stage, (-1, None))[0]:
            kept.best[diagnosis.stage] = value, result
    return kept


def state_at(journey: Iterable[Step], checkpoint: Checkpoint) -> State:
    """Where a gold id stands at a checkpoint: in any arm, or in the last list that stands there."""
    found: dict[str, list[State]] = {}
    for step in journey:
        if step.checkpoint is checkpoint:
            found.setdefault((step.list or "").partition(":")[0], []).append(step.state)
    states = list(found.values())[-1] if found else []
    for state in (State.PRESENT, State.ABSENT):
        if state in states:
            return state
    return State.UNOBSERVED


def _follow(kept: Collected, result: QueryResult) -> None:
    if result.diagnosis.outcome is Outcome.LABEL_ISSUE:
        return
    for gold in result.diagnosis.gold:
        if gold.eligible is False or gold.outcome is Outcome.LABEL_ISSUE:
            continue
        kept.n_gold += 1
        for checkpoint, counts in kept.way.items():
            counts[state_at(gold.journey, checkpoint)] += 1
