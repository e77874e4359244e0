"""Finds e-mail addresses and, where asked for, IP addresses."""

import ipaddress
import re
from collections.abc import Iterator

from ragaudit.redact.finding import Found
from ragaudit.redact.pseudonyms import Kind

# Scripts written without spaces: there a word before the address is no part of it.
_UNSPACED = "\u0e00-\u0e7f\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTER = rf"[^\W_{_UNSPACED}]"
_LOCAL = re.compile(rf"(?:{_LETTER}|[._%+'&=!#$*/?^`{{|}}~-]){{1,64}}$")
_DOMAIN = re.compile(
    rf"(?:{_LETTER}(?:(?:{_LETTER}|[_-]){{0,61}}{_LETTER})?\.){{1,8}}(?:xn--[A-Za-z0-9-]{{2,59}}|[^\W\d_{_UNSPACED}]{{2,24}})"
)
_NATIVE_LOCAL = re.compile(r"[\w.%+-]{1,64}$")
_NATIVE_DOMAIN = re.compile(r"[\w-]{1,63}(?:\.[\w-]{2,63}){1,8}")
_EDGE = ".'&=!#$*/?^`{|}~-"
_V4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)")
_V6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{2,39}(?:(?:\d{1,3}\.){3}\d{1,3})?(?![\w:])")


def emails(text: str) -> Iterator[Found]:
    """Addresses with a domain that ends in letters; also in scripts other than Latin. `user@host` is none."""
    at = text.find("@")
    while at >= 0:
        found = _around(text, at, _LOCAL, _DOMAIN) or _around(text, at, _NATIVE_LOCAL, _NATIVE_DOMAIN)
        if found is not None:
            yield found
        at = text.find("@", at + 1)


def _around(text: str, at: int, before: re.Pattern[str], after: re.Pattern[str]) -> Found | None:
    domain = after.match(text, at + 1)
    local = before.search(text[max(0, at - 64) : at]) if domain else None
    if domain is None or local is None:
        return None
    # `mailto=ana@...`, `(see /ana@...`: signs that an address may hold, and that far more often stand before one
    name = re.split(r"[&=!#$*/?^`{|}~]", local[0])[-1].lstrip(_EDGE)
    if not name:
        return None
    start = at - len(name)
    return Found(start, domain.end(), Kind.EMAIL, text[start : domain.end()].lower())


def ips(text: str) -> Iterator[Found]:
    """IPv4 and IPv6 addresses. A version of four numbers looks the same and is taken for one."""
    for pattern in (_V4, _V6):
        for found in pattern.finditer(text):
            if pattern is _V6 and found[0].count(":") < 2:
                continue
            try:
                address = ipaddress.ip_address(found[0])
            except ValueError:
                continue
            if not address.is_unspecified:
                yield Found(found.start(), found.end(), Kind.IP, str(address))
