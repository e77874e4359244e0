"""Finds card numbers, IBANs and phone numbers, by what can be checked: digits, lengths, issuers, prefixes, groups."""

import re
from collections.abc import Iterator

from ragaudit.redact.finding import Found
from ragaudit.redact.pseudonyms import Kind

_CARD = re.compile(
    r"(?<![\w.,/+-])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|3\d{3}([ -]?)\d{6}\2\d{4,5})(?![\w/]|[.,-]\d)",
    re.ASCII,
)
_ISSUERS = re.compile(
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14}(?:\d{3})?"
    r"|(?:5[0678]|6[37])\d{14}(?:\d{3})?"
)
_IBAN_START = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})\d{2}(?=[ -]?[A-Za-z0-9])")
_IBANS = {
    15: "NO",
    16: "BE",
    18: "DK FI FK FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
_IBAN_LENGTHS = {country: length for length, countries in _IBANS.items() for country in countries.split()}
"""Country -> length of its IBANs, from the SWIFT registry."""

_INTERNATIONAL = re.compile(
    r"(?<![\w+.])(?:\+ ?|(?<!\d )00[ -]?(?=[1-9]\d{0,2}[ /(-]))[1-9](?:[ ./()-]{0,3}\d){6,14}(?!\w|[.,]\d)", re.ASCII
)
_NATIONAL = re.compile(
    r"(?<![\w./,:+-])(?<!\d )(?:"
    r"\(0\d{1,5}\) ?\d{2,4}(?:[ /-]?\d{2,4}){1,3}"  # (030) 123 4567
    r"|0[1-9]\d{1,4} ?/ ?\d{3,9}(?:[ -]\d{1,5}){0,3}"  # 030/1234567
    r"|0[1-9]\d{1,4}[ -]\d{5,9}(?:-\d{1,4})?"  # 0170 1234567
    r"|0[1-9]\d{1,4}(?:[ -]\d{2,4}){2,5}"  # 030 123 45 67
    r"|0[1-9](?:[ .]\d\d){4}"  # 01 23 45 67 89
    r"|\(\d{3}\) ?\d{3}[ -]\d{4}"  # (555) 123-4567
    r"|[2-9]\d{2}-\d{3}-\d{4}"  # 555-123-4567
    r")(?![\w/]|[.,-]\d)",
    re.ASCII,
)
_CALLED = re.compile(
    r"(?:(?<![^\W\d_])(?:tel(?:efono?|ephone|éfono)?|phone|mobile?|mobil|fax|cell|call|handy|telefonnummer|rufnummer|whatsapp|sms)"
    r"|電話|电话|手机|携帯|전화|هاتف|טלפון)"
    r"[ .:#=(n°oNr'\"-]{0,6}(\(?\d(?:[ ./()-]{0,2}\d){5,14})(?!\w|[.,]\d)",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}[-./ ]\d{1,2}[-./ ]\d{1,2}(?!\d)|\d{1,2}[-./]\d{1,2}[-./]\d{4}(?!\d)")
_ISBN = re.compile(r"ISBN(?:-1[03])?[: ]*$", re.IGNORECASE)


def cards(text: str) -> Iterator[Found]:
    """Payment cards: grouped as printed or not at all, of a known issuer, the check digit right (Luhn, 1960)."""
    for found in _CARD.finditer(text):
        digits = _digits(found[0])
        if _ISSUERS.fullmatch(digits) and _luhn(digits) and len(set(digits)) > 1:
            yield Found(found.start(), found.end(), Kind.CARD, digits)


def ibans(text: str) -> Iterator[Found]:
    """Bank accounts: the length of the country, and the check digits right (ISO 13616, modulo 97)."""
    for found in _IBAN_START.finditer(text):
        length = _IBAN_LENGTHS.get(found[1].upper(), 0)
        end, taken = found.start(), ""
        while length and len(taken) < length and end < len(text):
            character = text[end]
            if character.isascii() and character.isalnum():
                taken += character.upper()
            elif character not in " -" or text[end - 1] in " -":
                break
            end += 1
        if length and len(taken) == length and not text[end : end + 1].isalnum() and _mod97(taken):
            yield Found(found.start(), end, Kind.IBAN, taken)


def phones(text: str) -> Iterator[Found]:
    """Numbers with a country prefix, in a national grouping that is used for phones, or behind a word like `Tel.`."""
    for found in _INTERNATIONAL.finditer(text):
        digits = _digits(found[0])
        number = digits[2:] if found[0].startswith("00") else digits
        score = re.fullmatch(r"\+\d{1,2}\.\d+", found[0]) and len(digits) < 10
        if 7 <= len(number) <= 15 and not score:
            yield Found(
                found.start(),
                found.end(),
                Kind.PHONE,
                "+" + number.replace("0", "", 1) if "(0)" in found[0] else "+" + number,
            )
    for found in _NATIONAL.finditer(text):
        yield from _national(text, found.start(), found.end())
    for found in _CALLED.finditer(text):
        yield from _national(text, found.start(1), found.end(1))


def _national(text: str, start: int, end: int) -> Iterator[Found]:
    written = text[start:end]
    digits = _digits(written)
    if 6 <= len(digits) <= 15 and not _DATE.match(written) and not _ISBN.search(text[max(0, start - 12) : start]):
        yield Found(start, end, Kind.PHONE, digits)


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def _luhn(digits: str) -> bool:
    doubled = [int(c) * (1 + n % 2) for n, c in enumerate(reversed(digits))]
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _mod97(iban: str) -> bool:
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1
