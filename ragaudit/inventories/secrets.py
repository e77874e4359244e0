"""Keeps passwords and keys out of everything that is printed or written, whoever wrote the message."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from ragaudit.judge.redact import without_credentials

HIDDEN = "***"
_USERINFO = re.compile(r"(?<=://)[^/@\s'\"]*@")
_ASSIGNED = re.compile(
    r"(?i)\b((?:ssl)?password|passwd|pwd|api[-_ ]?key|x-chroma-token|token|secret|authorization|sig(?:nature)?)"
    r"(['\"]?\s*[=:]\s*)(?:(?:bearer|basic|apikey)\s+)?('[^']*'|\"[^\"]*\"|[^\s&,;'\")]+)"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic|apikey)\s+[A-Za-z0-9+/=._~-]{8,}")
_NAMES = re.compile(r"(?i)pass|pwd|key|token|secret|sig|auth|cred")


@dataclass(frozen=True)
class Secrets:
    """The secret values of one run."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, url: str | None, *keys: str | None) -> "Secrets":
        """From a URL or a connection string (`host=... password=...`), and keys."""
        found = [key for key in keys if key]
        if url:
            found += _in_url(url) if "://" in url else _in_words(url)
        spelled = {one for value in found for one in (value, unquote(value), quote(value, safe=""), quote_plus(value))}
        return cls(tuple(sorted(spelled - {""}, key=len, reverse=True)))

    def clean(self, text: str) -> str:
        """The text without these values, and without whatever else looks like a password or a key in a URL."""
        for value in self.values:
            text = text.replace(value, HIDDEN)
        text = _USERINFO.sub(f"{HIDDEN}@", text)
        text = _ASSIGNED.sub(rf"\1\2{HIDDEN}", text)
        return _BEARER.sub(rf"\1 {HIDDEN}", text)


def public(place: str) -> str:
    """A path as it is; of a URL the host, port and path; of a connection string the host and the database."""
    if "://" in place:
        return without_credentials(place)
    if "=" not in place:
        return place
    words = re.findall(r"\b(host|port|dbname)\s*=\s*('[^']*'|\S+)", place)
    return " ".join(f"{name}={value}" for name, value in words) or "postgresql"


def _in_url(url: str) -> Iterable[str]:
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return [url]
    named = [value for name, value in parse_qsl(parts.query) if _NAMES.search(name)]
    raw = url.partition("://")[2].rpartition("@")[0].partition(":")[2]  # a password that was not escaped
    return [*filter(None, (password, raw)), *named]


def _in_words(text: str) -> Iterable[str]:
    found = re.findall(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)", text)
    return [value.strip("'") for name, value in found if _NAMES.search(name)]
