"""From --narrative MODEL to the sentences of a report: one call, on the tape like the judge's."""

import asyncio
import os
from pathlib import Path

from ragaudit.cli.streams import Streams
from ragaudit.config import JudgeSettings, load_settings
from ragaudit.errors import JudgeError
from ragaudit.judge.asking import unusable
from ragaudit.judge.settings import litellm_client, open_tape
from ragaudit.model.counting import counted
from ragaudit.model.judgement import Failure, Reply, Request
from ragaudit.model.result import Summary
from ragaudit.report.facts import facts_of
from ragaudit.report.narrative import Narrative, narrative_of, request_of


def narrated(streams: Streams, summary: Summary, model: str, tape_mode: str, config: Path | None) -> Narrative:
    """Ask the model for a summary of the audit's facts, and keep what they prove.

    Args:
        streams: For what is said about it.
        summary: The audit.
        model: As LiteLLM names it.
        tape_mode: none, once, new or all.
        config: The ragaudit.toml whose [judge] table says endpoint, cache and limits; None = the defaults, with the
            cache in the current folder.

    Raises:
        JudgeError: The model failed, or its reply is not on the tape and may not be asked for.
    """
    settings = load_settings(config, env=os.environ, flags={}).judge or JudgeSettings()
    facts = facts_of(summary)
    request = request_of(facts, model, settings.api_base)
    with open_tape(settings, tape_mode, Path.cwd() if config is None else config.resolve().parent) as tape:
        reply = tape.find(request)
        if reply is None:
            came = asyncio.run(_asked(settings, request))
            if isinstance(came, Failure):
                raise JudgeError(f"--narrative {model}: {came.message}. Try again, or leave the option out.")
            tape.record(request, came)
            reply = came
    if (problem := unusable(reply)) is not None:
        raise JudgeError(f"--narrative {model}: {problem}. Use another model, or leave the option out.")
    narrative = narrative_of(reply, request, facts)
    for why, n in narrative.dropped.items():
        streams.say(f"narrative: {counted(n, 'sentence')} dropped: {why}.")
    return narrative


async def _asked(settings: JudgeSettings, request: Request) -> Reply | Failure:
    client = litellm_client(settings)
    try:
        return await client.complete(request)
    finally:
        await client.aclose()
