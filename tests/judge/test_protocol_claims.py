"""What becomes of replies to the claims call that are cut off, empty or invented: no claims rather than fewer."""

import json

import pytest
from judge_builders import Answer, a_sample, ask_judge, claims_reply, cut_off, matrix_reply, row, rows_of, texts_of

from ragaudit.model.judgement import JudgeState, Request

FACTS = [f"Fact number {place}" for place in range(1, 5)]
CLAIMS = claims_reply(FACTS)
SAMPLE = a_sample(reference=". ".join(FACTS), answer=None)


def rows(*ids: str, **supported: list[str]) -> str:
    return matrix_reply(*(row(claim_id, supported.get(claim_id, [])) for claim_id in ids))


def test_the_second_text_is_asked_about_alone_when_both_did_not_fit() -> None:
    judgement, requests = ask_judge(
        a_sample(), [cut_off(), claims_reply(["Free keys"]), claims_reply(None, ["After 30 days"]), rows("r1", "a1")]
    )
    assert [sorted(set(texts_of(request)) - {"question"}) for request in requests[:3]] == [
        ["answer", "reference"],
        ["reference"],
        ["answer"],
    ]
    assert [claim.id for claim in judgement.claims] == ["r1", "a1"]


@pytest.mark.parametrize("stop", [". ", "。", "\n", " "])
def test_a_text_whose_claims_do_not_fit_is_cut_where_something_ends(stop: str) -> None:
    text = stop.join(f"word{place}" for place in range(60))

    def says(request: Request) -> Answer:
        part = texts_of(request).get("reference", "")
        if request.prompt == "claims":
            return cut_off() if len(part) > 250 else claims_reply(part.split(stop.strip() or None)[:1])
        return rows(*rows_of(request))

    judgement, requests = ask_judge(a_sample(reference=text, answer=None), says)
    parts = [texts_of(request)["reference"] for request in requests if request.prompt == "claims"][1:]
    assert len(parts) == 2 and "".join("".join(parts).split()) == "".join(text.split())
    assert parts[0].endswith(("word29.", "word29。", "word29", "word30.", "word30。", "word30"))
    assert parts[1].startswith("word")
    assert [claim.id for claim in judgement.claims] == ["r1", "r2"]


def test_a_text_that_cannot_be_split_has_no_claims_not_fewer() -> None:
    text = " ".join(f"word{place}" for place in range(200))

    def says(request: Request) -> Answer:
        return cut_off() if "word199" in texts_of(request)["reference"] else claims_reply(["word"])

    judgement, requests = ask_judge(a_sample(reference=text, answer=None), says)
    assert len(requests) <= 15
    assert judgement.claims == ()
    assert judgement.reasons["context_recall"] == "the reply was cut off"
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        ("nothing", "it holds no JSON"),
        ('{"claims": []}', "the JSON has not the form that was asked for"),
        ('{"reference": []}', '"reference" has no claims, but the text is not empty'),
        ('{"reference": "one"}', '"reference" is not a list'),
        ('{"reference": [{"quote": "Fact number 1"}]}', 'an entry of "reference" has no "claim" in words'),
        ('{"reference": [{"quote": "...", "claim": "..."}]}', 'an entry of "reference" has no "claim" in words'),
        ('{"reference": [7]}', 'an entry of "reference" has no "claim" in words'),
        (
            '{"reference": [{"quote": "Berg does", "claim": "Berg runs it"}]}',
            'no "quote" of "reference" stands in the text',
        ),
        (json.dumps({"reference": ["x"] * 101}), '"reference" has more than 100 claims'),
        ('{"reference": ["Fact number 1", "Fact', "it ends in the middle"),
    ],
)
def test_claims_that_cannot_be_used_are_asked_for_once_more_then_fail(first: str, problem: str) -> None:
    judgement, requests = ask_judge(SAMPLE, [first, CLAIMS, rows("r1", "r2", "r3", "r4")])
    assert [request.purpose for request in requests] == ["claims", "repair of claims", "matrix"]
    assert f"That reply cannot be used: {problem}." in requests[1].messages[-1]["content"]
    assert judgement.metrics["context_recall"] == 0.0
    judgement, requests = ask_judge(SAMPLE, [first, first])
    assert len(requests) == 2
    assert judgement.reasons["context_recall"] == f"the reply cannot be used: {problem}"
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED
    assert judgement.calls[1].raw == first


def test_an_answer_without_claims_that_does_not_decline_fails_alone() -> None:
    empty = claims_reply(["Free keys"], [])
    judgement, requests = ask_judge(a_sample(), [empty, empty, rows("r1", r1=["c1", "answer"])])
    assert len(requests) == 3
    assert judgement.metrics["context_recall"] == judgement.metrics["answer_recall"] == 1.0
    assert judgement.states["faithfulness"] is JudgeState.JUDGE_FAILED
    assert judgement.reasons["faithfulness"] == (
        'the reply cannot be used: "answer" has no claims, but the text is not empty'
    )
    assert judgement.abstained is None


def test_a_text_whose_claims_were_fine_keeps_them_while_the_other_one_is_repaired() -> None:
    judgement, requests = ask_judge(
        a_sample(),
        [claims_reply(["Free keys"], []), claims_reply([], ["After 30 days"]), rows("r1", "a1", r1=["c1"], a1=["c1"])],
    )
    assert [(claim.id, claim.text) for claim in judgement.claims] == [("r1", "Free keys"), ("a1", "After 30 days")]
    assert [call.error is None for call in judgement.calls] == [False, True, True]
    assert len(requests) == 3
