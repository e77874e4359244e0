"""The records of the journal: a plan, its start, its finish, and all three as one entry."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from ragaudit.model.comparison import Verdict, means
from ragaudit.model.experiment import Basis, Change, Experiment
from ragaudit.model.record import Concluded, Observed


class Status(StrEnum):
    """How far an experiment is."""

    PLANNED = "planned"
    STARTED = "started"
    FINISHED = "finished"


class Outcome(StrEnum):
    """What became of the hypothesis."""

    CONFIRMED = "confirmed"
    """The metric that should move moved the right way, distinguishably."""
    REFUTED = "refuted"
    """It got worse, or the predicted change is outside the interval of what was measured, or new leaks appeared."""
    OPEN = "open"
    """The runs do not tell: the interval holds both no change and the predicted one."""


class Planned(Observed):
    """A hypothesis: this variable, from this to that, because of this, and what should then be seen."""

    event: Literal["plan"] = "plan"
    id: str
    at: str
    run: str
    audit: str | None = None
    """The audit file it was planned on, as it was named then."""
    fingerprint: str
    lever: str
    variable: str
    before: Any = Field(default=None, alias="from")
    after: Any = Field(default=None, alias="to")
    hypothesis: str = ""
    moves: str = "recall@k"
    """The metric that decides."""
    watch: tuple[str, ...] = ()
    basis: Basis = Basis.NEEDS_A_RUN
    predicted: dict[str, Change] = Field(default_factory=dict)


class Started(Observed):
    """Somebody runs it."""

    event: Literal["start"] = "start"
    id: str
    at: str


class Measured(Concluded):
    """One metric of the finished experiment, beside what was predicted for it."""

    before: float = Field(alias="from")
    after: float = Field(alias="to")
    difference: float
    low: float | None = None
    high: float | None = None
    p_holm: float | None = None
    verdict: Verdict
    error: float | None = None
    """Measured minus predicted difference; None without a prediction."""
    within: bool | None = None
    """The measured difference is inside the interval of the predicted one."""


class Finished(Observed):
    """What came out."""

    event: Literal["finish"] = "finish"
    id: str
    at: str
    candidate: str
    fingerprint: str
    outcome: Outcome
    why: str
    metrics: dict[str, Measured] = Field(default_factory=dict)
    pairs: int
    newly_failing: int = 0
    newly_passing: int = 0
    newly_leaking: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    """What else differed and was allowed by hand."""


Event = Planned | Started | Finished


class Entry(Concluded):
    """One experiment with everything that happened to it."""

    plan: Planned
    started: Started | None = None
    finished: Finished | None = None

    @property
    def status(self) -> Status:
        """How far it is."""
        if self.finished is not None:
            return Status.FINISHED
        return Status.PLANNED if self.started is None else Status.STARTED

    @property
    def is_refuted(self) -> bool:
        """It was run and did not do what was expected."""
        return self.finished is not None and self.finished.outcome is Outcome.REFUTED


def proposes(experiment: Experiment, variable: str, value: str) -> bool:
    """Whether a proposal is of this variable, by its own name or a wildcard's, at this value, or says no value.

    Values are compared as text ("" for none), since a file gives back other types than it was given.
    """
    proposed = "" if experiment.after is None else str(experiment.after)
    return means(experiment.variable, variable) and proposed in ("", value)
