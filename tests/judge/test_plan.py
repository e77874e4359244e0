"""The plan against the run itself: the same calls, about the same tokens, and what is on tape counted apart."""

import json

import pytest
from judge_builders import LIMITS, PLANS, PROMPTS, Oracle, a_sample, ask_judge, how

from ragaudit.judge.how import HowToJudge
from ragaudit.judge.plan import BYTES_PER_TOKEN, Load, nothing_recorded, plan, recorded
from ragaudit.judge.tape import Tape, TapeMode
from ragaudit.model.judgement import JudgeSample, Reply, SampleChunk

CLAIM = "Free keys expire after 30 days."
KNOWS = Oracle([CLAIM], ["After 30 days."], {CLAIM: {PLANS: "30 days"}, "After 30 days.": {PLANS: "30 days"}})
KNOWS_NOTHING = Oracle([CLAIM], ["After 30 days."])


def planned(*samples, lookup=nothing_recorded, **settings):
    return plan(samples, prompts=PROMPTS, how=how(**settings), lookup=lookup)


@pytest.mark.parametrize("mode", ["matrix", "per_claim"])
def test_a_plan_counts_the_calls_of_a_run_whose_context_supports_everything(mode):
    sample = a_sample(candidates=[LIMITS] * 3)
    _, requests = ask_judge(sample, KNOWS, how(mode=mode))
    found = planned(sample, mode=mode)
    assert found.expected.calls == len(requests)
    # Claims come back from the model; what the plan imagines in their place is as long as the texts.
    sent = sum(len(message["content"].encode()) for request in requests for message in request.messages)
    assert found.expected.input_tokens == pytest.approx(sent / BYTES_PER_TOKEN, rel=0.02)


@pytest.mark.parametrize("mode", ["matrix", "per_claim"])
def test_at_most_it_counts_the_search_for_evidence_that_nothing_supports(mode):
    sample = a_sample(candidates=[f"{LIMITS} {n}" for n in range(20)])
    _, requests = ask_judge(sample, KNOWS_NOTHING, how(mode=mode))
    found = planned(sample, mode=mode)
    assert found.most.calls == len(requests)
    assert found.expected.calls < found.most.calls


def test_a_sample_with_nothing_to_ask_needs_no_call():
    found = planned(a_sample(chunks=None), a_sample(chunks=()), a_sample())
    assert (found.samples, found.without_call, found.expected.calls) == (3, 2, 2)


def test_two_calls_a_sample_and_at_most_7000_tokens_on_the_common_yardstick():
    # 8 chunks of 300 tokens, question 20, reference 80, answer 120 tokens, about 4 and 6 claims.
    def words(tokens):
        return ("word " * tokens)[: tokens * BYTES_PER_TOKEN]

    chunks = tuple(SampleChunk(id=f"c{n}", text=words(300)) for n in range(8))
    sample = JudgeSample(query_id="q", query=words(20), reference=words(80), answer=words(120), chunks=chunks)
    found = planned(sample)
    assert found.expected.calls == 2
    assert found.expected.input_tokens < 7_000


def test_what_is_on_tape_is_counted_and_costs_nothing(tmp_path):
    sample = a_sample()
    cassette, cache = tmp_path / "judge.jsonl", tmp_path / "cache"
    _, (claims, matrix) = ask_judge(sample, KNOWS)
    with Tape.open(TapeMode.NEW, cassette=cassette, cache=None) as tape:
        tape.record(claims, Reply(text=KNOWS(claims), finish_reason="stop"))
    found = planned(sample, lookup=recorded(cassette, None))
    assert (found.expected.calls, found.expected.on_tape) == (2, 1)
    assert found.expected.input_tokens == -(
        -sum(len(m["content"].encode()) for m in matrix.messages) // BYTES_PER_TOKEN
    )
    with Tape.open(TapeMode.NEW, cassette=None, cache=cache) as tape:
        tape.record(matrix, Reply(text=KNOWS(matrix), finish_reason="stop"))
    assert planned(sample, lookup=recorded(cassette, cache)).expected == Load(calls=2, on_tape=2)


def test_looking_at_a_tape_that_is_not_there_makes_nothing(tmp_path):
    lookup = recorded(tmp_path / "no.jsonl", tmp_path / "no")
    assert planned(a_sample(), lookup=lookup).expected.on_tape == 0
    assert list(tmp_path.iterdir()) == []


def test_the_price_is_that_of_the_list_and_never_guessed():
    found = planned(a_sample(), model="gpt-4o-mini")
    expected = found.expected
    assert found.price is not None
    assert found.usd == expected.input_tokens * found.price.input + expected.output_tokens * found.price.output
    assert found.most_usd >= found.usd > 0
    unknown = planned(a_sample(), model="openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1")
    assert (unknown.price, unknown.usd, unknown.most_usd) == (None, None, None)


def test_every_kind_of_question_gets_an_imagined_answer():
    relevance_only = a_sample(answer=None, reference=None)
    assert planned(relevance_only).expected.calls == 1
    assert planned(relevance_only, mode="per_claim").expected.calls == 1


def test_long_texts_are_planned_in_parts():
    long = a_sample(chunks=["word " * 4_000] * 3)
    settings = HowToJudge(model="m", max_chunk_chars=8_000, max_batch_chars=20_000)
    found = plan([long], prompts=PROMPTS, how=settings, lookup=nothing_recorded)
    _, requests = ask_judge(long, KNOWS_NOTHING, settings)
    assert found.expected.calls == len(requests) == 6


def test_claims_in_any_script_are_cut_by_their_bytes():
    short, long = (
        a_sample(answer="サポート", reference=None),
        a_sample(answer="サポート契約は三十日で終わります。" * 40, reference=None),
    )
    assert planned(short).expected.output_tokens < planned(long).expected.output_tokens


def test_a_reply_that_the_plan_imagines_is_never_json_that_the_reader_refuses():
    imagined = []

    def lookup(request):
        imagined.append(request.prompt)

    found = planned(a_sample(answer='Say "no"\n{} </answer>'), lookup=lookup)
    assert imagined[:2] == ["claims", "matrix"]
    assert found.expected.calls == 2
    assert json.loads(json.dumps(found.expected.__dict__)) == found.expected.__dict__
