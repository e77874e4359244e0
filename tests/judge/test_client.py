import asyncio
from email.utils import formatdate
from typing import Any

import msgspec
import pytest
from loopback import Asked, Die, Drip, Loopback, Raw, Say, Status, Step
from msgspec.structs import replace
from tape_builders import FakeClock, NoJitter, a_request

from ragaudit.errors import JudgeError
from ragaudit.judge.client import LiteLLMClient
from ragaudit.judge.limits import Limits
from ragaudit.model.judgement import Failure, Reply, Request


def ask(
    server: Loopback,
    *requests: Request,
    clock: FakeClock | None = None,
    env: dict[str, str] | None = None,
    structured: bool | None = None,
    **limits: Any,
) -> list[Reply | Failure]:
    client = LiteLLMClient(
        Limits(**({"call_timeout": 20, "attempts": 3} | limits)),
        clock=clock or FakeClock(),
        random=NoJitter(),  # type: ignore[arg-type]
        env=env or {},
        structured=structured,
    )

    async def all_of_them() -> list[Reply | Failure]:
        asked = requests or (a_request(),)
        try:
            there = [replace(request, api_base=server.url) for request in asked]
            return await asyncio.gather(*(client.complete(request) for request in there))
        finally:
            await client.aclose()

    return asyncio.run(all_of_them())


def one(server: Loopback, *requests: Request, **how: Any) -> Reply | Failure:
    (outcome,) = ask(server, *requests, **how)
    return outcome


def by_turns(*steps: Step) -> Any:
    return lambda asked: steps[min(asked.number, len(steps) - 1)]


# --- what is sent, what comes back ----------------------------------------------------------------------------


def test_a_reply_brings_text_reason_usage_and_no_price_of_its_own_making() -> None:
    with Loopback(Say("yes", usage=(12, 3))) as server:
        reply = one(server)
    assert reply == Reply(text="yes", finish_reason="stop", input_tokens=12, output_tokens=3, usd=None, model="m")


def test_messages_and_parameters_are_sent_as_they_are() -> None:
    with Loopback() as server:
        one(server, a_request("Größe?", parameters={"temperature": 0, "seed": 7, "max_tokens": 99}))
    (asked,) = server.asked
    assert asked.body["messages"] == [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "Größe?"},
    ]
    assert (asked.body["temperature"], asked.body["seed"], asked.body["max_tokens"]) == (0, 7, 99)
    assert asked.body["model"] == "m"
    assert "response_format" not in asked.body and asked.headers["authorization"] == "Bearer none"


def test_a_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    with Loopback() as server:
        one(server, env={"OPENAI_API_KEY": "sk-from-the-environment"})
    assert server.asked[0].headers["authorization"] == "Bearer sk-from-the-environment"


def test_log_probabilities_come_back() -> None:
    with Loopback(Say("yes", logprobs=(("yes", -0.25),))) as server:
        reply = one(server, a_request(parameters={"logprobs": True, "top_logprobs": 5}))
    assert server.asked[0].body["logprobs"] is True
    assert isinstance(reply, Reply)
    assert reply.tokens == ({"token": "yes", "logprob": -0.25, "top": [{"token": "yes", "logprob": -0.25}]},)


def test_a_reply_without_usage_counts_no_tokens() -> None:
    with Loopback(Say(usage=None)) as server:
        reply = one(server)
    assert isinstance(reply, Reply) and (reply.input_tokens, reply.output_tokens, reply.usd) == (0, 0, None)


def test_a_reply_that_was_cut_off_says_so() -> None:
    with Loopback(Say('{"verd', finish_reason="length")) as server:
        reply = one(server)
    assert isinstance(reply, Reply) and (reply.text, reply.finish_reason) == ('{"verd', "length")


@pytest.mark.parametrize(
    ("step", "text"),
    [(Say("", refusal="I cannot."), "I cannot."), (Say("", finish_reason="content_filter"), "")],
)
def test_a_refusal_is_marked(step: Say, text: str) -> None:
    with Loopback(step) as server:
        reply = one(server)
    assert isinstance(reply, Reply) and reply.refused and reply.text == text


def test_half_a_surrogate_pair_does_not_stop_a_call() -> None:
    with Loopback(Say("x\udc00y")) as server:
        reply = one(server, a_request("a\ud800b"))
    assert server.asked[0].text == "a?b"
    assert isinstance(reply, Reply) and reply.text == "x?y"


# --- structured output ----------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": False}


def dislikes_schemas(asked: Asked) -> Step:
    return Status(400, "response_format is not supported") if "response_format" in asked.body else Say()


def test_a_schema_is_sent_to_an_endpoint_of_ones_own() -> None:
    with Loopback() as server:
        one(server, a_request(reply_schema=SCHEMA))
    assert server.asked[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "matrix", "schema": SCHEMA, "strict": True},
    }


def test_an_endpoint_that_refuses_schemas_is_asked_without_and_that_is_remembered() -> None:
    requests = [a_request(text, reply_schema=SCHEMA) for text in ("one", "two")]
    with Loopback(dislikes_schemas) as server:
        outcomes = ask(server, *requests, concurrency=1)
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert ["response_format" in asked.body for asked in server.asked] == [True, False, False]


def test_structured_false_never_sends_a_schema_and_true_insists() -> None:
    with Loopback(dislikes_schemas) as server:
        assert isinstance(one(server, a_request(reply_schema=SCHEMA), structured=False), Reply)
        insisted = one(server, a_request(reply_schema=SCHEMA), structured=True)
    assert isinstance(insisted, Failure) and insisted.kind == "bad_request"
    assert ["response_format" in asked.body for asked in server.asked] == [False, True]


# --- faults: which are tried again, and after how long --------------------------------------------------------


def test_429_waits_as_long_as_the_server_says() -> None:
    clock = FakeClock()
    with Loopback(by_turns(Status(429, headers={"Retry-After": "7"}), Say())) as server:
        assert isinstance(one(server, clock=clock), Reply)
    assert len(server.asked) == 2
    # The pause itself with a little jitter; the gate for all calls is over by then.
    assert clock.waits == [pytest.approx(7.4)]


def test_what_a_call_waits_for_can_be_told() -> None:
    class Listening(FakeClock):
        async def sleep(self, seconds: float) -> None:
            said.append(client.waiting())
            await super().sleep(seconds)

    said: list[str] = []
    with Loopback(by_turns(Status(429, headers={"Retry-After": "7"}), Status(503), Say())) as server:
        client = LiteLLMClient(Limits(call_timeout=20), clock=Listening(), random=NoJitter(), env={})  # type: ignore[arg-type]
        request = msgspec.structs.replace(a_request(), api_base=server.url)

        async def call() -> Reply | Failure:
            try:
                return await client.complete(request)
            finally:
                await client.aclose()

        assert isinstance(asyncio.run(call()), Reply)
    assert said == ["1 call waits 7 s: rate limit (429)", "1 call waits 2 s: the server failed"]
    assert client.waiting() == ""


def test_429_with_an_http_date_waits_until_then() -> None:
    clock = FakeClock(now=1_700_000_000.0)
    date = formatdate(1_700_000_020, usegmt=True)
    with Loopback(by_turns(Status(429, headers={"Retry-After": date}), Say())) as server:
        assert isinstance(one(server, clock=clock), Reply)
    assert clock.waits == [pytest.approx(20.5)]


@pytest.mark.parametrize(
    ("header", "wait"),
    [("0", 0.05), ("-3", 0.75), ("soon", 0.75), ("nan", 0.75), ("Fri, 13 Feb 2009 23:31:30 GMT", 0.05)],
)
def test_an_odd_retry_after_is_no_wait_for_ever(header: str, wait: float) -> None:
    clock = FakeClock()
    with Loopback(by_turns(Status(429, headers={"Retry-After": header}), Say())) as server:
        assert isinstance(one(server, clock=clock), Reply)
    assert clock.waits == [pytest.approx(wait)]


def test_a_pause_of_an_hour_is_not_waited_for() -> None:
    clock = FakeClock()
    with Loopback(Status(429, "slow down", headers={"Retry-After": "3600"})) as server:
        outcome = one(server, clock=clock)
    assert isinstance(outcome, Failure) and outcome.kind == "rate_limit"
    assert outcome.message.endswith("slow down (the server asks to wait 3600 s)")
    assert (len(server.asked), clock.waits) == (1, [])


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Status(429), "rate_limit"),
        (Status(500), "server"),
        (Status(502), "server"),
        (Status(503), "server"),
        (Status(529), "server"),
        (Die(), "connection"),
        (Raw(b'{"id": "x", "choices": [{"mess'), "server"),
        (Raw(b"<html>bad gateway</html>"), "server"),
        (Raw(b'{"id": "x"', announced=4000), "connection"),
        (Raw(b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[]}'), "server"),
    ],
)
def test_what_may_pass_is_tried_again_with_growing_waits_and_then_given_up(step: Step, kind: str) -> None:
    clock = FakeClock()
    with Loopback(step) as server:
        outcome = one(server, clock=clock)
    assert isinstance(outcome, Failure), outcome
    assert (outcome.kind, len(server.asked)) == (kind, 3), outcome
    assert outcome.message.endswith("(3 attempts)")
    assert clock.waits == [pytest.approx(0.75), pytest.approx(1.5)]


@pytest.mark.parametrize("step", [Status(500), Die(), Raw(b'{"id": "x", "choices": [{"mess')])
def test_a_fault_that_passes_leaves_no_trace(step: Step) -> None:
    with Loopback(by_turns(step, Say("fine"))) as server:
        reply = one(server)
    assert isinstance(reply, Reply) and reply.text == "fine"


@pytest.mark.parametrize("step", [Drip(), Say(delay=5)])
def test_a_call_ends_when_its_time_is_up_however_slowly_bytes_come(step: Step) -> None:
    with Loopback(step) as server:
        outcome = one(server, call_timeout=0.3, attempts=2)
    assert isinstance(outcome, Failure) and outcome.kind == "timeout" and outcome.message.endswith("(2 attempts)")
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Status(401, "bad key"), "auth"),
        (Status(403, "not yours"), "auth"),
        (Status(429, "You exceeded your current quota", error_code="insufficient_quota"), "auth"),
        (Status(429, "insufficient_quota: buy more"), "auth"),
        (Status(404, "no such model"), "bad_request"),
        (Status(400, "wrong"), "bad_request"),
        (Status(422, "wrong"), "bad_request"),
    ],
)
def test_what_cannot_pass_is_not_tried_again(step: Step, kind: str) -> None:
    with Loopback(step) as server:
        outcome = one(server)
    assert isinstance(outcome, Failure) and outcome.kind == kind, outcome
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("step", "finish_reason"),
    [
        (Status(413, "too large"), "too_long"),
        (Status(400, "maximum context length is 10 tokens", error_code="context_length_exceeded"), "too_long"),
        (Status(400, "request (900 tokens) exceeds the available context size (512 tokens)"), "too_long"),
        (Status(400, "flagged", error_code="content_policy_violation"), "content_filter"),
    ],
)
def test_an_error_that_answers_the_request_is_a_reply(step: Status, finish_reason: str) -> None:
    with Loopback(step) as server:
        reply = one(server)
    assert isinstance(reply, Reply) and reply.finish_reason == finish_reason, reply
    assert step.message in reply.text and (reply.input_tokens, reply.usd) == (0, 0.0)
    assert len(server.asked) == 1


def test_nobody_listening_is_a_connection_failure() -> None:
    with Loopback() as server:
        pass
    outcome = one(server, attempts=1)
    assert isinstance(outcome, Failure) and outcome.kind == "connection"


def test_a_provider_that_repeats_the_key_does_not_get_it_into_a_report() -> None:
    with Loopback(
        Status(401, "Incorrect API key provided: sk-proj-abc123DEF456. Header: Bearer tok_0123456789")
    ) as server:
        outcome = one(server)
    assert isinstance(outcome, Failure)
    assert "abc123" not in outcome.message and "tok_0123" not in outcome.message
    assert "Incorrect API key provided: [redacted]" in outcome.message


# --- limits ---------------------------------------------------------------------------------------------------


def test_no_more_calls_are_in_flight_than_allowed() -> None:
    requests = [a_request(str(i)) for i in range(12)]
    with Loopback(Say(delay=0.03)) as server:
        outcomes = ask(server, *requests, concurrency=3)
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert server.most_in_flight == 3


def test_a_limit_on_the_cost_without_a_known_price_is_refused_before_anything_is_sent() -> None:
    with Loopback() as server, pytest.raises(JudgeError) as caught:
        one(server, max_cost=1.5)
    assert server.asked == []
    assert str(caught.value) == (
        "judge.max_cost: no price is known for openai/m, so $1.5 cannot be held. "
        "Remove the limit, and bound the run with --limit, rpm or overall_timeout."
    )


def test_a_client_serves_one_event_loop_after_another() -> None:
    client = LiteLLMClient(Limits(call_timeout=20), clock=FakeClock(), env={})

    async def once(url: str) -> Reply | Failure:
        try:
            return await client.complete(a_request(api_base=url))
        finally:
            await client.aclose()

    with Loopback() as server:
        outcomes = [asyncio.run(once(server.url)) for _ in range(3)]
    assert [type(outcome) for outcome in outcomes] == [Reply] * 3
