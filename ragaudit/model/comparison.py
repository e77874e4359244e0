"""What a frozen run holds, what a comparison of two runs found, and what a gate said."""

import re
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.record import Concluded
from ragaudit.model.result import METRICS, Estimate

BASELINE_SCHEMA = "ragaudit.baseline/1"
COMPARISON_SCHEMA = "ragaudit.comparison/1"
GATE_SCHEMA = "ragaudit.gate/1"

LOWER_IS_BETTER = frozenset({"hallucination"})
"""Metrics whose fall is an improvement; of every other one it is a rise."""

SLICED = ("recall@k", "mrr@k", "context_recall", "faithfulness")
"""The metrics that a comparison gives for each slice."""


class Verdict(StrEnum):
    """What a comparison says of one metric."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "not distinguishable"


class Paired(Concluded):
    """The paired differences (candidate minus baseline) of one metric, over the queries that define it in both.

    `difference` is their mean, `low` and `high` its 95 % bootstrap interval, `p` the sign-flip permutation p value,
    `mde` the smallest difference that as many queries, as spread as these, show with a power of 80 %. None is
    undefined, and `reason` says why. A win is a query that is better in the candidate.
    """

    n: int
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    exact: bool = False
    """Every flip was counted: `p` is no estimate."""
    mde: float | None = None
    wins: int = 0
    losses: int = 0
    ties: int = 0
    reason: str | None = None


class MetricChange(Concluded):
    """One metric before and after. The verdict rests on `p_holm`, adjusted over all metrics of the comparison."""

    metric: str
    paired: Paired
    p_holm: float | None = None
    verdict: Verdict
    note: str | None = None
    """What stands in the way of another verdict."""
    undefined_before: dict[str, int] = Field(default_factory=dict)
    """Why paired queries have no value in the baseline, counted."""
    undefined_after: dict[str, int] = Field(default_factory=dict)


class Difference(Concluded):
    """One thing in which the two runs differ: a pipeline variable, or what must be equal for numbers to compare."""

    name: str
    """A dotted key under `pipeline`, or "k_final", "acl", "gold", "judge...", "audit..."."""
    before: Any
    after: Any
    queries: tuple[str, ...] = ()
    """The queries that show it, when it does not hold for the whole run."""
    allowed: bool = False
    """Named by `--allow`."""


class QueryChange(Concluded):
    """One query that came out otherwise. `before` and `after` are a stage, or pass, delivered, undetermined, ..."""

    query_id: str
    before: str
    after: str
    leaks: tuple[str, ...] = ()
    """Ids in the candidate's context that the user may not read and that the baseline's did not hold."""
    differences: dict[str, float] = Field(default_factory=dict)
    """Metric -> candidate minus baseline, where it changed."""


class Transition(Concluded):
    """How many queries went from one stage, or verdict, to another."""

    before: str
    after: str
    n: int


class SliceChange(Concluded):
    """One value of one slice. No p: many slices are looked at, so that some differ by chance."""

    slice: str
    value: str
    n: int
    metrics: dict[str, Paired]
    newly_failing: int
    newly_passing: int


class Side(Concluded):
    """One of the two runs."""

    name: str
    fingerprint: str
    ragaudit: str
    queries: int
    k_final: int | None
    leaking: int
    frozen: bool = False
    """Read from a baseline file rather than an audit."""


class Comparison(Concluded):
    """A candidate against a baseline, paired by query id."""

    base: Side
    candidate: Side
    pairs: int
    only_base: tuple[str, ...] = ()
    only_candidate: tuple[str, ...] = ()
    variables: tuple[Difference, ...] = ()
    """Pipeline variables that changed; one, unless more were allowed."""
    exceptions: tuple[Difference, ...] = ()
    """What else differs and was allowed."""
    newly_leaking: tuple[QueryChange, ...] = ()
    metrics: tuple[MetricChange, ...] = ()
    transitions: tuple[Transition, ...] = ()
    """Every change of stage or verdict; queries that stay are not among them."""
    unchanged: int = 0
    newly_failing: tuple[QueryChange, ...] = ()
    """Worst first."""
    newly_passing: tuple[QueryChange, ...] = ()
    slices: tuple[SliceChange, ...] = ()
    warnings: tuple[str, ...] = ()

    def change_of(self, metric: str) -> MetricChange | None:
        """The change of one metric; None when neither run has it."""
        return next((change for change in self.metrics if change.metric == metric), None)


class FrozenQuery(Concluded):
    """One query of a frozen run: defined metrics only, no text."""

    query_id: str
    outcome: Outcome
    stage: Stage = Stage.NONE
    delivered: bool | None = None
    k: int
    gold: str
    """Digest of the gold ids, grades and groups."""
    access: str
    """Digest of who asked, and which gold they may not read."""
    metrics: dict[str, float] = Field(default_factory=dict)
    undefined: dict[str, str] = Field(default_factory=dict)
    leaks: tuple[str, ...] = ()
    slices: dict[str, str] = Field(default_factory=dict)
    config: dict[str, Any] = Field(default_factory=dict)
    """This query's departures from the pipeline, by dotted key."""

    @property
    def state(self) -> str:
        """Where the query stands: the stage that lost it, or what else is known of it."""
        if self.outcome is Outcome.FAIL:
            return Stage.UNDETERMINED.value if self.stage is Stage.NONE else self.stage.value
        if self.outcome is Outcome.UNDETERMINED and self.delivered:
            return DELIVERED
        return self.outcome.value

    @property
    def arrived(self) -> bool:
        """It passed, or its evidence was delivered and nobody judged the answer."""
        return self.state in (Outcome.PASS.value, DELIVERED)


DELIVERED = "delivered"
"""The evidence reached the prompt, and nobody judged the answer."""


class FrozenJudge(Concluded):
    """Who judged: a difference in any of it makes verdicts incomparable."""

    model: str
    mode: str
    prompts: dict[str, int]


class FrozenAcl(Concluded):
    """Who may read what."""

    rule: str = "any"
    everyone: tuple[str, ...] = ()


class Baseline(Concluded):
    """A run as it was frozen: what it was, how it was measured, and what each query came to."""

    schema_: Literal["ragaudit.baseline/1"] = Field(default="ragaudit.baseline/1", alias="schema")
    name: str
    run: str
    fingerprint: str
    ragaudit: str
    pipeline: dict[str, Any]
    k_final: int | None
    acl: FrozenAcl = FrozenAcl()
    gold_version: str
    judge: FrozenJudge | None = None
    scope: str = "answer"
    gain: str = "linear"
    seed: int = 0
    resamples: int = 10_000
    inputs: dict[str, str] = Field(default_factory=dict)
    """File -> digest."""
    outcomes: dict[str, int] = Field(default_factory=dict)
    stages: dict[str, int] = Field(default_factory=dict)
    metrics: dict[str, Estimate] = Field(default_factory=dict)
    queries: tuple[FrozenQuery, ...]

    def why_undefined(self, query: FrozenQuery, metric: str) -> str:
        """Why a query has no value for a metric."""
        unjudged = "judge off" if self.judge is None and metric not in METRICS else "not measured"
        return query.undefined.get(metric, unjudged)


class GateResult(Concluded):
    """One gate: what it asks, what was measured, whether it fired, and the queries that made it."""

    gate: str
    """As in ragaudit.toml: `recall@k.min`, `leaks`, `stages.rerank`."""
    asks: str
    limit: float
    value: float | None
    fired: bool
    says: str
    queries: tuple[str, ...] = ()
    """Worst first."""


class GateReport(Concluded):
    """Every gate of a run."""

    run: str
    baseline: str | None = None
    gates: tuple[GateResult, ...]
    exceptions: tuple[Difference, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def fired(self) -> tuple[GateResult, ...]:
        """The gates that fail the run."""
        return tuple(gate for gate in self.gates if gate.fired)


def means(name: str, variable: str) -> bool:
    """Whether a name means a variable: the variable itself, or a table that holds it, or a key inside it.

    `pipeline.` may be left out, `thresholds[0]` is `thresholds.0`, and `*` stands for an arm, a floor or a side; it
    cannot stand first, where it would mean everything.
    """
    wanted, found = _parts(name), _parts(variable)
    return wanted[0] != "*" and all(one in ("*", other) for one, other in zip(wanted, found, strict=False))


def _parts(variable: str) -> list[str]:
    return re.sub(r"\[(\d+)\]", r".\1", variable.removeprefix("pipeline.")).split(".")
