"""How far a person who reviewed an audit agrees with its diagnoses."""

from collections.abc import Iterable

from ragaudit.metrics.agreement import cohen_kappa, share
from ragaudit.metrics.stats import RESAMPLES, seed_for
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.review import Review, ReviewAgreement, ReviewVerdict

SMALL = 30
"""Fewer verdicts than this are called a small sample."""


def review_agreement(
    reviews: Iterable[tuple[Review, Outcome, Stage]], *, seed: int, resamples: int = RESAMPLES
) -> ReviewAgreement:
    """The share of verdicts that agree, and kappa between the stages (Cohen 1960).

    A verdict counts against the diagnosis that it was given on. The person's stage is the diagnosed one where they
    agree and the corrected one where they disagree; a disagreement without a corrected stage lowers the rate and is
    not in kappa, which is then too high. Gold that is wrong and what people are unsure of are counted, and in neither
    figure. The rate is undefined without a verdict; kappa also when all stages are one and the same.

    Args:
        reviews: each with outcome and stage of the diagnosis now.
        seed: of the run.
        resamples: for the interval of kappa; the rate has Wilson's.
    """
    verdicts: dict[ReviewVerdict | None, int] = {}
    diagnosed: list[str] = []
    said: list[str] = []
    outdated = 0
    for review, outcome, stage in reviews:
        verdicts[review.verdict] = verdicts.get(review.verdict, 0) + 1
        if review.verdict not in (ReviewVerdict.AGREE, ReviewVerdict.DISAGREE):
            continue
        outdated += (review.about_outcome, review.about_stage) != (outcome, stage)
        theirs = review.about_stage if review.verdict is ReviewVerdict.AGREE else review.stage
        if theirs is not None:
            diagnosed.append(review.about_stage.value)
            said.append(theirs.value)
    agreed, disagreed = (verdicts.get(verdict, 0) for verdict in (ReviewVerdict.AGREE, ReviewVerdict.DISAGREE))
    return ReviewAgreement(
        rate=share(agreed, agreed + disagreed),
        kappa=cohen_kappa(diagnosed, said, seed=seed_for(seed, "reviews", "kappa"), resamples=resamples),
        agreed=agreed,
        disagreed=disagreed,
        without_stage=agreed + disagreed - len(said),
        gold_wrong=verdicts.get(ReviewVerdict.GOLD_WRONG, 0),
        unsure=verdicts.get(ReviewVerdict.UNSURE, 0),
        outdated=outdated,
        small=agreed + disagreed < SMALL,
    )
