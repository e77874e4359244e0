"""What becomes of verdicts that fail, are cut off, refused or beside the point: nothing lost, nothing invented."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_builders import (
    LIMITS,
    PLANS,
    WEATHER,
    Answer,
    Oracle,
    a_sample,
    ask_judge,
    claims_reply,
    cut_off,
    how,
    matrix_reply,
    row,
    rows_of,
    texts_of,
)

from ragaudit.model.judgement import ANSWER_COLUMN, TOO_LONG, Failure, Judgement, JudgeState, Reply, Verdict

FACTS = [f"Fact number {place}" for place in range(1, 5)]
CLAIMS = claims_reply(FACTS)
WORDS = {"c1": "supported", "c2": "missing", "c3": "missing"}


TOO_MUCH = Reply(text="maximum context length is 512 tokens", finish_reason=TOO_LONG)


def facts(**given: Any) -> Any:
    return a_sample(reference=". ".join(FACTS), answer=None, **given)


def rows(*ids: str, **supported: list[str]) -> str:
    return matrix_reply(*(row(claim_id, supported.get(claim_id, [])) for claim_id in ids))


def unscored(judgement: Judgement) -> dict[str, set[str | None]]:
    found: dict[str, set[str | None]] = {}
    for cell in judgement.cells:
        if cell.verdict is None:
            found.setdefault(cell.claim_id, set()).add(cell.reason)
    return found


def test_a_dropped_claim_is_asked_about_again_and_alone() -> None:
    judgement, requests = ask_judge(facts(), [CLAIMS, rows("r1", "r3", "r4", r1=["c1"]), rows("r2", r2=["c2"])])
    assert [list(rows_of(request)) for request in requests[1:]] == [["r1", "r2", "r3", "r4"], ["r2"]]
    assert judgement.metrics["context_recall"] == 1 / 2
    assert unscored(judgement) == {}


def test_a_claim_that_is_dropped_again_is_unscored_and_never_zero() -> None:
    judgement, requests = ask_judge(facts(), [CLAIMS, rows("r1", "r2", "r3", r1=["c1"]), rows()])
    assert len(requests) == 3
    assert unscored(judgement) == {"r4": {"the judge gave no verdict, asked 2 times"}}
    assert judgement.metrics["context_recall"] is None
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED
    assert judgement.reasons["context_recall"] == (
        "1 of 4 reference claims have no verdict: the judge gave no verdict, asked 2 times"
    )


@pytest.mark.parametrize("retries", [0, 2])
def test_how_often_a_missing_verdict_is_asked_for_is_a_setting(retries: int) -> None:
    replies = [CLAIMS, rows("r1"), rows("r2"), rows("r3")]
    judgement, requests = ask_judge(facts(), replies[: 2 + retries], how(retries=retries))
    assert len(requests) == 2 + retries
    assert set(unscored(judgement)) == {f"r{place}" for place in range(2 + retries, 5)}


def test_a_reply_about_nothing_that_was_asked_is_said_to_be_so_not_asked_for_in_the_same_words() -> None:
    judgement, requests = ask_judge(facts(), [CLAIMS, rows("x1", "x2"), rows("r1", "r2", "r3", "r4", r1=["c1"])])
    repair = requests[2]
    assert (repair.prompt, repair.purpose) == ("repair", "repair of matrix")
    assert [message["role"] for message in repair.messages] == ["system", "user", "assistant", "user"]
    assert "it answers nothing that was asked" in repair.messages[-1]["content"]
    assert [(call.error, call.ignored) for call in judgement.calls] == [
        (None, 0),
        ("it answers nothing that was asked", 2),
        (None, 0),
    ]
    assert judgement.metrics["context_recall"] == 1 / 4


def test_extra_claims_and_texts_are_dropped_and_counted() -> None:
    judgement, requests = ask_judge(
        facts(), [CLAIMS, matrix_reply(row("r1", ["c1", "c9"]), *map(row, ("r2", "r3", "r4", "r5", "a1")))]
    )
    assert len(requests) == 2
    assert judgement.calls[1].ignored == 3
    assert {cell.claim_id for cell in judgement.cells} == {"r1", "r2", "r3", "r4"}
    assert {cell.chunk_id for cell in judgement.cells} == {"k1", "k2", "k3"}
    assert judgement.metrics["context_recall"] == 1 / 4


def test_support_by_a_text_that_does_not_exist_is_no_verdict_either_way() -> None:
    judgement, requests = ask_judge(
        facts(), [CLAIMS, rows("r1", "r2", "r3", "r4", r2=["c12"]), rows("r2", r2=["chunk 2"])]
    )
    assert list(rows_of(requests[2])) == ["r2"]
    assert set(unscored(judgement)) == {"r2"}
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED


def test_a_text_in_both_lists_has_no_verdict() -> None:
    judgement, _ = ask_judge(facts(), [CLAIMS, matrix_reply(row("r1", ["c1"], ["c1"]), *map(row, ("r2", "r3", "r4")))])
    assert unscored(judgement) == {"r1": {"both supported and contradicted"}}
    assert [cell.chunk_id for cell in judgement.cells if cell.verdict is None] == ["k1"]


def test_a_claim_with_two_rows_keeps_what_both_say() -> None:
    judgement, _ = ask_judge(
        facts(),
        [CLAIMS, rows("r1", "r2", "r3", "r4", r1=["c1", "c2"])[:-2] + "," + json.dumps(row("r1", ["c2"])) + "]}"],
    )
    assert unscored(judgement) == {"r1": {"given two different verdicts"}}
    assert {(c.chunk_id, c.verdict) for c in judgement.cells if c.claim_id == "r1"} == {
        ("k1", None),
        ("k2", Verdict.SUPPORTED),
        ("k3", Verdict.MISSING),
    }


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdicts": [{"id": "r1", "supported": ["c1"]}, {"id": "R2", "supported": null, "contradicted": ["C2"]},'
        '{"id": "r3:", "supported": "c1"}, {"id": "r4", "contradicted": []}]}',
        '[{"id": "r1", "supported": ["c1"], "quotes": {"c1": "x"}}, {"id": "r2", "contradicted": ["c2"]},'
        '{"id": "r3", "supported": ["c1"]}, {"id": "r4", "supported": []}]',
        '{"r1": {"supported": ["<c1:00000000>"]}, "r2": {"contradicted": ["c2."]}, "r3": {"supported": ["c1"]},'
        '"r4": {"supported": []}}',
        'Verdicts:\n```json\n{"verdicts": {"r1": {"supported": ["c1"],}, "r2": {"contradicted": ["c2"]},'
        '"r3": {"supported": ["c1"]}, "r4": {"supported": [],},}}\n```',
    ],
)
def test_a_table_in_another_form_is_the_same_table(reply: str) -> None:
    judgement, requests = ask_judge(facts(), [CLAIMS, reply])
    said = {(c.claim_id, c.chunk_id): c.verdict for c in judgement.cells if c.verdict is not Verdict.MISSING}
    assert said == {
        ("r1", "k1"): Verdict.SUPPORTED,
        ("r2", "k2"): Verdict.CONTRADICTED,
        ("r3", "k1"): Verdict.SUPPORTED,
    }
    assert len(requests) == 2


@pytest.mark.parametrize(
    "broken",
    [
        '{"id": "r1", "supported": 1}',
        '{"id": "r1", "supported": [true]}',
        '{"id": "r1", "supported": [["c1"]]}',
        '{"id": "r1", "supported": [{"c1": "x"}]}',
        '{"id": "r1", "supported": {"c1": "supported"}}',
        '{"id": "r1", "verdict": "supported"}',
        '{"id": "r1"}',
        '{"id": ["r1"], "supported": []}',
    ],
)
def test_a_row_that_cannot_be_read_is_not_answered(broken: str) -> None:
    rest = ", ".join(json.dumps(row(claim_id)) for claim_id in ("r2", "r3", "r4"))
    _, requests = ask_judge(facts(), [CLAIMS, f'{{"verdicts": [{broken}, {rest}]}}', rows("r1")])
    assert list(rows_of(requests[2])) == ["r1"]


def test_a_reply_that_stops_in_the_middle_counts_for_its_finished_rows() -> None:
    whole = rows("r1", "r2", "r3", "r4", r1=["c1"], r3=["c2"])
    judgement, requests = ask_judge(facts(), [CLAIMS, whole[: whole.index('"r3"') + 30], rows("r3", "r4", r3=["c2"])])
    assert list(rows_of(requests[2])) == ["r3", "r4"]
    assert judgement.metrics["context_recall"] == 1 / 2


def test_a_reply_without_json_is_asked_for_once_more_and_then_fails_with_its_words_kept() -> None:
    judgement, requests = ask_judge(facts(), [CLAIMS, "I think most are fine.", "All fine!"])
    assert [request.purpose for request in requests] == ["claims", "matrix", "repair of matrix"]
    assert requests[2].messages[2] == {"role": "assistant", "content": "I think most are fine."}
    assert [call.raw for call in judgement.calls] == [None, "I think most are fine.", "All fine!"]
    assert judgement.calls[2].error == "it holds no JSON"
    assert unscored(judgement)["r1"] == {"the reply cannot be used: it holds no JSON"}
    assert set(judgement.metrics.values()) == {None}


def test_a_repaired_reply_counts() -> None:
    judgement, _ = ask_judge(facts(), [CLAIMS, "Gladly!", rows("r1", "r2", "r3", "r4", r4=["c3"])])
    assert judgement.metrics["context_recall"] == 1 / 4
    assert judgement.calls[1].raw == "Gladly!"


def test_a_cut_off_reply_is_never_a_verdict_the_question_is_halved() -> None:
    complete = rows("r1", "r2", "r3", "r4", r1=["c1"])
    judgement, requests = ask_judge(facts(), [CLAIMS, cut_off(complete), rows("r1", "r2"), rows("r3", "r4", r3=["c1"])])
    assert [list(rows_of(request)) for request in requests[1:]] == [
        ["r1", "r2", "r3", "r4"],
        ["r1", "r2"],
        ["r3", "r4"],
    ]
    assert judgement.metrics["context_recall"] == 1 / 4
    assert [call.error for call in judgement.calls] == [None, "the reply was cut off", None, None]


def test_one_claim_is_halved_by_its_texts() -> None:
    sample = a_sample([PLANS, LIMITS, WEATHER, "Snow."], reference=FACTS[0], answer=None)
    judgement, requests = ask_judge(sample, [claims_reply(FACTS[:1]), cut_off(), rows("r1", r1=["c2"]), rows("r1")])
    assert [sorted(set(texts_of(request)) - {"claims"}) for request in requests[2:]] == [["c1", "c2"], ["c3", "c4"]]
    assert [cell.verdict is Verdict.SUPPORTED for cell in judgement.cells] == [False, True, False, False]


def test_a_request_that_is_too_long_is_halved_by_its_texts() -> None:
    sample = a_sample([PLANS, LIMITS, WEATHER], reference=". ".join(FACTS[:2]), answer=FACTS[0])
    split = claims_reply(FACTS[:2], FACTS[:1])
    nothing = rows("r1", "r2", "a1")
    supported = rows("r1", "r2", "a1", r1=["c1"])
    judgement, requests = ask_judge(sample, [split, TOO_MUCH, supported, TOO_MUCH, nothing, nothing])
    assert [sorted(set(texts_of(request)) - {"claims"}) for request in requests[2:]] == [
        ["c1", "c2"],
        ["answer", "c3", "reference"],
        ["c3"],
        ["answer", "reference"],
    ]
    assert (judgement.metrics["context_recall"], judgement.metrics["answer_recall"]) == (1 / 2, 0.0)
    assert unscored(judgement) == {}


def test_one_long_text_is_asked_about_with_half_of_the_claims() -> None:
    judgement, requests = ask_judge(
        a_sample([PLANS], reference=". ".join(FACTS), answer=None),
        [CLAIMS, TOO_MUCH, rows("r1", "r2", r1=["c1"]), rows("r3", "r4")],
    )
    assert [list(rows_of(request)) for request in requests[2:]] == [["r1", "r2"], ["r3", "r4"]]
    assert judgement.metrics["context_recall"] == 1 / 4
    assert [call.error for call in judgement.calls] == [None, "the request is too long for the model", None, None]


@pytest.mark.parametrize("reply", [cut_off(), TOO_MUCH])
@pytest.mark.parametrize("mode", ["matrix", "per_claim"])
def test_a_model_that_always_stops_short_is_given_up_on_after_a_bounded_number_of_calls(
    mode: str, reply: Reply
) -> None:
    sample = a_sample([f"Text {place}" for place in range(64)], reference=". ".join(FACTS), answer=None)
    judgement, requests = ask_judge(
        sample, lambda request: CLAIMS if request.prompt == "claims" else reply, how(mode=mode)
    )
    assert len(requests) <= 1 + 4 * 31
    assert unscored(judgement) == {f"r{place}": {judgement.calls[-1].error} for place in range(1, 5)}
    assert set(judgement.metrics.values()) == {None}


@pytest.mark.parametrize(
    ("came", "reason", "state"),
    [
        (Failure(kind="timeout", message="no reply in 60 s"), "timeout: no reply in 60 s", JudgeState.JUDGE_FAILED),
        (
            Failure(kind="server", message="500\nsecond\u202e line"),
            "server: 500 second<U+202E> line",
            JudgeState.JUDGE_FAILED,
        ),
        (Failure(kind="budget", message="$1.00"), "not asked: the budget was spent", JudgeState.UNMEASURED),
        (Failure(kind="cancelled", message=""), "not asked: the run was stopped", JudgeState.UNMEASURED),
        (Reply(text="I cannot", refused=True), "refused", JudgeState.JUDGE_FAILED),
        (Reply(text=CLAIMS, finish_reason="content_filter"), "refused", JudgeState.JUDGE_FAILED),
    ],
)
@pytest.mark.parametrize("call", ["claims", "matrix"])
def test_a_call_that_gave_nothing_leaves_its_reason_and_no_score(
    call: str, came: Answer, reason: str, state: JudgeState
) -> None:
    judgement, requests = ask_judge(facts(), [came] if call == "claims" else [CLAIMS, came])
    assert len(requests) == len(judgement.calls) == (1 if call == "claims" else 2)
    assert judgement.states["context_recall"] is state
    assert judgement.reasons["context_recall"].endswith(reason)
    assert judgement.calls[-1].error == reason
    assert set(judgement.metrics.values()) == {None}


def test_a_failed_half_leaves_the_other_half_scored() -> None:
    judgement, _ = ask_judge(
        facts(), [CLAIMS, cut_off(), rows("r1", "r2", r1=["c1"]), Failure(kind="rate_limit", message="429")]
    )
    assert set(unscored(judgement)) == {"r3", "r4"}
    assert next(cell.verdict for cell in judgement.cells if cell.claim_id == "r1") is Verdict.SUPPORTED


def test_a_verdict_word_outside_of_the_closed_set_is_asked_for_again() -> None:
    sample = a_sample(reference=FACTS[0], answer=None)
    words = [WORDS | {"c2": "partially supported", "c3": "yes"}, {"c2": "Contradicted", "c3": "missing"}]
    judgement, requests = ask_judge(
        sample, [claims_reply(FACTS[:1]), *(json.dumps({"verdicts": each}) for each in words)], how(mode="per_claim")
    )
    assert set(texts_of(requests[2])) == {"c2", "c3", "claim"}
    assert [cell.verdict for cell in judgement.cells] == [Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.MISSING]


def test_a_text_with_two_words_has_no_verdict() -> None:
    sample = a_sample(reference=FACTS[0], answer=None)
    said = '{"verdicts": {"c1": "supported", "c2": "missing", "c1": "missing", "c3": "missing"}}'
    judgement, _ = ask_judge(sample, [claims_reply(FACTS[:1]), said], how(mode="per_claim"))
    assert unscored(judgement) == {"r1": {"given two different verdicts"}}
    assert [cell.verdict for cell in judgement.cells] == [None, Verdict.MISSING, Verdict.MISSING]


NAMES = st.sampled_from(["r1", "r2", "a1", "a9", "c1", "c2", "c9", "answer", "reference", "k1", "", "verdicts", "id"])
WORD = st.sampled_from(["supported", "contradicted", "missing", "maybe", "c1", "c2", "c7", "r1", "", "quote"])
VALUES = st.recursive(
    WORD | NAMES | st.none() | st.booleans() | st.integers(-2, 9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES | WORD | st.sampled_from(["text", "claim", "abstained"]), inner, max_size=4)
    ),
    max_leaves=14,
)
REPLIES = st.one_of(
    VALUES.map(json.dumps),
    VALUES.map(lambda value: json.dumps({"verdicts": value})),
    VALUES.map(lambda value: json.dumps({"reference": value, "answer": value, "abstained": value})),
    st.text(max_size=30),
    st.sampled_from([CLAIMS, claims_reply(["Free keys"], ["After 30 days"]), rows("r1", "a1", r1=["c1"])]),
)
CAME = st.one_of(
    REPLIES,
    st.builds(lambda text: Reply(text=text, finish_reason="length"), REPLIES),
    st.builds(lambda text: Reply(text=text, refused=True), REPLIES),
    st.sampled_from(["timeout", "budget"]).map(lambda kind: Failure(kind=kind, message="x")),
)


@settings(max_examples=150)
@given(st.lists(CAME, min_size=1, max_size=12), st.sampled_from(["matrix", "per_claim"]), st.booleans())
def test_whatever_comes_back_the_records_are_those_of_what_was_asked(
    script: list[Answer], mode: str, has_answer: bool
) -> None:
    sample = a_sample([PLANS, LIMITS], answer="After 30 days." if has_answer else None, candidates=[WEATHER])
    turn = iter(script * 100)
    judgement, requests = ask_judge(sample, lambda request: next(turn), how(mode=mode))
    assert len(judgement.calls) == len(requests) <= 400
    ids = {claim.id for claim in judgement.claims}
    assert {cell.claim_id for cell in judgement.cells} <= ids
    assert {cell.chunk_id for cell in judgement.cells} <= {"k1", "k2", "d1", ANSWER_COLUMN, "@reference"}
    pairs = [(cell.claim_id, cell.chunk_id) for cell in judgement.cells]
    assert len(pairs) == len(set(pairs))
    assert {(claim_id, chunk_id) for claim_id in ids for chunk_id in ("k1", "k2")} <= set(pairs)
    assert all(cell.reason for cell in judgement.cells if cell.verdict is None)
    assert all(found.chunk_id == "d1" and found.quote in WEATHER for found in judgement.found if found.quote)
    for name, value in judgement.metrics.items():
        assert (value is None) is (judgement.states[name] is not JudgeState.SCORED)
        assert value is None or 0 <= value <= 1


def test_the_oracle_of_these_tests_is_believed() -> None:
    oracle = Oracle(FACTS, supports={FACTS[0]: {PLANS: None}})
    assert ask_judge(facts(), oracle)[0].metrics["context_recall"] == 1 / 4
