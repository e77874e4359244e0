"""How sure a mean is: bootstrap intervals, intervals of shares, and the seed that makes them repeatable."""

from collections.abc import Mapping
from hashlib import blake2b
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ragaudit.model.result import Estimate

Floats = NDArray[np.float64]

RESAMPLES = 10_000
LEVEL = 0.95

FEW_VALUES = 16
"""Up to this many distinct values a mean moves in visible steps, which only resampling reproduces."""

SMOOTH_N = 200
MAX_SKEW = 0.3
"""Skewness of the resampled mean up to which the expansion errs by a third of what 10,000 resamples err."""

MULTINOMIAL_COST = 20
"""Drawing the count of one distinct value costs as much as drawing this many single values (measured)."""

BLOCK_CELLS = 1 << 18
"""Cells drawn at once: 2 MB, which stays in the cache."""


def mean_interval(
    values: Floats, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> tuple[float, float, float] | None:
    """Mean with the percentile bootstrap interval (Efron 1979); None when there is no value.

    Resampling n queries with replacement and taking the mean depends only on how often each distinct value is drawn,
    so those counts are drawn (a multinomial), or the queries themselves where that is cheaper: the same distribution.

    From 200 values on, when more than 16 are distinct and the skewness of the resampled mean is at most 0.3, the
    interval is what those resamples converge to, by the expansion of Cornish and Fisher (1938) to the third order. It
    was within 0.015 standard errors of 240,000 resamples in every sample tried; 10,000 resamples are within 0.035.

    One value, or equal values: low = high = mean, since every resample has that mean. Such an interval says nothing
    about the next query; read it beside n.

    Args:
        values: one value a query, none of them NaN.
        seed: of the resampling; see `seed_for`.
        resamples: how many means are drawn.
        level: share of the resampled means inside the interval.

    Returns:
        (mean, low, high), or None for no values.
    """
    assert not np.isnan(values).any(), "undefined values are left out before a mean"
    if len(values) == 0:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        only = float(distinct[0])
        return only, only, only
    mean = float(np.mean(values))
    tail = (1.0 - level) / 2.0
    if len(distinct) > FEW_VALUES and len(values) >= SMOOTH_N:
        expanded = _expansion(values, tail)
        if expanded is not None:
            return mean, *expanded
    means = _resampled_means(distinct, counts, seed, resamples)
    low, high = np.quantile(means, (tail, 1.0 - tail), method="inverted_cdf")
    return mean, float(low), float(high)


def wilson(successes: int, n: int, level: float = LEVEL) -> tuple[float, float, float] | None:
    """Share with its score interval (Wilson 1927); None when n is 0.

    Unlike the bootstrap it keeps a width when every query, or none, is a success: 0 of 10 may well be 0.28.
    """
    if n == 0:
        return None
    assert 0 <= successes <= n, "a share of a whole"
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5
    return share, max(0.0, centre - half), min(1.0, centre + half)


def estimate(values: Floats, reasons: Mapping[str, int], *, seed: int, resamples: int = RESAMPLES) -> Estimate:
    """The mean over the queries that define a metric, with what was left out and why.

    Args:
        values: one value a query; NaN = undefined.
        reasons: how many queries are undefined for each reason. They add up to the undefined ones.
        seed: of the resampling; see `seed_for`.
        resamples: how many means are drawn.
    """
    defined = values[~np.isnan(values)]
    undefined = len(values) - len(defined)
    assert sum(reasons.values()) == undefined, "every undefined value has one reason"
    interval = mean_interval(defined, seed=seed, resamples=resamples)
    mean, low, high = interval if interval is not None else (None, None, None)
    return Estimate(
        mean=mean,
        low=low,
        high=high,
        n=len(defined),
        undefined=undefined,
        reasons={reason: count for reason, count in sorted(reasons.items()) if count},
    )


def seed_for(seed: int, *names: str) -> int:
    """A seed of its own for each named estimate, so that its interval does not depend on what was drawn before it.

    Python's `hash` of a string changes from process to process; this does not.
    """
    digest = blake2b(repr((seed, names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _resampled_means(distinct: Floats, counts: NDArray[np.intp], seed: int, resamples: int) -> Floats:
    rng = np.random.Generator(np.random.PCG64(seed))
    n = int(counts.sum())
    by_count = len(distinct) * MULTINOMIAL_COST < n
    step = max(1, BLOCK_CELLS // (len(distinct) if by_count else n))
    means = np.empty(resamples)
    every = distinct if by_count else np.repeat(distinct, counts)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if by_count:
            means[start : start + size] = rng.multinomial(n, counts / n, size=size) @ distinct / n
        else:
            means[start : start + size] = every[rng.integers(0, n, size=(size, n))].mean(axis=1)
    return means


def _expansion(values: Floats, tail: float) -> tuple[float, float] | None:
    """Quantiles of the resampled mean from its first four cumulants; None when it is too skewed for that."""
    n = len(values)
    mean, spread = float(values.mean()), float(values.std())
    unit = (values - mean) / spread
    skew = float((unit**3).mean()) / sqrt(n)
    excess = (float((unit**4).mean()) - 3.0) / n
    if abs(skew) > MAX_SKEW:
        return None

    def at(z: float) -> float:
        cube = z * z * z
        w = z + (z * z - 1) * skew / 6 + (cube - 3 * z) * excess / 24 - (2 * cube - 5 * z) * skew**2 / 36
        return mean + spread / sqrt(n) * w

    z = NormalDist().inv_cdf(1.0 - tail)
    return max(at(-z), float(values.min())), min(at(z), float(values.max()))
