"""The prompt as sent: its text, and which of the packed chunks stand in it."""

from collections.abc import Iterable, Mapping
from typing import Any

from ragaudit.model.texts import folded


def prompt_text(prompt: Any) -> str:
    """The text of a prompt: a text, one message (an object or a dictionary with `content`), or a list of them.

    What is nothing of that has no text.
    """
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, Mapping):
        found = prompt.get("content", prompt.get("text", prompt.get("parts")))
        return "" if found is None else prompt_text(found)
    for name in ("content", "text", "blocks"):
        found = getattr(prompt, name, None)
        if isinstance(found, str | list):
            return prompt_text(found)
    if isinstance(prompt, list | tuple):
        return "\n".join(prompt_text(part) for part in prompt)
    return ""


def in_prompt(texts: Mapping[str, str], ids: Iterable[str], prompt: str) -> list[str] | None:
    """Which of the packed chunks stand whole in the prompt, in the order of `ids`.

    Returns:
        None when a packed chunk has no text to look for, or when none of them is found: then the prompt writes texts
        in another way, and nothing was observed.
    """
    wanted = list(dict.fromkeys(ids))
    if any(not texts.get(each, "").strip() for each in wanted):
        return None
    hay = folded(prompt)
    found = [each for each in wanted if folded(texts[each]) in hay]
    return found or None
