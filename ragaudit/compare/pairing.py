"""Pairs two runs by query id and compares them: metrics, stages, access, slices; or refuses, with every reason."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import count

from ragaudit.compare.admission import admitted
from ragaudit.compare.changes import change_of, newly, newly_failing, newly_passing, transitions
from ragaudit.compare.freeze import Progress, silent
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
    Side,
    SliceChange,
    Verdict,
)
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
    progress: Progress = silent,
) -> Comparison:
    """Compare a candidate with a baseline.

    Args:
        base: What there was.
        candidate: What was tried. Its seed and resamples are used.
        allow: Names of differences that are accepted; they are listed in the result.
        planned: The variable of the experiment that is concluded: what it means is the one change that is tested.
        frozen: The baseline was read from a baseline file.
        min_queries: With fewer pairs the test set is said to be too small.
        progress: Told after each metric, and after each slice, how many are done. What it raises ends the comparison.

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
    counted = map(progress, count(1))
    metrics = _metrics(base, candidate, pairs, counted)
    changes = [change_of(was, now) for was, now in pairs]
    shared = {query.query_id for query, _ in pairs}
    moved = transitions(changes)
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
        transitions=moved,
        unchanged=len(pairs) - sum(each.n for each in moved),
        newly_failing=newly(pairs, changes, failing=True),
        newly_passing=newly(pairs, changes, failing=False),
        slices=_slices(candidate, pairs, counted),
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


def _metrics(base: Baseline, candidate: Baseline, pairs: Pairs, counted: Iterator[None]) -> tuple[MetricChange, ...]:
    held = {metric for pair in pairs for query in pair for metric in query.metrics}
    ordered = [metric for metric in (*METRICS, *JUDGED) if metric in held]
    ordered += sorted(held.difference(ordered))
    found = {}
    for metric in ordered:
        seed = seed_for(candidate.seed, "compare", metric)
        found[metric] = paired_metric(pairs, metric, seed=seed, resamples=candidate.resamples)
        next(counted)
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


# --- slices -----------------------------------------------------------------------------------------------------------


def _slices(candidate: Baseline, pairs: Pairs, counted: Iterator[None]) -> tuple[SliceChange, ...]:
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
                    newly_failing=sum(newly_failing(was, now) for was, now in part),
                    newly_passing=sum(newly_passing(was, now) for was, now in part),
                )
            )
            next(counted)
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
