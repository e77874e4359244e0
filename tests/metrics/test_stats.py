"""Intervals: against a plain bootstrap, against an exact distribution, and by how often they hold the truth."""

import subprocess
import sys

import numpy as np
import pytest

from ragaudit.metrics.stats import FEW_VALUES, SMOOTH_N, estimate, mean_interval, seed_for, wilson
from ragaudit.model.result import Estimate


def plain_bootstrap(values, seed, resamples=20_000):
    """Efron's percentile interval as written in a textbook."""
    rng = np.random.Generator(np.random.PCG64(seed))
    n = len(values)
    means = [values[rng.integers(0, n, n)].mean() for _ in range(resamples)]
    return tuple(np.quantile(means, (0.025, 0.975), method="inverted_cdf"))


def sample(kind: str, n: int, seed: int = 5):
    rng = np.random.default_rng(seed)
    return {
        "binary": (rng.random(n) < 0.8).astype(float),
        "ninths": rng.integers(0, 10, n) / 9,
        "smooth": rng.random(n),
        "mostly one": np.where(rng.random(n) < 0.93, 1.0, rng.random(n)),
    }[kind]


def test_no_value_has_no_mean():
    assert mean_interval(np.array([]), seed=0) is None


def test_one_value_and_equal_values_have_no_width():
    assert mean_interval(np.array([0.3]), seed=0) == (0.3, 0.3, 0.3)
    assert mean_interval(np.full(40, 0.1), seed=0) == (0.1, 0.1, 0.1)


def test_undefined_values_may_not_come_in():
    with pytest.raises(AssertionError, match="left out"):
        mean_interval(np.array([1.0, np.nan]), seed=0)


def test_four_queries_with_one_success_match_the_exact_distribution():
    # Successes in a resample are Binomial(4, 1/4): P(0) = .316, P(<=2) = .949, P(<=3) = .996.
    # So the 2.5 % point is 0 and the 97.5 % point is 3 of 4.
    assert mean_interval(np.array([1.0, 0.0, 0.0, 0.0]), seed=11) == (0.25, 0.0, 0.75)


def test_two_values_resample_to_either_or_their_middle():
    # Means 0.2, 0.5, 0.8 with probability 1/4, 1/2, 1/4. At level 0.4 the quantiles 0.3 and 0.7 are both the middle.
    values = np.array([0.2, 0.8])
    assert mean_interval(values, seed=1) == (0.5, 0.2, 0.8)
    assert mean_interval(values, seed=1, level=0.4) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("binary", 30),
        ("binary", 400),  # counts of two values
        ("ninths", 60),  # the queries themselves
        ("ninths", 400),  # counts of ten values
        ("smooth", 40),
        ("smooth", 300),  # the expansion
        ("mostly one", 60),
        ("mostly one", 900),
    ],
)
def test_the_interval_equals_a_plain_bootstrap_within_monte_carlo_error(kind, n):
    values = sample(kind, n)
    _, low, high = mean_interval(values, seed=3)
    standard_error = values.std() / n**0.5
    # A 2.5 % quantile of 10,000 and of 20,000 resamples scatters by 0.027 and 0.019 standard errors: 0.033 together.
    step = 1 / n if kind == "binary" else 1 / (9 * n) if kind == "ninths" else 0.0
    assert (low, high) == pytest.approx(plain_bootstrap(values, seed=4), abs=4 * 0.033 * standard_error + step)


def test_a_large_smooth_sample_needs_no_seed_and_a_skewed_one_is_resampled():
    smooth = sample("smooth", SMOOTH_N)
    assert mean_interval(smooth, seed=1) == mean_interval(smooth, seed=2)
    skewed = np.ones(SMOOTH_N)
    skewed[:FEW_VALUES] = np.linspace(0, 0.01, FEW_VALUES)
    skewed[0] = -40.0
    assert mean_interval(skewed, seed=1) != mean_interval(skewed, seed=2)


@pytest.mark.parametrize("kind", ["binary", "ninths", "mostly one"])
def test_the_same_seed_gives_the_same_interval(kind):
    values = sample(kind, 150)
    assert mean_interval(values, seed=9) == mean_interval(values, seed=9)
    assert len({mean_interval(values, seed=seed, resamples=50) for seed in range(20)}) > 1


def test_the_order_of_queries_does_not_move_the_interval():
    values = sample("mostly one", 150)
    assert mean_interval(values[::-1].copy(), seed=9)[1:] == mean_interval(values, seed=9)[1:]


@pytest.mark.parametrize(("p", "n", "least"), [(0.5, 60, 0.91), (0.8, 200, 0.92)])
def test_intervals_hold_the_true_mean_about_as_often_as_they_say(p, n, least):
    rng = np.random.default_rng(2)
    runs = 400
    held = 0
    for run in range(runs):
        _, low, high = mean_interval((rng.random(n) < p).astype(float), seed=run, resamples=1_000)
        held += low <= p <= high
    # 0.95 less the small-sample shortfall of the percentile interval; the count itself scatters by 0.011.
    assert least <= held / runs <= 0.985


def test_wilson_matches_the_published_formula_and_keeps_a_width_at_the_ends():
    # z = 1.96: centre (0.5 + 1.9207/10) / 1.38415, Wilson 1927.
    share, low, high = wilson(5, 10)
    assert (share, low, high) == pytest.approx((0.5, 0.23659, 0.76341), abs=1e-5)
    assert wilson(0, 10) == pytest.approx((0.0, 0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((1.0, 0.72247, 1.0), abs=1e-5)
    assert wilson(0, 0) is None


def test_an_estimate_counts_what_it_leaves_out():
    values = np.array([1.0, np.nan, 1.0, np.nan, np.nan])
    got = estimate(values, {"unlabelled": 1, "no_eligible_gold": 2, "other": 0}, seed=0)
    assert got == Estimate(
        mean=1.0, low=1.0, high=1.0, n=2, undefined=3, reasons={"no_eligible_gold": 2, "unlabelled": 1}
    )


def test_an_estimate_of_nothing_has_no_mean():
    got = estimate(np.array([np.nan, np.nan]), {"unlabelled": 2}, seed=0)
    assert got == Estimate(mean=None, low=None, high=None, n=0, undefined=2, reasons={"unlabelled": 2})


def test_an_undefined_query_without_a_reason_is_our_mistake():
    with pytest.raises(AssertionError, match="one reason"):
        estimate(np.array([np.nan, 1.0]), {}, seed=0)


def test_a_named_seed_depends_on_the_name_and_on_nothing_drawn_before():
    assert seed_for(0, "recall@k") == seed_for(0, "recall@k")
    seeds = {seed_for(s, *n) for s in (0, 1) for n in (("recall@k",), ("ndcg@k",), ("fused", "recall@k"), ())}
    assert len(seeds) == 8
    assert seed_for(0, "a", "b") != seed_for(0, "ab")


def test_a_named_seed_is_the_same_in_every_process():
    program = "from ragaudit.metrics.stats import seed_for; print(seed_for(7, 'recall@k'))"
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout) == seed_for(7, "recall@k")
