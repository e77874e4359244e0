"""What a drill found: which injected faults were named, which were left open, which were misnamed."""

from pydantic import Field

from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.record import Concluded


class Misnamed(Concluded):
    """One injected fault whose diagnosis excludes the truth."""

    query_id: str
    outcome: Outcome
    stage: Stage
    could_be: tuple[Stage, ...] = ()
    causes: tuple[str, ...] = ()
    evidence: str = ""


class FaultResult(Concluded):
    """One fault over all healthy queries that it applies to.

    `named` + `open` + the misnamed = `applied`. Open = undetermined, with the truth among the stages it could be.
    """

    fault: str
    stage: Stage
    summary: str
    hides: str = ""
    """What was not logged; empty when everything was."""
    applied: int = 0
    named: int = 0
    open: int = 0
    causes: dict[str, int] = Field(default_factory=dict)
    """The first cause of each verdict that named the stage, counted."""
    misnamed: tuple[Misnamed, ...] = ()
    log: tuple[str, ...] = ()
    """What the open verdicts ask to be logged."""
    recall: float | None = None
    """Mean recall@k of the healthy run once this fault has struck wherever it applies."""
    leaks: int = 0
    gates: tuple[str, ...] = ()
    """The gates, taken from the healthy run, that would fire: "recall@k.max_drop", "leaks", "outcomes.fail"."""


class DrillReport(Concluded):
    """A drill over one bundle. The tables count applications: injected stage -> diagnosed stage."""

    name: str
    traces: int
    healthy: int
    seed: int
    recall: float | None
    """Mean recall@k of the healthy queries."""
    results: tuple[FaultResult, ...] = ()
    table: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Everything logged."""
    blind: dict[str, dict[str, int]] = Field(default_factory=dict)
    """With the deciding observation taken away."""

    @property
    def misnamed(self) -> tuple[FaultResult, ...]:
        """The faults of which at least one diagnosis was wrong."""
        return tuple(result for result in self.results if result.misnamed)

    @property
    def holds(self) -> bool:
        """No diagnosis excluded the truth."""
        return not self.misnamed
