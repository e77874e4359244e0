"""What is asked, in which order, and what is concluded when the judge answers well."""

import json
from typing import Any

import pytest
from judge_builders import (
    LIMITS,
    PLANS,
    WEATHER,
    Oracle,
    a_sample,
    ask_judge,
    claims_reply,
    how,
    matrix_reply,
    row,
    rows_of,
    texts_of,
)
from msgspec.structs import replace

from ragaudit.judge.matrix import QUERY_ROW, REFERENCE_COLUMN
from ragaudit.judge.recording import request_key
from ragaudit.model.judgement import ANSWER_COLUMN, Cell, Judgement, JudgeState, Reply, SampleChunk, Verdict

EXPIRY, FEE = "Free keys expire after 30 days.", "A key costs 5 euros."
ORACLE = Oracle(
    reference=[EXPIRY, FEE],
    answer=["Free keys expire after 30 days.", "Keys are blue."],
    supports={
        EXPIRY: {PLANS: "expire after 30 days", "After 30 days. Keys are blue.": "After 30 days"},
    },
    contradicts={"Keys are blue.": {LIMITS: "100 calls"}},
)
QUOTING = Oracle(["After 30 days"], ["After 30 days"], {"After 30 days": {PLANS: "after 30 days"}})


def a_judged_sample(**given: Any) -> Any:
    return a_sample(answer="After 30 days. Keys are blue.", reference=f"{EXPIRY} {FEE}", **given)


def verdicts(judgement: Judgement) -> dict[tuple[str, str], str | None]:
    return {
        (cell.claim_id, cell.chunk_id): cell.verdict and cell.verdict.value
        for cell in judgement.cells
        if cell.verdict is not Verdict.MISSING
    }


def without_calls(judgement: Judgement) -> Judgement:
    return replace(judgement, calls=())


def test_two_calls_whatever_the_number_of_chunks() -> None:
    chunks = [PLANS, *(f"{WEATHER} On day {day}." for day in range(30))]
    judgement, requests = ask_judge(a_judged_sample(chunks=chunks), ORACLE)
    assert [request.purpose for request in requests] == ["claims", "matrix"]
    assert len(judgement.cells) == 2 * 32 + 2 * 32
    assert [call.prompt for call in judgement.calls] == ["claims@1", "matrix@1"]


def test_claims_keep_their_words_and_cells_their_quotes() -> None:
    judgement, _ = ask_judge(a_judged_sample(), ORACLE)
    assert [(claim.id, claim.side.value, claim.text) for claim in judgement.claims] == [
        ("r1", "reference", EXPIRY),
        ("r2", "reference", FEE),
        ("a1", "answer", EXPIRY),
        ("a2", "answer", "Keys are blue."),
    ]
    assert [claim.quote_found for claim in judgement.claims] == [True, True, False, True]
    assert verdicts(judgement) == {
        ("r1", "k1"): "supported",
        ("r1", ANSWER_COLUMN): "supported",
        ("a1", "k1"): "supported",
        ("a2", "k2"): "contradicted",
    }
    assert judgement.cells[0] == Cell(
        claim_id="r1", chunk_id="k1", verdict=Verdict.SUPPORTED, quote="expire after 30 days"
    )
    assert judgement.metrics["context_recall"] == judgement.metrics["faithfulness"] == 0.5


def test_both_modes_give_the_same_records() -> None:
    sample = a_judged_sample(candidates=[FEE, WEATHER])
    oracle = Oracle(
        ORACLE.claims["reference"],
        ORACLE.claims["answer"],
        ORACLE.verdicts["supported"] | {FEE: {FEE: "costs 5 euros"}},
        ORACLE.verdicts["contradicted"],
    )
    matrix, asked = ask_judge(sample, oracle)
    single, asked_singly = ask_judge(sample, oracle, how(mode="per_claim"))
    pairs, asked_in_pairs = ask_judge(sample, oracle, how(mode="per_claim", max_texts=1))
    assert without_calls(matrix) == without_calls(single) == without_calls(pairs)
    assert [found.chunk_id for found in matrix.found] == ["d1"]
    assert [request.prompt for request in asked] == ["claims", "matrix", "matrix"]
    assert [request.prompt for request in asked_singly] == ["claims"] * 2 + ["claim"] * 5
    # 4 claims x (3 chunks + 1), then one claim x 2 candidates
    assert [request.prompt for request in asked_in_pairs] == ["claims"] * 2 + ["claim"] * 18


def test_reference_claims_are_held_against_the_answer_and_answer_claims_against_the_reference() -> None:
    judgement, _ = ask_judge(a_judged_sample(), ORACLE)
    columns = {(cell.claim_id[0], cell.chunk_id) for cell in judgement.cells if cell.chunk_id.startswith("@")}
    assert columns == {("r", ANSWER_COLUMN), ("a", REFERENCE_COLUMN)}


def test_chunks_go_under_labels_and_come_back_under_their_ids() -> None:
    chunks = (SampleChunk(id="c2", text=PLANS), SampleChunk(id="c1", text=LIMITS))
    sample = a_sample(answer=None).model_copy(update={"chunks": chunks})
    judgement, requests = ask_judge(
        sample, [claims_reply([EXPIRY]), matrix_reply(row("r1", [("c1", "expire after 30 days")]))]
    )
    assert texts_of(requests[1])["c1"] == PLANS
    assert verdicts(judgement) == {("r1", "c2"): "supported"}


def test_the_claims_call_does_not_depend_on_the_chunks() -> None:
    keys = {request_key(ask_judge(a_judged_sample(chunks=[text]), ORACLE)[1][0]) for text in (PLANS, LIMITS, WEATHER)}
    assert len(keys) == 1


def test_calls_carry_what_they_cost() -> None:
    judgement, _ = ask_judge(a_judged_sample(), ORACLE)
    assert [(call.input_tokens, call.output_tokens, call.error, call.raw) for call in judgement.calls] == [
        (10, 5, None, None)
    ] * 2


def test_parameters_are_cold_and_bounded_unless_told_otherwise() -> None:
    _, requests = ask_judge(a_judged_sample(), ORACLE)
    assert requests[0].parameters == {"temperature": 0, "max_tokens": 4096}
    told = how(parameters={"temperature": 1, "max_completion_tokens": 9, "seed": 3}, structured=False)
    _, requests = ask_judge(a_judged_sample(), ORACLE, told)
    assert requests[0].parameters == {"temperature": 1, "max_completion_tokens": 9, "seed": 3}
    assert {request.reply_schema is None for request in requests} == {True}
    _, requests = ask_judge(a_judged_sample(), ORACLE, how(mode="per_claim", logprobs=True))
    assert [request.parameters.get("top_logprobs") for request in requests] == [None, None, 5, 5, 5, 5]


def test_nothing_is_asked_where_there_is_nothing_to_ask() -> None:
    for sample in (
        a_sample(None),
        a_sample(None, candidates=[PLANS]),
        a_sample([]),
        a_sample([], reference=None, candidates=[PLANS]),
        a_sample([], abstained=True),
        a_sample([], answer=None, reference=None),
    ):
        judgement, requests = ask_judge(sample, [])
        assert requests == []
        assert judgement.claims == judgement.cells == judgement.calls == ()
    assert ask_judge(a_sample([]), [])[0].metrics["faithfulness"] == 0.0


def test_an_answer_known_to_decline_is_not_split() -> None:
    judgement, requests = ask_judge(a_sample(abstained=True), QUOTING)
    assert "answer" not in texts_of(requests[0])
    assert "answer" not in texts_of(requests[1])
    assert judgement.abstained is True
    assert judgement.states["faithfulness"] is JudgeState.ABSTAINED
    assert judgement.metrics["context_recall"] == 1.0


def test_the_judge_recognises_an_answer_that_declines() -> None:
    declining = Oracle(["After 30 days"], ["The answer is unknown."], {"After 30 days": {PLANS: None}}, declines=True)
    judgement, requests = ask_judge(a_sample(answer="That is not known."), declining)
    assert judgement.abstained is True
    assert [claim.id for claim in judgement.claims] == ["r1"]
    assert "answer" not in texts_of(requests[1])
    assert judgement.states["faithfulness"] is judgement.states["answer_recall"] is JudgeState.ABSTAINED


def test_what_a_person_says_about_declining_outweighs_the_judge() -> None:
    sample = a_sample(abstained=False)
    judgement, _ = ask_judge(
        sample,
        [
            claims_reply([EXPIRY], ["After 30 days."], abstained=True),
            matrix_reply(row("r1", ["c1"]), row("a1", ["c1"])),
        ],
    )
    assert (judgement.abstained, judgement.metrics["faithfulness"]) == (False, 1.0)


def test_without_answer_and_reference_only_relevance_is_asked_for() -> None:
    judgement, requests = ask_judge(a_sample(answer=None, reference=None), Oracle(relevant=[PLANS]))
    assert [request.prompt for request in requests] == ["relevance"]
    assert judgement.metrics["context_relevance"] == pytest.approx(1 / 3)
    assert {cell.claim_id for cell in judgement.cells} == {QUERY_ROW}
    assert [name for name, state in judgement.states.items() if state is JudgeState.SCORED] == ["context_relevance"]


def test_relevance_is_asked_for_once_the_only_text_turns_out_to_decline() -> None:
    sample = a_sample(reference=None)
    oracle = Oracle(answer=["nothing"], declines=True, relevant=[PLANS, LIMITS])
    judgement, requests = ask_judge(sample, oracle)
    assert [request.prompt for request in requests] == ["claims", "relevance"]
    assert judgement.metrics["context_relevance"] == pytest.approx(2 / 3)
    assert judgement.states["faithfulness"] is JudgeState.ABSTAINED


def test_without_a_reference_faithfulness_is_still_scored() -> None:
    judgement, _ = ask_judge(a_sample(reference=None), QUOTING)
    assert judgement.metrics["faithfulness"] == 1.0
    assert judgement.metrics["hallucination"] == 0.0
    assert judgement.states["context_recall"] is JudgeState.UNDEFINED
    assert {cell.chunk_id for cell in judgement.cells} == {"k1", "k2", "k3"}


def test_a_claim_that_is_said_twice_counts_once() -> None:
    judgement, _ = ask_judge(
        a_sample(answer=None),
        [claims_reply([EXPIRY, EXPIRY.upper(), EXPIRY]), matrix_reply(row("r1", ["c1"]))],
    )
    assert [claim.id for claim in judgement.claims] == ["r1"]


def test_a_long_chunk_is_judged_in_parts_and_keeps_one_cell() -> None:
    long = "\n".join(f"Paragraph {place} of nothing." for place in range(60)) + "\n" + PLANS
    sample = a_sample([long, WEATHER], answer=None)

    def says(request: Any) -> str:
        if request.prompt == "claims":
            return claims_reply([EXPIRY])
        return matrix_reply(row("r1", [(name, PLANS) for name, text in texts_of(request).items() if PLANS in text][:1]))

    judgement, requests = ask_judge(sample, says, how(max_chunk_chars=800))
    texts = texts_of(requests[1])
    assert [name for name in texts if name != "claims"] == ["c1", "c2", "c3", "c4"]
    assert all(len(text) <= 800 for name, text in texts.items() if name != "claims")
    assert [(cell.chunk_id, cell.verdict) for cell in judgement.cells] == [
        ("k1", Verdict.SUPPORTED),
        ("k2", Verdict.MISSING),
    ]
    assert judgement.cells[0].quote == PLANS


def test_parts_that_contradict_each_other_give_no_verdict() -> None:
    sample = a_sample(["x" * 700 + "y" * 700], answer=None)
    judgement, _ = ask_judge(
        sample, [claims_reply([EXPIRY]), matrix_reply(row("r1", ["c1"], ["c2"]))], how(max_chunk_chars=800)
    )
    assert (judgement.cells[0].verdict, judgement.cells[0].reason) == (None, "its parts contradict each other")
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED


def test_many_claims_and_much_text_are_asked_about_in_several_calls() -> None:
    claims = [f"Fact {place}" for place in range(5)]
    sample = a_sample(["a" * 900, "b" * 900, "c" * 900], answer=None, reference=". ".join(claims))
    _, requests = ask_judge(sample, Oracle(claims), how(max_claims=2, max_batch_chars=2_000))
    asked = [(list(rows_of(request)), sorted(set(texts_of(request)) - {"claims"})) for request in requests[1:]]
    assert asked == [
        (["r1", "r2"], ["c1", "c2"]),
        (["r3", "r4"], ["c1", "c2"]),
        (["r5"], ["c1", "c2"]),
        (["r1", "r2"], ["c3"]),
        (["r3", "r4"], ["c3"]),
        (["r5"], ["c3"]),
    ]


def test_a_chunk_without_text_gets_no_verdict() -> None:
    judgement, requests = ask_judge(a_sample([" ", LIMITS], answer=None), QUOTING)
    assert "c2" not in texts_of(requests[1])
    blank = next(cell for cell in judgement.cells if cell.chunk_id == "k1")
    assert (blank.verdict, blank.reason) == (None, "not asked: the chunk has no text")
    assert judgement.states["context_recall"] is JudgeState.UNMEASURED


@pytest.mark.parametrize(
    ("query", "reference", "answer", "chunk", "quote"),
    [
        (
            "無料のキーはいつ失効しますか。",
            "無料のキーは30日後に失効します。",
            "30日後に失効します。",
            "無料プランのキーは、作成から３０日後に「失効」します。更新はできません。",
            "30日後に失効します",
        ),
        (
            "متى تنتهي صلاحية المفاتيح المجانية؟",
            "تنتهي صلاحية المفاتيح المجانية بعد 30 يومًا.",
            "بعد 30 يومًا.",
            "تَنتَهي صلاحيّة المفاتيح المجانية بعد 30 يومًا، ولا يمكن تجديدها.",
            "المفاتيح المجانية بعد 30 يومًا",
        ),
        (
            "Wann laufen kostenlose Schlüssel ab?",
            "Kostenlose Schlüssel laufen nach 30 Tagen ab.",
            "Nach 30 Tagen.",
            "Kostenlose Schlu\u0308ssel laufen nach 30\u00a0Tagen ab; Großkunden ausgenommen.",
            "Schlüssel laufen nach 30 Tagen ab",
        ),
    ],
    ids=["japanese", "arabic", "german"],
)
@pytest.mark.parametrize("mode", ["matrix", "per_claim"])
def test_languages_other_than_english_are_judged_in_their_own_words(
    mode: str, query: str, reference: str, answer: str, chunk: str, quote: str
) -> None:
    oracle = Oracle([reference], [answer], {reference: {chunk: quote, answer: answer}, answer: {chunk: quote}})
    sample = a_sample([chunk], query=query, reference=reference, answer=answer)
    judgement, requests = ask_judge(sample, oracle, how(mode=mode))
    assert [claim.text for claim in judgement.claims] == [reference, answer]
    assert all(claim.quote_found for claim in judgement.claims)
    assert [cell.quote for cell in judgement.cells if cell.chunk_id == "k1"] == [quote, quote]
    assert judgement.metrics["context_recall"] == judgement.metrics["answer_recall"] == 1.0
    assert texts_of(requests[0])["question"] == query


def tokens(*pairs: tuple[str, dict[str, float]]) -> tuple[dict[str, Any], ...]:
    import math

    return tuple(
        {
            "token": text,
            "logprob": math.log(top.get(text, 1.0)),
            "top": [{"token": other, "logprob": math.log(p)} for other, p in top.items()],
        }
        for text, top in pairs
    )


SPOKEN = tokens(
    ('{"verdicts":{"', {}),
    ("c1", {}),
    ('":"', {}),
    ("support", {"support": 0.6, "contr": 0.1, "missing": 0.25}),
    ('ed","', {}),
    ("c2", {}),
    ('": ', {}),
    ('"missing', {'"missing': 0.7, '"support': 0.3}),
    ('"}}', {}),
)


def per_claim(**given: Any) -> Judgement:
    said = Reply(text="".join(str(token["token"]) for token in SPOKEN), finish_reason="stop", tokens=SPOKEN)
    sample = a_sample([PLANS, LIMITS], answer=None)
    return ask_judge(sample, [claims_reply([EXPIRY]), said], how(mode="per_claim", logprobs=True, **given))[0]


def test_p_supported_is_read_where_the_verdict_was_begun() -> None:
    cells = per_claim().cells
    assert [(cell.chunk_id, cell.verdict) for cell in cells] == [("k1", Verdict.SUPPORTED), ("k2", Verdict.MISSING)]
    assert cells[0].p_supported == pytest.approx(0.6)  # 0.05 went to what was not listed: it counts against
    assert cells[1].p_supported == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (0.65, [Verdict.MISSING, Verdict.MISSING]),
        (0.5, [Verdict.SUPPORTED, Verdict.MISSING]),
        (0.25, [Verdict.SUPPORTED, Verdict.SUPPORTED]),
    ],
)
def test_a_cut_on_p_supported_decides_without_another_call(cut: float, expected: list[Verdict]) -> None:
    assert [cell.verdict for cell in per_claim(p_cut=cut).cells] == expected


def test_tokens_that_do_not_spell_the_reply_give_no_probability() -> None:
    said = Reply(
        text=json.dumps({"verdicts": {"c1": "supported"}}), finish_reason="stop", tokens=tokens(("yes", {"yes": 1.0}))
    )
    judgement, _ = ask_judge(a_sample([PLANS], answer=None), [claims_reply([EXPIRY]), said], how(mode="per_claim"))
    assert judgement.cells[0].p_supported is None
