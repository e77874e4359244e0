"""What must never reach a tape, a report or a terminal: credentials, and characters that hide or reorder text."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_SECRET_NAME = re.compile(
    r"api[-_]?key|authorization|secret|passw|credential|cookie|private[-_]?key"
    r"|(?<![a-z])(access|auth|session|bearer|id|refresh)[-_]?token|^token$|^key$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    r"(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}"
    r"|\b(?:sk|pk|rk|gsk|xai|ghp|hf|AKIA|AIza)[-_]?[A-Za-z0-9*_-]{6,}"
    r"|(?i:\b(?:api[-_]?key|access[-_]?token)\b[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&]{4,}"
    r"|(?<=://)[^\s/@]+@"
)
_HOST = re.compile(r"(\[[^]]*\]|[^:/]*)(:\d*)?(/|$)")
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


@lru_cache(maxsize=64)
def without_credentials(url: str) -> str:
    """The address alone: no user, password, query string or fragment."""
    scheme, mark, rest = url.partition("://") if "://" in url else ("", "", url)
    head = re.split(r"[?#]", rest, maxsplit=1)[0]
    if "@" not in head and "@" in rest and not _HOST.match(head):
        head = re.split(r"[?#&;]", rest.rpartition("@")[2], maxsplit=1)[0]  # `?` and `#` of an unescaped password
    return scheme + mark + head.rpartition("@")[2]


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a parameter or header of this name holds a credential (`api_key` does, `max_tokens` does not)."""
    return _SECRET_NAME.search(name) is not None


def without_secrets(value: Any) -> Any:
    """The same parameters, as plain JSON values, without any that hold a credential. 1.0 and 1 come out the same."""
    if isinstance(value, Mapping):
        return {str(key): without_secrets(item) for key, item in value.items() if not is_secret_name(str(key))}
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def masked(text: str) -> str:
    """A provider's message with whatever looks like a credential blotted out: some of them repeat the key."""
    return _SECRET_TEXT.sub("[redacted]", text)


def visible(json_text: str) -> str:
    """JSON text in which characters that hide, reorder or break lines are written as escapes, for review in a diff."""
    return _HIDDEN.sub(_escape, json_text)


def shown(text: str, width: int = 80) -> str:
    """Text in quotes on one line, cut to a width, safe for a terminal."""
    cut = text if len(text) <= width else text[: width - 1] + "…"
    flat = "".join(f"\\x{ord(char):02x}" if ord(char) < 32 else char for char in cut)
    return f'"{visible(flat)}"'


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"
