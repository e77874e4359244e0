"""Judged tests of the handbook bot. They replay cassettes/test_answers.jsonl: no key, no network, no chance."""

from typing import Any

import handbook
import pytest

from ragaudit.testing import JudgeCassette


def asked(question: str, reference: str, answer: str | None = None) -> dict[str, Any]:
    """One query as the bot handles it, ready to be judged; `answer` stands in for the bot's own."""
    context = handbook.search(question)
    return {
        "query_id": question,
        "query": question,
        "reference": reference,
        "answer": answer or handbook.answer(question, context),
        "chunks": [{"id": name, "text": handbook.PASSAGES[name]} for name in context],
    }


@pytest.mark.parametrize(
    ("question", "reference"),
    [
        ("How many days of paid leave does every employee have?", "Every employee has 28 days of paid leave a year."),
        ("When is a broken laptop replaced?", "A broken laptop is replaced within two working days."),
        ("Who must approve flights?", "Flights need approval by the director."),
    ],
)
def test_the_context_holds_the_answer_and_the_answer_keeps_to_it(
    judge_cassette: JudgeCassette, question: str, reference: str
) -> None:
    """The bot finds what is needed and says it."""
    (judged,) = judge_cassette.judge([asked(question, reference)])
    assert judged.metrics["context_recall"] == 1.0, judged.reasons
    assert judged.metrics["faithfulness"] == 1.0, judged.reasons
    assert judged.metrics["answer_recall"] == 1.0, judged.reasons


def test_an_invented_number_is_noticed(judge_cassette: JudgeCassette) -> None:
    """Good context, unfaithful answer: the generator is to blame."""
    sample = asked(
        "How many days of paid leave does every employee have?",
        "Every employee has 28 days of paid leave a year.",
        answer="Every employee has 35 days of paid leave a year.",
    )
    (judged,) = judge_cassette.judge([sample])
    assert judged.metrics["context_recall"] == 1.0
    assert judged.metrics["faithfulness"] == 0.0


def test_a_wrong_passage_is_noticed_though_the_answer_keeps_to_it(judge_cassette: JudgeCassette) -> None:
    """The dangerous quadrant: a poor context, and an answer that is faithful to it."""
    sample = asked("Are train journeys paid back?", "Expenses are paid back within ten days.") | {
        "answer": "Train journeys under five hours are booked in second class.",
        "chunks": [{"id": "travel", "text": handbook.PASSAGES["travel"]}],
    }
    (judged,) = judge_cassette.judge([sample])
    assert judged.metrics["faithfulness"] == 1.0
    assert judged.metrics["context_recall"] == 0.0


def test_an_answer_that_declines_is_not_called_unfaithful(judge_cassette: JudgeCassette) -> None:
    """There is nothing to be faithful: no score, and no failure."""
    question = "How many days may be worked from the beach?"
    (judged,) = judge_cassette.judge([asked(question, "None.", answer=handbook.NO_ANSWER)])
    assert judged.states["faithfulness"] == "abstained"
    assert judged.metrics["faithfulness"] is None
