"""The formulas, by hand and by law. Rows are claims, columns are chunks; `+` supports, `-` contradicts, `.` neither."""

import doctest
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_builders import a_sample

import ragaudit.judge.score
from ragaudit.judge.matrix import QUERY_ROW, REFERENCE_COLUMN
from ragaudit.judge.score import METRICS, NOT_ASKED, Scores, average_precision, score
from ragaudit.model.judgement import ANSWER_COLUMN, Cell, Claim, JudgeSample, JudgeState, Side, Verdict

VERDICTS = {"+": Verdict.SUPPORTED, "-": Verdict.CONTRADICTED, ".": Verdict.MISSING, "?": None}
SCORED, UNDEFINED, FAILED = JudgeState.SCORED, JudgeState.UNDEFINED, JudgeState.JUDGE_FAILED
ABSTAINED, UNMEASURED = JudgeState.ABSTAINED, JudgeState.UNMEASURED


def cells_of(table: Mapping[str, str], reason: str = "timeout: 60 s") -> Iterator[Cell]:
    """`r1: "+.-|+"` = chunks k1, k2, k3, then the answer (the reference, for an answer claim)."""
    for claim_id, marks in table.items():
        chunks, _, other = marks.partition("|")
        columns = [f"k{place}" for place in range(1, len(chunks) + 1)]
        columns += [REFERENCE_COLUMN if claim_id.startswith("a") else ANSWER_COLUMN] if other else []
        for column, mark in zip(columns, chunks + other, strict=True):
            verdict = VERDICTS[mark]
            yield Cell(claim_id=claim_id, chunk_id=column, verdict=verdict, reason=None if verdict else reason)


def scored(table: Mapping[str, str], sample: JudgeSample | None = None, **given: Any) -> Scores:
    width = max((len(marks.partition("|")[0]) for marks in table.values()), default=0)
    sample = sample or a_sample([f"text {place}" for place in range(width)])
    claims = [
        Claim(id=claim_id, side=Side.ANSWER if claim_id.startswith("a") else Side.REFERENCE, text=claim_id)
        for claim_id in table
        if claim_id != QUERY_ROW
    ]
    given.setdefault("abstained", False)
    reason = given.pop("reason", "timeout: 60 s")
    return score(sample, claims, cells_of(table, reason), **given)


BY_HAND = {
    "r1": ".+..|+",
    "r2": ".+.+|+",
    "r3": "..++|.",
    "r4": "....|+",
    "r5": "-...|+",
    "a1": "+++.|.",
    "a2": "....|+",
    "a3": "-...|.",
    "a4": "....|-",
}


def test_every_formula_by_hand() -> None:
    assert scored(BY_HAND).metrics == {
        "context_recall": 3 / 5,  # r1, r2, r3 of five
        "context_precision": float(Fraction(23, 36)),  # k2, k3, k4 of four: (1/2 + 2/3 + 3/4) / 3
        "context_relevance": 3 / 4,  # k1, k2, k3 support a1
        "faithfulness": 1 / 4,  # a1
        "hallucination": 2 / 4,  # a3, a4: nobody says it; a2 stands in the reference
        "utilisation": 2 / 3,  # of r1, r2, r3 the answer says r1 and r2
        "answer_recall": 4 / 5,  # all but r3
    }
    assert set(scored(BY_HAND).states.values()) == {SCORED}
    assert scored(BY_HAND).reasons == {}


def test_the_formulas_name_their_direction() -> None:
    # The answer says what the context does not, and the other way round: nothing may come out the same.
    context_only = scored({"r1": "+|.", "a1": ".|."}).metrics
    answer_only = scored({"r1": ".|+", "a1": ".|+"}).metrics
    assert (context_only["context_recall"], context_only["answer_recall"], context_only["utilisation"]) == (1, 0, 0)
    assert (answer_only["context_recall"], answer_only["answer_recall"], answer_only["utilisation"]) == (0, 1, None)
    assert (context_only["hallucination"], answer_only["hallucination"]) == (1, 0)


def test_a_contradiction_is_no_support() -> None:
    metrics = scored({"r1": "-|-", "a1": "-|-"}).metrics
    assert metrics["context_recall"] == metrics["faithfulness"] == metrics["answer_recall"] == 0.0
    assert metrics["hallucination"] == 1.0


@pytest.mark.parametrize(
    ("useful", "value"),
    [
        ([], 0.0),
        ([False, False], 0.0),
        ([True] * 7, 1.0),
        ([True, True, False, False], 1.0),
        ([False, True], 0.5),
        ([False, False, True], 1 / 3),
        ([True, False, True], float(Fraction(5, 6))),
        ([True, False, False, True, True], float(Fraction(7, 10))),
    ],
)
def test_average_precision_is_exact(useful: list[bool], value: float) -> None:
    assert average_precision(useful) == value


def test_the_worked_example_in_the_manual_is_right() -> None:
    assert doctest.testmod(ragaudit.judge.score) == (0, 1)


def test_a_chunk_packed_twice_counts_once_and_keeps_its_second_slot() -> None:
    sample = a_sample(["x", "y", "z"])
    chunks = sample.chunks or ()
    twice = sample.model_copy(update={"chunks": (chunks[0], chunks[0], chunks[1])})
    metrics = scored({"r1": "+.|+", "r2": ".+|+", "a1": "+.|+"}, twice).metrics
    assert metrics["context_precision"] == float(Fraction(5, 6))  # ranks 1 and 3
    assert metrics["context_relevance"] == 1 / 2  # two chunks


@pytest.mark.parametrize(
    ("given", "states", "reasons"),
    [
        (
            {"chunks": None},
            dict.fromkeys(METRICS, UNMEASURED),
            dict.fromkeys(METRICS, "context not logged whole, or not the user's to read"),
        ),
        (
            {"reference": None},
            {
                "context_recall": UNDEFINED,
                "context_precision": UNDEFINED,
                "context_relevance": SCORED,
                "faithfulness": SCORED,
                "hallucination": SCORED,
                "utilisation": UNDEFINED,
                "answer_recall": UNDEFINED,
            },
            dict.fromkeys(("context_recall", "context_precision", "utilisation", "answer_recall"), "no reference"),
        ),
        (
            {"answer": " \n"},
            {
                "context_recall": SCORED,
                "context_precision": SCORED,
                "context_relevance": UNDEFINED,
                "faithfulness": UNDEFINED,
                "hallucination": UNDEFINED,
                "utilisation": UNDEFINED,
                "answer_recall": UNDEFINED,
            },
            {"context_relevance": "no answer"}
            | dict.fromkeys(("faithfulness", "hallucination", "utilisation", "answer_recall"), "empty answer"),
        ),
        (
            {"answer": None},
            {
                "context_recall": SCORED,
                "context_precision": SCORED,
                "context_relevance": UNDEFINED,
                "faithfulness": UNMEASURED,
                "hallucination": UNMEASURED,
                "utilisation": UNMEASURED,
                "answer_recall": UNMEASURED,
            },
            {"context_relevance": "no answer"}
            | dict.fromkeys(("faithfulness", "hallucination", "utilisation", "answer_recall"), "answer not logged"),
        ),
    ],
)
def test_what_is_not_there_leaves_its_metrics_without_a_value(
    given: dict[str, Any], states: dict[str, JudgeState], reasons: dict[str, str]
) -> None:
    sample = a_sample(**({"chunks": ["text"]} | given))
    table = {"r1": "+|+"} if sample.reference else {}
    if sample.answer and sample.answer.strip():
        table |= {"a1": "+"}
    found = scored(table, sample)
    assert (found.states, found.reasons) == (states, reasons)
    assert all((found.metrics[name] is not None) is (states[name] is SCORED) for name in METRICS)


def test_an_answer_that_declines_has_the_state_abstained() -> None:
    found = scored({"r1": "+"}, a_sample(["text"]), abstained=True)
    assert {name for name, state in found.states.items() if state is ABSTAINED} == {
        "context_relevance",
        "faithfulness",
        "hallucination",
        "utilisation",
        "answer_recall",
    }
    assert found.metrics["context_recall"] == found.metrics["context_precision"] == 1.0


def test_an_empty_context_recalls_nothing_and_supports_no_answer() -> None:
    found = scored({}, a_sample([], reference=None))
    assert (found.metrics["faithfulness"], found.metrics["hallucination"]) == (0.0, 1.0)
    found = scored({}, a_sample([]))
    assert (found.metrics["context_recall"], found.metrics["context_precision"]) == (0.0, 0.0)
    assert found.metrics["faithfulness"] == 0.0
    assert found.states["hallucination"] is found.states["answer_recall"] is UNMEASURED
    assert found.states["utilisation"] is found.states["context_relevance"] is UNDEFINED
    found = scored({}, a_sample([]), abstained=True)
    assert (found.metrics["context_recall"], found.states["faithfulness"]) == (0.0, ABSTAINED)


def test_claims_of_an_empty_context_are_scored_against_reference_and_answer() -> None:
    found = scored({"r1": "|+", "r2": "|.", "a1": "|+", "a2": "|.", "a3": "|."}, a_sample([]))
    assert found.metrics["answer_recall"] == 1 / 2
    assert found.metrics["hallucination"] == 2 / 3
    assert found.metrics["faithfulness"] == found.metrics["context_recall"] == 0.0


def test_one_missing_verdict_fails_exactly_the_metrics_that_it_could_change() -> None:
    found = scored({"r1": "+?|+", "r2": "+.|?", "a1": "..|.", "a2": "+?|."})
    assert found.metrics["context_recall"] == 1.0  # r1 is supported whatever k2 says
    assert found.metrics["faithfulness"] == 1 / 2
    assert {name for name, state in found.states.items() if state is FAILED} == {
        "context_precision",
        "context_relevance",
        "utilisation",
        "answer_recall",
    }
    assert found.reasons["answer_recall"] == "1 of 2 reference claims have no verdict: timeout: 60 s"
    assert found.reasons["context_precision"] == "1 of 2 packed chunks have no verdict: timeout: 60 s"


def test_what_nobody_asked_for_is_unmeasured_and_what_failed_outweighs_it() -> None:
    spent = f"{NOT_ASKED}: the budget was spent"
    found = scored({"r1": "?|?", "a1": "?|?"}, reason=spent)
    assert set(found.states.values()) == {UNMEASURED}
    assert found.reasons["context_recall"] == f"1 of 1 reference claims have no verdict: {spent}"
    mixed = [*cells_of({"r1": "?|+"}, spent), *cells_of({"r2": "?|+"}, "refused")]
    claims = [Claim(id=claim_id, side=Side.REFERENCE, text=claim_id) for claim_id in ("r1", "r2")]
    assert score(a_sample(["text"]), claims, mixed, abstained=False).states["context_recall"] is FAILED


def test_a_text_without_claims_fails_only_its_own_metrics() -> None:
    found = scored({"r1": "+|+"}, abstained=None, failed={Side.ANSWER: "refused"})
    assert {name for name, state in found.states.items() if state is FAILED} == {
        "context_relevance",
        "faithfulness",
        "hallucination",
    }
    assert found.reasons["faithfulness"] == "refused"
    assert found.metrics["answer_recall"] == 1.0


def test_relevance_of_the_question_where_there_is_neither_answer_nor_reference() -> None:
    sample = a_sample(["x", "y", "z"], answer=None, reference=None)
    assert scored({QUERY_ROW: "+.+"}, sample).metrics["context_relevance"] == 2 / 3
    assert scored({QUERY_ROW: "+?+"}, sample).states["context_relevance"] is FAILED
    declined = a_sample(["x", "y", "z"], reference=None)
    assert scored({QUERY_ROW: "..+"}, declined, abstained=True).metrics["context_relevance"] == 1 / 3


MARKS = st.integers(1, 4).flatmap(
    lambda width: st.tuples(
        st.lists(st.text("+-.?", min_size=width + 1, max_size=width + 1), min_size=1, max_size=4),
        st.lists(st.text("+-.?", min_size=width + 1, max_size=width + 1), min_size=1, max_size=4),
    )
)


def table_of(marks: tuple[list[str], list[str]]) -> dict[str, str]:
    rows = {f"r{place}": row for place, row in enumerate(marks[0], 1)}
    rows |= {f"a{place}": row for place, row in enumerate(marks[1], 1)}
    return {claim_id: f"{row[:-1]}|{row[-1]}" for claim_id, row in rows.items()}


@given(MARKS)
def test_values_are_shares_of_the_claims_that_were_asked_about(marks: tuple[list[str], list[str]]) -> None:
    found = scored(table_of(marks))
    sizes = {"context_recall": marks[0], "answer_recall": marks[0], "faithfulness": marks[1], "hallucination": marks[1]}
    for name, value in found.metrics.items():
        assert (value is None) is (found.states[name] is not SCORED) is (name in found.reasons)
        assert value is None or 0 <= value <= 1
        if value is not None and name in sizes:
            assert round(value * len(sizes[name])) / len(sizes[name]) == value


@given(MARKS, st.text("+-.", min_size=40, max_size=40))
def test_a_scored_metric_does_not_depend_on_a_verdict_that_is_missing(
    marks: tuple[list[str], list[str]], fill: str
) -> None:
    filler = iter(fill)
    complete = tuple(
        [["".join(next(filler) if mark == "?" else mark for mark in row) for row in rows] for rows in marks]
    )
    known, whole = scored(table_of(marks)), scored(table_of(complete))  # type: ignore[arg-type]
    for name, value in known.metrics.items():
        if value is not None:
            assert whole.metrics[name] == value
    assert not [name for name, state in whole.states.items() if state in (FAILED, UNMEASURED)]


@given(MARKS)
def test_supported_invented_and_known_from_elsewhere_are_all_answer_claims(
    marks: tuple[list[str], list[str]],
) -> None:
    rows = [row.replace("?", ".") for row in marks[1]]
    metrics = scored(table_of(([r.replace("?", ".") for r in marks[0]], rows))).metrics
    own_knowledge = sum("+" not in row[:-1] and row[-1] == "+" for row in rows) / len(rows)
    assert (metrics["faithfulness"] or 0) + (metrics["hallucination"] or 0) + own_knowledge == pytest.approx(1)
