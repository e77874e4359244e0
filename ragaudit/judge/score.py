"""The judged metrics of one query: pure formulas over claims and cells, and why a metric has no value.

Supported by the context (of a claim): at least one packed chunk supports it, alone or together with others.

    context_recall     reference claims supported by the context / reference claims
    context_precision  average precision over the packed chunks that support a reference claim
    context_relevance  packed chunks that support an answer claim / packed chunks; where there is neither an answer nor
                       a reference: packed chunks that help to answer the question / packed chunks
    faithfulness       answer claims supported by the context / answer claims
    hallucination      answer claims supported neither by the context nor by the reference / answer claims
    utilisation        reference claims supported by the context that the answer says / those supported by the context
    answer_recall      reference claims that the answer says / reference claims

The claims of a denominator are those that were asked about. A metric is scored only when every verdict that could
change it is there: a missing one makes it `judge_failed` (`unmeasured` when it was never asked for), never smaller.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import lcm
from typing import Final, NamedTuple

from ragaudit.judge.matrix import QUERY_ROW, REFERENCE_COLUMN
from ragaudit.model.judgement import ANSWER_COLUMN, Cell, Claim, JudgeSample, JudgeState, Side, Verdict

METRICS: Final = (
    "context_recall",
    "context_precision",
    "context_relevance",
    "faithfulness",
    "hallucination",
    "utilisation",
    "answer_recall",
)
OF_ANSWER: Final = ("faithfulness", "hallucination", "utilisation", "answer_recall")
"""The metrics that need an answer that answers."""
OF_REFERENCE: Final = ("context_recall", "context_precision", "utilisation", "answer_recall")
NOT_ASKED: Final = "not asked"
"""How the reason of a verdict begins that nobody asked for: the budget was spent, the run was stopped."""


_ABSENT: Final = f"{NOT_ASKED}: no such verdict"


class Scores(NamedTuple):
    """The metrics of one query, each with its state, and its reason when it is not scored."""

    metrics: dict[str, float | None]
    states: dict[str, JudgeState]
    reasons: dict[str, str]


class Outcome(NamedTuple):
    """How one metric came out."""

    value: float | None
    state: JudgeState = JudgeState.SCORED
    reason: str | None = None


class _Truth(NamedTuple):
    """Whether a statement about cells holds; None = a verdict that decides it is not there, with the reason."""

    holds: bool | None
    reason: str | None = None


_YES, _NO = _Truth(True), _Truth(False)


def score(
    sample: JudgeSample,
    claims: Sequence[Claim],
    cells: Iterable[Cell],
    *,
    abstained: bool | None,
    failed: Mapping[Side, str] | None = None,
) -> Scores:
    """Every judged metric of a query.

    Args:
        sample: What was judged.
        claims: Those of reference and answer.
        cells: The verdicts. A pair that has no cell has no verdict.
        abstained: The answer declines.
        failed: Why a text that should have claims has none.
    """
    matrix = _Matrix(sample, claims, cells)
    outcomes = {name: _outcome(name, sample, matrix, bool(abstained), failed or {}) for name in METRICS}
    return Scores(
        metrics={name: outcome.value for name, outcome in outcomes.items()},
        states={name: outcome.state for name, outcome in outcomes.items()},
        reasons={name: outcome.reason for name, outcome in outcomes.items() if outcome.reason is not None},
    )


def average_precision(useful: Sequence[bool]) -> float:
    """Mean over the useful chunks of precision at their rank, 0 when none is.

    It divides by the useful chunks that are there, so it cannot see evidence that was never packed: read it beside
    context_recall. Exact: all useful chunks first is 1.0.

    >>> average_precision([True, False, True])  # (1/1 + 2/3) / 2
    0.8333333333333334
    """
    ranks = [rank for rank, is_useful in enumerate(useful, start=1) if is_useful]
    if not ranks:
        return 0.0
    whole = lcm(*ranks)
    return sum(hits * (whole // rank) for hits, rank in enumerate(ranks, start=1)) / (whole * len(ranks))


def has_answer(sample: JudgeSample) -> bool:
    """Is there an answer with words in it?"""
    return bool(sample.answer and sample.answer.strip())


def has_reference(sample: JudgeSample) -> bool:
    """Is there a reference with words in it?"""
    return bool(sample.reference and sample.reference.strip())


def asks_relevance(sample: JudgeSample, *, abstained: bool) -> bool:
    """Is context_relevance asked of the question itself: no reference, and no answer whose claims could show it?"""
    return bool(sample.chunks) and not has_reference(sample) and (abstained or not has_answer(sample))


def supported_by(rows: Iterable[str], columns: Sequence[str], cells: Iterable[Cell]) -> dict[str, bool | None]:
    """For each row: does any of the columns support it? None = none does, but a verdict is not there."""
    known = _Known(cells)
    return {row: known.row_in(row, columns).holds for row in rows}


class _Known:
    """What is known from the cells. A pair that has no cell has no verdict."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._supported: dict[str, set[str]] = defaultdict(set)
        """Row -> columns that support it."""
        self._judged: dict[str, set[str]] = defaultdict(set)
        """Row -> columns with a verdict, whichever it is."""
        self._reasons: dict[tuple[str, str], str] = {}
        supported = Verdict.SUPPORTED
        for cell in cells:
            verdict = cell.verdict
            if verdict is None:
                self._reasons[cell.claim_id, cell.chunk_id] = cell.reason or "no verdict"
                continue
            self._judged[cell.claim_id].add(cell.chunk_id)
            if verdict is supported:
                self._supported[cell.claim_id].add(cell.chunk_id)

    def row_in(self, row: str, columns: Sequence[str]) -> _Truth:
        """Does one of the columns support this row? One that does decides; else each of them must have a verdict."""
        if not self._supported[row].isdisjoint(columns):
            return _YES
        if self._judged[row].issuperset(columns):
            return _NO
        return self._open((row, column) for column in columns)

    def columns_for(self, rows: Sequence[str], columns: Iterable[str]) -> dict[str, _Truth]:
        """Does each column support one of these rows? One that it supports decides; else each must have a verdict."""
        supported = set[str]().union(*(self._supported[row] for row in rows))
        judged = set.intersection(*(self._judged[row] for row in rows))
        decided = dict.fromkeys(judged, _NO) | dict.fromkeys(supported, _YES)
        return {column: decided.get(column) or self._open((row, column) for row in rows) for column in columns}

    def _open(self, pairs: Iterable[tuple[str, str]]) -> _Truth:
        """Why no verdict decides about these (row, column)."""
        absent = [(row, column) for row, column in pairs if column not in self._judged[row]]
        return _Truth(None, _worst([self._reasons.get(pair, _ABSENT) for pair in absent]))


class _Matrix(_Known):
    """Claims against columns, and what follows for a claim and for a chunk."""

    def __init__(self, sample: JudgeSample, claims: Sequence[Claim], cells: Iterable[Cell]) -> None:
        super().__init__(cells)
        self.packed = tuple(dict.fromkeys(chunk.id for chunk in sample.chunks or ()))
        self.rows = {side: [claim.id for claim in claims if claim.side is side] for side in Side}
        self.in_context = {side: [self.row_in(row, self.packed) for row in rows] for side, rows in self.rows.items()}


def _outcome(name: str, sample: JudgeSample, matrix: _Matrix, abstained: bool, failed: Mapping[Side, str]) -> Outcome:
    if (early := _without_asking(name, sample, abstained)) is not None:
        return early
    of_query = name == "context_relevance" and asks_relevance(sample, abstained=abstained)
    side = Side.REFERENCE if name in OF_REFERENCE else Side.ANSWER
    rows, in_context = matrix.rows[side], matrix.in_context[side]
    if not rows and not of_query:
        return _unscored(failed.get(side, f"{NOT_ASKED}: the {side.value} was not split into claims"))
    match name:
        case "context_recall" | "faithfulness":
            return _share(in_context, f"{side.value} claims")
        case "context_precision":
            return _precision(sample, rows, matrix)
        case "context_relevance":
            asked = [QUERY_ROW] if of_query else rows
            return _share(tuple(matrix.columns_for(asked, matrix.packed).values()), "packed chunks")
        case "hallucination":
            return _hallucination(rows, in_context, matrix, has_reference(sample))
        case "utilisation":
            return _utilisation(rows, in_context, matrix)
        case _:
            return _share([matrix.row_in(row, (ANSWER_COLUMN,)) for row in rows], "reference claims")


def _without_asking(name: str, sample: JudgeSample, abstained: bool) -> Outcome | None:
    """What is decided by what there is, before any verdict; None = verdicts decide."""
    if sample.chunks is None:
        return Outcome(None, JudgeState.UNMEASURED, "context not logged whole, or not the user's to read")
    if name in OF_ANSWER:
        if abstained:
            return Outcome(None, JudgeState.ABSTAINED, "the answer declines")
        if sample.answer is None:
            return Outcome(None, JudgeState.UNMEASURED, "answer not logged")
        if not has_answer(sample):
            return Outcome(None, JudgeState.UNDEFINED, "empty answer")
    if name in OF_REFERENCE and not has_reference(sample):
        return Outcome(None, JudgeState.UNDEFINED, "no reference")
    if name == "context_relevance":
        return _relevance_without_asking(sample, abstained)
    if sample.chunks:
        return None
    if name in ("context_recall", "context_precision", "faithfulness"):
        return Outcome(0.0)
    if name == "utilisation":
        return Outcome(None, JudgeState.UNDEFINED, "the context is empty")
    return Outcome(1.0) if name == "hallucination" and not has_reference(sample) else None


def _relevance_without_asking(sample: JudgeSample, abstained: bool) -> Outcome | None:
    if not sample.chunks:
        return Outcome(None, JudgeState.UNDEFINED, "the context is empty")
    if asks_relevance(sample, abstained=abstained):
        return None
    if abstained:
        return Outcome(None, JudgeState.ABSTAINED, "the answer declines")
    if not has_answer(sample):
        return Outcome(None, JudgeState.UNDEFINED, "no answer")
    return None


def _precision(sample: JudgeSample, rows: Sequence[str], matrix: _Matrix) -> Outcome:
    """A chunk that is packed twice counts once, where it first stands; the second keeps its slot."""
    first = matrix.columns_for(rows, matrix.packed)
    truths = [first.pop(chunk.id, _NO) for chunk in sample.chunks or ()]
    if (gap := _gap(truths, "packed chunks")) is not None:
        return gap
    return Outcome(average_precision([bool(truth.holds) for truth in truths]))


def _hallucination(rows: Sequence[str], in_context: Sequence[_Truth], matrix: _Matrix, has_reference: bool) -> Outcome:
    invented: list[_Truth] = []
    for row, truth in zip(rows, in_context, strict=True):
        elsewhere = matrix.row_in(row, (REFERENCE_COLUMN,)) if has_reference else _NO
        if truth.holds or elsewhere.holds:
            invented.append(_NO)
        elif truth.holds is None or elsewhere.holds is None:
            invented.append(_Truth(None, truth.reason or elsewhere.reason))
        else:
            invented.append(_YES)
    return _share(invented, "answer claims")


def _utilisation(rows: Sequence[str], in_context: Sequence[_Truth], matrix: _Matrix) -> Outcome:
    if (gap := _gap(in_context, "reference claims")) is not None:
        return gap
    usable = [row for row, truth in zip(rows, in_context, strict=True) if truth.holds]
    if not usable:
        return Outcome(None, JudgeState.UNDEFINED, "no reference claim is supported by the context")
    return _share([matrix.row_in(row, (ANSWER_COLUMN,)) for row in usable], "supported reference claims")


def _share(truths: Sequence[_Truth], of: str) -> Outcome:
    if (gap := _gap(truths, of)) is not None:
        return gap
    return Outcome([truth.holds for truth in truths].count(True) / len(truths))


def _gap(truths: Sequence[_Truth], of: str) -> Outcome | None:
    """The outcome where a verdict is not there; None = all of them are."""
    reasons = [truth.reason or "no verdict" for truth in truths if truth.holds is None]
    if not reasons:
        return None
    return _unscored(_worst(reasons), f"{len(reasons)} of {len(truths)} {of} have no verdict")


def _unscored(reason: str, what: str | None = None) -> Outcome:
    state = JudgeState.UNMEASURED if reason.startswith(NOT_ASKED) else JudgeState.JUDGE_FAILED
    return Outcome(None, state, f"{what}: {reason}" if what else reason)


def _worst(reasons: Sequence[str]) -> str:
    """What was asked and failed weighs more than what was never asked."""
    return next((reason for reason in reasons if not reason.startswith(NOT_ASKED)), reasons[0])
