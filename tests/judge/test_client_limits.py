import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tape_builders import FakeClock, NoJitter, a_reply, a_request

from ragaudit.config import JudgeSettings
from ragaudit.errors import ConfigError
from ragaudit.judge.limits import Limits, Spacing, Throttle, backoff, estimated_tokens
from ragaudit.judge.price import Price, price_of
from ragaudit.judge.redact import is_secret_name, masked
from ragaudit.judge.settings import how_to_judge, limits, litellm_client, open_tape
from ragaudit.judge.tape import TapeMode


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


# --- rates ----------------------------------------------------------------------------------------------------


def test_requests_are_spaced_so_that_no_minute_holds_more_than_the_rate() -> None:
    rate = Spacing(60)
    assert [rate.reserve(1, now=100.0) for _ in range(3)] == [0.0, 1.0, 2.0]
    assert rate.reserve(1, now=200.0) == 0.0
    assert rate.reserve(1, now=200.5) == 0.5


def test_tokens_are_spaced_by_amount_and_corrected_by_what_was_used() -> None:
    rate = Spacing(6000)
    assert rate.reserve(300, now=0.0) == 0.0
    assert rate.reserve(100, now=0.0) == 3.0
    rate.correct(-200)
    assert rate.reserve(0, now=0.0) == 2.0


def test_no_rate_is_no_wait() -> None:
    assert [Spacing(None).reserve(10**9, now=5.0) for _ in range(2)] == [0.0, 0.0]


def test_the_throttle_waits_for_requests_and_tokens_a_minute() -> None:
    clock = FakeClock()
    throttle = Throttle(Limits(rpm=60, tpm=6000), clock)

    async def three_calls() -> None:
        for _ in range(3):
            async with throttle.slot(400):
                pass

    run(three_calls())
    assert clock.waits == [4.0, 4.0]


# --- adaptive concurrency -------------------------------------------------------------------------------------


def test_one_wave_of_429_halves_once_and_replies_bring_it_back() -> None:
    clock = FakeClock()
    throttle = Throttle(Limits(concurrency=16), clock)
    for _ in range(16):
        throttle.pushed_back(clock.monotonic() - 1, None)
    assert throttle.allowed == 8
    throttle.pushed_back(clock.monotonic(), None)
    assert throttle.allowed == 4
    for _ in range(200):
        throttle.answered(1, 1)
    assert throttle.allowed == 16


def test_it_never_falls_below_one() -> None:
    throttle = Throttle(Limits(concurrency=2), FakeClock())
    for _ in range(9):
        throttle.pushed_back(float("inf"), None)
    assert throttle.allowed == 1


def test_a_pause_holds_every_call_back() -> None:
    clock = FakeClock()
    throttle = Throttle(Limits(), clock)

    async def two_calls() -> None:
        throttle.pushed_back(clock.monotonic(), 30.0)
        for _ in range(2):
            async with throttle.slot(1) as started:
                assert started >= 1_700_000_030.0

    run(two_calls())
    assert clock.waits == [30.0]


def test_a_cancelled_wait_gives_its_turn_on() -> None:
    throttle = Throttle(Limits(concurrency=1), FakeClock())
    order: list[str] = []

    async def call(name: str) -> None:
        async with throttle.slot(1):
            order.append(name)
            await asyncio.sleep(0)

    async def scenario() -> None:
        tasks = [asyncio.create_task(call(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(scenario())
    assert order == ["a", "c"] and throttle.in_flight == 0


def test_a_turn_that_was_granted_to_a_call_cancelled_at_once_is_not_lost() -> None:
    throttle = Throttle(Limits(concurrency=1), FakeClock())
    order: list[str] = []

    async def call(name: str) -> None:
        async with throttle.slot(1):
            order.append(name)

    async def scenario() -> None:
        tasks: dict[str, asyncio.Task[None]] = {}

        async def first() -> None:
            async with throttle.slot(1):
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            tasks["b"].cancel()  # it has its turn, and has not run yet

        tasks["a"] = asyncio.create_task(first())
        await asyncio.sleep(0)
        tasks["b"], tasks["c"] = asyncio.create_task(call("b")), asyncio.create_task(call("c"))
        await asyncio.wait_for(asyncio.gather(*tasks.values(), return_exceptions=True), timeout=5)

    run(scenario())
    assert order == ["c"] and throttle.in_flight == 0


def test_backoff_doubles_with_jitter_up_to_a_minute_and_obeys_the_server() -> None:
    random = NoJitter()
    assert [backoff(n, None, random) for n in (1, 2, 3, 4, 20)] == [0.75, 1.5, 3.0, 6.0, 45.0]  # type: ignore[arg-type]
    assert backoff(1, 10.0, random) == 10.5  # type: ignore[arg-type]
    assert backoff(5, 0.0, random) == 0.05  # type: ignore[arg-type]


def test_tokens_are_estimated_in_every_script() -> None:
    assert estimated_tokens(a_request("a" * 390)) == 400
    assert estimated_tokens(a_request("日" * 130)) == 400


# --- prices ---------------------------------------------------------------------------------------------------

TABLE = {
    "gpt-x": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "litellm_provider": "openai"},
    "azure/gpt-x": {"input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6, "litellm_provider": "azure"},
    "free": {"input_cost_per_token": 0, "output_cost_per_token": 0.0, "litellm_provider": "openai"},
    "half": {"input_cost_per_token": 1e-6, "litellm_provider": "openai"},
    "odd": {"input_cost_per_token": "1e-6", "output_cost_per_token": True, "litellm_provider": "openai"},
    "long": {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-6,
        "input_cost_per_token_above_200k_tokens": 2e-6,
        "litellm_provider": "gemini",
    },
}


@pytest.mark.parametrize(
    ("model", "api_base", "price"),
    [
        ("gpt-x", None, Price(1e-6, 2e-6)),
        ("openai/gpt-x", None, Price(1e-6, 2e-6)),
        ("azure/gpt-x", "https://mine.openai.azure.com", Price(3e-6, 4e-6)),
        ("free", None, Price(0.0, 0.0)),
        ("anthropic/gpt-x", None, None),
        ("openai/gpt-x", "https://proxy.example/v1", None),
        ("gpt-x", "http://localhost:8000/v1", None),
        ("azure/gpt-x", "http://10.0.0.7:8000", None),
        ("unknown", None, None),
        ("half", None, None),
        ("odd", None, None),
    ],
)
def test_a_price_is_the_table_s_or_not_known(model: str, api_base: str | None, price: Price | None) -> None:
    assert price_of(model, api_base, TABLE) == price


def test_a_price_is_applied_to_tokens_and_not_where_a_dearer_one_holds() -> None:
    assert Price(1e-6, 2e-6).of(1_000_000, 500_000) == pytest.approx(2.0)
    long = price_of("long", None, TABLE)
    assert long is not None and long.of(1000, 0) == pytest.approx(0.001) and long.of(250_000, 0) is None


def test_the_installed_table_is_read_without_importing_litellm() -> None:
    program = (
        "import sys; from ragaudit.judge.price import price_of; "
        "print(price_of('gpt-4o-mini') is not None, 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


# --- settings -------------------------------------------------------------------------------------------------


def test_the_settings_become_how_limits_tape_and_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = JudgeSettings(
        model="openai/m",
        api_base="http://localhost:1/v1",
        mode="per_claim",
        parameters={"seed": 1},
        logprobs=True,
        structured=False,
        concurrency=4,
        rpm=10,
        max_cost=2,
        attempts=2,
        cassette="c.jsonl",
    )
    how = how_to_judge(settings)
    assert (how.model, how.api_base, how.mode, how.parameters) == (
        "openai/m",
        "http://localhost:1/v1",
        "per_claim",
        {"seed": 1},
    )
    assert (how.logprobs, how.structured) == (True, False)
    assert limits(settings) == Limits(concurrency=4, rpm=10, max_cost=2, attempts=2)
    assert litellm_client(settings).limits == limits(settings)
    monkeypatch.chdir(tmp_path)
    with open_tape(settings, "new", tmp_path / "bundle") as tape:
        assert tape.mode is TapeMode.NEW
        tape.record(a_request(), a_reply())
    assert (tmp_path / "bundle" / ".ragaudit" / "judge" / "cache.db").exists()
    assert (tmp_path / "bundle" / "c.jsonl").exists()


def test_the_defaults_of_settings_and_limits_agree() -> None:
    assert limits(JudgeSettings()) == Limits()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "judge.model: no model is set. Name one as provider/name, or pass --judge."),
        (
            {"model": "m", "parameters": {"api_key": "sk-very-secret"}},
            "judge.parameters.api_key: is a credential. Put it into the environment, e.g. OPENAI_API_KEY.",
        ),
        (
            {"model": "m", "parameters": {"extra_headers": {"Authorization": "x"}}},
            "judge.parameters.extra_headers.Authorization: is a credential.",
        ),
        (
            {"model": "m", "parameters": {"stream": True}},
            "judge.parameters.stream: is set by the judge itself. Remove it.",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        how_to_judge(JudgeSettings(**given))
    assert str(caught.value).startswith(message) and "secret" not in str(caught.value)


def test_an_unknown_tape_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--tape: there is no mode 'some'. Choose one of none, once, new, all."):
        open_tape(JudgeSettings(), "some", tmp_path)


@pytest.mark.parametrize(
    "given", [{"concurrency": 65}, {"concurrency": 0}, {"rpm": 0}, {"attempts": 0}, {"call_timeout": -1}, {"mode": "x"}]
)
def test_limits_out_of_range_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JudgeSettings(**given)


@pytest.mark.parametrize("name", ["api_key", "API-KEY", "Authorization", "x-api-key", "aws_secret_access_key", "token"])
def test_names_of_credentials(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "top_logprobs", "seed", "valid_tokens", "keyword", "logit_bias"])
def test_names_of_ordinary_parameters(name: str) -> None:
    assert not is_secret_name(name)


def test_credentials_in_messages_are_blotted_out() -> None:
    text = "key sk-abc123def, Bearer abcdef123456, https://me:pw@host/x, api_key=abcd1234 and task-force"
    assert masked(text) == "key [redacted], [redacted], https://[redacted]host/x, [redacted] and task-force"
