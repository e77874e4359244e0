"""Pairs two runs by query id and compares them: metrics, stages, access, slices; or refuses, with every reason."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ragaudit.compare.admission import admitted
from ragaudit.compare.variables import Pairs, changed_variables, conditions
from ragaudit.compare.warnings import warnings_about
from ragaudit.errors import InputError
from ragaudit.metrics.paired import ALPHA, holm, paired, smallest_p
from ragaudit.metrics.stats import seed_for
from ragaudit.model.comparison import (
    LOWER_IS_BETTER,
    SLICED,
    Baseline,
    Comparison,
    FrozenQuery,
    MetricChange,
    Paired,
    QueryChange,
    Side,
    SliceChange,
    Transition,
    Verdict,
)
from ragaudit.model.diagnosis import Outcome
from ragaudit.model.result import JUDGED, METRICS

MIN_QUERIES = 30
MAX_VALUES = 50
"""Values of one slice that are compared, the most frequent first."""


def compare(
    base: Baseline,
    candidate: Baseline,
    *,
    allow: Collection[str] = (),
    planned: str | None = None,
    frozen: bool = False,
    min_queries: int = MIN_QUERIES,
) -> Comparison:
    """Compare a candidate with a baseline.

    Args:
        base: What there was.
        candidate: What was tried. Its seed and resamples are used.
        allow: Names of differences that are accepted; they are listed in the result.
        planned: The variable of the experiment that is concluded: what it means is the one change that is tested.
        frozen: The baseline was read from a baseline file.
        min_queries: With fewer pairs the test set is said to be too small.

    Raises:
        InputError: No query is in both runs; more than one pipeline variable changed; or K, the ACL, the gold or the
            judge differ. The message lists every reason.
    """
    pairs = paired_queries(base, candidate)
    changed, others = admitted(
        base,
        candidate,
        changed_variables(base, candidate, pairs),
        conditions(base, candidate, pairs),
        allow,
        planned,
    )
    metrics = _metrics(base, candidate, pairs)
    changes = [_query_change(was, now) for was, now in pairs]
    shared = {query.query_id for query, _ in pairs}
    moved = Counter((change.before, change.after) for change in changes if change.before != change.after)
    found = Comparison(
        base=_side(base, frozen=frozen),
        candidate=_side(candidate),
        pairs=len(pairs),
        only_base=tuple(query.query_id for query in base.queries if query.query_id not in shared),
        only_candidate=tuple(query.query_id for query in candidate.queries if query.query_id not in shared),
        variables=changed,
        exceptions=others,
        newly_leaking=tuple(change for change in changes if change.leaks),
        metrics=metrics,
        transitions=tuple(
            Transition(before=before, after=after, n=n)
            for (before, after), n in sorted(moved.items(), key=lambda item: (-item[1], item[0]))
        ),
        unchanged=len(pairs) - sum(moved.values()),
        newly_failing=_newly(pairs, changes, failing=True),
        newly_passing=_newly(pairs, changes, failing=False),
        slices=_slices(candidate, pairs),
    )
    return found.model_copy(update={"warnings": warnings_about(found, pairs, min_queries)})


def paired_queries(base: Baseline, candidate: Baseline) -> list[tuple[FrozenQuery, FrozenQuery]]:
    """The queries of both runs, in the order of their ids.

    Raises:
        InputError: There is none.
    """
    now = {query.query_id: query for query in candidate.queries}
    pairs = [(query, now[query.query_id]) for query in base.queries if query.query_id in now]
    if not pairs:
        raise InputError(
            f"{base.name} and {candidate.name}: no query id is in both. "
            "Audit the same test set under both configurations."
        )
    return sorted(pairs, key=lambda pair: pair[0].query_id)


def _side(side: Baseline, *, frozen: bool = False) -> Side:
    return Side(
        name=side.name,
        fingerprint=side.fingerprint,
        ragaudit=side.ragaudit,
        queries=len(side.queries),
        k_final=side.k_final,
        leaking=sum(bool(query.leaks) for query in side.queries),
        frozen=frozen,
    )


# --- metrics ----------------------------------------------------------------------------------------------------------


def paired_metric(pairs: Pairs, metric: str, *, seed: int, resamples: int) -> Paired:
    """One metric over the pairs in which both queries define it."""
    both = [
        (was.metrics[metric], now.metrics[metric])
        for was, now in pairs
        if metric in was.metrics and metric in now.metrics
    ]
    return paired(
        [was for was, _ in both],
        [now for _, now in both],
        seed=seed,
        resamples=resamples,
        lower_is_better=metric in LOWER_IS_BETTER,
    )


def _metrics(base: Baseline, candidate: Baseline, pairs: Pairs) -> tuple[MetricChange, ...]:
    held = {metric for pair in pairs for query in pair for metric in query.metrics}
    ordered = [metric for metric in (*METRICS, *JUDGED) if metric in held]
    ordered += sorted(held.difference(ordered))
    found = {
        metric: paired_metric(
            pairs, metric, seed=seed_for(candidate.seed, "compare", metric), resamples=candidate.resamples
        )
        for metric in ordered
    }
    adjusted = holm({metric: result.p for metric, result in found.items()})
    return tuple(
        MetricChange(
            metric=metric,
            paired=result,
            p_holm=adjusted.get(metric),
            verdict=_verdict(metric, result, adjusted.get(metric)),
            note=_note(result, adjusted.get(metric), len(adjusted)),
            undefined_before=_undefined(base, [was for was, _ in pairs], metric),
            undefined_after=_undefined(candidate, [now for _, now in pairs], metric),
        )
        for metric, result in found.items()
    )


def _verdict(metric: str, result: Paired, p: float | None) -> Verdict:
    if p is None or p > ALPHA or not result.difference:
        return Verdict.SAME
    return Verdict.BETTER if (result.difference > 0) != (metric in LOWER_IS_BETTER) else Verdict.WORSE


def _note(result: Paired, p: float | None, family: int) -> str | None:
    if p is None or p <= ALPHA:
        return None
    changed = result.wins + result.losses
    least = min(1.0, smallest_p(changed) * family)
    if least > ALPHA:
        return f"only {changed} changed: no adjusted p under {least:.2g} was possible"
    if result.p is not None and result.p <= ALPHA:
        return "p alone is under 0.05, adjusted for the number of metrics it is not"
    return None


def _undefined(side: Baseline, queries: Iterable[FrozenQuery], metric: str) -> dict[str, int]:
    reasons = Counter(side.why_undefined(query, metric) for query in queries if metric not in query.metrics)
    return dict(sorted(reasons.items()))


# --- queries and slices -----------------------------------------------------------------------------------------------


def _query_change(was: FrozenQuery, now: FrozenQuery) -> QueryChange:
    return QueryChange(
        query_id=now.query_id,
        before=was.state,
        after=now.state,
        leaks=tuple(chunk_id for chunk_id in now.leaks if chunk_id not in was.leaks),
        differences={
            metric: round(now.metrics[metric] - was.metrics[metric], 12)
            for metric in was.metrics
            if metric in now.metrics and now.metrics[metric] != was.metrics[metric]
        },
    )


def _newly(pairs: Pairs, changes: Sequence[QueryChange], *, failing: bool) -> tuple[QueryChange, ...]:
    """Queries that fail and did not, or that failed and no longer do; the largest change of recall, then MRR, first."""
    found = [
        change
        for (was, now), change in zip(pairs, changes, strict=True)
        if (_newly_failing(was, now) if failing else _newly_passing(was, now))
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


def _newly_failing(was: FrozenQuery, now: FrozenQuery) -> bool:
    return now.outcome is Outcome.FAIL and was.outcome is not Outcome.FAIL


def _newly_passing(was: FrozenQuery, now: FrozenQuery) -> bool:
    return now.arrived and not was.arrived


def _slices(candidate: Baseline, pairs: Pairs) -> tuple[SliceChange, ...]:
    parts: dict[str, dict[str, list[tuple[FrozenQuery, FrozenQuery]]]] = {}
    for was, now in pairs:
        for name, value in now.slices.items():
            parts.setdefault(name, {}).setdefault(value, []).append((was, now))
    found = []
    for name, values in sorted(parts.items()):
        for value, part in sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_VALUES]:
            found.append(
                SliceChange(
                    slice=name,
                    value=value,
                    n=len(part),
                    metrics=_slice_metrics(candidate, name, value, part),
                    newly_failing=sum(_newly_failing(was, now) for was, now in part),
                    newly_passing=sum(_newly_passing(was, now) for was, now in part),
                )
            )
    return tuple(found)


def _slice_metrics(candidate: Baseline, name: str, value: str, part: Pairs) -> dict[str, Paired]:
    found = {
        metric: paired_metric(
            part, metric, seed=seed_for(candidate.seed, "compare", name, value, metric), resamples=candidate.resamples
        )
        for metric in SLICED
    }
    # A p for each of many slices invites a search for the one that is small.
    return {metric: result.model_copy(update={"p": None}) for metric, result in found.items() if result.n}
