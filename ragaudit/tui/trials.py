"""The proposals of the open audit and what the journal says of each, without a screen."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ragaudit.errors import ConfigError, InputError
from ragaudit.experiments.events import Entry, Status
from ragaudit.experiments.journal import DEFAULT, Journal
from ragaudit.experiments.levers import lever
from ragaudit.experiments.planning import is_for_any, keys_of, planned_change
from ragaudit.model.experiment import Experiment
from ragaudit.report.clean import for_terminal
from ragaudit.tui.session import Session


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Trials:
    """What could be tried, what was, and what came of it. The journal is read by `read`, and again after a plan."""

    session: Session
    path: Path = DEFAULT
    clock: Callable[[], datetime] = _now
    journal: Journal = field(init=False)
    trouble: str = ""
    """Why the journal cannot be read; it then counts as empty, and nothing is planned."""

    def __post_init__(self) -> None:
        self.read()

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """The audit's proposals, best first; what was refuted is among them."""
        return self.session.summary.experiments

    def read(self) -> None:
        """Take in what is in the journal now."""
        try:
            self.journal, self.trouble = Journal.read(self.path), ""
        except InputError as error:
            self.journal, self.trouble = Journal(self.path), str(error)

    def about(self, experiment: Experiment) -> tuple[Entry, ...]:
        """What the journal has of a proposal."""
        return self.journal.about(experiment)

    def states(self) -> list[str]:
        """The standing of each proposal in a word or two, "" for what nobody planned."""
        return [standing(self.about(experiment)) for experiment in self.experiments]

    def keys(self, experiment: Experiment) -> list[str]:
        """The keys from which one has to be chosen before this is planned; empty = there is no choice."""
        if not is_for_any(experiment.variable):
            return []
        names = keys_of(lever(experiment.lever), self.session.summary.run.pipeline)
        return names if len(names) > 1 else []

    def plan(self, experiment: Experiment, key: str | None = None) -> str:
        """Write a proposal into the journal, as `ragaudit experiment plan` does. What was done, in words.

        Args:
            experiment: The proposal.
            key: Which of `keys`.

        Raises:
            ConfigError: It stands there and is not finished, the journal cannot be read or written, or the
                configuration does not have the key.
        """
        self.read()
        if self.trouble:
            raise ConfigError(self.trouble)
        run, known = self.session.summary.run, lever(experiment.lever)
        variable = key if is_for_any(experiment.variable) else experiment.variable
        change = planned_change(known, (experiment,), run.pipeline, variable=variable)
        for entry in self.journal.entries:
            same = (entry.plan.variable, entry.plan.after) == (change.variable, change.after)
            if same and entry.status is not Status.FINISHED:
                raise ConfigError(f"{entry.plan.id}: the same change is {entry.status} already in {self.path}.")
        planned = self.journal.plan(
            change,
            moves=known.moves,
            run=run.name,
            fingerprint=run.fingerprint,
            at=self.clock().isoformat(timespec="seconds"),
            audit=str(self.session.reader.path),
            hypothesis=known.summary,
        )
        self.read()
        name = planned.variable.removeprefix("pipeline.")
        return f"planned {name} as {planned.id} in {self.path}; to take it back, delete that line"


def standing(entries: tuple[Entry, ...]) -> str:
    """`planned`, `running`, `confirmed +0.050`, `refuted -0.020`, `open +0.003`; a refutation outlasts later plans."""
    if not entries:
        return ""
    refuting = [entry for entry in entries if entry.is_refuted]
    entry = (refuting or entries)[-1]
    if entry.finished is None:
        return "running" if entry.status is Status.STARTED else "planned"
    measured = entry.finished.metrics.get(entry.plan.moves)
    moved = "" if measured is None else f" {measured.difference:+.3f}"
    return for_terminal(f"{entry.finished.outcome.value}{moved}")
