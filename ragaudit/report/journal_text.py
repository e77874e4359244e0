"""The journal of experiments for the terminal: what was planned, what was expected, what came out."""

from collections.abc import Iterator

from ragaudit.experiments.events import Entry, Finished, Planned
from ragaudit.experiments.journal import Journal
from ragaudit.report.clean import for_terminal
from ragaudit.report.compare_text import value_text
from ragaudit.report.layout import WIDTH, wrap


def journal_text(journal: Journal, width: int = WIDTH) -> str:
    """Every experiment in the order of planning."""
    if not journal.entries:
        where = for_terminal(str(journal.path))
        return f"{where}: no experiment yet. Plan one: ragaudit experiment plan RUN.audit LEVER\n"
    return "\n".join("\n".join(entry_lines(entry, width)) + "\n" for entry in journal.entries)


def entry_lines(entry: Entry, width: int = WIDTH) -> Iterator[str]:
    """One experiment."""
    plan, finished = entry.plan, entry.finished
    state = entry.status.value if finished is None else f"{finished.outcome.value}"
    yield f"{for_terminal(plan.id)}  {state:<10} {for_terminal(plan.lever)}   {for_terminal(plan.at[:10])}"
    change = f"{for_terminal(plan.variable)}: {value_text(plan.before)} -> {value_text(plan.after)}"
    yield from wrap(change, width, first="        ", rest="          ")
    if plan.hypothesis:
        yield from wrap(for_terminal(plan.hypothesis), width, first="        ", rest="        ")
    yield from wrap(_expected(plan), width, first="        expected: ", rest="          ")
    if finished is not None:
        yield from wrap(_found(plan, finished), width, first="        measured: ", rest="          ")


def _expected(plan: Planned) -> str:
    known = plan.predicted.get(plan.moves)
    if known is None:
        return f"{for_terminal(plan.moves)} should move; by how much {plan.basis.value}"
    return f"{for_terminal(plan.moves)} {known.before:.3f} -> {known.after:.3f} [{known.low:.3f}, {known.high:.3f}]"


def _found(plan: Planned, finished: Finished) -> str:
    said = [for_terminal(finished.why)]
    measured = finished.metrics.get(plan.moves)
    if measured is not None and measured.error is not None:
        where = "inside" if measured.within else "outside"
        said.append(f"prediction off by {measured.error:+.3f}, {where} its interval")
    if finished.exceptions:
        said.append(f"allowed by hand: {', '.join(map(for_terminal, finished.exceptions))}")
    return "; ".join(said)
