"""One chat completion from an OpenAI-compatible endpoint: run as a program, it checks that the served model works."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, str]
VERDICT = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
            "required": ["verdict"],
            "additionalProperties": False,
        },
    },
}


def complete(url: str, model: str, messages: Sequence[Message], **parameters: Any) -> dict[str, Any]:
    """Ask once, at temperature 0 and seed 1; the whole reply as the endpoint sent it.

    Args:
        url: the endpoint up to and with /v1.
        model: the name it serves the model under.
        messages: the conversation.
        parameters: anything else of the request, for instance `max_tokens`.
    """
    body = {"model": model, "messages": list(messages), "temperature": 0, "seed": 1, **parameters}
    request = urllib.request.Request(
        f"{url.rstrip('/')}/chat/completions",
        data=json.dumps(body).encode("utf-8"),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        reply: dict[str, Any] = json.load(response)
    return reply


def main(url: str = "http://127.0.0.1:8091/v1", model: str = "qwen2.5-coder-1.5b") -> int:
    """Ask for a verdict under a schema, with token probabilities; returns 1 when the reply is not one."""
    question = "Context: Keys are valid for 365 days.\nClaim: Keys are valid for one year.\nSupported? Reply as JSON."
    asked = [{"role": "user", "content": question}]
    reply = complete(url, model, asked, max_tokens=20, response_format=VERDICT, logprobs=True, top_logprobs=5)
    (choice,) = reply["choices"]
    tokens = choice["logprobs"]["content"]
    sys.stdout.write(f"{choice['message']['content']} {reply['usage']} {len(tokens)} tokens with probabilities\n")
    return 0 if json.loads(choice["message"]["content"])["verdict"] in ("yes", "no") and tokens else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
