"""How far a judge and people agree: kappa, error rates, correlations, fitted cuts, corrected means, flips.

Every figure is a `Statistic`: a value with its 95 % interval, or None with the reason why it has no value. Intervals
resample items with replacement (Efron 1979) unless a docstring says otherwise. What a resample leaves undefined, one
that drew a single class, say, does not enter its interval.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragaudit.metrics.stats import BLOCK_CELLS, LEVEL, RESAMPLES, Floats, mean_interval, wilson
from ragaudit.model.judgement import Statistic

Booleans = NDArray[np.bool_]

FOLDS = 10
SHUFFLES = 20
"""The cross-validated figure is the mean over this many ways to cut the items into folds: one way alone is noisy."""

NOTHING = "nothing was compared"
ONE_PAIR = "one pair has no correlation"
CONSTANT = "one side says the same every time"
ONE_CLASS = "all cases are of one class"


class Rates(NamedTuple):
    """How often a judge is right about the yes-cases (`tpr`), the no-cases (`tnr`), and their mean."""

    balanced_accuracy: Statistic
    tpr: Statistic
    tnr: Statistic


class Threshold(NamedTuple):
    """A fitted cut: at or above it is yes. `cross_validated` is what to expect on items it was not fitted on."""

    cut: float | None
    balanced_accuracy: float | None
    cross_validated: float | None
    n: int
    reason: str | None = None


def cohen_kappa(
    first: Sequence[object], second: Sequence[object], *, seed: int, resamples: int = RESAMPLES
) -> Statistic:
    """Agreement beyond chance (Cohen 1960): (observed - expected) / (1 - expected).

    Undefined when both sides gave one and the same label throughout: expected agreement is 1, so agreeing says nothing.
    """
    assert len(first) == len(second), "pairs"
    n = len(first)
    if n == 0:
        return _none(NOTHING, 0)
    labels = {label: place for place, label in enumerate(dict.fromkeys([*first, *second]))}
    table = np.zeros((len(labels), len(labels)))
    for a, b in zip(first, second, strict=True):
        table[labels[a], labels[b]] += 1
    value = float(_kappa(table[None])[0])
    if np.isnan(value):
        return _none("both sides gave one and the same label throughout", n)
    rng = np.random.Generator(np.random.PCG64(seed))
    cells = np.flatnonzero(table)
    drawn = np.zeros((resamples, table.size))
    drawn[:, cells] = rng.multinomial(n, table.ravel()[cells] / n, size=resamples)
    return _statistic(value, _kappa(drawn.reshape(resamples, *table.shape)), n)


def rates(truth: ArrayLike, said: ArrayLike) -> Rates:
    """True positive and true negative rate with Wilson intervals, and balanced accuracy, their mean.

    The interval of the mean comes from the two Wilson intervals by the square-and-add rule (Zou and Donner 2008), which
    keeps a width when a rate is 0 or 1. Each is undefined when people gave no case of that class.
    """
    yes, called = np.asarray(truth, dtype=bool), np.asarray(said, dtype=bool)
    assert yes.shape == called.shape, "pairs"
    tpr = share(int((yes & called).sum()), int(yes.sum()), "no case is a yes")
    tnr = share(int((~yes & ~called).sum()), int((~yes).sum()), "no case is a no")
    if tpr.value is None or tnr.value is None:
        return Rates(_none(ONE_CLASS if len(yes) else NOTHING, len(yes)), tpr, tnr)
    assert tpr.low is not None and tpr.high is not None and tnr.low is not None and tnr.high is not None
    value = (tpr.value + tnr.value) / 2
    below = sqrt((tpr.value - tpr.low) ** 2 + (tnr.value - tnr.low) ** 2) / 2
    above = sqrt((tpr.high - tpr.value) ** 2 + (tnr.high - tnr.value) ** 2) / 2
    low, high = max(0.0, value - below), min(1.0, value + above)
    return Rates(Statistic(value=value, low=low, high=high, n=len(yes)), tpr, tnr)


def pearson(x: ArrayLike, y: ArrayLike, *, seed: int, resamples: int = RESAMPLES) -> Statistic:
    """Linear correlation (Pearson 1896). Undefined for fewer than two pairs or a side without spread."""
    return _correlation(x, y, seed, resamples, lambda values, _: values)


def spearman(x: ArrayLike, y: ArrayLike, *, seed: int, resamples: int = RESAMPLES) -> Statistic:
    """Correlation of ranks (Spearman 1904), ties at their mean rank. Undefined as `pearson`."""
    return _correlation(x, y, seed, resamples, _midranks)


def roc_auc(truth: ArrayLike, score: ArrayLike, *, seed: int, resamples: int = RESAMPLES) -> Statistic:
    """Chance that a yes-case scores above a no-case (Mann and Whitney 1947), a tie counting half.

    Undefined when people gave one class only.
    """
    yes, scores = np.asarray(truth, dtype=bool), np.asarray(score, dtype=float)
    assert yes.shape == scores.shape, "pairs"
    n = len(yes)
    if n == 0 or yes.all() or not yes.any():
        return _none(ONE_CLASS if n else NOTHING, n)

    def area(weights: Floats) -> Floats:
        positive = weights[:, yes].sum(axis=1)
        pairs = positive * (weights.sum(axis=1) - positive)
        ranks = (weights * _midranks(np.broadcast_to(scores, weights.shape), weights))[:, yes].sum(axis=1)
        return _ratio(ranks - positive * (positive + 1) / 2, pairs)

    return _statistic(float(area(np.ones((1, n)))[0]), _resampled(area, n, seed, resamples), n)


def fit_threshold(truth: ArrayLike, score: ArrayLike, *, seed: int) -> Threshold:
    """The cut on a score (at or above it: yes) that gives the best balanced accuracy on labelled items.

    A cut lies half-way between two neighbouring scores; of several equally good ones the middle one is taken, the lower
    of two. Measured on the items it was fitted on, a cut flatters itself: `cross_validated` pools what cuts fitted
    without an item say about it, in at most 10 folds that keep the classes' shares, averaged over 20 shuffles. It needs
    two items of each class.
    """
    yes, scores = np.asarray(truth, dtype=bool), np.asarray(score, dtype=float)
    assert yes.shape == scores.shape, "pairs"
    n = len(yes)
    if n == 0 or yes.all() or not yes.any():
        return Threshold(None, None, None, n, ONE_CLASS if n else NOTHING)
    cut, best = _best_cut(yes, scores)
    if cut is None:
        return Threshold(None, None, None, n, "the judge gave every item the same score")
    if best <= 0.5:
        return Threshold(None, None, None, n, "no cut does better than chance")
    folds = min(FOLDS, int(yes.sum()), int((~yes).sum()))
    checked = _cross_validated(yes, scores, folds, seed) if folds > 1 else None
    return Threshold(cut, best, checked, n)


def prediction_powered_mean(
    labels: ArrayLike, predictions: ArrayLike, unlabelled: ArrayLike, *, level: float = LEVEL
) -> Statistic:
    """The mean that people would give, from few labels and many predictions (Angelopoulos et al. 2023).

    mean(unlabelled predictions) + mean(label - prediction on the labelled), with the normal interval from both spreads.
    It is honest however bad the judge is, as long as the labelled items are a random sample. Values lie in 0..1, so
    mean and interval are kept there. Without unlabelled items it is the mean of the labels. `n` counts the labelled;
    fewer than two have no spread and no value.

    Args:
        labels: what people said of the labelled items.
        predictions: what the judge said of the same items, in the same order.
        unlabelled: what the judge said of all other items.
        level: coverage of the interval.
    """
    human, judged = np.asarray(labels, dtype=float), np.asarray(predictions, dtype=float)
    rest = np.asarray(unlabelled, dtype=float)
    assert human.shape == judged.shape, "pairs"
    n = len(human)
    if n < 2:
        return _none("fewer than two labelled items", n)
    known = human - judged if len(rest) else human
    spread = float(known.var(ddof=1)) / n
    value = float(known.mean())
    if len(rest):
        value += float(rest.mean())
        spread += float(rest.var(ddof=1)) / len(rest) if len(rest) > 1 else 0.25
    half = NormalDist().inv_cdf(0.5 + level / 2) * sqrt(spread)
    value, low, high = (min(1.0, max(0.0, each)) for each in (value, value - half, value + half))
    return Statistic(value=value, low=low, high=high, n=n)


def flip_rate(replicates: Sequence[Sequence[object]], *, seed: int, resamples: int = RESAMPLES) -> Statistic:
    """Chance that a judge asked the same thing twice gives two different verdicts.

    Per item the share of its pairs of replicates that differ, averaged over items; an item with one replicate says
    nothing.
    When no item flips, or all do, the interval is Wilson's: resampling would give it no width.
    """
    items = [_differing(verdicts) for verdicts in replicates if len(verdicts) > 1]
    interval = mean_interval(np.array(items), seed=seed, resamples=resamples)
    if interval is None:
        return _none("nothing was asked twice", 0)
    value, low, high = interval
    if value in (0.0, 1.0):
        return share(int(value) * len(items), len(items), NOTHING)
    return Statistic(value=value, low=low, high=high, n=len(items))


def share(successes: int, n: int, reason: str = NOTHING) -> Statistic:
    """A share with its score interval (Wilson 1927), which keeps a width at 0 and 1; undefined for n = 0."""
    found = wilson(successes, n)
    if found is None:
        return _none(reason, 0)
    return Statistic(value=found[0], low=found[1], high=found[2], n=n)


def _none(reason: str, n: int) -> Statistic:
    return Statistic(value=None, low=None, high=None, n=n, reason=reason)


def _statistic(value: float, resampled: Floats, n: int) -> Statistic:
    defined = resampled[~np.isnan(resampled)]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(defined, (tail, 1 - tail)) if len(defined) else (value, value)
    return Statistic(value=value, low=min(value, float(low)), high=max(value, float(high)), n=n)


def _ratio(above: Floats, below: Floats) -> Floats:
    """`above / below`, NaN where there is nothing to divide by."""
    quotient = np.full(np.shape(below), np.nan)
    np.divide(above, below, out=quotient, where=below > 1e-12)
    return quotient


def _kappa(tables: Floats) -> Floats:
    n = tables.sum(axis=(1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / n
    expected = (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1) / n**2
    return _ratio(observed - expected, 1 - expected)


def _weights(n: int, seed: int, resamples: int) -> Iterator[Floats]:
    """How often each item is drawn, a block of resamples at a time."""
    rng = np.random.Generator(np.random.PCG64(seed))
    step = max(1, BLOCK_CELLS // n)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        places = rng.integers(0, n, size=(size, n)) + np.arange(size)[:, None] * n
        yield np.bincount(places.ravel(), minlength=size * n).reshape(size, n).astype(float)


def _resampled(figure: Callable[[Floats], Floats], n: int, seed: int, resamples: int) -> Floats:
    return np.concatenate([figure(weights) for weights in _weights(n, seed, resamples)])


def _midranks(values: Floats, weights: Floats) -> Floats:
    """Mean rank of each item when item i stands there `weights[i]` times. Every row of `values` is the same."""
    order = np.argsort(values[0], kind="stable")
    ordered = values[0][order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.add.reduceat(weights[:, order], starts, axis=1)
    group = np.empty(len(order), dtype=int)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(order)]))
    return (sizes.cumsum(axis=1) - sizes / 2 + 0.5)[:, group]


def _correlation(
    x: ArrayLike, y: ArrayLike, seed: int, resamples: int, scale: Callable[[Floats, Floats], Floats]
) -> Statistic:
    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    assert first.shape == second.shape, "pairs"
    n = len(first)
    if n < 2:
        return _none(ONE_PAIR if n else NOTHING, n)
    if len(set(first.tolist())) == 1 or len(set(second.tolist())) == 1:
        return _none(CONSTANT, n)

    def correlation(weights: Floats) -> Floats:
        total = weights.sum(axis=1, keepdims=True)
        a, b = (scale(np.broadcast_to(side, weights.shape), weights) for side in (first, second))
        a = a - (weights * a).sum(axis=1, keepdims=True) / total
        b = b - (weights * b).sum(axis=1, keepdims=True) / total
        spread = np.sqrt((weights * a * a).sum(axis=1) * (weights * b * b).sum(axis=1))
        return np.clip(_ratio((weights * a * b).sum(axis=1), spread), -1.0, 1.0)

    value = float(correlation(np.ones((1, n)))[0])
    if np.isnan(value):
        return _none(CONSTANT, n)
    return _statistic(value, _resampled(correlation, n, seed, resamples), n)


def _best_cut(yes: Booleans, scores: Floats) -> tuple[float | None, float]:
    values, group = np.unique(scores, return_inverse=True)
    if len(values) < 2:
        return None, 0.0
    positive = np.bincount(group, weights=yes)
    negative = np.bincount(group, weights=~yes)
    caught = 1 - positive.cumsum()[:-1] / positive.sum()
    spared = negative.cumsum()[:-1] / negative.sum()
    balanced = (caught + spared) / 2
    best = float(balanced.max())
    tied = np.flatnonzero(balanced >= best - 1e-12)
    place = int(tied[(len(tied) - 1) // 2])
    return float((values[place] + values[place + 1]) / 2), best


def _cross_validated(yes: Booleans, scores: Floats, folds: int, seed: int) -> float:
    rng = np.random.Generator(np.random.PCG64(seed))
    found = []
    for _ in range(SHUFFLES):
        fold = np.empty(len(yes), dtype=int)
        for members in (np.flatnonzero(yes), np.flatnonzero(~yes)):
            fold[rng.permutation(members)] = np.arange(len(members)) % folds
        said = np.empty(len(yes), dtype=bool)
        for each in range(folds):
            cut, _ = _best_cut(yes[fold != each], scores[fold != each])
            # No cut without these items: the others are all alike, and nothing tells yes from no.
            said[fold == each] = False if cut is None else scores[fold == each] >= cut
        found.append((said[yes].mean() + (~said[~yes]).mean()) / 2)
    return float(np.mean(found))


def _differing(verdicts: Sequence[object]) -> float:
    pairs = list(combinations(verdicts, 2))
    return sum(a != b for a, b in pairs) / len(pairs)
