from datetime import UTC, datetime

import pytest

from ragaudit.metrics.review_agreement import review_agreement
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.review import Review, ReviewVerdict

AGREE, DISAGREE, GOLD_WRONG, UNSURE = ReviewVerdict
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def said(verdict, diagnosed=Stage.RERANK, stage=None, now=None):
    review = Review(
        query_id="q", verdict=verdict, stage=stage, at=NOON, about_outcome=Outcome.FAIL, about_stage=diagnosed
    )
    return review, Outcome.FAIL, now or diagnosed


def agreement(*reviews):
    return review_agreement(reviews, seed=7, resamples=2_000)


def test_rate_and_kappa_worked_by_hand():
    # Diagnosed 3 x rerank, 2 x fuse; the person says 2 x rerank, 3 x fuse: observed 4/5, expected (6 + 6) / 25.
    found = agreement(
        said(AGREE),
        said(AGREE),
        said(DISAGREE, Stage.RERANK, Stage.FUSE),
        said(AGREE, Stage.FUSE),
        said(AGREE, Stage.FUSE),
    )
    assert found.rate.value == pytest.approx(0.8)
    assert (found.rate.low, found.rate.high) == pytest.approx((0.3755, 0.9638), abs=1e-4), "Wilson 1927"
    assert found.kappa.value == pytest.approx((0.8 - 12 / 25) / (1 - 12 / 25))
    assert (found.rate.n, found.kappa.n, found.agreed, found.disagreed, found.small) == (5, 5, 4, 1, True)
    assert found.kappa.low < found.kappa.value < found.kappa.high


def test_a_disagreement_without_a_stage_lowers_the_rate_and_leaves_kappa():
    found = agreement(said(AGREE), said(AGREE, Stage.FUSE), said(DISAGREE))
    assert (found.rate.value, found.without_stage) == (pytest.approx(2 / 3), 1)
    assert (found.kappa.value, found.kappa.n) == (1.0, 2)


def test_wrong_gold_and_unsure_are_counted_and_in_neither_figure():
    found = agreement(said(GOLD_WRONG, stage=Stage.FUSE), said(UNSURE), said(None), said(AGREE))
    assert (found.gold_wrong, found.unsure, found.rate.n, found.kappa.n) == (1, 1, 1, 1)


def test_a_stage_that_was_corrected_while_agreeing_does_not_count():
    found = agreement(said(AGREE, Stage.RERANK, Stage.FUSE), said(AGREE, Stage.FUSE))
    assert found.kappa.value == 1.0


def test_a_verdict_counts_against_the_diagnosis_it_was_given_on():
    found = agreement(said(AGREE, Stage.RERANK, now=Stage.FUSE), said(AGREE, Stage.FUSE))
    assert (found.rate.value, found.outdated) == (1.0, 1)


def test_nothing_reviewed_is_undefined_with_a_reason():
    found = agreement()
    assert (found.rate.value, found.rate.reason) == (None, "nothing was compared")
    assert (found.kappa.value, found.kappa.reason) == (None, "nothing was compared")


def test_one_stage_throughout_has_a_rate_and_no_kappa():
    found = agreement(*(said(AGREE) for _ in range(40)))
    assert (found.rate.value, found.small) == (1.0, False)
    assert found.kappa.value is None
    assert found.kappa.reason == "both sides gave one and the same label throughout"


def test_thirty_verdicts_are_no_small_sample():
    assert agreement(*(said(AGREE) for _ in range(29)), said(UNSURE)).small
    assert not agreement(*(said(AGREE) for _ in range(29)), said(DISAGREE)).small
