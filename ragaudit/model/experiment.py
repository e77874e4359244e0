"""One thing that may be changed, one proposed change of it, and what the change would do."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from ragaudit.model.diagnosis import Stage
from ragaudit.model.record import Concluded


class Basis(StrEnum):
    """Where a prediction comes from."""

    REPLAYED = "replayed"
    """The recorded lists were recomputed under the change: the numbers are exact for these traces."""
    NEEDS_A_RUN = "needs a run"
    """The recorded lists cannot tell; no number is given, only the ceiling that it could reach."""


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


class Change(Concluded):
    """A predicted change of one metric's mean, with the interval of the paired difference added to `before`."""

    before: float = Field(alias="from")
    after: float = Field(alias="to")
    low: float
    high: float


class Experiment(Concluded):
    """One proposed change of one variable, with what it would keep, lose and move.

    `keeps` of `of` failing queries would have their evidence delivered and `loses` queries that have it now would
    not; None when the change needs a run. `ceiling` is the mean recall that it could reach at most.
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
    excluded: int = 0
    """Traces that replaying "no change" does not reproduce, and that are in none of these numbers."""
    frozen: tuple[str, ...] = ()
    how: str = ""
    watch: tuple[str, ...] = ()
    authorisation: str | None = None
    lost_to: str | None = None
    """Why this one comes after the first."""
