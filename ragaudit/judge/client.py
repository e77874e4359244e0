"""The only place that talks to a model: one call through LiteLLM, tried again where that may help, as a value."""

import asyncio
import logging
import os
from collections.abc import Mapping
from random import Random
from typing import Any, Protocol, runtime_checkable

from ragaudit.errors import JudgeError
from ragaudit.judge.faults import Setback, setback_of
from ragaudit.judge.limits import LONGEST_WAIT, Clock, Limits, SystemClock, Throttle, backoff, estimated_tokens
from ragaudit.judge.price import Price, price_of
from ragaudit.model.judgement import TOO_LONG, Failure, Reply, Request

_SECONDS_APART = 0.008
_ANSWERS = {"refused": "content_filter", "too_long": TOO_LONG}
"""HTTP errors that are the endpoint's answer to the request -> the `finish_reason` of the reply that they become."""
_WHY = {
    "rate_limit": "rate limit (429)",
    "server": "the server failed",
    "timeout": "no reply in time",
    "connection": "no connection",
}


class Client(Protocol):
    """Answers requests."""

    async def complete(self, request: Request) -> Reply | Failure:
        """Ask, and say how it went. A call that failed is a value, not an exception."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A client that holds connections open."""

    async def aclose(self) -> None:
        """Let go of the connections of the running loop."""
        ...


@runtime_checkable
class Waiting(Protocol):
    """A client that can say what its calls wait for."""

    def waiting(self) -> str:
        """In words; empty = for nothing but replies. May be asked from another thread."""
        ...


class LiteLLMClient:
    """Any provider or endpoint that LiteLLM knows. Keys come from the environment, never from a request."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        structured: bool | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """Set up; nothing is imported or opened before the first call.

        Args:
            limits: Concurrency, rates, time for a call, attempts, and whether a price must be known.
            structured: Send the reply's JSON schema: True always, False never, None where it is offered: by models that
                LiteLLM's table lists, and by an `api_base` until it refuses one.
            clock: For waits between attempts.
            random: For their jitter.
            env: Where it is looked up whether an API key is set.
        """
        self.limits = limits or Limits()
        self._structured = structured
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._env = env
        self.throttle = Throttle(self.limits, self._clock)
        self._offers_schema: dict[tuple[str, str | None], bool] = {}
        self._prices: dict[tuple[str, str | None], Price | None] = {}
        self._clients_before: set[str] | None = None
        self._next_start = 0.0
        self._pauses: dict[int, tuple[float, str]] = {}
        """Calls between two attempts: when the next one is due, and why the last one failed."""

    async def complete(self, request: Request) -> Reply | Failure:
        """Ask, and ask again where that may help.

        Raises:
            JudgeError: A limit on the cost was set and the model's price is not known, so it could not be held.
        """
        self._check_price(request)
        litellm = self._litellm()
        estimate = estimated_tokens(request)
        attempt = 0
        while True:
            attempt += 1
            async with self.throttle.slot(estimate) as started:
                await self._keep_apart()
                outcome = await self._attempt(litellm, request)
            if isinstance(outcome, Reply):
                self.throttle.answered(outcome.input_tokens + outcome.output_tokens, estimate)
                return outcome
            pause = outcome.retry_after
            is_a_long_pause = pause is not None and pause > LONGEST_WAIT
            if outcome.kind == "rate_limit":
                self.throttle.pushed_back(started, None if is_a_long_pause else pause)
            if outcome.kind in _ANSWERS:
                return Reply(text=outcome.message, finish_reason=_ANSWERS[outcome.kind], usd=0.0)
            if not outcome.may_pass or is_a_long_pause or attempt == self.limits.attempts:
                tries = f" ({attempt} attempts)" if attempt > 1 else ""
                wait = f" (the server asks to wait {pause:.0f} s)" if is_a_long_pause else ""
                return Failure(kind=outcome.kind, message=f"{outcome.message}{tries}{wait}")
            await self._pause(backoff(attempt, pause, self._random), outcome.kind)

    def waiting(self) -> str:
        """How many calls are between two attempts, why, and when the first of them goes on."""
        pauses = sorted(self._pauses.copy().values())
        if not pauses:
            return ""
        due, kind = pauses[0]
        calls = "1 call waits" if len(pauses) == 1 else f"{len(pauses)} calls wait"
        return f"{calls} {max(0.0, due - self._clock.monotonic()):.0f} s: {_WHY.get(kind, kind)}"

    async def _pause(self, seconds: float, kind: str) -> None:
        place = id(asyncio.current_task())
        self._pauses[place] = (self._clock.monotonic() + seconds, kind)
        try:
            await self._clock.sleep(seconds)
        finally:
            del self._pauses[place]

    async def aclose(self) -> None:
        """Close the connections that were opened since the first call."""
        if self._clients_before is None:
            return
        kept = self._litellm().in_memory_llm_clients_cache.cache_dict
        for name in set(kept) - self._clients_before:
            client = kept.pop(name)
            close = getattr(client, "close", None) or getattr(client, "aclose", None)
            if close is not None and asyncio.iscoroutinefunction(close):
                await close()
        self._clients_before = None

    async def _keep_apart(self) -> None:
        """Start calls a few milliseconds apart.

        LiteLLM takes 5 ms of CPU for a call. Calls that start together do that work in turns, so that all are late, and
        their replies and the calls after those come together again: with 0.2 s a reply, 16 at a time took 1.32 x the
        ideal, and 1.24 x when kept apart.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        start = max(now, min(self._next_start, now + 1.0))
        self._next_start = start + _SECONDS_APART
        if start > now:
            await asyncio.sleep(start - now)

    def _check_price(self, request: Request) -> None:
        at = (request.model, request.api_base)
        if at not in self._prices:
            self._prices[at] = price_of(*at)
        if self.limits.max_cost is not None and self._prices[at] is None:
            raise JudgeError(
                f"judge.max_cost: no price is known for {request.model}, so ${self.limits.max_cost:g} cannot be "
                "held. Remove the limit, and bound the run with --limit, rpm or overall_timeout."
            )

    def _litellm(self) -> Any:
        litellm = _import_litellm()
        if self._clients_before is None:
            self._clients_before = set(litellm.in_memory_llm_clients_cache.cache_dict)
        return litellm

    async def _attempt(self, litellm: Any, request: Request) -> Reply | Setback:
        sends_schema = request.reply_schema is not None and self._may_send_schema(litellm, request)
        outcome = await self._call(litellm, request, sends_schema=sends_schema)
        if not (isinstance(outcome, Setback) and outcome.kind == "bad_request" and sends_schema):
            return outcome
        if self._structured:
            return outcome
        # The endpoint may only dislike the schema: the same without it, and if that works, always without it.
        plain = await self._call(litellm, request, sends_schema=False)
        if isinstance(plain, Reply):
            self._offers_schema[request.model, request.api_base] = False
        return plain

    async def _call(self, litellm: Any, request: Request, *, sends_schema: bool) -> Reply | Setback:
        options = dict(request.parameters)
        if sends_schema:
            schema = {"name": request.prompt.replace(".", "_"), "schema": request.reply_schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.api_base and "OPENAI_API_KEY" not in self._env and request.model.startswith("openai/"):
            options["api_key"] = "none"  # the OpenAI client insists on a key, most local servers do not look at it
        try:
            async with asyncio.timeout(self.limits.call_timeout):
                answer = await litellm.acompletion(
                    model=request.model,
                    messages=[{name: _encodable(text) for name, text in each.items()} for each in request.messages],
                    api_base=request.api_base,
                    timeout=self.limits.call_timeout,
                    num_retries=0,
                    max_retries=0,
                    drop_params=True,
                    **options,
                )
            return self._reply(request, answer)
        except TimeoutError:
            return Setback("timeout", f"no reply within {self.limits.call_timeout:g} s", may_pass=True)
        except (litellm.exceptions.openai.OpenAIError, OSError, ValueError) as error:
            return setback_of(error, litellm.exceptions, now=self._clock.now())

    def _may_send_schema(self, litellm: Any, request: Request) -> bool:
        if self._structured is not None:
            return self._structured
        at = (request.model, request.api_base)
        if at not in self._offers_schema:
            offers = request.api_base is not None or litellm.supports_response_schema(model=request.model)
            self._offers_schema[at] = bool(offers)
        return self._offers_schema[at]

    def _reply(self, request: Request, answer: Any) -> Reply | Setback:
        if not answer.choices:
            return Setback("server", "the reply holds no choice", may_pass=True)
        choice = answer.choices[0]
        refusal = getattr(choice.message, "refusal", None)
        usage = getattr(answer, "usage", None)
        n_in, n_out = (int(getattr(usage, name, 0) or 0) for name in ("prompt_tokens", "completion_tokens"))
        price = self._prices[request.model, request.api_base]
        return Reply(
            text=_encodable(choice.message.content or (refusal if isinstance(refusal, str) else "") or ""),
            finish_reason=choice.finish_reason,
            input_tokens=n_in,
            output_tokens=n_out,
            usd=price.of(n_in, n_out) if price is not None and usage is not None else None,
            model=answer.model,
            refused=bool(refusal) or choice.finish_reason == "content_filter",
            tokens=_tokens(getattr(choice, "logprobs", None)),
        )


def _import_litellm() -> Any:
    # Set before the import: it would download a price table and read a .env file of the working directory.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _encodable(text: str) -> str:
    """Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark: no connection and no file takes it."""
    return text.encode("utf-8", "replace").decode()


def _tokens(logprobs: Any) -> tuple[dict[str, Any], ...] | None:
    content = getattr(logprobs, "content", None)
    if not content:
        return None
    return tuple(
        {
            "token": item.token,
            "logprob": item.logprob,
            "top": [{"token": other.token, "logprob": other.logprob} for other in item.top_logprobs or ()],
        }
        for item in content
    )
