"""How sure a paired difference is: its interval, its p value, what could have been seen, and Holm's adjustment."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from ragaudit.metrics.stats import BLOCK_CELLS, MULTINOMIAL_COST, RESAMPLES, Floats, mean_interval
from ragaudit.model.comparison import Paired

EXACT_UP_TO = 16
"""Queries that changed up to which every combination of signs is counted: 65,536 of them."""

DECIMALS = 9
"""Differences that are equal to so many decimals are equal: a third minus two thirds is not a value of its own."""

ALPHA = 0.05
POWER = 0.80


def paired(
    before: Sequence[float],
    after: Sequence[float],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    lower_is_better: bool = False,
) -> Paired:
    """Compare one metric over the same queries, before and after.

    The interval is the percentile bootstrap of the mean difference (`mean_interval`), the p value that of the
    sign-flip permutation test (`sign_flip_p`), the smallest effect that could be seen that of `detectable`.

    Undefined, with a reason: everything when no query has both values; interval, p and smallest effect when no query
    changed; the smallest effect when the differences have no spread, or there are fewer than three.

    Args:
        before: One value a query, none of them NaN.
        after: The same queries in the same order.
        seed: Of the resampling; see `stats.seed_for`.
        resamples: Resamples, and random flips.
        lower_is_better: Count a fall as a win.
    """
    was, now = np.asarray(before, np.float64), np.asarray(after, np.float64)
    n = len(was)
    if n == 0:
        return Paired(n=0, reason="no query defines it in both runs")
    differences = np.round(now - was, DECIMALS) + 0.0  # + 0.0: -0.0 is 0.0
    rises, falls = int((differences > 0).sum()), int((differences < 0).sum())
    wins, losses = (falls, rises) if lower_is_better else (rises, falls)
    figures = {
        "n": n,
        "before": float(was.mean()),
        "after": float(now.mean()),
        "wins": wins,
        "losses": losses,
        "ties": n - rises - falls,
    }
    if rises + falls == 0:
        return Paired(**figures, difference=0.0, reason="no query changed")
    interval = mean_interval(differences, seed=seed, resamples=resamples)
    assert interval is not None
    difference, low, high = interval
    smallest = detectable(differences)
    return Paired(
        **figures,
        difference=difference,
        low=low,
        high=high,
        p=sign_flip_p(differences, seed=seed, flips=resamples),
        exact=rises + falls <= EXACT_UP_TO,
        mde=smallest,
        reason=None if smallest is not None else "too few queries, or all changed alike: no smallest effect",
    )


def sign_flip_p(differences: Floats, *, seed: int, flips: int = RESAMPLES) -> float | None:
    """Two-sided p of "the candidate changes nothing": how often random signs move the mean at least as far.

    Under that hypothesis each difference might as well have had the other sign (Fisher 1935). Queries that did not
    change take no part. Up to 16 changed queries every combination is counted; beyond, `flips` random ones, with one
    added to both counts, since the signs observed are one of them (Phipson and Smyth 2010): p is never 0.

    None when no query changed.
    """
    changed = np.abs(differences[differences != 0])
    if len(changed) == 0:
        return None
    observed = abs(float(differences.sum()))
    # Equal sums may differ in their last bits by the order of addition.
    reached = observed - 1e-9 * float(changed.sum())
    if len(changed) <= EXACT_UP_TO:
        sums = np.zeros(1)
        for size in changed:
            sums = np.concatenate((sums + size, sums - size))
        return float((np.abs(sums) >= reached).mean())
    sums = _flipped_sums(changed, seed, flips)
    return (int((np.abs(sums) >= reached).sum()) + 1) / (flips + 1)


def detectable(differences: Floats, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest true mean difference that this many queries would show: two-sided level, power, this spread.

    (t of 1 - alpha/2 + t of power) * s / sqrt(n), with s the standard deviation of the paired differences and n - 1
    degrees of freedom (Bloom 1995, "Minimum detectable effects"; about 2.8 standard errors). It is for one metric
    alone: an adjustment over several needs more.

    None for fewer than three differences, or when all are equal.
    """
    n = len(differences)
    if n < 3:
        return None
    spread = float(differences.std(ddof=1))
    if spread == 0.0 or np.ptp(differences) == 0:
        return None
    return (t_quantile(1 - alpha / 2, n - 1) + t_quantile(power, n - 1)) * spread / sqrt(n)


def holm(p_values: Mapping[str, float | None]) -> dict[str, float]:
    """Adjusted p values that keep the chance of any false alarm at the level (Holm 1979), by name.

    A metric without a p value, because no query changed, is out of the family: no outcome of it could have been an
    alarm (Tarone 1990).
    """
    ordered = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float] = {}
    least = 0.0
    for place, (p, name) in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - place) * p))
        adjusted[name] = least
    return adjusted


def smallest_p(changed: int) -> float:
    """The smallest p that this many changed queries can give: all of them in one direction."""
    return 1.0 if changed == 0 else 2.0 ** (1 - changed)


def t_quantile(share: float, degrees: int) -> float:
    """Quantile of Student's t by its expansion (Abramowitz and Stegun 26.7.5): within 1 % from 2 degrees on."""
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + float(sum(term / degrees**order for order, term in enumerate(terms, start=1)))


def _flipped_sums(sizes: Floats, seed: int, flips: int) -> Floats:
    """Sums of the sizes under random signs. How many of each distinct size are positive is a binomial count."""
    rng = np.random.Generator(np.random.PCG64(seed))
    distinct, counts = np.unique(sizes, return_counts=True)
    n, total = len(sizes), float(sizes.sum())
    by_count = len(distinct) * MULTINOMIAL_COST < n
    step = max(1, BLOCK_CELLS // (len(distinct) if by_count else n))
    positive = np.empty(flips)
    for start in range(0, flips, step):
        size = min(step, flips - start)
        if by_count:
            positive[start : start + size] = rng.binomial(counts, 0.5, size=(size, len(distinct))) @ distinct
        else:
            signs = np.unpackbits(np.frombuffer(rng.bytes(size * ((n + 7) // 8)), np.uint8).reshape(size, -1), axis=1)
            positive[start : start + size] = signs[:, :n] @ sizes
    return 2 * positive - total
