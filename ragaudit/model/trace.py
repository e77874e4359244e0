"""One query as the application logged it: lists, ranks, context, answer. Absent (`None`) is not empty."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field, InstanceOf

from ragaudit.model.ids import Id
from ragaudit.model.record import Observed


class Hit(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One id in one list. Its position in the list is its rank; `rank` is what the log claimed.

    A struct, not a pydantic model: a trace holds hundreds of hits, and this is a fifth of the cost.
    """

    id: Annotated[str, msgspec.Meta(min_length=1)]
    rank: int | None = None
    score: float | None = None
    rrf: float | None = None
    sources: tuple[str, ...] | None = None
    text: str | None = None
    source_id: str | None = None
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    @property
    def value(self) -> float | None:
        """The score that the list was ordered by: `score`, else the fused score."""
        return self.score if self.score is not None else self.rrf


Ranking = tuple[InstanceOf[Hit], ...]
"""One list of a stage, best first. `()` = the step ran and returned nothing."""

PerArm = dict[str, Ranking]
"""One list for each arm."""


class ArmState(StrEnum):
    """What an arm did for a query."""

    RAN = "ran"
    OFF = "off"
    ERRORED = "errored"


class ArmStatus(Observed):
    """How one arm was asked and what came back."""

    status: ArmState | None = None
    error: str | None = None
    query_text: str | None = None
    filter: dict[str, Any] | None = None
    limit: int | None = None
    returned: int | None = None
    matching: int | None = None
    """Rows that satisfy the filter; for a lexical arm, rows that also hold a query term."""


SpanFound = bool | Literal["partial", "normalised"] | None
"""True, False, "partial", "normalised" (only after whitespace, case and Unicode folding), None = not tested."""


class SpanIn(Observed):
    """Where the answer's words stand: in the source, in the extracted text, whole in a chunk."""

    source: SpanFound = None
    extracted: SpanFound = None
    chunk: SpanFound = None


class Gold(Observed):
    """One relevant id with what is known about it."""

    id: Id
    grade: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    source_id: Id | None = None
    span: str | None = None
    span_in: SpanIn | None = None
    eligible: bool | None = None
    suspect: bool | None = None


class Probe(Observed):
    """A cheap extra measurement. `value` is a rank from 1, None for "not found", or as the probe's name says."""

    probe: str
    gold_id: Id | None = None
    arm: str | None = None
    value: bool | int | float | tuple[str, ...] | str | None = None
    note: str | None = None


class Answer(Observed):
    """The answer and the judgements on it, when a person or a test gave them."""

    text: str | None = None
    correct: bool | None = None
    supported: bool | None = None
    abstained: bool | None = None
    finish_reason: str | None = None
    supported_by: tuple[Id, ...] | None = None


class Conversation(Observed):
    """The turn that a query stands in."""

    turn: int | None = None
    previous_query: str | None = None
    previous_context_ids: tuple[Id, ...] | None = None


class GoldMode(StrEnum):
    """Is every gold id needed, or is one enough."""

    ALL = "all"
    ANY = "any"


class Provenance(StrEnum):
    """How an importer came by a field; a field that is not named was observed."""

    OBSERVED = "observed"
    DERIVED = "derived"
    ASSUMED = "assumed"


class Trace(Observed):
    """One query's journey as logged. The first twelve fields are the mandatory log of the seed.

    `gold` is always filled by the reader when any gold was given, whether as `gold_ids`, `gold_groups`, `gold` or
    qrels; `gold_labelled` tells "no gold exists" (`[]`, True) from "nobody labelled this query" (False).
    """

    query_id: Id
    query_text: str
    k_final: Annotated[int, Field(ge=1)]
    user_acl: tuple[str, ...] | None = None
    index_revision: str | None = None
    embedding_model: str | None = None
    query_rewrite: str | list[Any] | dict[str, Any] | None = None
    filters_applied: dict[str, Any] | None = None
    arms: PerArm | None = None
    fused: Ranking | None = None
    after_rerank: Ranking | None = None
    final_context_ids: tuple[Id, ...] | None = None
    final_context_chars: int | None = None
    gold_ids: tuple[Id, ...] | None = None
    notes: str | None = None

    session_id: Id | None = None
    timestamp: str | None = None
    slices: dict[str, Any] | None = None
    after_filter: Ranking | PerArm | None = None
    after_threshold: Ranking | PerArm | None = None
    conversation: Conversation | None = None
    rerank_input: Ranking | None = None
    prompt_ids: tuple[Id, ...] | None = None
    context_texts: dict[str, str] | None = None
    context_hashes: dict[str, str] | None = None
    """Content hashes in place of `context_texts`, where texts are not logged."""
    arm_status: dict[str, ArmStatus] | None = None
    gold: tuple[Gold, ...] = ()
    gold_mode: GoldMode = GoldMode.ALL
    gold_groups: tuple[tuple[Id, ...], ...] | None = None
    gold_labelled: bool = False
    provenance: dict[str, Provenance] | None = None
    answerable: bool | None = None
    answer: Answer | None = None
    reference: str | None = None
    prompt_tokens: int | None = None
    id_map: dict[str, Id] | None = None
    probes: tuple[Probe, ...] = ()
    config: dict[str, Any] | None = None

    def lists(self) -> Mapping[str, Ranking]:
        """Every observed list by name, in the order of the journey: `arm:NAME`, `fused`, `after_filter[:ARM]`, ..."""
        found: dict[str, Ranking] = {f"arm:{name}": hits for name, hits in (self.arms or {}).items()}
        for name in ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank"):
            value = getattr(self, name)
            if isinstance(value, dict):
                found.update({f"{name}:{arm}": hits for arm, hits in value.items()})
            elif value is not None:
                found[name] = value
        return found
