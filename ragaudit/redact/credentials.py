"""Finds keys, tokens, private keys, passwords and log-ins in URLs: by their shape, or behind the right name."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from ragaudit.redact.finding import Found
from ragaudit.redact.pseudonyms import Kind

_KEY_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
    r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"  # JWT, JWE
    r"|sk-(?:ant-|proj-|or-|svcacct-)?[\w-]{16,}|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{12,}|whsec_[A-Za-z0-9+/=]{16,}"
    r"|(?:gsk|xai|tvly|pplx|pcsk|r8|lsv2|nvapi|fw|esecret)[_-][\w-]{20,}"
    r"|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|xapp-[\w-]{10,}|npm_[A-Za-z0-9]{24,}|pypi-[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|dop_v1_[0-9a-f]{32,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{24,}|sq0[a-z]{3}-[\w-]{16,}"
    r")(?![A-Za-z0-9])",
    re.ASCII,
)
_BEARER = re.compile(r"(?i:\b(?:bearer|basic))[ \t]+([\w.~+/-]{12,}={0,2})", re.ASCII)
_LOGIN = re.compile(r"(?<=://)[^\s/?#\"'<>@\0][^\s/?#\"'<>\0]{0,255}(?=@)")
_PASSWORD = re.compile(
    r"(?i:pass(?:word|wd|phrase|wort)|(?<![a-z])(?:pass|pwd)|kennwort|contraseña|mot de passe|密码|パスワード)"
    r"(?:[\"'`]{0,2} ?([:=]) ?[\"'`]?)([^\s\"'`<>;,&\0]{4,200})"
)
_NAMED = re.compile(
    r"(?i:(?:api|access|account|secret|shared ?access|private|signing|encryption|master|auth)[_ -]?key"
    r"|(?<![a-z])(?:key|sig|signature|cookie)|secret|token|session[_ -]?id)"
    r"(?:[\"'`]{0,2} ?[:=] ?[\"'`]?)([\w+/.~=%-]{16,512})",
)
SECRET_FIELD = re.compile(
    r"(?i)(?:.*[_.-])?(?:password|passwd|pwd|passphrase|secret|(?:.*[_-])?api[_-]?key|access[_-]?key|access[_-]?token"
    r"|auth[_-]?token|refresh[_-]?token|bearer[_-]?token|client[_-]?secret|private[_-]?key|authorization|cookie"
    r"|connection[_-]?string|dsn)"
)
"""Names of fields whose whole value is a secret."""


def credentials(text: str) -> Iterator[Found]:
    """Private key blocks, tokens of known providers, JWTs, bearer tokens, log-ins in URLs, and named secrets.

    A password counts when it stands right behind `=` or has a digit or a sign in it; another secret when it is at least
    16 characters long and looks random. So a sentence about passwords stays as it is.
    """
    if "PRIVATE KEY" in text:
        yield from (_found(found, 0) for found in _KEY_BLOCK.finditer(text))
    if "://" in text:
        yield from (_found(found, 0) for found in _LOGIN.finditer(text))
    yield from (_found(found, 0) for found in _TOKEN.finditer(text))
    yield from (_found(found, 1) for found in _BEARER.finditer(text) if len(found[1]) >= 16 and _mixed(found[1]))
    if ":" not in text and "=" not in text:
        return
    for found in _PASSWORD.finditer(text):
        value = found[2].rstrip(".)]}")
        attached = found[0].endswith("=" + found[2]) or found[1] == "="
        if len(value) >= 4 and (attached or (len(value) >= 6 and _mixed(value))):
            yield Found(found.start(2), found.start(2) + len(value), Kind.SECRET, value)
    for found in _NAMED.finditer(text):
        value = found[1].rstrip(".")
        if is_random(value):
            yield Found(found.start(1), found.start(1) + len(value), Kind.SECRET, value)


def is_random(text: str) -> bool:
    """Long, with letters and digits, no space, and no few signs again and again."""
    return len(text) >= 16 and not any(c.isspace() for c in text) and _mixed(text) and entropy(text) >= 3.0


def entropy(text: str) -> float:
    """Bits a character, from how often each occurs (Shannon, 1948). 0 for the empty text."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def _mixed(text: str) -> bool:
    return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)


def _found(match: re.Match[str], group: int) -> Found:
    return Found(match.start(group), match.end(group), Kind.SECRET, match[group])
