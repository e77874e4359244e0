"""The whole judge against a model on 127.0.0.1 that goes wrong in every way: nothing is lost, nothing is invented."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from judge_builders import LIMITS, PLANS, WEATHER, Oracle
from judge_builders import a_sample as any_sample
from loopback import Asked, Die, Drip, Loopback, Raw, Say, Status, Step
from msgspec.structs import replace
from tape_builders import FakeClock, NoJitter

from ragaudit.errors import JudgeError
from ragaudit.judge.client import LiteLLMClient
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.limits import Limits
from ragaudit.judge.price import price_of
from ragaudit.judge.progress import JudgeProgress
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.runner import run
from ragaudit.judge.tape import Tape, TapeMode
from ragaudit.model.judgement import JudgeCall, Judgement, JudgeSample, JudgeState, Request

PROMPTS = PromptSet.load(None)
TOO_LONG = "the request is too long for the model"
FACT = "Free keys expire after 30 days."
SAID = "Keys expire after 30 days."
ORACLE = Oracle([FACT], [SAID], supports={FACT: {PLANS: PLANS, SAID: SAID}, SAID: {PLANS: PLANS, FACT: FACT}})


def a_sample(*chunks: Any, **given: Any) -> JudgeSample:
    return any_sample(*chunks, **({"reference": FACT, "answer": SAID} | given))


def prompt_of(asked: Asked) -> str:
    return str(asked.body["response_format"]["json_schema"]["name"])


def truth(asked: Asked) -> str:
    """What a model would say that knows the truth, also when it is asked to repair."""
    messages = tuple(asked.body["messages"])
    prompt = prompt_of(asked)
    if prompt == "repair":
        prompt = "matrix" if "Claim ids" in messages[1]["content"] else "claims"
    return ORACLE(Request(model="m", messages=messages[:2], prompt=prompt, version=1))


def truthful(asked: Asked) -> Step:
    return Say(truth(asked), usage=(100, 20))


def first_matrix(step: Callable[[Asked], Step]) -> Callable[[Asked], Step]:
    """All is well, but for the first matrix call."""
    seen: list[int] = []

    def script(asked: Asked) -> Step:
        if prompt_of(asked) == "matrix" and not seen:
            seen.append(asked.number)
            return step(asked)
        return truthful(asked)

    return script


def judged(
    script: Callable[[Asked], Step] | Step, tmp_path: Path, samples: list[JudgeSample] | None = None, **limits: Any
) -> tuple[list[Judgement], JudgeProgress, Loopback]:
    seen = [JudgeProgress()]
    samples = samples or [a_sample()]
    path = tmp_path / "c.jsonl"
    with Loopback(script) as server, Tape.open(TapeMode.NEW, cassette=path, cache=None) as tape:
        bounds = Limits(**({"call_timeout": 20, "attempts": 2} | limits))
        client = LiteLLMClient(bounds, clock=FakeClock(), random=NoJitter(), env={})  # type: ignore[arg-type]
        how = HowToJudge(model="openai/m", api_base=server.url)
        done = list(
            run(samples, prompts=PROMPTS, how=how, tape=tape, client=client, limits=bounds, progress=seen.append)
        )
    last = seen[-1]
    if not last.failed:  # whatever was replied, a replay misses nothing and says the same
        with Tape.open(TapeMode.NONE, cassette=path, cache=None) as tape:
            again = list(run(samples, prompts=PROMPTS, how=how, tape=tape, client=None))
        assert [as_replayed(judgement) for judgement in done] == again
    calls = [call for judgement in done for call in judgement.calls]
    # What the runner counted and what the judgements say is the same, whatever happened.
    assert last.requests == len(calls)
    assert last.replies == sum(not call.from_tape and not is_failure(call.error) for call in calls)
    assert last.from_tape + last.shared == sum(call.from_tape for call in calls)
    assert last.in_flight == 0
    assert (last.input_tokens, last.output_tokens) == (
        sum(call.input_tokens for call in calls if not call.from_tape),
        sum(call.output_tokens for call in calls if not call.from_tape),
    )
    return done, last, server


def as_replayed(judgement: Judgement) -> Judgement:
    return replace(judgement, calls=tuple(replace(call, from_tape=True) for call in judgement.calls))


def is_failure(error: str | None) -> bool:
    return (
        error is not None
        and re.match(r"(not asked|server|connection|timeout|rate_limit|auth|bad_request)", error) is not None
    )


def recorded(tmp_path: Path) -> list[str]:
    """The replies on the cassette."""
    path = tmp_path / "c.jsonl"
    return [json.loads(line)["reply"]["text"] for line in path.read_text().splitlines()[1:]] if path.exists() else []


def test_without_faults_two_calls_score_a_query(tmp_path: Path) -> None:
    (judgement,), last, server = judged(truthful, tmp_path)
    assert (judgement.metrics["context_recall"], judgement.metrics["faithfulness"]) == (1.0, 1.0)
    assert (len(server.asked), last.replies, last.failed) == (2, 2, {})
    assert len(recorded(tmp_path)) == 2


# --- faults of the transport that pass ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        Status(429),
        Status(429, headers={"Retry-After": "2"}),
        Status(500),
        Status(503, headers={"Retry-After": "1"}),
        Die(),
        Raw(b'{"id": "x", "choices": [{"mess'),
        Raw(b'{"id": "x"', announced=9000),
        Drip(),
    ],
)
def test_a_fault_that_passes_changes_no_score(tmp_path: Path, fault: Step) -> None:
    limits = {"call_timeout": 1.0} if isinstance(fault, Drip) else {}
    (judgement,), last, server = judged(first_matrix(lambda _: fault), tmp_path, **limits)
    assert judgement.metrics["faithfulness"] == 1.0 and judgement.states["context_recall"] is JudgeState.SCORED
    assert (len(server.asked), last.replies, last.failed) == (3, 2, {})


# --- faults that stay: failed, counted, never a score ---------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "sent"),
    [
        (Status(500), "server", 2),
        (Status(429), "rate_limit", 2),
        (Die(), "connection", 2),
        (Drip(), "timeout", 2),
        (Raw(b"{"), "server", 2),
    ],
)
def test_a_matrix_that_never_comes_is_a_failure_and_no_zero(tmp_path: Path, fault: Step, kind: str, sent: int) -> None:
    def script(asked: Asked) -> Step:
        return fault if prompt_of(asked) == "matrix" else truthful(asked)

    limits = {"call_timeout": 0.5} if isinstance(fault, Drip) else {}
    (judgement,), last, server = judged(script, tmp_path, **limits)
    assert judgement.metrics["faithfulness"] is None and judgement.metrics["context_recall"] is None
    assert judgement.states["faithfulness"] is JudgeState.JUDGE_FAILED
    assert kind in judgement.reasons["faithfulness"]
    assert [cell.verdict for cell in judgement.cells] == [None] * len(judgement.cells)
    assert (last.failed, len(server.asked)) == ({kind: 1}, 1 + sent)
    assert len(recorded(tmp_path)) == 1, "only the claims"


def test_a_query_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step:
        return Status(500) if "broken" in asked.text else truthful(asked)

    samples = [a_sample(query_id=f"q{i}", query="broken?" if i == 3 else f"when? {i}") for i in range(8)]
    done, last, _ = judged(script, tmp_path, samples)
    states = [judgement.states["faithfulness"] for judgement in done]
    assert [judgement.query_id for judgement in done] == [f"q{i}" for i in range(8)]
    assert states == [JudgeState.JUDGE_FAILED if i == 3 else JudgeState.SCORED for i in range(8)]
    assert last.failed == {"server": 1}


# --- replies that cannot be used as they are ------------------------------------------------------------------


def test_half_json_is_repaired_once_and_kept_raw(tmp_path: Path) -> None:
    half = '{"verdicts": [{"id": "r1", "supp'
    (judgement,), last, _ = judged(first_matrix(lambda _: Say(half)), tmp_path)
    assert judgement.metrics["faithfulness"] == 1.0
    assert [call.raw for call in judgement.calls if call.raw] == [half]
    assert last.replies == 3


def test_prose_in_place_of_json_twice_is_a_failure_with_the_words_kept(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step:
        is_claims = prompt_of(asked) == "claims"
        return truthful(asked) if is_claims else Say("Certainly! All claims are supported.")

    (judgement,), last, _ = judged(script, tmp_path)
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED
    assert judgement.metrics["context_recall"] is None
    assert [call.raw for call in judgement.calls[1:]] == ["Certainly! All claims are supported."] * 2
    assert last.replies == 3


@pytest.mark.parametrize("finish_reason", ["length", "content_filter"])
def test_a_reply_that_was_cut_off_or_filtered_is_no_verdict_and_recorded_as_what_it_is(
    tmp_path: Path, finish_reason: str
) -> None:
    def script(asked: Asked) -> Step:
        said = truthful(asked)
        assert isinstance(said, Say)
        return said if prompt_of(asked) == "claims" else Say(said.text, finish_reason=finish_reason)

    (judgement,), last, _ = judged(script, tmp_path)
    assert judgement.states["faithfulness"] is JudgeState.JUDGE_FAILED
    assert all(cell.verdict is None for cell in judgement.cells)
    assert len(recorded(tmp_path)) == last.replies


def test_a_reply_that_was_cut_off_is_asked_for_in_pieces(tmp_path: Path) -> None:
    (judgement,), last, _ = judged(first_matrix(lambda _: Say('{"verd', finish_reason="length")), tmp_path)
    assert judgement.metrics["faithfulness"] == 1.0 and judgement.metrics["context_recall"] == 1.0
    assert last.replies > 3
    assert len(recorded(tmp_path)) == last.replies


@pytest.mark.parametrize(
    "step",
    [Say("", refusal="I cannot help with that."), Status(400, "I cannot", error_code="content_policy_violation")],
)
def test_a_refusal_is_no_score_and_recorded_as_what_it_is(tmp_path: Path, step: Step) -> None:
    (judgement,), last, _ = judged(first_matrix(lambda _: step), tmp_path)
    assert judgement.states["faithfulness"] is JudgeState.JUDGE_FAILED
    assert "refused" in judgement.reasons["faithfulness"]
    assert len(recorded(tmp_path)) == last.replies == 2
    assert "I cannot" in (judgement.calls[1].raw or "")


def test_a_request_that_is_too_long_is_asked_in_pieces_that_fit(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step:
        n = len(re.findall(r"^<(?:c\d|answer|reference):", asked.text, re.MULTILINE))
        if prompt_of(asked) == "matrix" and n > 2:
            return Status(400, "This model's maximum context length is 512 tokens.")
        return truthful(asked)

    (judgement,), last, server = judged(script, tmp_path)
    assert judgement.metrics["faithfulness"] == judgement.metrics["context_recall"] == 1.0
    assert set(judgement.states.values()) == {JudgeState.SCORED}
    # Five texts: too long; two and three: too long; one and two.
    errors = [call.error for call in judgement.calls]
    assert errors == [None, TOO_LONG, None, TOO_LONG, None, None]
    assert len(server.asked) == last.replies == len(recorded(tmp_path)) == 6


def test_a_text_that_is_too_long_by_itself_is_a_failure_and_no_zero(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step:
        return truthful(asked) if prompt_of(asked) == "claims" else Status(413, "payload too large")

    (judgement,), last, server = judged(script, tmp_path)
    assert {cell.reason for cell in judgement.cells} == {TOO_LONG}
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED
    assert judgement.metrics["context_recall"] is None
    assert len(server.asked) == last.replies < 40


def test_verdicts_about_nothing_that_was_asked_are_dropped(tmp_path: Path) -> None:
    def more(asked: Asked) -> Step:
        said = json.loads(truth(asked))
        extra = {"id": "r99", "supported": [{"text": "c1", "quote": ""}], "contradicted": []}
        stray = {"text": "c77", "quote": ""}
        said["verdicts"] = [extra, *said["verdicts"], extra]
        said["verdicts"][1]["supported"].append(stray)
        return Say(json.dumps(said))

    (judgement,), _, _ = judged(first_matrix(more), tmp_path)
    assert {cell.claim_id for cell in judgement.cells} == {"r1", "a1"}
    assert {cell.chunk_id for cell in judgement.cells} <= {"k1", "k2", "k3", "@answer", "@reference"}
    assert (judgement.metrics["context_recall"], judgement.metrics["faithfulness"]) == (1.0, 1.0)


@pytest.mark.parametrize("missing", ["r1", "a1"])
def test_a_missing_verdict_alone_is_asked_for_again(tmp_path: Path, missing: str) -> None:
    def fewer(asked: Asked) -> Step:
        said = json.loads(truth(asked))
        said["verdicts"] = [row for row in said["verdicts"] if row["id"] != missing]
        return Say(json.dumps(said))

    (judgement,), last, server = judged(first_matrix(fewer), tmp_path)
    assert (judgement.metrics["context_recall"], judgement.metrics["faithfulness"]) == (1.0, 1.0)
    assert last.replies == 3 and f"{missing}: " in server.asked[2].text


def test_wrong_ids_only_are_no_verdicts(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step:
        if prompt_of(asked) == "claims":
            return truthful(asked)
        rows = [{"id": f"x{i}", "supported": [{"text": "c1", "quote": ""}], "contradicted": []} for i in range(5)]
        return Say(json.dumps({"verdicts": rows}))

    (judgement,), _, _ = judged(script, tmp_path)
    assert judgement.metrics["faithfulness"] is None and judgement.metrics["context_recall"] is None
    assert judgement.states["faithfulness"] is JudgeState.JUDGE_FAILED


# --- limits and stops -----------------------------------------------------------------------------------------


def test_a_wrong_key_stops_the_run_with_what_to_check(tmp_path: Path) -> None:
    samples = [a_sample(query_id=f"q{i}", query=f"q{i}?") for i in range(100)]
    with pytest.raises(JudgeError, match=r"the model refuses the requests: .*Check the API key"):
        judged(Status(401, "bad key"), tmp_path, samples)
    assert recorded(tmp_path) == []


def test_a_run_after_a_failed_one_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    samples = [a_sample(query_id=f"q{i}", query=f"when? {i}") for i in range(4)]
    is_up = [False]

    def script(asked: Asked) -> Step:
        return truthful(asked) if is_up[0] or "when? 1" in asked.text or prompt_of(asked) == "matrix" else Status(500)

    seen: list[int] = []
    with Loopback(script) as server:
        for up in (False, True):
            is_up[0] = up
            with Tape.open(TapeMode.NEW, cassette=tmp_path / "c.jsonl", cache=None) as tape:
                client = LiteLLMClient(Limits(attempts=1), clock=FakeClock(), env={})
                how = HowToJudge(model="openai/m", api_base=server.url)
                done = list(run(samples, prompts=PROMPTS, how=how, tape=tape, client=client))
            seen.append(len(server.asked))
    assert all(judgement.metrics["faithfulness"] == 1.0 for judgement in done)
    # First: four claims calls, of which one came through, and its matrix; then three claims calls. The matrix of all
    # four is the same, since the chunks and claims are: it is on the tape already.
    assert seen == [5, 8]


def test_a_spent_budget_loses_nothing_and_invents_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [a_sample(query_id=f"q{i}", query=f"when? {i}", reference=f"{FACT} {i}.") for i in range(8)]
    how = HowToJudge(model="openai/gpt-4o-mini")
    price = price_of(how.model)
    assert price is not None
    one_call = 100 * price.input + 20 * price.output

    def go(max_cost: float | None) -> tuple[list[Judgement], JudgeProgress, list[JudgeCall]]:
        seen: list[JudgeProgress] = []
        limits = Limits(max_cost=max_cost, concurrency=4)
        with Tape.open(TapeMode.NEW, cassette=tmp_path / "c.jsonl", cache=None) as tape:
            client = LiteLLMClient(limits)
            done = list(
                run(samples, prompts=PROMPTS, how=how, tape=tape, client=client, limits=limits, progress=seen.append)
            )
        calls = [call for judgement in done for call in judgement.calls]
        assert [judgement.query_id for judgement in done] == [sample.query_id for sample in samples]
        assert seen[-1].requests == len(calls)
        assert seen[-1].usd == pytest.approx(sum(call.usd or 0.0 for call in calls if not call.from_tape))
        return done, seen[-1], calls

    with Loopback(truthful) as server:
        # The provider's own model, for which a price is known, at the address of the loopback.
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        done, last, calls = go(5.5 * one_call)
        assert len(server.asked) == len(recorded(tmp_path)) == last.replies == 5
        assert last.usd == pytest.approx(5 * one_call)
        assert last.failed == {"budget": len(calls) - 5}
        assert [call.error for call in calls if call.error] == ["not asked: the budget was spent"] * (len(calls) - 5)
        unscored = [judgement for judgement in done if judgement.metrics["faithfulness"] is None]
        assert len(unscored) >= 6
        assert {judgement.states["faithfulness"] for judgement in unscored} == {JudgeState.UNMEASURED}
        assert {judgement.metrics["faithfulness"] for judgement in done} <= {None, 1.0}

        done, last, _ = go(None)
    assert all(judgement.metrics["faithfulness"] == 1.0 for judgement in done)
    assert (last.from_tape, last.replies, last.failed) == (5, 11, {})
    assert len(server.asked) == len(recorded(tmp_path)) == 16


def test_many_queries_with_many_faults_all_come_out(tmp_path: Path) -> None:
    faults: list[Step] = [Status(429), Status(500), Die(), Raw(b"{"), Status(429, headers={"Retry-After": "1"})]

    tries: Counter[str] = Counter()

    def script(asked: Asked) -> Step:
        """Every other request goes wrong at first, once to three times."""
        key = json.dumps(asked.body["messages"])
        tries[key] += 1
        bad = crc32(key.encode()) % 8
        return faults[(bad + tries[key]) % 5] if bad < 4 and tries[key] <= max(1, bad) else truthful(asked)

    texts = [LIMITS, WEATHER]
    samples = [a_sample((PLANS, texts[i % 2], f"Note {i}."), query_id=f"q{i}", query=f"when? {i}") for i in range(40)]
    done, last, server = judged(script, tmp_path, samples, attempts=4, concurrency=8)
    assert [judgement.query_id for judgement in done] == [f"q{i}" for i in range(40)]
    assert all(judgement.metrics["faithfulness"] == 1.0 for judgement in done)
    assert (last.failed, last.replies) == ({}, 80)
    assert len(recorded(tmp_path)) == 80 and len(server.asked) > 100 and server.most_in_flight <= 8
