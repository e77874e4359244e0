"""The overview of a run: losses by stage, scores with intervals and what has none, the next experiments."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragaudit.model.counting import queries
from ragaudit.model.diagnosis import Outcome
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import Summary
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS, bar, in_order, interval, losses, number, share
from ragaudit.report.judged import judge_sentences
from ragaudit.report.layout import cells, pad
from ragaudit.report.next_text import change_of, effect
from ragaudit.tui.lines import Line, Role, flowed, line

REFUTED = "refuted"


@dataclass(frozen=True)
class Choice:
    """A line that leads somewhere: to a filter of the queue, or to marked queries."""

    text: Line
    filter: str | None = None
    queries: tuple[str, ...] = ()


def loss_rows(summary: Summary, width: int) -> list[Choice]:
    """Leaks first, then failing queries by the stage that lost them, then what is not decided."""
    rows = []
    if summary.acl.leaks:
        n = len({leak.query_id for leak in summary.acl.leaks})
        text = f"!! LEAK in {queries(n)}: not readable for the user"
        rows.append(Choice(line((pad(text, width), Role.LEAK)), "is:leak"))
    counts = losses(summary)
    undecided = sum(summary.undetermined.values())
    most = max([n for _, n in counts] + [undecided, 1])
    total = sum(summary.outcomes.values())
    for stage, n in counts:
        text = f"{pad(stage.label, 15)}{n:>6,} {share(n, total):>4}  "
        graph = bar(n, most, width - len(text))
        rows.append(Choice(line(text, (graph, Role.LOST)), f"stage:{stage.value} is:failing"))
    text = f"{pad('not decided', 15)}{undecided:>6,} {share(undecided, total):>4}  "
    rows.append(
        Choice(line((text, Role.UNSCORED), (bar(undecided, most, width - len(text)), Role.UNSCORED)), "is:undetermined")
    )
    rows.append(Choice(line(f"{pad('passing', 15)}{summary.outcomes.get(Outcome.PASS.value, 0):>6,}"), "is:passing"))
    return rows


def score_lines(summary: Summary, width: int, agreement: Sequence[Line] = ()) -> list[Line]:
    """Means with 95 % intervals, and beside each what is not in it; then how far the person agrees."""
    lines: list[Line] = []
    nothing: dict[str, list[str]] = {}
    for name in in_order(summary.metrics):
        estimate = summary.metrics[name]
        label = for_terminal(LABELS.get(name, name))
        if estimate.mean is None:
            why = ", ".join(sorted(estimate.reasons)).replace("_", " ") or "no reason given"
            nothing.setdefault(why, []).append(label)
            continue
        out = f"  {estimate.undefined} out" if estimate.undefined else ""
        short = {"Precision (returned)": "Precision (ret.)", "Precision (by K)": "Precision (K)"}.get(label, label)
        text = f"{pad(short, 18)}{number(estimate.mean)} {interval(estimate):<15}"
        lines.append(line(text, (out if len(text) + len(out) <= width else "", Role.UNSCORED)))
    lines += agreement
    for why, labels in nothing.items():
        lines += flowed(f"no {', '.join(labels)}: {why}", width, Role.UNSCORED, rest="  ")
    lines += flowed("out = queries that do not define it, left out of the mean", width, Role.DIM)
    for sentence in judge_sentences(summary)[:2]:
        lines += flowed(sentence, width, rest="  ")
    return lines


def experiment_rows(experiments: tuple[Experiment, ...], width: int, states: Sequence[str]) -> list[Choice]:
    """The proposals, best first, each with what the journal says of it and what it would do.

    Args:
        experiments: As the audit ranked them.
        width: Cells of a row.
        states: Of each, what the journal says, "" for nothing.
    """
    rows = []
    room = max(map(cells, states), default=0)
    for n, (experiment, state) in enumerate(zip(experiments, states, strict=True), 1):
        name = for_terminal(change_of(experiment).removeprefix("pipeline."))
        left = f"{n:>2} {pad(name, max(min(width - 44 - room, 44), 20))} "
        noted = f"{pad(state, room)} " if room else ""
        role = Role.LOST if state.startswith(REFUTED) else Role.KEPT
        text = pad(effect(experiment), max(width - len(left) - len(noted), 10))
        rows.append(Choice(line((left, Role.STRONG), (noted, role), text), queries=experiment.queries))
    if not rows:
        rows.append(Choice(line("No experiment to propose: no failing query has a cause that a lever answers.")))
    return rows
