"""From the [judge] table to what the judge's parts take: how to ask, the limits, the tape, the client."""

from pathlib import Path
from typing import Any

from ragaudit.config import JudgeSettings
from ragaudit.errors import ConfigError
from ragaudit.judge.client import LiteLLMClient
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.limits import Limits
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.redact import is_secret_name
from ragaudit.judge.tape import Tape, TapeMode

_OURS = ("model", "messages", "api_base", "response_format", "stream", "timeout", "n", "num_retries", "max_retries")
"""Parameters that the judge sets itself."""


def how_to_judge(settings: JudgeSettings) -> HowToJudge:
    """How to ask, from the settings.

    Raises:
        ConfigError: No model is set, or a parameter is a credential or one that the judge sets itself.
    """
    if not settings.model:
        raise ConfigError("judge.model: no model is set. Name one as provider/name, or pass --judge.")
    _check_parameters(settings.parameters, "judge.parameters")
    return HowToJudge(
        model=settings.model,
        api_base=settings.api_base,
        parameters=settings.parameters,
        mode=settings.mode,
        structured=settings.structured is not False,
        logprobs=settings.logprobs,
        max_texts=settings.max_texts,
        p_cut=settings.p_cut,
    )


def limits(settings: JudgeSettings) -> Limits:
    """What a run may use, from the settings."""
    return Limits(
        concurrency=settings.concurrency,
        rpm=settings.rpm,
        tpm=settings.tpm,
        max_cost=settings.max_cost,
        call_timeout=settings.call_timeout,
        overall_timeout=settings.overall_timeout,
        attempts=settings.attempts,
    )


def open_tape(settings: JudgeSettings, mode: TapeMode | str, folder: Path) -> Tape:
    """The tape that the settings name.

    Args:
        settings: Where cassette and cache are.
        mode: none, once, new or all.
        folder: What the paths are relative to: the folder of ragaudit.toml.

    Raises:
        ConfigError: There is no such mode.
        InputError: A file is damaged, of another format, or cannot be written.
    """
    try:
        wanted = TapeMode(mode)
    except ValueError:
        raise ConfigError(f"--tape: there is no mode {mode!r}. Choose one of {', '.join(TapeMode)}.") from None
    return Tape.open(
        wanted,
        cassette=folder / settings.cassette if settings.cassette else None,
        cache=folder / settings.cache if settings.cache else None,
    )


def prompts_of(settings: JudgeSettings, folder: Path) -> PromptSet:
    """The prompts that the settings name; their folder is relative to that of ragaudit.toml.

    Raises:
        ConfigError: The folder or a file in it cannot be used.
    """
    return PromptSet.load(folder / settings.prompts if settings.prompts else None)


def litellm_client(settings: JudgeSettings) -> LiteLLMClient:
    """The client for these settings. Nothing is imported or opened before its first call."""
    return LiteLLMClient(limits(settings), structured=settings.structured)


def _check_parameters(parameters: dict[str, Any], place: str) -> None:
    for name, value in parameters.items():
        if is_secret_name(name):
            raise ConfigError(f"{place}.{name}: is a credential. Put it into the environment, e.g. OPENAI_API_KEY.")
        if name in _OURS and place == "judge.parameters":
            raise ConfigError(f"{place}.{name}: is set by the judge itself. Remove it.")
        if isinstance(value, dict):
            _check_parameters(value, f"{place}.{name}")
