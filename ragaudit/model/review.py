"""What a person said about a query: agrees with the diagnosis or not, tags, a note, the right stage, the right gold."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.judgement import Statistic
from ragaudit.model.record import Concluded


class ReviewVerdict(StrEnum):
    """A person's verdict on a diagnosis."""

    AGREE = "agree"
    DISAGREE = "disagree"
    GOLD_WRONG = "gold_wrong"
    UNSURE = "unsure"


class Patch(Concluded):
    """One thing a person did to a query. None leaves a field as it is; "" and () empty it.

    Patches are kept one by one and folded, so that two terminals which change different fields of one query both
    keep what they did, and an undo takes back one action and nothing else.
    """

    verdict: ReviewVerdict | None = None
    tags: tuple[str, ...] | None = None
    more_tags: tuple[str, ...] = ()
    """Added to those that are there."""
    note: str | None = None
    stage: Stage | None = None
    """The stage that lost the evidence, in the person's opinion; NONE = nothing was lost."""
    gold: tuple[str, ...] | None = None
    """The ids that should be gold."""
    clear: tuple[Literal["verdict", "stage", "gold"], ...] = ()
    """Fields of which nothing is said any more."""


class Review(Concluded):
    """All that was said about one query, and what the diagnosis was when it was said last."""

    query_id: str
    verdict: ReviewVerdict | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    stage: Stage | None = None
    gold: tuple[str, ...] | None = None
    at: datetime
    """Of the last patch, UTC."""
    about_outcome: Outcome
    about_stage: Stage
    """The diagnosis that the verdict was given on: a later audit may say something else."""

    @property
    def is_empty(self) -> bool:
        """Nothing of it is left: every field was emptied again."""
        return self.verdict is None and not self.tags and not self.note and self.stage is None and self.gold is None


class ReviewAgreement(Concluded):
    """How far diagnosis and person agree, each verdict against the diagnosis that it was given on."""

    rate: Statistic
    """Of those with agree or disagree, the share with agree; its interval is Wilson's."""
    kappa: Statistic
    """Cohen's kappa between diagnosed stage and the person's stage. A disagreement that names no stage is not in it."""
    agreed: int = 0
    disagreed: int = 0
    without_stage: int = 0
    """Disagreements that name no stage."""
    gold_wrong: int = 0
    """Left out: wrong gold says nothing about the diagnosis."""
    unsure: int = 0
    """Left out."""
    outdated: int = 0
    """Of those counted, given on another diagnosis than the audit holds now."""
    small: bool
    """Too few to rest anything on."""


class Place(Concluded):
    """Where a person stopped: what `ragaudit review` opens with."""

    query_id: str | None = None
    filter: str | None = None
    sort: str | None = None
    layout: dict[str, str] = Field(default_factory=dict)
    """What else the app wants to find again, such as the pane that was shown."""
