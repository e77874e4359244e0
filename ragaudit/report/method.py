"""How the numbers of a report were made: conventions, formulas, intervals, seeds, judge, and how far it is trusted."""

from typing import Any

from ragaudit.metrics.registry import REGISTRY
from ragaudit.model.counting import counted
from ragaudit.model.judgement import Calibration, Statistic
from ragaudit.model.result import Summary
from ragaudit.report.agreement_text import NAMES
from ragaudit.report.clean import Ours
from ragaudit.report.figures import LABELS, k_named


def method_sentences(summary: Summary, calibration: Calibration | None) -> list[str]:
    """One sentence a convention. Only those of type `Ours` hold nothing from outside."""
    run = summary.run
    k = k_named(run.k_final)
    everyone = f"; everyone holds {', '.join(run.acl_everyone)}" if run.acl_everyone else ""
    return [
        Ours(
            "Relevant = grade 1 or more. A repeated id counts once, at its first place, and keeps its slot. "
            "Gold groups count once."
        ),
        f"Every metric is cut at the K that reached the generator ({k}). Precision (by K) divides by K, "
        f"Precision (returned) by what came back. nDCG gain: {run.gain}.",
        Ours("Undefined is not 0: a query without gold that its user may read is in no mean and is counted beside it."),
        f"Intervals: percentile bootstrap over queries, {run.resamples:,} resamples, 95%, seed {run.seed}.",
        f"Scope: {run.scope}. A user may read a chunk under the rule {run.acl_rule}{everyone}.",
        *_judge(summary, calibration),
        Ours("The stage is the earliest one that the evidence names; what the log cannot decide is left undecided."),
    ]


def formula_rows(summary: Summary) -> list[dict[str, Any]]:
    """The formula of every metric that has a mean."""
    return [
        {"label": LABELS.get(info.name, info.name), "formula": info.formula, "source": info.source}
        for info in REGISTRY
        if info.name in summary.metrics and summary.metrics[info.name].mean is not None
    ]


def agreement_rows(calibration: Calibration | None) -> list[dict[str, Any]]:
    """How far the judge agrees with people, with intervals; none when it is not calibrated."""
    if calibration is None:
        return []
    return [
        {
            "about": NAMES.get(each.about, each.about),
            "n": each.n,
            "balanced_accuracy": _figure(each.balanced_accuracy),
            "kappa": _figure(each.kappa),
            "people": "" if each.human_kappa is None else _figure(each.human_kappa),
        }
        for each in calibration.agreements
        if each.n
    ]


def _judge(summary: Summary, calibration: Calibration | None) -> list[str]:
    note = summary.judge
    if note is None:
        return ["Judge: off. Every number comes from the logs alone."]
    prompts = ", ".join(f"{name} v{version}" for name, version in note.prompts.items())
    cuts = ", ".join(f"{LABELS.get(name, name)} {cut:g}" for name, cut in note.cuts.items())
    said = [
        f"Judge: {note.model}, {note.mode.replace('_', ' ')} mode; prompts {prompts or 'not named'}"
        f"{f'; cuts of the 2x2: {cuts}' if cuts else ''}."
    ]
    if calibration is None:
        return [*said, f"Agreement of the judge with people: {note.calibration}."]
    people = counted(calibration.annotators, "person", "people") if calibration.annotators else "people not named"
    return [
        *said,
        f"Agreement of the judge with people: {counted(calibration.n_labels, 'label')} by {people} in "
        f"{calibration.labels} ({calibration.labels_sha256}).",
    ]


def _figure(found: Statistic) -> str:
    if found.value is None:
        return f"undefined: {found.reason}" if found.reason else "undefined"
    known = found.low is not None and found.high is not None
    return Ours(f"{found.value:.3f}" + (f" [{found.low:.3f}, {found.high:.3f}]" if known else ""))
