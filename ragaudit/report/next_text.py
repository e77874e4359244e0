"""The next experiments, for the terminal: the first in full, the others a line each."""

from collections.abc import Iterator, Sequence

from ragaudit.model.experiment import Basis, Change, Experiment
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS
from ragaudit.report.layout import WIDTH, cells, heading, pad, wrap

SHOWN = 9
"""Experiments after the first that are listed."""


def next_text(experiments: tuple[Experiment, ...], width: int = WIDTH, *, met: Sequence[str] = ()) -> str:
    """What to try next: change this one variable, expect that, watch those.

    Args:
        experiments: Best first.
        width: Columns.
        met: The gates, when every one of them holds and nothing leaks: the place to stop.
    """
    lines = []
    if met:
        said = f"Every gate holds ({', '.join(met)}) and no query leaks: by your own thresholds, stop here."
        lines += [*wrap(for_terminal(said), width), ""]
    if not experiments:
        lines += wrap("No experiment to propose: no failing query has a cause that a lever answers.", width)
        return "\n".join(lines) + "\n"
    title = "What would come next: change one variable" if met else "Next experiment: change one variable"
    lines += [heading(title, width), *_first(experiments[0], width)]
    if len(experiments) > 1:
        lines += ["", heading("After that", width), *(_line(e, width) for e in experiments[1 : SHOWN + 1])]
        if len(experiments) > SHOWN + 1:
            lines.append(f"  and {len(experiments) - SHOWN - 1} more: --json lists all of them")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def change_of(experiment: Experiment) -> str:
    """`pipeline.rerank.top_n: 8 -> 16`; the variable alone where no value is proposed."""
    if experiment.before is None and experiment.after is None:
        return experiment.variable
    before = experiment.before if isinstance(experiment.before, list) else [experiment.before]
    named = str(experiment.before) if experiment.variable.endswith(".arms") else ", ".join(map(_shown, before))
    return f"{experiment.variable}: {named} -> {_shown(experiment.after)}"


def effect(experiment: Experiment) -> str:
    """`keeps 29 of 41, loses 2 (replayed)`, or `needs a run; recall could reach 0.85 at most`."""
    replay = experiment.replay
    if experiment.basis is Basis.REPLAYED:
        on = "" if replay is None or replay.queries == replay.of else f" on {replay.queries} of {replay.of} queries"
        return f"keeps {experiment.keeps} of {experiment.of}, loses {experiment.loses} (replayed{on})"
    most = "" if experiment.ceiling is None else f"; recall could reach {experiment.ceiling:.2f} at most"
    part = ""
    if replay is not None:
        part = f": {replay.queries} of {replay.of} replayed, of those keeps {replay.keeps}, loses {replay.loses}"
    return f"answers {experiment.of}, needs a run{part}{most}"


def proposal(experiment: Experiment) -> str:
    """`pipeline.rerank.top_n: 8 -> 12, keeps 29 of 41, loses 2 (replayed)`; not cleaned."""
    return f"{change_of(experiment)}, {effect(experiment)}"


def where_text(experiment: Experiment) -> str:
    """Which queries alone would change; empty = the value of the whole run does."""
    if not experiment.departing:
        return ""
    return f"only in queries that depart from the run's value: {_listed(experiment.departing)}"


def figure_lines(experiment: Experiment, width: int) -> Iterator[str]:
    """The intervals, each over the queries it says; the whole run's where enough of it was replayed."""
    replay = experiment.replay
    if replay is None:
        return
    rest = replay.of - replay.queries
    if replay.changes:
        yield f"  over the {replay.queries} of {replay.of} queries whose lists tell what it does"
    for metric, change in replay.changes.items():
        yield f"    {pad(LABELS.get(metric, metric), 20)} {_change(change)}"
    if rest and experiment.predicted:
        yield f"  over the whole run, whatever the other {rest} do (to: they stay as they are)"
        for metric, change in experiment.predicted.items():
            yield f"    {pad(LABELS.get(metric, metric), 20)} {_change(change)}"
    if rest and not experiment.predicted:
        yield "  over the whole run: needs a run, too few queries can be replayed"
    for reason, n in sorted(replay.unknown.items(), key=lambda each: -each[1])[:3]:
        yield from wrap(for_terminal(f"{n} not replayed: {reason}"), width, first="  - ", rest="    ")


def _first(experiment: Experiment, width: int) -> Iterator[str]:
    yield from wrap(for_terminal(change_of(experiment)), width, first="  > ", rest="    ")
    for label, text in (
        ("effect", effect(experiment)),
        ("where", where_text(experiment)),
        ("why", experiment.why),
        ("frozen", "; ".join(experiment.frozen)),
        ("watch", ", ".join(LABELS.get(name, name) for name in experiment.watch)),
        ("needs", f"authorisation: {experiment.authorisation}" if experiment.authorisation else ""),
        ("how", experiment.how),
        ("queries", _listed(experiment.queries)),
    ):
        if text:
            yield from wrap(for_terminal(text), width, first=f"  {label:<8} ", rest=" " * 11)
    yield from figure_lines(experiment, width)


def _line(experiment: Experiment, width: int) -> str:
    start = f"    {pad(for_terminal(experiment.lever), 20)} "
    return start + pad(for_terminal(f"{effect(experiment)}; {experiment.lost_to or ''}"), max(width - cells(start), 8))


def _listed(queries: Sequence[str]) -> str:
    return " ".join(queries[:12]) + (" ..." if len(queries) > 12 else "")


def _shown(value: object) -> str:
    return "off" if value in (None, "") else str(value)


def _change(change: Change) -> str:
    return f"{change.before:.3f} -> {change.after:.3f}  [{change.low:.3f}, {change.high:.3f}]"
