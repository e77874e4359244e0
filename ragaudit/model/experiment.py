"""One thing that may be changed, one proposed change of it, and what the change would do."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from ragaudit.model.diagnosis import Stage
from ragaudit.model.record import Concluded


class Basis(StrEnum):
    """Where a prediction comes from."""

    REPLAYED = "replayed"
    """The recorded lists of enough queries were recomputed under the change to speak of the run."""
    NEEDS_A_RUN = "needs a run"
    """Too few queries, or none, could be replayed: no number of the run is given, only the ceiling it could reach."""


class Lever(Concluded):
    """One key of `[pipeline]` that may be changed. None can express wider access: a filter keeps its predicate."""

    name: str
    order: int
    """The seed's order: an earlier lever wins a tie."""
    variable: str
    """Dotted key under `pipeline`."""
    summary: str
    stages: tuple[Stage, ...]
    causes: tuple[str, ...]
    moves: str
    """The metric that should move."""
    watch: tuple[str, ...]
    """The metrics that may get worse."""
    frozen: tuple[str, ...]
    """What must stay as it is, in words."""
    authorisation: str | None = None
    """What must be allowed before anybody changes it: "index_write" for everything that writes to an index."""
    how: dict[str, str] = Field(default_factory=dict)
    """Stack -> how it is done there."""
    given: dict[str, str] = Field(default_factory=dict)
    """Cause -> the part that the query's pipeline must be known to have, where the cause alone does not prove it."""
    unless: dict[str, str] = Field(default_factory=dict)
    """Cause -> what must not be known of the query's pipeline."""


class Change(Concluded):
    """A change of one metric's mean over `n` queries, with the interval of the paired difference added to `before`."""

    before: float = Field(alias="from")
    after: float = Field(alias="to")
    low: float
    high: float
    n: int | None = None


class Replay(Concluded):
    """What replaying a change shows, for `queries` of the `of` queries with gold and a logged context.

    It is exact for these traces. The others, counted by reason in `unknown`, are in none of the figures.
    """

    queries: int
    of: int
    keeps: int
    """Failing queries whose evidence would be delivered."""
    loses: int
    """Queries whose evidence is delivered now and would not be."""
    unknown: dict[str, int] = Field(default_factory=dict)
    changes: dict[str, Change] = Field(default_factory=dict)
    """Metric -> its change over the queries replayed."""

    @property
    def share(self) -> float:
        """The share of the queries that could be replayed, 0 to 1; 0 when there are none."""
        return self.queries / self.of if self.of else 0.0


class Experiment(Concluded):
    """One proposed change of one variable, with what it would keep, lose and move.

    `keeps` of `of` failing queries would have their evidence delivered and `loses` queries that have it now would
    not; None when the change needs a run, and then `of` counts the failing queries that it answers. `predicted` is
    of the whole run, the queries that were not replayed taken to stay as they are. `ceiling` is the mean recall that
    the change could reach at most.
    """

    lever: str
    variable: str
    before: Any = Field(alias="from")
    after: Any = Field(alias="to")
    why: str
    stage: Stage
    queries: tuple[str, ...] = ()
    basis: Basis
    keeps: int | None = None
    of: int = 0
    loses: int | None = None
    lost: tuple[str, ...] = ()
    predicted: dict[str, Change] = Field(default_factory=dict)
    ceiling: float | None = None
    replay: Replay | None = None
    """What the recorded lists show, for the queries whose lists show it; None when they show nothing."""
    departing: tuple[str, ...] = ()
    """The queries whose own value changes, because they depart from the run's; empty = the run's value changes."""
    frozen: tuple[str, ...] = ()
    how: str = ""
    watch: tuple[str, ...] = ()
    authorisation: str | None = None
    lost_to: str | None = None
    """Why this one comes after the first."""
