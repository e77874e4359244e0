from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from ragaudit.metrics.paired import detectable, holm, paired, sign_flip_p, smallest_p, t_quantile

DIFFERENCES = np.array(
    [0.5, -0.25, 0.1, 0.0, 0.4, 0.3, -0.1, 0.0, 0.2, 0.6, -0.05, 0.15, 0.0, 0.35, 0.25, -0.3, 0.45, 0.05]
)
MANY = np.round(np.sin(np.arange(1, 61) * 1.7) * 0.3 + 0.06, 3)


def halves(n, *, before=0.5):
    return [before] * n


# --- sign flips ------------------------------------------------------------------------------------------------------


def test_three_gains_are_one_of_eight_sign_patterns_on_each_side():
    assert sign_flip_p(np.array([0.2, 0.3, 0.5]), seed=0) == 2 / 8


def test_a_gain_and_an_equal_loss_are_as_likely_as_anything():
    assert sign_flip_p(np.array([0.5, -0.5]), seed=0) == 1.0


def test_queries_that_did_not_change_take_no_part():
    assert sign_flip_p(np.array([0.2, 0.0, 0.3, 0.0, 0.5]), seed=0) == 2 / 8


def test_no_changed_query_gives_no_p():
    assert sign_flip_p(np.zeros(5), seed=0) is None
    assert sign_flip_p(np.empty(0), seed=0) is None


def test_exact_p_is_that_of_scipy():
    changed = DIFFERENCES[:16]
    expected = scipy_stats.permutation_test((changed,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_p(changed, seed=0) == pytest.approx(expected.pvalue, abs=1e-12)


def test_thirds_that_add_up_differently_count_as_equal():
    thirds = np.array([1 / 3, 2 / 3, -1 / 3, 1 / 3, 2 / 3 - 1 / 3])
    whole = np.array([1.0, 2.0, -1.0, 1.0, 1.0])
    assert sign_flip_p(thirds, seed=0) == sign_flip_p(whole, seed=0)


def test_values_of_ten_decimals_tie_as_the_whole_ones_do():
    before, after = [1 / 3, 0.0, 2 / 3, 1 / 3], [2 / 3, 1 / 3, 1 / 3, 1.0]
    short = paired([round(v, 10) for v in before], [round(v, 10) for v in after], seed=0)
    whole = paired(before, after, seed=0)
    assert (short.p, short.wins, short.losses) == (whole.p, 3, 1)


@pytest.mark.parametrize("differences", [MANY, np.repeat(DIFFERENCES, 30)], ids=["distinct sizes", "repeated sizes"])
def test_random_flips_agree_with_scipy_within_what_sampling_allows(differences):
    rng = np.random.default_rng(5)
    expected = scipy_stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=rng
    )
    assert sign_flip_p(differences, seed=3) == pytest.approx(expected.pvalue, abs=0.015)


def test_random_p_counts_what_was_observed_and_is_never_zero():
    assert sign_flip_p(np.full(40, 0.1), seed=0, flips=999) == 1 / 1000


def test_random_flips_repeat_for_a_seed():
    assert sign_flip_p(MANY, seed=1) == sign_flip_p(MANY, seed=1)
    assert sign_flip_p(MANY, seed=1) != sign_flip_p(MANY, seed=2)


@pytest.mark.parametrize(("changed", "least"), [(0, 1.0), (1, 1.0), (2, 0.5), (6, 0.03125)])
def test_the_smallest_p_is_every_query_in_one_direction(changed, least):
    assert smallest_p(changed) == least
    if changed:
        assert sign_flip_p(np.full(changed, 0.1), seed=0) == least


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=12))
def test_p_does_not_depend_on_direction_or_order(values):
    differences = np.array(values)
    p = sign_flip_p(differences, seed=0)
    assert p == sign_flip_p(-differences, seed=0)
    assert p == sign_flip_p(differences[::-1], seed=0)
    assert p is None or 0 < p <= 1


# --- the whole -------------------------------------------------------------------------------------------------------


def test_a_paired_comparison_by_hand():
    found = paired([0.0, 0.5, 1.0, 1.0], [1.0, 0.5, 1.0, 0.5], seed=0)
    assert (found.n, found.before, found.after, found.difference) == (4, 0.625, 0.75, 0.125)
    assert (found.wins, found.losses, found.ties) == (1, 1, 2)
    assert found.p == 1.0  # of |+-1 +-0.5| every sum is at least 0.5
    assert found.exact
    assert found.reason is None


def test_the_interval_is_the_percentile_bootstrap_of_scipy():
    rng = np.random.default_rng(7)
    expected = scipy_stats.bootstrap((MANY,), np.mean, n_resamples=20_000, method="percentile", rng=rng)
    found = paired(halves(60), 0.5 + MANY, seed=1)
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.003)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.003)


def test_the_interval_is_that_of_scipy_s_paired_bootstrap_of_both_sides():
    before = np.round(np.cos(np.arange(1, 61) * 0.9) * 0.4 + 0.5, 3)
    after = before + MANY
    expected = scipy_stats.bootstrap(
        (before, after),
        lambda was, now, axis: (now - was).mean(axis=axis),
        paired=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(3),
    )
    found = paired(before, after, seed=2)
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.003)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.003)


def test_the_p_of_a_pair_of_runs_is_that_of_scipy_s_permutation_of_both_sides():
    before, after = np.full(16, 0.5), 0.5 + DIFFERENCES[:16]
    expected = scipy_stats.permutation_test(
        (before, after),
        lambda was, now, axis: (now - was).mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    found = paired(before, after, seed=0)
    assert (found.exact, found.p) == (True, pytest.approx(expected.pvalue, abs=1e-12))


def test_a_fall_is_a_win_where_lower_is_better():
    found = paired([0.5, 0.5, 0.5], [0.25, 0.25, 0.75], seed=0, lower_is_better=True)
    assert (found.wins, found.losses) == (2, 1)
    assert found.difference == pytest.approx(-0.25 / 3)


def test_no_pair_is_undefined_with_a_reason():
    found = paired([], [], seed=0)
    assert (found.n, found.difference, found.low, found.p, found.mde) == (0, None, None, None, None)
    assert found.reason == "no query defines it in both runs"


def test_only_ties_have_a_difference_of_zero_and_no_p():
    found = paired([0.1, 0.2], [0.1, 0.2], seed=0)
    assert (found.difference, found.low, found.p, found.mde, found.ties) == (0.0, None, None, None, 2)
    assert found.reason == "no query changed"


def test_rounding_noise_is_no_change():
    assert paired([0.3], [0.1 + 0.2], seed=0).ties == 1


# --- the smallest effect ---------------------------------------------------------------------------------------------


def test_the_smallest_effect_by_hand():
    # s of (1, 0, -1, 0) is sqrt(2/3), t(0.975; 3) = 3.1824, t(0.8; 3) = 0.9785
    assert detectable(np.array([1.0, 0.0, -1.0, 0.0])) == pytest.approx((3.1824 + 0.9785) * 0.81650 / 2, rel=2e-3)


def test_an_effect_of_that_size_is_seen_four_times_of_five():
    rng = np.random.default_rng(11)
    n, spread = 40, 0.3
    sample = rng.normal(0, 1, n)
    smallest = detectable(spread * (sample - sample.mean()) / sample.std(ddof=1))
    draws = rng.normal(smallest, spread, (4000, n))
    assert (scipy_stats.ttest_1samp(draws, 0, axis=1).pvalue <= 0.05).mean() == pytest.approx(0.8, abs=0.025)


def test_no_smallest_effect_without_spread_or_queries():
    assert detectable(np.array([0.1, 0.2])) is None
    assert detectable(np.full(10, 0.1)) is None
    assert "no smallest effect" in paired([0.0] * 4, [0.1] * 4, seed=0).reason


@pytest.mark.parametrize("degrees", [2, 3, 5, 10, 30, 200])
@pytest.mark.parametrize("share", [0.8, 0.975])
def test_quantiles_of_t_are_those_of_scipy_within_one_percent(degrees, share):
    assert t_quantile(share, degrees) == pytest.approx(scipy_stats.t.ppf(share, degrees), rel=0.01)


# --- Holm ------------------------------------------------------------------------------------------------------------


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})


def test_holm_is_bonferroni_over_every_hypothesis_that_could_be_true_beside_it():
    # Holm is the closed test of Bonferroni (Marcus, Peritz and Gabriel 1976): a metric's adjusted p is the largest
    # Bonferroni p of any set of metrics that holds it.
    values = {"hit": 0.011, "recall": 0.004, "mrr": 0.03, "ndcg": 0.022, "ap": 0.6}
    expected = {
        name: max(
            min(1.0, len(family) * min(values[each] for each in family))
            for size in range(1, len(values) + 1)
            for family in combinations(values, size)
            if name in family
        )
        for name in values
    }
    assert holm(values) == pytest.approx(expected)


def test_holm_leaves_out_what_has_no_p():
    assert holm({"a": 0.02, "b": None}) == {"a": 0.02}
    assert holm({}) == {}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_lies_between_the_false_discovery_rate_and_bonferroni(values):
    adjusted = holm({str(n): p for n, p in enumerate(values)})
    discovery = scipy_stats.false_discovery_control(values)
    for n, p in enumerate(values):
        assert discovery[n] - 1e-12 <= adjusted[str(n)] <= min(1.0, p * len(values)) + 1e-12
