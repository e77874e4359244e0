"""What an exception of LiteLLM means for a call: its kind, whether waiting may help, and how long it should be."""

from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from ragaudit.judge.redact import masked

_MESSAGE_CHARS = 500
_PASSING = frozenset({408, 409, 425, 429})
"""Client errors of HTTP that may pass."""


@dataclass(frozen=True)
class Setback:
    """One attempt that gave nothing. `kind` as in `Failure`, or "refused" or "too_long"."""

    kind: str
    message: str
    may_pass: bool = False
    retry_after: float | None = None
    """Seconds that the server asked to wait."""


def setback_of(error: BaseException, kinds: Any, *, now: float) -> Setback:
    """Sort an exception. The order matters: LiteLLM's exceptions inherit from one another.

    Args:
        error: What was raised.
        kinds: The module `litellm.exceptions`, passed in because only the client imports it.
        now: Seconds since 1970, for a Retry-After that names a time.
    """
    message = _message(error)
    code = _code(error)
    status = getattr(error, "status_code", None)
    pause = _retry_after(error, now)
    if isinstance(error, kinds.Timeout):
        return Setback("timeout", message, may_pass=True)
    if isinstance(error, kinds.RateLimitError):
        if code == "insufficient_quota" or "insufficient_quota" in message or "credit balance" in message:
            return Setback("auth", message)  # the account is empty: no wait helps
        return Setback("rate_limit", message, may_pass=True, retry_after=pause)
    if status in (401, 403) or isinstance(error, kinds.AuthenticationError | kinds.PermissionDeniedError):
        return Setback("auth", message)
    if status == 413 or code == "context_length_exceeded" or isinstance(error, kinds.ContextWindowExceededError):
        return Setback("too_long", message)
    if code in ("content_policy_violation", "content_filter") or isinstance(error, kinds.ContentPolicyViolationError):
        return Setback("refused", message)
    if isinstance(error, kinds.BadRequestError | kinds.NotFoundError | kinds.UnprocessableEntityError):
        return Setback("bad_request", message)
    # A connection that broke comes as an internal server error, with the true cause behind it.
    if isinstance(error, OSError) or any(isinstance(each, kinds.openai.APIConnectionError) for each in _chain(error)):
        return Setback("connection", message, may_pass=True)
    if isinstance(status, int) and 400 <= status < 500 and status not in _PASSING:
        return Setback("bad_request", message)
    return Setback("server", message, may_pass=True, retry_after=pause)


def _message(error: BaseException) -> str:
    text = " ".join(str(error).split()).removeprefix("litellm.")
    return masked(text[:_MESSAGE_CHARS]) or type(error).__name__


def _code(error: BaseException) -> str | None:
    for each in _chain(error):
        body = getattr(each, "body", None)
        code = body.get("code") if isinstance(body, dict) else None
        if isinstance(code, str):
            return code
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException, now: float) -> float | None:
    """From Retry-After, in seconds or as an HTTP date, or from retry-after-ms."""
    headers = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", {}
    )
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(str(headers.get(name)).strip()) * unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        return max(0.0, parsedate_to_datetime(str(headers.get("retry-after"))).timestamp() - now)
    except (ValueError, TypeError):
        return None
