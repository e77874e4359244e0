"""One recorded reply as text: its key, what was asked, and what came back, a refusal as much as an answer."""

import hashlib
import json
from typing import Any

import msgspec
from pydantic import ValidationError

from ragaudit.judge.redact import visible, without_credentials, without_secrets
from ragaudit.model.judgement import Reply, Request


def asked(request: Request) -> dict[str, Any]:
    """All of a request that its reply depends on, without credentials. `purpose` is for people and left out."""
    return {
        "model": request.model,
        "api_base": without_credentials(request.api_base) if request.api_base else None,
        "prompt": request.prompt,
        "version": request.version,
        "parameters": without_secrets(request.parameters),
        "reply_schema": request.reply_schema,
        "messages": request.messages,
    }


def request_key(request: Request) -> str:
    """The one key of a request, for cache and cassette: SHA-256 over the canonical JSON of what was asked."""
    return _key(asked(request))


def key_of_asked(recorded: dict[str, Any]) -> str:
    """The key that a recorded question should stand under."""
    return _key({name: recorded.get(name) for name in _ASKED})


def as_json(value: Any) -> str:
    """One line of JSON for people: as written, but for characters that would hide or reorder text in a review."""
    return visible(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def reply_fields(reply: Reply) -> dict[str, Any]:
    """What is kept of a reply: nothing that is at its default."""
    return reply.model_dump(mode="json", exclude_defaults=True) | {"text": reply.text}


def read_reply(text: str | bytes | msgspec.Raw) -> Reply | None:
    """A reply from its JSON; None when it is damaged."""
    try:
        return Reply.model_validate_json(bytes(text) if isinstance(text, msgspec.Raw) else text)
    except ValidationError:
        return None


_ASKED = ("model", "api_base", "prompt", "version", "parameters", "reply_schema", "messages")


def _key(question: dict[str, Any]) -> str:
    try:
        canonical = msgspec.json.encode(question, order="deterministic")
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot hold
        canonical = json.dumps(question, sort_keys=True, separators=(",", ":")).encode()
    return "sha256:" + hashlib.sha256(canonical).hexdigest()
