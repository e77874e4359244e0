"""The part of a summary that follows from its results: worked out by the audit, and again after judging went on."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ragaudit.audit.judge_tally import JudgeTally
from ragaudit.audit.proposals import proposed_again
from ragaudit.audit.tally import Tally
from ragaudit.config import AuditSettings
from ragaudit.diagnosis.patterns import patterns
from ragaudit.model.diagnosis import STAGES, Outcome
from ragaudit.model.experiment import Experiment
from ragaudit.model.judgement import Judgement
from ragaudit.model.result import JudgeNote, QueryResult, RunInfo, Summary
from ragaudit.store import AuditReader, AuditUpdater

Proposing = Callable[[Summary], tuple[Experiment, ...]]
"""From a summary with new figures to the experiments that they suggest."""


def figures(tally: Tally) -> dict[str, Any]:
    """Everything in a summary that is counted or estimated over the results."""
    metrics, at = tally.metrics(), tally.at()
    return {
        "metrics": metrics,
        "at": at,
        "slices": tally.slices(),
        "outcomes": {outcome.value: tally.outcomes[outcome] for outcome in Outcome},
        "stages": {stage.value: tally.stages[stage] for stage in STAGES},
        "undetermined": dict(tally.undetermined),
        "delivered_unjudged": tally.delivered_unjudged,
        "patterns": patterns(metrics, at, tally.stages),
        "acl": tally.acl(),
        "not_retrieval": tally.not_retrieval(),
    }


def catch_up(path: Path) -> Summary:
    """Bring the figures of an audit up to date whose judging was killed. Needs no bundle.

    Raises:
        AuditFileError: The file is no audit, is damaged, or cannot be written.
    """
    with AuditUpdater.open(path) as updater, AuditReader.open(path) as reader:
        summary = updater.summary()
        if not summary.behind:
            return summary
        return sum_again(updater, None, lambda newer: proposed_again(reader, summary=newer))


def sum_again(updater: AuditUpdater, judge: JudgeNote | None, propose: Proposing) -> Summary:
    """Make the summary of an audit anew from its results as they are now, and write it.

    Others may judge at the same time: what they replace while this counts is counted too, in another round. What was
    said of the input files stays as the audit said it.

    Args:
        updater: The open audit.
        judge: Model, mode and cuts of the judge; None = as the file has them.
        propose: Works out the experiments.
    """
    while True:
        replaced, before = updater.replaced(), updater.summary()
        tally, judged = _counted(updater.stored(), audit_settings(before.run))
        summary = before.model_copy(update=figures(tally))
        note = judge or before.judge or updater.judge()
        if note is not None and judged.samples:
            said = judged.note(note.model, note.mode, note.cuts)
            summary = summary.model_copy(update={"cost": judged.cost(), "judge": said})
        summary = summary.model_copy(update={"experiments": propose(summary)})
        if updater.finish(summary, replaced):
            return updater.summary()


def audit_settings(run: RunInfo) -> AuditSettings:
    """How the figures of this run were computed."""
    return AuditSettings.model_validate(
        {"scope": run.scope, "seed": run.seed, "resamples": run.resamples, "gain": run.gain}
    )


def _counted(rows: Iterable[tuple[QueryResult, Judgement | None]], settings: AuditSettings) -> tuple[Tally, JudgeTally]:
    tally, judged = Tally(settings), JudgeTally()
    for result, judgement in rows:
        tally.add(result)
        if judgement is not None:
            judged.add(result, judgement)
    return tally, judged
