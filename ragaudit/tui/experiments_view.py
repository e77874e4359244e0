"""One proposed experiment in full, and the journal of all of them, as lines."""

from collections.abc import Iterable

from ragaudit.experiments.events import Entry, Outcome
from ragaudit.experiments.journal import Journal
from ragaudit.model.experiment import Experiment
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS, listed
from ragaudit.report.journal_text import entry_lines
from ragaudit.report.layout import pad
from ragaudit.report.next_text import change_of, effect, figure_lines, where_text
from ragaudit.tui.lines import BLANK, Line, Role, flowed, head, line

LABEL_CELLS = 10
MAX_CHARACTERS = 2_000
"""Of one text; the rest is counted."""
OUTCOME_ROLES = {Outcome.CONFIRMED: Role.KEPT, Outcome.REFUTED: Role.LOST, Outcome.OPEN: Role.UNSCORED}


def detail_lines(experiment: Experiment, entries: tuple[Entry, ...], width: int) -> list[Line]:
    """Everything about one proposal: the change, what it would do, what stays frozen, how, and whether it was tried."""
    lines = flowed(change_of(experiment), width, Role.STRONG, first="> ")
    if any(entry.is_refuted for entry in entries):
        text = "the journal says that this was tried and refuted: `ragaudit next` leaves it out"
        lines += flowed(text, width, Role.LOST, first="x ")
    lines += _labelled("effect", effect(experiment), width, Role.STRONG)
    lines += _labelled("where", where_text(experiment), width)
    lines += _predicted(experiment, width)
    lines += _labelled("why", experiment.why, width)
    lines += _labelled("behind", experiment.lost_to or "nothing: it is ranked first", width)
    lines += _labelled("frozen", "; ".join(experiment.frozen), width)
    lines += _labelled("watch", ", ".join(LABELS.get(name, name) for name in experiment.watch), width)
    if experiment.authorisation:
        needs = f"authorisation {experiment.authorisation}: ask before anything is written to an index"
        lines += _labelled("needs", needs, width, Role.UNSCORED)
    lines += _labelled("how", experiment.how, width)
    lines += _labelled("answers", f"{len(experiment.queries)}: {' '.join(experiment.queries)}", width)
    if experiment.loses is not None:
        lines += _labelled("loses", f"{experiment.loses}: {' '.join(experiment.lost) or 'none'}", width)
    lines += _labelled("lever", experiment.lever, width, Role.DIM)
    if entries:
        lines += [BLANK, head("in the journal", width), *_entries(entries, width)]
    return lines


def journal_lines(journal: Journal, trouble: str, width: int) -> list[Line]:
    """What was planned, expected and measured, the last plan first; or why the journal cannot be read."""
    if trouble:
        return flowed(trouble, width, Role.LOST)
    if not journal.entries:
        where = for_terminal(str(journal.path))
        return flowed(f"{where}: nothing planned yet. t plans the experiment under the cursor.", width)
    counts = {outcome: 0 for outcome in Outcome}
    for entry in journal.entries:
        if entry.finished is not None:
            counts[entry.finished.outcome] += 1
    said = [f"{len(journal.entries)} planned", *(f"{n} {outcome.value}" for outcome, n in counts.items() if n)]
    return [*flowed(listed(said), width, Role.STRONG), *_entries(reversed(journal.entries), width)]


def _entries(entries: Iterable[Entry], width: int) -> list[Line]:
    lines: list[Line] = []
    for entry in entries:
        finished = entry.finished
        role = Role.STRONG if finished is None else OUTCOME_ROLES[finished.outcome]
        first, *rest = entry_lines(entry, width)
        lines += [line((first, role)), *(line(text) for text in rest)]
    return lines


def _predicted(experiment: Experiment, width: int) -> list[Line]:
    if experiment.replay is None:
        return _labelled("predicted", "no number: the recorded lists cannot tell, a run must", width, Role.UNSCORED)
    return [line(("predicted", Role.DIM)), *(line(text) for text in figure_lines(experiment, width))]


def _labelled(label: str, text: str, width: int, role: Role = Role.PLAIN) -> list[Line]:
    """A labelled text, wrapped beside its label; nothing for no text."""
    if not text:
        return []
    rest = len(text) - MAX_CHARACTERS
    if rest > 0:
        text = f"{text[:MAX_CHARACTERS]} ({rest:,} more characters)"
    wrapped = flowed(text, max(width - LABEL_CELLS, 8), role)
    return [(*line((pad("" if n else label, LABEL_CELLS), Role.DIM)), *one) for n, one in enumerate(wrapped)]
