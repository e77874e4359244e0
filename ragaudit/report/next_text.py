"""The next experiments, for the terminal: the first in full, the others a line each."""

from collections.abc import Iterator

from ragaudit.model.experiment import Basis, Change, Experiment
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS
from ragaudit.report.layout import WIDTH, cells, heading, pad, wrap

SHOWN = 9
"""Experiments after the first that are listed."""


def next_text(experiments: tuple[Experiment, ...], width: int = WIDTH) -> str:
    """What to try next: change this one variable, expect that, watch those."""
    if not experiments:
        return "No experiment to propose: no failing query has a cause that a lever answers.\n"
    lines = [heading("Next experiment: change one variable", width), *_first(experiments[0], width)]
    if len(experiments) > 1:
        lines += ["", heading("After that", width), *(_line(e, width) for e in experiments[1 : SHOWN + 1])]
        if len(experiments) > SHOWN + 1:
            lines.append(f"  and {len(experiments) - SHOWN - 1} more: --json lists all of them")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def effect(experiment: Experiment) -> str:
    """`keeps 29 of 41, loses 2 (replayed)`, or `needs a run; recall could reach 0.85 at most`."""
    if experiment.basis is Basis.REPLAYED:
        return f"keeps {experiment.keeps} of {experiment.of}, loses {experiment.loses} (replayed)"
    most = "" if experiment.ceiling is None else f"; recall could reach {experiment.ceiling:.2f} at most"
    return f"answers {experiment.of}, needs a run{most}"


def proposal(experiment: Experiment) -> str:
    """`rerank.top_n: 8 -> 12, keeps 29 of 41, loses 2 (replayed)`."""
    return f"{for_terminal(experiment.variable)}{_values(experiment)}, {effect(experiment)}"


def _first(experiment: Experiment, width: int) -> Iterator[str]:
    yield from wrap(f"{for_terminal(experiment.variable)}{_values(experiment)}", width, first="  > ", rest="    ")
    for label, text in (
        ("effect", effect(experiment)),
        ("why", experiment.why),
        ("frozen", "; ".join(experiment.frozen)),
        ("watch", ", ".join(LABELS.get(name, name) for name in experiment.watch)),
        ("needs", f"authorisation: {experiment.authorisation}" if experiment.authorisation else ""),
        ("how", experiment.how),
        ("queries", " ".join(experiment.queries[:12]) + (" ..." if len(experiment.queries) > 12 else "")),
    ):
        if text:
            yield from wrap(for_terminal(text), width, first=f"  {label:<8} ", rest=" " * 11)
    for metric, change in experiment.predicted.items():
        yield f"  {pad(LABELS.get(metric, metric), 20)} {_change(change)}"
    if experiment.excluded:
        yield from wrap(
            f"{experiment.excluded} queries could not be replayed and are in none of these numbers",
            width,
            first="  - ",
            rest="    ",
        )


def _line(experiment: Experiment, width: int) -> str:
    start = f"    {pad(for_terminal(experiment.lever), 20)} "
    return start + pad(for_terminal(f"{effect(experiment)}; {experiment.lost_to or ''}"), max(width - cells(start), 8))


def _values(experiment: Experiment) -> str:
    if experiment.basis is Basis.NEEDS_A_RUN:
        return ""
    return f": {for_terminal(str(experiment.before))} -> {for_terminal(_shown(experiment.after))}"


def _shown(value: object) -> str:
    return "off" if value in (None, "") else str(value)


def _change(change: Change) -> str:
    return f"{change.before:.3f} -> {change.after:.3f}  [{change.low:.3f}, {change.high:.3f}]"
