"""Which failing query shows best how a diagnosis reads."""

from collections.abc import Iterable

from ragaudit.model.diagnosis import Outcome, Severity, Stage
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report.figures import losses


def worth(result: QueryResult, worst: Stage) -> int:
    """How well a query serves as the worked example; below 0 it does not. A leak is shown on its own."""
    diagnosis = result.diagnosis
    if diagnosis.outcome is not Outcome.FAIL:
        return -1
    return (
        8 * (diagnosis.severity is Severity.NORMAL)
        + 4 * (diagnosis.stage is worst)
        + 2 * bool(diagnosis.causes)
        + bool(diagnosis.gold)
    )


def worst_stage(summary: Summary) -> Stage:
    """The stage that loses most; the earlier one of two that lose alike."""
    return max(losses(summary), key=lambda row: row[1])[0]


def worked_example(summary: Summary, results: Iterable[QueryResult]) -> QueryResult | None:
    """The first of the best; None when nothing failed."""
    worst = worst_stage(summary)
    best = max(results, key=lambda result: worth(result, worst), default=None)
    return best if best is not None and worth(best, worst) >= 0 else None
