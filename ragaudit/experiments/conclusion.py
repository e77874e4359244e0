"""What a comparison says of a planned change: whether it is that change, and what became of the hypothesis."""

from typing import Any

from ragaudit.errors import InputError
from ragaudit.experiments.events import Finished, Measured, Outcome, Planned
from ragaudit.model.comparison import LOWER_IS_BETTER, Comparison, Difference, Verdict, means

DECIMALS = 6
"""Of the figures in the journal, which people read."""


def refuse_other_change(plan: Planned, comparison: Comparison) -> None:
    """Stop when the two runs do not differ in what was planned.

    A change of the index's content (`index...`) shows in no key of `[pipeline]`: then none may differ.

    Raises:
        InputError: Another variable changed, or none, or to another value.
    """
    tested = [each for each in _differences(comparison) if means(plan.variable, each.name)]
    others = [each.name for each in comparison.variables if not each.allowed and each not in tested]
    if others:
        raise InputError(
            f"{comparison.candidate.name}: changes {', '.join(others)}, but {plan.id} planned {plan.variable}. "
            "Finish the experiment whose change it is, or plan this one."
        )
    if not tested and not plan.variable.removeprefix("pipeline.").startswith("index."):
        raise InputError(
            f"{comparison.candidate.name}: {plan.variable} is as it was. Run the pipeline with the planned change, "
            "write it under [pipeline], and audit again."
        )
    for each in tested:
        set_to = _set_to(plan.variable, each)
        if plan.after is not None and set_to != plan.after:
            raise InputError(
                f"{comparison.candidate.name}: {each.name} is {set_to!r}, but {plan.id} planned {plan.after!r}. "
                "Run it with the planned value, or plan this one."
            )


def conclude(plan: Planned, comparison: Comparison, *, at: str) -> Finished:
    """What a comparison says of a hypothesis."""
    metrics = {
        change.metric: _measured(plan, comparison, change.metric)
        for change in comparison.metrics
        if change.paired.difference is not None
    }
    outcome, why = _outcome(plan, comparison, metrics)
    return Finished(
        id=plan.id,
        at=at,
        candidate=comparison.candidate.name,
        fingerprint=comparison.candidate.fingerprint,
        outcome=outcome,
        why=why,
        metrics=metrics,
        pairs=comparison.pairs,
        newly_failing=len(comparison.newly_failing),
        newly_passing=len(comparison.newly_passing),
        newly_leaking=tuple(change.query_id for change in comparison.newly_leaking),
        exceptions=tuple(each.name for each in _differences(comparison) if each.allowed),
    )


def _set_to(variable: str, difference: Difference) -> Any:
    """The value that a difference gives to the planned variable: of a floor, that is one of its keys."""
    key = variable.rpartition(".")[2]
    is_floor = difference.name.startswith("pipeline.thresholds[") and isinstance(difference.after, dict)
    return difference.after.get(key) if is_floor else difference.after


def _differences(comparison: Comparison) -> tuple[Difference, ...]:
    return (*comparison.variables, *comparison.exceptions)


def _measured(plan: Planned, comparison: Comparison, metric: str) -> Measured:
    change = comparison.change_of(metric)
    assert change is not None and change.paired.difference is not None
    difference, predicted = change.paired.difference, plan.predicted.get(metric)
    fields: dict[str, Any] = {
        "from": change.paired.before,
        "to": change.paired.after,
        "difference": difference,
        "low": change.paired.low,
        "high": change.paired.high,
        "p_holm": change.p_holm,
        "verdict": change.verdict,
    }
    if predicted is not None:
        fields["error"] = difference - (predicted.after - predicted.before)
        fields["within"] = predicted.low <= predicted.before + difference <= predicted.high
    rounded = {name: round(value, DECIMALS) if isinstance(value, float) else value for name, value in fields.items()}
    return Measured.model_validate(rounded)


def _outcome(plan: Planned, comparison: Comparison, metrics: dict[str, Measured]) -> tuple[Outcome, str]:
    if comparison.newly_leaking:
        return Outcome.REFUTED, f"{len(comparison.newly_leaking)} queries newly leak: no gain makes up for that"
    found = metrics.get(plan.moves)
    if found is None:
        return Outcome.OPEN, f"{plan.moves} is undefined in one of the runs"
    said = f"{plan.moves} {found.difference:+.3f}"
    if found.verdict is Verdict.BETTER:
        harmed = [metric for metric in metrics if metrics[metric].verdict is Verdict.WORSE]
        return Outcome.CONFIRMED, said + (f"; worse: {', '.join(harmed)}" if harmed else "")
    if found.verdict is Verdict.WORSE:
        return Outcome.REFUTED, f"{said}: worse"
    predicted = plan.predicted.get(plan.moves)
    if predicted is not None and _excludes(found, predicted.after - predicted.before, plan.moves):
        return Outcome.REFUTED, f"{said}, not distinguishable from none, and less than was predicted"
    return Outcome.OPEN, f"{said}: not distinguishable from no change"


def _excludes(found: Measured, expected: float, metric: str) -> bool:
    """The whole interval of what was measured falls short of what was expected; no query changed: only of nothing."""
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    if found.low is None or found.high is None:
        return found.difference * sign < expected * sign
    best = found.high if sign > 0 else found.low
    return best * sign < expected * sign
