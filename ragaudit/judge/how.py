"""How to ask: the settings that shape a request, and the one function that builds it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace
from pydantic import Field

from ragaudit.judge.fence import shown
from ragaudit.judge.prompts import PromptSet
from ragaudit.model.judgement import Request
from ragaudit.model.record import Concluded

MAX_REPLY_TOKENS = 4096
"""Sent unless the parameters name a limit: a model that never stops would otherwise fill its window."""
_LIMITS = ("max_tokens", "max_completion_tokens")
_QUOTED_BACK = 8_000
"""Characters of an unusable reply that the repair call shows to the model."""


class HowToJudge(Concluded):
    """Everything about the asking that is the same for all samples of a run."""

    model: str
    api_base: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Sent beside the messages; temperature 0 and a limit on the reply are added unless they stand here."""
    mode: Literal["matrix", "per_claim"] = "matrix"
    """`per_claim` for small models: one claim a call, one word for each text."""
    structured: bool = True
    """Send the JSON schema of the reply; the parser is the same without."""
    logprobs: bool = False
    """Ask for token probabilities, from which P(supported) is read in `per_claim` mode."""
    max_claims: int = Field(default=20, ge=1)
    """Claims in one matrix call."""
    max_chunk_chars: int = Field(default=8_000, ge=400)
    """A longer text is judged in overlapping parts: nothing is cut off."""
    max_batch_chars: int = Field(default=48_000, ge=400)
    """Text in one matrix call; more is asked about in several calls."""
    max_candidates: int = Field(default=8, ge=1)
    """Candidates in one call of the evidence finder."""
    max_texts: int | None = Field(default=None, ge=1)
    """Texts in one `per_claim` call. 1 for the smallest models: what they say of one text colours the next one."""
    p_cut: float | None = Field(default=None, gt=0, lt=1)
    """Where P(supported) is known, it decides: at or over the cut is supported. None = the word decides alone."""
    retries: int = Field(default=1, ge=0)
    """How often a missing verdict is asked for again before it counts as unscored."""


def request(
    how: HowToJudge,
    prompts: PromptSet,
    name: str,
    *,
    purpose: str,
    schema: Mapping[str, Any],
    verdict_tokens: bool = False,
    **variables: str,
) -> Request:
    """One request in the words of the prompt `name`.

    Args:
        how: The settings.
        prompts: Where the prompt stands.
        name: The prompt.
        purpose: What the call is for; not part of what it is.
        schema: The form of the reply.
        verdict_tokens: The reply holds verdict words: token probabilities are worth asking for.
        variables: What the prompt's variables stand for.
    """
    messages, version = prompts.render(name, **variables)
    parameters: dict[str, Any] = {"temperature": 0}
    if not any(limit in how.parameters for limit in _LIMITS):
        parameters["max_tokens"] = MAX_REPLY_TOKENS
    if how.logprobs and verdict_tokens:
        parameters |= {"logprobs": True, "top_logprobs": 5}
    return Request(
        model=how.model,
        api_base=how.api_base,
        parameters=parameters | how.parameters,
        messages=messages,
        reply_schema=dict(schema) if how.structured else None,
        prompt=name,
        version=version,
        purpose=purpose,
    )


def repair_request(prompts: PromptSet, asked: Request, reply: str, problem: str) -> Request:
    """The same conversation, carried on with the unusable reply and what is wrong with it."""
    more, version = prompts.render("repair", problem=problem)
    said = {"role": "assistant", "content": shown(reply[:_QUOTED_BACK]) or "(empty)"}
    return replace(
        asked,
        messages=(*asked.messages, said, *more),
        prompt="repair",
        version=version,
        purpose=f"repair of {asked.purpose}",
    )


def closed(properties: Mapping[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    """JSON schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }
