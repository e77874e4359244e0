"""Agreement: worked by hand, against exact distributions, and by how often the intervals hold the truth."""

import numpy as np
import pytest

from ragaudit.metrics.agreement import (
    CONSTANT,
    NOTHING,
    ONE_CLASS,
    cohen_kappa,
    fit_threshold,
    flip_rate,
    pearson,
    prediction_powered_mean,
    rates,
    roc_auc,
    spearman,
)


def pairs(*counted):
    """(first, second, how often) -> two lists."""
    rows = [(a, b) for a, b, n in counted for _ in range(n)]
    return [a for a, _ in rows], [b for _, b in rows]


# --- kappa ---------------------------------------------------------------------------------------------------------


def test_kappa_by_hand():
    # Observed (20 + 15) / 50 = .7; expected .5 * .6 + .5 * .4 = .5; kappa = .2 / .5.
    first, second = pairs(("y", "y", 20), ("y", "n", 5), ("n", "y", 10), ("n", "n", 15))
    found = cohen_kappa(first, second, seed=1)
    assert found.value == pytest.approx(0.4, abs=1e-12)
    assert found.n == 50
    # Fleiss, Cohen and Everitt (1969): standard error .1279, so about .4 +- .25.
    assert (found.low, found.high) == pytest.approx((0.15, 0.65), abs=0.04)


def test_kappa_of_three_verdicts_by_hand():
    first, second = pairs(
        ("supported", "supported", 2),
        ("supported", "missing", 1),
        ("contradicted", "contradicted", 2),
        ("contradicted", "supported", 1),
        ("missing", "missing", 2),
    )
    # Diagonal 2 + 2 + 2 = 6 of 8; rows 3, 3, 2; columns 3, 2, 3: (.75 - .328125) / .671875.
    assert cohen_kappa(first, second, seed=1).value == pytest.approx(0.421875 / 0.671875, abs=1e-12)


def test_kappa_is_one_when_all_agree_and_negative_when_none_does():
    assert cohen_kappa([1, 0, 1], [1, 0, 1], seed=1).value == 1.0
    assert cohen_kappa([1, 0], [0, 1], seed=1).value == -1.0


def test_kappa_is_undefined_when_expected_agreement_is_one():
    found = cohen_kappa(["y"] * 9, ["y"] * 9, seed=1)
    assert (found.value, found.low, found.n) == (None, None, 9)
    assert found.reason == "both sides gave one and the same label throughout"
    assert cohen_kappa(["y", "y"], ["y", "n"], seed=1).value == 0.0


def test_kappa_of_nothing_is_undefined():
    assert cohen_kappa([], [], seed=1).reason == NOTHING


# --- rates ---------------------------------------------------------------------------------------------------------


def test_a_lenient_judge_has_its_rates_apart():
    # 8 of 10 yes-cases and 3 of 10 no-cases right.
    truth, said = pairs((True, True, 8), (True, False, 2), (False, False, 3), (False, True, 7))
    found = rates(truth, said)
    assert (found.tpr.value, found.tnr.value, found.balanced_accuracy.value) == (0.8, 0.3, 0.55)
    # Wilson 1927, 8 of 10: (.4902, .9433); 3 of 10: (.1078, .6032).
    assert (found.tpr.low, found.tpr.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert (found.tnr.low, found.tnr.high) == pytest.approx((0.1078, 0.6032), abs=1e-4)
    # Square and add: .55 - sqrt(.3098^2 + .1922^2) / 2 and .55 + sqrt(.1433^2 + .3032^2) / 2.
    assert (found.balanced_accuracy.low, found.balanced_accuracy.high) == pytest.approx((0.3677, 0.7177), abs=1e-3)


def test_perfect_rates_keep_a_width():
    found = rates([True] * 5 + [False] * 5, [True] * 5 + [False] * 5)
    assert found.balanced_accuracy.value == found.balanced_accuracy.high == 1.0
    assert found.balanced_accuracy.low == pytest.approx(1 - 0.4345 / 2 * 2**0.5, abs=1e-3)


def test_one_class_leaves_one_rate():
    found = rates([True, True], [True, False])
    assert found.tpr.value == 0.5
    assert (found.tnr.value, found.tnr.reason) == (None, "no case is a no")
    assert (found.balanced_accuracy.value, found.balanced_accuracy.reason) == (None, ONE_CLASS)
    assert rates([], []).balanced_accuracy.reason == NOTHING


def test_the_interval_of_balanced_accuracy_holds_the_truth():
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        truth = np.r_[np.ones(30, bool), np.zeros(30, bool)]
        found = rates(truth, np.where(truth, rng.random(60) < 0.9, rng.random(60) < 0.4)).balanced_accuracy
        held += found.low <= 0.75 <= found.high
    assert 0.92 <= held / 400 <= 0.99


# --- correlation ---------------------------------------------------------------------------------------------------


def test_pearson_by_hand():
    # x - mean = -1.5 -.5 .5 1.5; y - mean = -1 -1 1 1 (halves): 4 / sqrt(5 * 4).
    assert pearson([1, 2, 3, 4], [0, 0, 2, 2], seed=1).value == pytest.approx(4 / 20**0.5, abs=1e-12)


def test_spearman_counts_ranks_with_ties_at_their_mean():
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000], seed=1).value == pytest.approx(1.0, abs=1e-12)
    # Ranks 1 2 3 4 and 1.5 1.5 3 4: the sum of squared differences is .5, but with a tie the product form counts:
    # cov = (-1.5)(-1) + (-.5)(-1) + (.5)(.5) + (1.5)(1.5) = 4.5; / sqrt(5 * 4.5).
    assert spearman([1, 2, 3, 4], [7, 7, 8, 9], seed=1).value == pytest.approx(4.5 / 22.5**0.5, abs=1e-12)


def test_the_interval_of_pearson_is_near_fishers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = 0.6 * x + 0.8 * rng.normal(size=400)
    found = pearson(x, y, seed=1, resamples=2_000)
    half = 1.96 / 397**0.5
    assert found.low == pytest.approx(np.tanh(np.arctanh(found.value) - half), abs=0.02)
    assert found.high == pytest.approx(np.tanh(np.arctanh(found.value) + half), abs=0.02)


def test_the_interval_of_spearman_resamples_pairs_and_ranks_them_again():
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 4, 30), rng.integers(0, 4, 30)
    y = np.where(rng.random(30) < 0.6, x, y)
    found = spearman(x, y, seed=1)
    stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")
    drawn = np.random.default_rng(9)
    values = [stats.spearmanr(x[pick], y[pick])[0] for pick in (drawn.integers(0, 30, 30) for _ in range(2_000))]
    assert found.value == pytest.approx(stats.spearmanr(x, y)[0], abs=1e-12)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))), abs=0.03)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_correlations_that_do_not_exist(correlation):
    assert correlation([], [], seed=1).reason == NOTHING
    assert correlation([1], [1], seed=1).reason == "one pair has no correlation"
    assert correlation([1, 1, 1], [0, 1, 2], seed=1).reason == CONSTANT
    assert correlation([0.1] * 7, [0, 1, 2, 3, 4, 5, 6], seed=1).reason == CONSTANT


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_perfect_line_is_exactly_within_its_bounds(correlation):
    found = correlation([0.1, 0.2, 0.3, 0.7], [0.2, 0.4, 0.6, 1.4], seed=1)
    assert found.value == pytest.approx(1.0, abs=1e-12)
    assert found.low <= found.value <= found.high <= 1.0


# --- AUC -----------------------------------------------------------------------------------------------------------


def test_auc_counts_pairs_and_a_tie_half():
    # Positive .9 .5; negative .5 .1: wins .9>.5 .9>.1 .5>.1, tie .5=.5: 3.5 / 4.
    assert roc_auc([1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1], seed=1).value == 0.875


def test_auc_is_one_half_when_every_score_is_the_same():
    found = roc_auc([1, 1, 0], [0.3, 0.3, 0.3], seed=1)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_auc_interval_holds_the_truth():
    rng = np.random.default_rng(2)
    truth = 0.7602  # normal scores one standard deviation apart: Phi(1 / sqrt(2))
    held = 0
    for n in range(200):
        yes = np.r_[np.ones(40, bool), np.zeros(40, bool)]
        found = roc_auc(yes, rng.normal(size=80) + yes, seed=n, resamples=500)
        held += found.low <= truth <= found.high
    assert 0.90 <= held / 200 <= 0.99


def test_auc_of_one_class_is_undefined():
    assert roc_auc([1, 1], [0.1, 0.9], seed=1).reason == ONE_CLASS
    assert roc_auc([], [], seed=1).reason == NOTHING


# --- cuts ----------------------------------------------------------------------------------------------------------


def test_the_cut_lies_half_way_between_the_scores_it_parts():
    found = fit_threshold([0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], seed=1)
    assert (found.cut, found.balanced_accuracy, found.n) == (pytest.approx(0.4), 1.0, 4)


def test_of_equally_good_cuts_the_middle_one_is_taken():
    # Yes at 1 and 4, no at 0, 2, 3: cuts .5 and 3.5 ... give (1 + 1/3)/2 = .667 and (1/2 + 1)/2 = .75.
    assert fit_threshold([0, 1, 0, 0, 1], [0, 1, 2, 3, 4], seed=1).cut == 3.5
    # No 0 1, yes 1 2 ... : .5 -> (1 + 1/2)/2, 1.5 -> (1/2 + 1)/2: both .75, the lower of two.
    assert fit_threshold([0, 0, 1, 1], [0, 1, 1, 2], seed=1).cut == 0.5
    # Yes 5 3 1, no 4 2 0: cuts .5, 2.5, 4.5 all give 2/3; the middle one.
    assert fit_threshold([0, 1, 0, 1, 0, 1], [0, 1, 2, 3, 4, 5], seed=1).cut == 2.5


def test_a_judge_that_always_agrees_but_ranks_well_gets_a_cut_that_helps():
    truth = [1] * 10 + [0] * 10
    score = [0.99, 0.98, 0.97, 0.96, 0.99, 0.98, 0.97, 0.96, 0.95, 0.94, *np.linspace(0.6, 0.9, 10)]
    assert rates(truth, [s >= 0.5 for s in score]).balanced_accuracy.value == 0.5
    found = fit_threshold(truth, score, seed=1)
    assert found.cut == pytest.approx(0.92)
    assert (found.balanced_accuracy, found.cross_validated) == (1.0, 1.0)


def test_on_noise_the_cross_validated_figure_stays_near_chance_where_the_fitted_one_does_not():
    rng = np.random.default_rng(4)
    fitted, checked = [], []
    for n in range(30):
        found = fit_threshold([1] * 15 + [0] * 15, rng.random(30), seed=n)
        if found.cut is not None:
            fitted.append(found.balanced_accuracy)
            checked.append(found.cross_validated)
    assert np.mean(fitted) > 0.57
    assert np.mean(checked) < 0.53


@pytest.mark.parametrize(
    ("truth", "score", "reason"),
    [
        ([], [], NOTHING),
        ([1, 1], [0.1, 0.9], ONE_CLASS),
        ([1, 0], [0.4, 0.4], "the judge gave every item the same score"),
        ([1, 0], [0.1, 0.9], "no cut does better than chance"),
    ],
)
def test_cuts_that_cannot_be_fitted(truth, score, reason):
    found = fit_threshold(truth, score, seed=1)
    assert (found.cut, found.cross_validated, found.reason) == (None, None, reason)


def test_one_item_of_a_class_cannot_be_cross_validated():
    found = fit_threshold([1, 0, 0], [0.9, 0.1, 0.2], seed=1)
    assert (found.cut, found.cross_validated) == (pytest.approx(0.55), None)


# --- prediction-powered inference ----------------------------------------------------------------------------------


def test_the_rectifier_takes_out_what_the_judge_adds():
    # Judge says .9 .7 on the unlabelled (mean .8); on the labelled it is .3 and .1 too high (mean .2): .8 - .2 = .6.
    found = prediction_powered_mean([0.5, 0.7], [0.8, 0.8], [0.9, 0.7])
    assert found.value == pytest.approx(0.6, abs=1e-12)
    # Variances with n - 1: differences -.3 -.1 -> .02, / 2; predictions .9 .7 -> .02, / 2: half = 1.96 sqrt(.02).
    assert (found.low, found.high) == pytest.approx((0.6 - 1.959964 * 0.02**0.5, 0.6 + 1.959964 * 0.02**0.5), abs=1e-6)
    assert found.n == 2


def test_without_unlabelled_items_it_is_the_mean_of_the_labels():
    assert prediction_powered_mean([0, 1, 1, 0], [1, 1, 1, 1], []).value == 0.5


def test_mean_and_interval_stay_in_zero_to_one():
    found = prediction_powered_mean([0.0, 0.1, 0.0], [0.9, 0.7, 0.9], [0.2, 0.3])
    assert (found.value, found.low) == (0.0, 0.0)


def test_one_label_is_not_enough():
    found = prediction_powered_mean([1.0], [1.0], [0.5])
    assert (found.value, found.reason) == (None, "fewer than two labelled items")


def test_its_interval_holds_the_truth_though_the_judge_is_badly_biased():
    rng = np.random.default_rng(7)
    held = raw = 0
    for _ in range(300):
        truth = rng.random(400) < 0.5
        judged = np.where(truth, rng.random(400) < 0.95, rng.random(400) < 0.5).astype(float)
        found = prediction_powered_mean(truth[:80], judged[:80], judged[80:])
        held += found.low <= 0.5 <= found.high
        half = 1.96 * judged.std() / 20
        raw += judged.mean() - half <= 0.5 <= judged.mean() + half
    assert 0.91 <= held / 300 <= 0.99
    assert raw == 0


# --- flips ---------------------------------------------------------------------------------------------------------


def test_flips_count_pairs_of_replicates():
    # Three replicates s s m: 2 of 3 pairs differ; two s s: 0; one alone says nothing.
    found = flip_rate([("s", "s", "m"), ("s", "s"), ("m",)], seed=1)
    assert (found.value, found.n) == (pytest.approx(1 / 3), 2)
    assert (found.low, found.high) == (0.0, pytest.approx(2 / 3))


def test_no_flip_in_ten_items_may_still_be_a_quarter():
    found = flip_rate([("s", "s")] * 10, seed=1)
    assert found.value == 0.0
    assert (found.low, found.high) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_nothing_asked_twice_has_no_flip_rate():
    assert flip_rate([("s",), ()], seed=1).reason == "nothing was asked twice"


def test_the_same_seed_gives_the_same_interval():
    first, second = pairs(("y", "y", 9), ("y", "n", 3), ("n", "n", 8))
    assert cohen_kappa(first, second, seed=5) == cohen_kappa(first, second, seed=5)
    assert pearson([1, 2, 4], [1, 3, 2], seed=5) == pearson([1, 2, 4], [1, 3, 2], seed=5)
