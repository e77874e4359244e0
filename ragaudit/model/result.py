"""What an audit holds: one row a query and one summary of the run, in the shape of `ragaudit audit --json`."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from ragaudit.model.diagnosis import Diagnosis
from ragaudit.model.experiment import Experiment
from ragaudit.model.record import Concluded

SCHEMA = "ragaudit.audit/1"

METRICS: tuple[str, ...] = (
    "hit@k",
    "recall@k",
    "precision@k",
    "precision@returned",
    "mrr@k",
    "ndcg@k",
    "ap@k",
)
"""The id-based metrics, at the K that reached the generator."""

JUDGED: tuple[str, ...] = (
    "context_recall",
    "context_precision",
    "context_relevance",
    "faithfulness",
    "hallucination",
    "utilisation",
    "answer_recall",
)
"""The metrics that need a judge."""


class Level(StrEnum):
    """How much a preflight finding weighs."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"


class Finding(Concluded):
    """One preflight finding: what is wrong or missing in the run's data, what that makes undecidable, what to do."""

    check: str
    severity: Level
    message: str
    fix: str


class Estimate(Concluded):
    """A mean over queries with its interval. `mean` is None when no query defines it.

    `low` and `high` are the 95 % percentile bootstrap interval; `n` queries entered, `undefined` did not, and
    `reasons` counts why.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    undefined: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)


class QueryResult(Concluded):
    """One query: its diagnosis, its metrics, and why a metric is undefined.

    `metrics` has every name of METRICS and JUDGED; a None there has its reason in `undefined`. `at` holds the
    id-based metrics at each list on the way (`arm:dense`, `fused`, `after_rerank`, ..., `final`), defined values only.
    """

    diagnosis: Diagnosis
    query_text: str
    k_final: int
    metrics: dict[str, float | None]
    undefined: dict[str, str] = Field(default_factory=dict)
    at: dict[str, dict[str, float]] = Field(default_factory=dict)
    slices: dict[str, str] = Field(default_factory=dict)
    quadrant: str | None = None


class SliceResult(Concluded):
    """One value of one slice: its own metrics and its own losses by stage."""

    slice: str
    value: str
    n: int
    metrics: dict[str, Estimate]
    stages: dict[str, int]


class Pattern(Concluded):
    """Something true of the run as a whole that no single query shows."""

    pattern: str
    message: str


class Leak(Concluded):
    """A chunk in the final context that the query's user may not read."""

    query_id: str
    chunk_id: str


class AclNote(Concluded):
    """What access rules took out of the denominators, and what came in against them."""

    excluded_gold: int = 0
    queries_without_eligible_gold: int = 0
    leaks: tuple[Leak, ...] = ()
    unknown: int = 0
    """Gold ids whose access could not be checked and that count as labelled."""


class Canary(Concluded):
    """Which arm the top K came from, over all queries; needs no gold. Shares sum to 1; empty when not logged."""

    source_share: dict[str, float] = Field(default_factory=dict)


class Cost(Concluded):
    """What judging took."""

    judge_calls: int = 0
    from_tape: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Calls to a model whose price is not known; they are not in `usd`."""


class Disagreement(Concluded):
    """A query on which the labels and the judge differ. Both are kept, for a person to look at; neither is averaged."""

    query_id: str
    labels: str
    judge: str


class JudgeNote(Concluded):
    """What stands behind the judged figures: which model and prompts, how far it is trusted, and where it failed."""

    model: str
    mode: str
    prompts: dict[str, int]
    """Prompt name -> version."""
    samples: int = 0
    states: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Metric -> state -> queries."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Why calls gave nothing, counted."""
    quadrants: dict[str, int] = Field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] = ()
    calibration: str = "not calibrated"
    cuts: dict[str, float] = Field(default_factory=dict)
    """The cuts of the 2x2 in force, by metric."""


class InputFile(Concluded):
    """One file the audit read: its digest, rows read, rows set aside."""

    sha256: str
    rows: int = 0
    set_aside: int = 0


class RunInfo(Concluded):
    """What was audited, enough to repeat it. `k_final` is None when the queries differ in K."""

    name: str
    traces: int
    k_final: int | None
    fingerprint: str
    pipeline: dict[str, Any]
    inputs: dict[str, InputFile]
    ragaudit: str
    scope: str = "answer"
    judge: dict[str, Any] | None = None
    acl_rule: str = "any"
    acl_everyone: tuple[str, ...] = ()
    """Principals that every user holds."""
    seed: int = 0
    resamples: int = 10_000
    gain: str = "linear"


class Summary(Concluded):
    """Everything about a run but its queries."""

    run: RunInfo
    preflight: tuple[Finding, ...]
    metrics: dict[str, Estimate]
    at: dict[str, dict[str, Estimate]]
    slices: tuple[SliceResult, ...]
    outcomes: dict[str, int]
    stages: dict[str, int]
    undetermined: dict[str, int]
    """Failing or undecided queries without a stage, by what they could be ("rerank|generate": 4)."""
    delivered_unjudged: int
    """Queries whose evidence reached the prompt and whose answer nobody judged."""
    patterns: tuple[Pattern, ...]
    acl: AclNote
    not_retrieval: tuple[str, ...]
    """Queries lost at generation, or passed as unanswerable: nothing to fix in retrieval. Capped; see the queries."""
    canary: Canary
    cost: Cost = Cost()
    judge: JudgeNote | None = None
    experiments: tuple[Experiment, ...] = ()
    set_aside: tuple[str, ...] = ()
    """The first messages about input rows that were left out or repaired."""
    behind: int = 0
    """Results that were replaced after these figures were made, because judging was cut off, or goes on."""
