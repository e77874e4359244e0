"""What a judge model was asked and what it said: samples, claims, verdicts, calls. A failure is never a verdict."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from pydantic import Field

from ragaudit.model.record import Concluded


class Side(StrEnum):
    """Whose text a claim was taken from."""

    REFERENCE = "reference"
    ANSWER = "answer"


class Verdict(StrEnum):
    """What a chunk says about a claim. `missing` = the chunk says nothing about it."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    MISSING = "missing"


class JudgeState(StrEnum):
    """How a judged metric of a query came out; each mean is shown with the count of every state."""

    SCORED = "scored"
    UNDEFINED = "undefined"
    """The formula has nothing to divide: no claims, no reference."""
    ABSTAINED = "abstained"
    """The answer declined; there is nothing to be faithful."""
    JUDGE_FAILED = "judge_failed"
    """The model was asked and gave no usable reply; the reason and the raw reply are kept."""
    UNMEASURED = "unmeasured"
    """Nobody asked: judge off, budget spent, cancelled."""


ANSWER_COLUMN = "@answer"
"""The column of the matrix that holds the answer itself, asked about reference claims: did the answer say it?"""


class SampleChunk(Concluded):
    """One chunk as the judge may read it. `where` = the list and rank it came from, for found evidence."""

    id: str
    text: str
    where: str | None = None


class JudgeSample(Concluded):
    """One query to judge. Every chunk here may be read by the query's user: others never come this far.

    `chunks` are the packed context in order; None = not known whole, or not the user's to read; () = packed nothing.
    `candidates` are looked at only for reference claims that no packed chunk supports: deeper lists first, then a
    lexical search of the inventory.
    """

    query_id: str
    query: str
    answer: str | None = None
    reference: str | None = None
    chunks: tuple[SampleChunk, ...] | None = None
    candidates: tuple[SampleChunk, ...] = ()
    answerable: bool | None = None
    abstained: bool | None = None
    """Logged or labelled; None = the judge recognises it."""


class _Judged(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a judgement. A struct, not a pydantic model: a judgement holds a cell for every claim and chunk."""


class Claim(_Judged, frozen=True, gc=False):
    """One atomic statement. `quote` = the words of the text it came from; a quote that is not there is flagged."""

    id: str
    """`r1`, `r2`, ... for reference claims, `a1`, ... for answer claims."""
    side: Side
    text: str
    quote: str | None = None
    quote_found: bool = False


class Cell(_Judged, frozen=True, gc=False):
    """One claim against one chunk (or against ANSWER_COLUMN). `verdict` is None when unscored, with the reason."""

    claim_id: str
    chunk_id: str
    verdict: Verdict | None
    reason: str | None = None
    quote: str | None = None
    p_supported: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


class JudgeCall(_Judged, frozen=True, gc=False, kw_only=True):
    """One request and how it ended. `raw` keeps the reply that could not be used."""

    key: str = ""
    """Where its reply stands on a tape; "" = it was never looked up."""
    purpose: str
    prompt: str
    """`name@version`."""
    from_tape: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    """None = the price of this model is not known."""
    finish_reason: str | None = None
    error: str | None = None
    raw: str | None = None
    ignored: int = 0
    """Verdicts in the reply about claims or texts that were not asked about; dropped."""


class FoundEvidence(_Judged, frozen=True, gc=False):
    """A chunk outside the context that supports a reference claim: proxy gold."""

    claim_id: str
    chunk_id: str
    where: str | None = None
    quote: str | None = None


class Judgement(_Judged, frozen=True):
    """All that the judge said about one query, and the metrics that follow from it.

    `metrics` has context_recall, context_precision, context_relevance, faithfulness, hallucination, utilisation and
    answer_recall; each has its state in `states`, and its reason in `reasons` when it is not scored.
    """

    query_id: str
    abstained: bool | None = None
    claims: tuple[Claim, ...] = ()
    cells: tuple[Cell, ...] = ()
    found: tuple[FoundEvidence, ...] = ()
    metrics: dict[str, float | None] = {}
    states: dict[str, JudgeState] = {}
    reasons: dict[str, str] = {}
    calls: tuple[JudgeCall, ...] = ()


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call to a judge model: everything that its reply depends on. Cache and cassettes are keyed by all of it."""

    model: str
    messages: tuple[dict[str, str], ...]
    """{"role": ..., "content": ...}"""
    prompt: str
    version: int
    api_base: str | None = None
    parameters: dict[str, Any] = {}
    """temperature, seed, max_tokens, logprobs, ...: what is sent beside the messages."""
    reply_schema: dict[str, Any] | None = None
    """JSON schema that the reply should follow; sent as a response format where the model offers it."""
    purpose: str = ""
    """What the call is for, in words ("claims", "matrix", "repair"); not part of the key."""


TOO_LONG: Final = "too_long"
"""The `finish_reason`, ours, of a reply in which the endpoint says that the request is longer than its window."""


class Reply(Concluded):
    """What came back: an answer, also one that was cut off, a refusal, or the word that the request is too long.

    `tokens` holds the log probabilities of the first choice, when the model offered them.
    """

    text: str
    finish_reason: str | None = None
    """As the provider says it: stop, length, content_filter, ...; or TOO_LONG."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    model: str | None = None
    refused: bool = False
    tokens: tuple[Mapping[str, Any], ...] | None = None
    """[{"token": str, "logprob": float, "top": [{"token": str, "logprob": float}, ...]}]"""


class Failure(Concluded):
    """A call that gave nothing: its kind and what was said. Never stored as a reply, never a verdict.

    A refusal, and the word that a request is too long, are replies: asked again, the endpoint would say the same.
    """

    kind: str
    """"timeout", "rate_limit", "server", "connection", "auth", "bad_request", "budget", "cancelled"."""
    message: str
    raw: str | None = None


class Statistic(Concluded):
    """A figure with its 95 % interval over `n` items; `value` is None when it is undefined, and `reason` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str | None = None


class Compared(Concluded):
    """What people and the judge said of the same items, in the same order.

    `about` is a metric, "abstained", "verdict" (a claim against a chunk), "claim" (a claim against all packed chunks)
    or "p_supported" (the judge's probability against people's verdict). Values lie in 0..1; a verdict counts 1 when it
    is `supported`, and its word stands in `human_said` and `judge_said`.
    """

    about: str
    human: tuple[float, ...] = ()
    judged: tuple[float, ...] = ()
    human_said: tuple[str, ...] = ()
    judge_said: tuple[str, ...] = ()
    left_out: dict[str, int] = Field(default_factory=dict)
    """Labelled items that could not be compared: reason -> count."""
    two_people: tuple[tuple[str, str], ...] = ()
    """Labels of two people for the same item: the ceiling for any judge. Numbers as text for a metric."""
    unlabelled: tuple[float, ...] = ()
    """The judge's scored values of the queries that nobody labelled."""


class Agreement(Concluded):
    """How far the judge and people agree about one thing. `cut`: at or over it a value counts as yes."""

    about: str
    cut: float = 0.5
    n: int = 0
    left_out: dict[str, int] = Field(default_factory=dict)
    kappa: Statistic
    balanced_accuracy: Statistic
    tpr: Statistic
    tnr: Statistic
    pearson: Statistic
    spearman: Statistic
    auc: Statistic
    human_kappa: Statistic | None = None
    """Two people on the same items: what no judge can be expected to exceed. None = nothing was labelled twice."""
    human_pearson: Statistic | None = None


class FittedCut(Concluded):
    """A cut fitted on labels, None with its reason. `cross_validated` is what it does on items it did not see."""

    setting: str
    """The dotted key that sets it in ragaudit.toml; a name without a dot is no setting."""
    before: float
    fitted: float | None
    balanced_accuracy: float | None = None
    cross_validated: float | None = None
    n: int = 0
    reason: str | None = None


class CorrectedMean(Concluded):
    """A mean over the whole run as the judge has it, and corrected by the labelled part (prediction-powered)."""

    metric: str
    raw: Statistic
    corrected: Statistic


class Calibration(Concluded):
    """How good the judge of an audit is, measured against people. None in its place = "not calibrated"."""

    model: str | None = None
    prompts: tuple[str, ...] = ()
    """`name@version` of each prompt that was used."""
    labels: str
    """Name of the labels file."""
    labels_sha256: str
    n_labels: int
    annotators: int
    """How many people labelled; 0 = the file does not say."""
    unmatched: int = 0
    """Labels about queries, claims or chunks that this audit does not have."""
    agreements: tuple[Agreement, ...] = ()
    cuts: tuple[FittedCut, ...] = ()
    means: tuple[CorrectedMean, ...] = ()
