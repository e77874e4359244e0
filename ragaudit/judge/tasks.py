"""The two kinds of question: split texts into claims, and hold claims against texts. Each collects what it hears."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ragaudit.judge.asking import Heard, Task
from ragaudit.judge.claims import Draft, Part, claims_request, halved, read_claims
from ragaudit.judge.how import HowToJudge, repair_request
from ragaudit.judge.matrix import (
    Rows,
    Said,
    Window,
    claim_request,
    matrix_request,
    relevance_request,
    rows_of,
)
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.verdicts import read_matrix, read_words
from ragaudit.model.judgement import TOO_LONG, Claim, JudgeSample, Reply, Request, Side

MOST_SPLITS = 4
"""How often a question is halved before the reply counts as one that never fits: sixteen pieces."""


@dataclass
class Drafts:
    """What the claims tasks of a sample have heard."""

    pieces: dict[tuple[Side, tuple[int, ...]], tuple[Draft, ...]] = field(default_factory=dict)
    declines: dict[tuple[int, ...], bool] = field(default_factory=dict)
    """For each piece of the answer: does it decline?"""
    failed: dict[Side, str] = field(default_factory=dict)

    def of(self, side: Side) -> tuple[Draft, ...]:
        """The claims of a text, its pieces in order."""
        return tuple(draft for (whose, _), drafts in sorted(self.pieces.items()) if whose is side for draft in drafts)


@dataclass(frozen=True)
class ClaimsTask:
    """Split one text, or a reference and an answer at once."""

    sample: JudgeSample
    parts: tuple[Part, ...]
    key: str
    how: HowToJudge
    prompts: PromptSet
    heard: Drafts
    repairs: Request | None = None
    """The request of the repair call; None = the first try."""

    @cached_property
    def request(self) -> Request:
        """What is sent."""
        return self.repairs or claims_request(self.how, self.prompts, self.sample, self.parts, key=self.key)

    def hear(self, reply: Reply) -> Heard:
        """Keep the claims of every text for which there are some."""
        open_parts = self._open()
        read = read_claims(reply.text, self.parts, may_abstain=self.sample.abstained is None)
        if isinstance(read, str):
            return Heard(read)
        for part in open_parts:
            if part.side in read.drafts:
                self.heard.pieces[part.side, part.path] = read.drafts[part.side]
                if part.side is Side.ANSWER:
                    self.heard.declines[part.path] = read.abstained
        problems = [read.problems[part.side] for part in open_parts if part.side in read.problems]
        return Heard("; ".join(problems) or None)

    def smaller(self, reply: Reply) -> Sequence[Task]:
        """One text at a time, then halves of it."""
        parts = self._open()
        if len(parts) > 1:
            return [replace(self, parts=(part,), repairs=None) for part in parts]
        halves = halved(parts[0]) if len(parts[0].path) < MOST_SPLITS - 1 else None
        return [replace(self, parts=(half,), repairs=None) for half in halves or () if half.text]

    def repair(self, reply: Reply, problem: str) -> Task | None:
        """Once."""
        if self.repairs is not None:
            return None
        return replace(self, repairs=repair_request(self.prompts, self.request, reply.text, problem))

    def fail(self, reason: str) -> None:
        """A text of which a piece has no claims has none: its denominator is not known."""
        for part in self._open():
            self.heard.failed.setdefault(part.side, reason)

    def _open(self) -> list[Part]:
        return [part for part in self.parts if (part.side, part.path) not in self.heard.pieces]


@dataclass
class Verdicts:
    """What the matrix tasks of one set of windows have heard, row -> label -> verdict."""

    said: dict[str, dict[str, Said]] = field(default_factory=dict)
    unsaid: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why a pair has no verdict."""


@dataclass(frozen=True)
class MatrixTask:
    """Hold claims against texts. No claims: ask which texts help to answer the question."""

    query: str
    claims: tuple[Claim, ...]
    windows: tuple[Window, ...]
    purpose: str
    key: str
    how: HowToJudge
    prompts: PromptSet
    heard: Verdicts
    asked: int = 0
    """How often its missing verdicts have been asked for again."""
    splits: int = 0
    repairs: Request | None = None

    @cached_property
    def request(self) -> Request:
        """What is sent."""
        if self.repairs is not None:
            return self.repairs
        if not self.claims:
            return relevance_request(self.how, self.prompts, self.query, self.windows, key=self.key)
        if self.how.mode == "per_claim":
            return claim_request(
                self.how, self.prompts, self.claims[0], self.windows, key=self.key, purpose=self.purpose
            )
        return matrix_request(self.how, self.prompts, self.claims, self.windows, key=self.key, purpose=self.purpose)

    @cached_property
    def rows(self) -> Rows:
        """What is asked."""
        return rows_of(self.claims, self.windows)

    def hear(self, reply: Reply) -> Heard:
        """Keep the verdicts on what was asked; ask again for those that are missing."""
        if self.claims and self.how.mode == "matrix":
            answered = read_matrix(reply.text, self.rows)
        else:
            ((row, labels),) = self.rows.items()
            cut = self.how.p_cut if self.claims else None
            answered = read_words(reply, row, labels, relevance=not self.claims, cut=cut)
        if isinstance(answered, str):
            return Heard(answered)
        answers_any = any(answered.said.values())
        for row, found in answered.said.items():  # what is not known yet; all of it was asked
            self.heard.said[row] = found | self.heard.said.get(row, {})
        missing = self._missing()
        if not missing:
            return Heard(ignored=answered.ignored)
        if self.asked >= self.how.retries:
            self.fail(f"the judge gave no verdict, asked {self.asked + 1} times")
            return Heard(ignored=answered.ignored)
        if not answers_any and self.repairs is None:
            # The same request again would get the same reply.
            return Heard("it answers nothing that was asked", ignored=answered.ignored)
        return Heard(ignored=answered.ignored, more=[self._again(missing)])

    def smaller(self, reply: Reply) -> Sequence[Task]:
        """Half of the claims, of which the reply has a row each, or of the texts, which make the request long."""
        if self.splits >= MOST_SPLITS:
            return ()
        base = replace(self, repairs=None, splits=self.splits + 1)
        windows = tuple({label: window for some in self.rows.values() for label, window in some.items()}.values())
        if len(self.claims) > 1 and (reply.finish_reason != TOO_LONG or len(windows) == 1):
            half = len(self.claims) // 2
            return [replace(base, claims=some) for some in (self.claims[:half], self.claims[half:])]
        half = len(windows) // 2
        parts = [(some, rows_of(self.claims, some)) for some in (windows[:half], windows[half:]) if half]
        return [
            replace(base, windows=some, claims=tuple(claim for claim in self.claims if rows[claim.id]))
            for some, rows in parts
        ]

    def repair(self, reply: Reply, problem: str) -> Task | None:
        """Once."""
        if self.repairs is not None:
            return None
        return replace(
            self, asked=self.asked + 1, repairs=repair_request(self.prompts, self.request, reply.text, problem)
        )

    def fail(self, reason: str) -> None:
        """Note the reason for every pair that has no verdict."""
        for pair in self._missing():
            self.heard.unsaid[pair] = reason

    def _missing(self) -> list[tuple[str, str]]:
        """(row, label) of what was asked and has no verdict."""
        return [
            (row, label)
            for row, labels in self.rows.items()
            for heard in (self.heard.said.get(row, {}),)
            for label in labels
            if label not in heard
        ]

    def _again(self, missing: Sequence[tuple[str, str]]) -> Task:
        rows = {row for row, _ in missing}
        labels = {label for _, label in missing}
        return replace(
            self,
            claims=tuple(claim for claim in self.claims if claim.id in rows),
            windows=tuple(window for window in self.windows if window.label in labels),
            asked=self.asked + 1,
            repairs=None,
        )
