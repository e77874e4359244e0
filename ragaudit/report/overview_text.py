"""The terminal's summary of an audit: leaks, losses by stage, outcomes, metrics with intervals, what to repair."""

from collections.abc import Iterator

from ragaudit.model.counting import counted, queries
from ragaudit.model.diagnosis import Outcome
from ragaudit.model.result import Level, Summary
from ragaudit.report import verdict as say
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS, bar, in_order, interval, losses, number, reasons, share, without_stage
from ragaudit.report.findings_text import by_weight, finding_lines
from ragaudit.report.judged import DANGEROUS, cost_sentence, judge_sentences
from ragaudit.report.layout import WIDTH, flow, heading, pad, wrap

SHOWN = 6
"""Findings and patterns of one kind; the rest are counted."""


def summary_text(summary: Summary, width: int = WIDTH) -> str:
    """The summary in ASCII, `width` columns wide."""
    blocks = [
        _title(summary, width),
        *([_leak(summary, width)] if summary.acl.leaks else []),
        wrap(for_terminal(say.verdict(summary)), width),
        list(_losses(summary, width)),
        list(_metrics(summary, width)),
        list(_judged(summary, width)),
        list(_way(summary, width)),
        list(_notes(summary, width)),
        list(_findings(summary, width)),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block) + "\n"


def _title(summary: Summary, width: int) -> list[str]:
    run = summary.run
    k = "K varies" if run.k_final is None else f"K = {run.k_final}"
    right = f"{queries(sum(summary.outcomes.values()))}   {k}   {for_terminal(run.fingerprint, 20)}"
    return [pad(for_terminal(run.name), max(width - len(right) - 2, 8)) + "  " + right]


def _leak(summary: Summary, width: int) -> list[str]:
    return wrap(for_terminal(say.leak_sentence(summary) or ""), width, first="!! ", rest="   ")


def _losses(summary: Summary, width: int) -> Iterator[str]:
    failing = summary.outcomes.get(Outcome.FAIL.value, 0)
    total = sum(summary.outcomes.values())
    yield heading(f"Lost at ({queries(failing)} failing)", width)
    rows = losses(summary)
    unsure = without_stage(summary)
    most = max([n for _, n in rows] + [n for _, n in unsure] + [1])
    for stage, n in rows:
        yield f"  {stage.label:<16}{n:>7,}  {share(n, total):>4}  {bar(n, most, width - 33)}"
    if unsure:
        yield "  Not decided: the log does not tell these stages apart"
        for could_be, n in unsure[:SHOWN]:
            yield f"  ? {pad(for_terminal(could_be), width - 17)} {n:>6,}  {share(n, total):>4}"
        if len(unsure) > SHOWN:
            yield f"  ? and {len(unsure) - SHOWN} other sets of stages"
    yield ""
    said = [f"{outcome.value.replace('_', ' ')} {summary.outcomes.get(outcome.value, 0):,}" for outcome in Outcome]
    yield from flow(said, width, joint="   ", first="  ", rest="  ")


def _metrics(summary: Summary, width: int) -> Iterator[str]:
    yield heading("In the final context: mean and 95% interval", width)
    undefined: dict[str, list[str]] = {}
    for name in in_order(summary.metrics):
        label, estimate = for_terminal(LABELS.get(name, name)), summary.metrics[name]
        if estimate.mean is not None:
            figures = f"{number(estimate.mean)}  {interval(estimate):<14}   {queries(estimate.n)}"
            yield f"  {pad(label, 26)} {figures}"
        if estimate.undefined:
            why = f"undefined for {queries(estimate.undefined)} ({reasons(estimate.reasons) or 'no reason given'})"
            undefined.setdefault(why, []).append(label)
    for why, labels in undefined.items():
        yield from wrap(f"{', '.join(labels)}: {for_terminal(why)}", width, first="  - ", rest="    ")


def _judged(summary: Summary, width: int) -> Iterator[str]:
    note = summary.judge
    if note is None:
        return
    yield heading("The judge", width)
    for sentence in filter(None, (*judge_sentences(summary), cost_sentence(summary))):
        yield from wrap(for_terminal(sentence), width, first="  - ", rest="    ")
    for quadrant, n in note.quadrants.items():
        yield f"  {'!' if quadrant == DANGEROUS else ' '} {pad(for_terminal(quadrant), 38)} {queries(n)}"
    for row in note.disagreements[:SHOWN]:
        line = f"{row.query_id}: labels say {row.labels}; the judge says {row.judge}"
        yield from wrap(for_terminal(line), width, first="  ? ", rest="    ")
    if len(note.disagreements) > SHOWN:
        yield f"  ? and {len(note.disagreements) - SHOWN} more disagreements: `ragaudit judge agree RUN.audit`"


def _way(summary: Summary, width: int) -> Iterator[str]:
    means = {name: found["recall@k"] for name, found in summary.at.items() if "recall@k" in found}
    if len(means) < 2:
        return
    yield heading("Recall at K on the way", width)
    for name, estimate in means.items():
        filled = pad(bar(estimate.mean or 0.0, 1.0, width - 66), width - 66)
        figures = f"{number(estimate.mean):>5}  {interval(estimate):<14}"
        yield f"  {pad(for_terminal(name), 23)} {figures}  {filled}  {queries(estimate.n):>15}"


def _notes(summary: Summary, width: int) -> Iterator[str]:
    said = [note for note in (say.generation_sentence(summary),) if note] + say.acl_sentences(summary)
    said += [pattern.message for pattern in summary.patterns[:SHOWN]]
    if summary.set_aside:
        aside = sum(file.set_aside for file in summary.run.inputs.values())
        what = f"{counted(aside, 'input row')} left out" if aside else "the input was read with repairs"
        said.append(f"{what}. First message: {summary.set_aside[0]}")
        said.append("`ragaudit check BUNDLE` lists what was left out or repaired, by file, line and field.")
    if said:
        yield heading("Worth knowing", width)
    for note in said:
        yield from wrap(for_terminal(note), width, first="  - ", rest="    ")


def _findings(summary: Summary, width: int) -> Iterator[str]:
    found = by_weight(summary.preflight)
    if not found:
        return
    yield heading("Preflight: what the data cannot tell", width)
    shown = [finding for finding in found if finding.severity is not Level.INFO][:SHOWN] or found[:SHOWN]
    for finding in shown:
        yield from finding_lines(finding, width)
    if len(found) > len(shown):
        yield f"  and {len(found) - len(shown)} more: `ragaudit check BUNDLE` lists them"
