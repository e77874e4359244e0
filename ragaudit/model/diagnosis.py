"""What the audit concluded about one query: where each gold id stood, which stage lost it, and the proof."""

from enum import StrEnum

from ragaudit.model.record import Concluded


class Stage(StrEnum):
    """The nine stages, in the taxonomy's order, then the two verdicts that name no stage."""

    INGESTION = "ingestion"
    PARSE = "parse"
    CHUNK = "chunk"
    EMBED = "embed"
    RETRIEVE = "retrieve"
    FUSE = "fuse"
    FILTER = "filter"
    RERANK = "rerank"
    GENERATE = "generate"
    NONE = "none"
    UNDETERMINED = "undetermined"

    @property
    def label(self) -> str:
        """The name for people: "Embed/index", "Filter/ACL"."""
        return _LABELS.get(self, self.value.capitalize())


_LABELS = {
    Stage.EMBED: "Embed/index",
    Stage.FUSE: "Fuse/threshold",
    Stage.FILTER: "Filter/ACL",
    Stage.RERANK: "Rerank/pack",
}

STAGES: tuple[Stage, ...] = tuple(s for s in Stage if s not in (Stage.NONE, Stage.UNDETERMINED))
"""The nine stages in order: an earlier one comes first when several gold ids fail."""


class Outcome(StrEnum):
    """How a query, or one gold id of it, came out."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"
    LABEL_ISSUE = "label_issue"
    UNDETERMINED = "undetermined"


class Gap(StrEnum):
    """What stands beside a stage, never in its place."""

    UNANSWERABLE = "unanswerable"
    QUERY_UNDERSTANDING = "query_understanding"
    STALE_VERSION = "stale_version"
    CONFLICTING_SOURCES = "conflicting_sources"
    AGGREGATE_QUERY = "aggregate_query"
    WRONG_GOLD_LABEL = "wrong_gold_label"
    GOLD_ID_SPACE = "gold_id_space"
    GRANULARITY_REMAP = "granularity_remap"
    CORRECT_WITHOUT_EVIDENCE = "correct_without_evidence"
    WRONG_TENANT_HITS = "wrong_tenant_hits"


class Checkpoint(StrEnum):
    """Where a gold id can be seen, from the source document to the answer."""

    ELIGIBLE = "eligible"
    REGISTERED = "registered"
    PARSED = "parsed"
    CHUNKED = "chunked"
    INDEXED = "indexed"
    RETRIEVED = "retrieved"
    FUSED = "fused"
    FILTERED = "filtered"
    RERANKED = "reranked"
    PACKED = "packed"
    PROMPTED = "prompted"
    ANSWERED = "answered"


class State(StrEnum):
    """What is known at a checkpoint. Unobserved is not absent."""

    PRESENT = "present"
    ABSENT = "absent"
    UNOBSERVED = "unobserved"


class Step(Concluded):
    """One gold id at one checkpoint. `list` names the list that was looked at; ranks start at 1."""

    checkpoint: Checkpoint
    state: State
    rank: int | None = None
    score: float | None = None
    list: str | None = None
    note: str | None = None


class Severity(StrEnum):
    """A leak is a security finding and stands above every quality finding."""

    NORMAL = "normal"
    LEAK = "leak"


class Basis(StrEnum):
    """Where the gold came from: labels, or evidence that the judge found."""

    GOLD = "gold"
    JUDGE = "judge"


class GoldDiagnosis(Concluded):
    """The verdict on one gold id.

    `could_be` and `log` are filled when the stage is undetermined: the stages still possible, and the fields that
    would decide between them.
    """

    id: str
    grade: float = 1.0
    eligible: bool | None = None
    outcome: Outcome
    stage: Stage = Stage.NONE
    causes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    could_be: tuple[Stage, ...] = ()
    log: tuple[str, ...] = ()
    gap: Gap | None = None
    journey: tuple[Step, ...] = ()


class Diagnosis(Concluded):
    """The verdict on one query. A failing query names one primary stage; the other failing stages are `secondary`.

    `delivered` says whether the evidence reached the generator (every needed gold group in the prompt), None when
    that was not observed or the query has no eligible gold. It is kept apart from `outcome`, which also needs a
    judged answer: fix retrieval before generation, and keep the two apart.
    """

    query_id: str
    outcome: Outcome
    stage: Stage = Stage.NONE
    secondary: tuple[Stage, ...] = ()
    causes: tuple[str, ...] = ()
    gap: Gap | None = None
    could_be: tuple[Stage, ...] = ()
    log: tuple[str, ...] = ()
    basis: Basis = Basis.GOLD
    severity: Severity = Severity.NORMAL
    delivered: bool | None = None
    evidence: tuple[str, ...] = ()
    gold: tuple[GoldDiagnosis, ...] = ()
    leaks: tuple[str, ...] = ()
    """Ids in the final context that the user may not read."""
    final_context_ids: tuple[str, ...] | None = None
