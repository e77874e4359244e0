"""From what people and the judge said of the same items to a calibration: agreement, fitted cuts, corrected means."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ragaudit.metrics.agreement import (
    cohen_kappa,
    fit_threshold,
    pearson,
    prediction_powered_mean,
    rates,
    roc_auc,
    spearman,
)
from ragaudit.metrics.stats import RESAMPLES, mean_interval, seed_for
from ragaudit.model.judgement import Agreement, Calibration, Compared, CorrectedMean, FittedCut, Statistic

YES = 0.5
"""People's value from which on an item counts as yes; the cut of whatever has no setting."""

SETTINGS: Mapping[str, str] = {
    "context_recall": "judge.cuts.context_recall",
    "faithfulness": "judge.cuts.faithfulness",
    "p_supported": "p_supported",
}
"""What has a cut that labels can fit, and the key that sets it; a name without a dot is no setting."""

NO_MEAN = frozenset({"abstained", "verdict", "claim", "p_supported"})
"""What is labelled for single claims, or is no metric: it has no mean over queries to correct."""


def agreement(compared: Compared, *, cut: float = YES, seed: int, resamples: int = RESAMPLES) -> Agreement:
    """How far people and the judge agree about one thing.

    Kappa compares the words of verdicts, and yes or no for everything else. Balanced accuracy and AUC read people as
    yes from one half on, the judge from `cut` on.
    """
    truth = np.array(compared.human) >= YES
    said = np.array(compared.judged) >= cut
    found = rates(truth, said)

    def own(name: str) -> int:
        return seed_for(seed, compared.about, name)

    first, second = (compared.human_said, compared.judge_said) if compared.human_said else (truth, said)
    return Agreement(
        about=compared.about,
        cut=cut,
        n=len(compared.human),
        left_out=compared.left_out,
        kappa=cohen_kappa(list(first), list(second), seed=own("kappa"), resamples=resamples),
        balanced_accuracy=found.balanced_accuracy,
        tpr=found.tpr,
        tnr=found.tnr,
        pearson=pearson(compared.human, compared.judged, seed=own("pearson"), resamples=resamples),
        spearman=spearman(compared.human, compared.judged, seed=own("spearman"), resamples=resamples),
        auc=roc_auc(truth, compared.judged, seed=own("auc"), resamples=resamples),
        **_ceiling(compared, own("two people"), resamples),
    )


def fitted_cuts(compared: Iterable[Compared], before: Mapping[str, float], *, seed: int) -> tuple[FittedCut, ...]:
    """The cut of each thing that has one, fitted to people's labels.

    Args:
        compared: what was labelled; things without a cut are passed over.
        before: the cuts in force, by what they are about.
        seed: of the folds.
    """
    cuts = []
    for each in compared:
        if each.about in SETTINGS:
            found = fit_threshold(np.array(each.human) >= YES, each.judged, seed=seed_for(seed, each.about, "folds"))
            cuts.append(
                FittedCut(
                    setting=SETTINGS[each.about],
                    before=before.get(each.about, YES),
                    fitted=found.cut,
                    balanced_accuracy=found.balanced_accuracy,
                    cross_validated=found.cross_validated,
                    n=found.n,
                    reason=found.reason,
                )
            )
    return tuple(cuts)


def corrected_mean(compared: Compared, *, seed: int, resamples: int = RESAMPLES) -> CorrectedMean:
    """The judge's mean over every query it scored, and the same corrected by the queries that people labelled."""
    everything = np.array([*compared.judged, *compared.unlabelled])
    interval = mean_interval(everything, seed=seed_for(seed, compared.about, "mean"), resamples=resamples)
    if interval is None:
        raw = Statistic(value=None, n=0, reason="the judge scored no query")
    else:
        raw = Statistic(value=interval[0], low=interval[1], high=interval[2], n=len(everything))
    corrected = prediction_powered_mean(compared.human, compared.judged, compared.unlabelled)
    return CorrectedMean(metric=compared.about, raw=raw, corrected=corrected)


def calibrated(
    described: Calibration,
    compared: Sequence[Compared],
    before: Mapping[str, float],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> Calibration:
    """Fill in the figures of a calibration.

    Args:
        described: what it rests on: labels, model, prompts.
        compared: what was labelled, laid beside what the judge said.
        before: the cuts in force, by what they are about.
        seed: of resampling and folds; every figure draws on its own.
        resamples: how many resamples an interval rests on.
    """
    figures = {
        "agreements": tuple(
            agreement(each, cut=before.get(each.about, YES), seed=seed, resamples=resamples) for each in compared
        ),
        "cuts": fitted_cuts(compared, before, seed=seed),
        "means": tuple(
            corrected_mean(each, seed=seed, resamples=resamples) for each in compared if each.about not in NO_MEAN
        ),
    }
    return described.model_copy(update=figures)


def _ceiling(compared: Compared, seed: int, resamples: int) -> dict[str, Statistic]:
    pairs = compared.two_people
    if not pairs:
        return {}
    if compared.human_said:
        first, second = [a for a, _ in pairs], [b for _, b in pairs]
        return {"human_kappa": cohen_kappa(first, second, seed=seed, resamples=resamples)}
    values = np.array([[float(a), float(b)] for a, b in pairs])
    yes = values >= YES
    return {
        "human_kappa": cohen_kappa(yes[:, 0].tolist(), yes[:, 1].tolist(), seed=seed, resamples=resamples),
        "human_pearson": pearson(values[:, 0], values[:, 1], seed=seed, resamples=resamples),
    }
