"""Holds a run, and what a comparison found, against the gates: which fire, and which queries make them."""

from collections.abc import Collection, Sequence

from ragaudit.compare.admission import admitted
from ragaudit.compare.gates import OUTCOME_TABLE, Kind, On, Rule
from ragaudit.compare.pairing import paired_metric, paired_queries
from ragaudit.compare.variables import Pairs, conditions
from ragaudit.metrics.stats import seed_for
from ragaudit.model.comparison import (
    LOWER_IS_BETTER,
    Baseline,
    Comparison,
    Difference,
    FrozenQuery,
    GateReport,
    GateResult,
    Verdict,
)

SLACK = 1e-9
"""0.8 measured as 0.7999999999999999 holds a gate of 0.8."""


def hold(
    run: Baseline, rules: Sequence[Rule], baseline: Baseline | None = None, *, allow: Collection[str] = ()
) -> GateReport:
    """Check every rule. A figure that is undefined fires its gate: nothing unknown is passed.

    Args:
        run: The run, as frozen.
        rules: From `[gates]`.
        baseline: What relative rules are measured against; needed when there are any.
        allow: Conditions (K, gold, judge, ...) that may differ from the baseline. Any number of pipeline variables
            may: a gate asks whether it got worse, not why.

    Raises:
        InputError: The run and the baseline share no query, or K, the ACL, the gold or the judge differ.
    """
    pairs: Pairs = ()
    exceptions: tuple[Difference, ...] = ()
    warnings: list[str] = []
    if baseline is not None:
        pairs = paired_queries(baseline, run)
        _, exceptions = admitted(baseline, run, (), conditions(baseline, run, pairs), allow)
        missing = len(baseline.queries) - len(pairs)
        if missing:
            warnings.append(
                f"{missing:,} queries of the baseline are not in this run: relative gates know nothing of them"
            )
    leaking = [query for query in run.queries if query.leaks]
    if leaking and not any(rule.kind is Kind.LEAKS for rule in rules):
        warnings.append(f"{len(leaking):,} queries leak, and no gate looks at leaks: write leaks = 0 under [gates]")
    return GateReport(
        run=run.name,
        baseline=None if baseline is None else baseline.name,
        gates=tuple(_held(rule, run, pairs) for rule in rules),
        exceptions=exceptions,
        warnings=tuple(warnings),
    )


def regressions(found: Comparison) -> tuple[str, ...]:
    """Why a comparison fails `compare --gate`: new leaks, a metric that is worse, queries that vanished."""
    reasons = []
    if found.newly_leaking:
        reasons.append(f"{len(found.newly_leaking):,} queries newly leak")
    reasons += [
        f"{change.metric} is worse by {abs(change.paired.difference or 0):.3f} (adjusted p {change.p_holm:.2g})"
        for change in found.metrics
        if change.verdict is Verdict.WORSE
    ]
    if found.only_base:
        reasons.append(f"{len(found.only_base):,} queries of the baseline are missing")
    return tuple(reasons)


def _held(rule: Rule, run: Baseline, pairs: Pairs) -> GateResult:
    if rule.kind is Kind.LEAKS:
        leaking = [query.query_id for query in run.queries if query.leaks]
        return _counted(rule, leaking, "queries leak")
    if rule.kind is Kind.COUNT:
        return _counted(rule, _standing(rule, run), f"queries at {rule.subject}")
    if rule.kind is Kind.COVERAGE:
        return _coverage(rule, run)
    if rule.kind is Kind.MAX_DROP:
        return _drop(rule, run, pairs)
    return _bound(rule, run)


def _standing(rule: Rule, run: Baseline) -> list[str]:
    by_outcome = rule.gate.startswith(f"{OUTCOME_TABLE}.")
    return [q.query_id for q in run.queries if (q.outcome if by_outcome else q.stage).value == rule.subject]


def _counted(rule: Rule, queries: Sequence[str], what: str) -> GateResult:
    return _result(
        rule, f"at most {rule.limit:.0f}", len(queries), len(queries) > rule.limit, f"{len(queries):,} {what}", queries
    )


def _coverage(rule: Rule, run: Baseline) -> GateResult:
    unscored = [query for query in run.queries if rule.subject not in query.metrics]
    share = 1 - len(unscored) / len(run.queries) if run.queries else 0.0
    why = sorted({run.why_undefined(query, rule.subject).replace("_", " ") for query in unscored})
    said = f"scored {share:.1%} of {len(run.queries):,} queries" + (f"; the rest: {', '.join(why)}" if why else "")
    fired = share < rule.limit - SLACK
    return _result(rule, f"at least {rule.limit:.1%} scored", share, fired, said, [q.query_id for q in unscored])


def _bound(rule: Rule, run: Baseline) -> GateResult:
    """The mean, or its bad bound, against a number."""
    falls = rule.kind is Kind.MAX
    asks = f"{_figure(rule)} at {'most' if falls else 'least'} {rule.limit:g}"
    estimate = run.metrics.get(rule.subject)
    value = None
    if estimate is not None:
        value = estimate.mean if rule.on is On.MEAN else estimate.high if falls else estimate.low
    if estimate is None or value is None:
        return _undefined(rule, asks, run)
    fired = value > rule.limit + SLACK if falls else value < rule.limit - SLACK
    worst = sorted(
        (query for query in run.queries if rule.subject in query.metrics),
        key=lambda query: (query.metrics[rule.subject] * (-1 if falls else 1), query.query_id),
    )
    queries = [query.query_id for query in worst if _beyond(query, rule, falls)]
    said = f"{value:.3f} ({estimate.n:,} queries"
    said += f", {estimate.undefined:,} undefined)" if estimate.undefined else ")"
    return _result(rule, asks, value, fired, said, queries)


def _beyond(query: FrozenQuery, rule: Rule, falls: bool) -> bool:
    value = query.metrics[rule.subject]
    return value > rule.limit if falls else value < rule.limit


def _drop(rule: Rule, run: Baseline, pairs: Pairs) -> GateResult:
    """The paired mean difference, or its bad bound, against the drop that is tolerated."""
    sign = -1.0 if rule.subject in LOWER_IS_BETTER else 1.0
    asks = f"{_figure(rule, 'change')} no worse than the baseline by more than {rule.limit:g}"
    seed = seed_for(run.seed, "gate", rule.subject)
    result = paired_metric(pairs, rule.subject, seed=seed, resamples=run.resamples)
    if result.difference is None:
        return _result(rule, asks, None, True, f"undefined: {result.reason}", [q.query_id for q, _ in pairs])
    value = result.difference * sign
    if rule.on is On.LOW:
        bound = result.low if sign > 0 else result.high
        value = value if bound is None else bound * sign
    fell = sorted(
        (sign * (now.metrics[rule.subject] - was.metrics[rule.subject]), now.query_id)
        for was, now in pairs
        if rule.subject in was.metrics and rule.subject in now.metrics
    )
    said = f"{value * sign:+.3f} ({result.before:.3f} -> {result.after:.3f}, {result.n:,} pairs)"
    fired = value < -rule.limit - SLACK
    return _result(rule, asks, value * sign, fired, said, [query_id for change, query_id in fell if change < 0])


def _undefined(rule: Rule, asks: str, run: Baseline) -> GateResult:
    why = sorted({run.why_undefined(query, rule.subject).replace("_", " ") for query in run.queries})
    said = f"undefined for every query ({', '.join(why) or 'no queries'})"
    return _result(rule, asks, None, True, said, [query.query_id for query in run.queries])


def _figure(rule: Rule, noun: str = "mean") -> str:
    if rule.on is On.MEAN:
        return noun if noun == "mean" else f"mean {noun}"
    side = "upper" if rule.subject in LOWER_IS_BETTER else "lower"
    return f"{side} bound of the {noun}"


def _result(rule: Rule, asks: str, value: float | None, fired: bool, says: str, queries: Sequence[str]) -> GateResult:
    return GateResult(
        gate=rule.gate,
        asks=asks,
        limit=rule.limit,
        value=value,
        fired=fired,
        says=says,
        queries=tuple(queries) if fired else (),
    )
