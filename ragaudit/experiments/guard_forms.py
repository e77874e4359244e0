"""The plain forms of a text that hides its words: look-alike letters, invisible characters, spacing, digits."""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import cache

_LOOK_ALIKE = str.maketrans(
    {
        # Cyrillic, after case folding
        **dict(zip("абвгдеёзіїјкмнорстухһԁѕԛԝӏь", "abbrdee3iijkmhopctyxhdsqwlb", strict=True)),
        # Greek, accents removed
        **dict(zip("αβγδεζηικλμνοπρστυφχω", "abydezniklmvonpotuoxw", strict=True)),
        # Armenian, Cherokee and a few symbols
        **dict(zip("ոսօցհքıłøđħŧ", "nuoghqilodht", strict=True)),
        **dict(zip("‘’‛`´ʼ′", "'" * 7, strict=True)),
        **dict(zip("‐‑‒–—―−﹣", "-" * 8, strict=True)),
        # traditional Han characters of the vocabulary
        **dict(
            zip(
                "關閉繞過刪權濾訪問員戶無視擴開寬檢範圍檔離證驗鑒設內資讓應該將個對為斷",
                "关闭绕过删权滤访问员户无视扩开宽检范围档离证验鉴设内资让应该将个对为断",
                strict=True,
            )
        ),
    }
)
_NAMED = re.compile(
    r"(?:LATIN .*?LETTER (?:SMALL CAPITAL )?|INDICATOR SYMBOL LETTER |ENCLOSED LETTER )([A-Z])(?: WITH .*)?"
)
_LEET = {"4": "a", "@": "a", "3": "e", "€": "e", "0": "o", "5": "s", "$": "s", "7": "t", "8": "b", "!": "i", "|": "l"}
_LEET_WORD = re.compile(r"[\w@$€!|]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HAN_GAP = re.compile(r"(?<=[\u4e00-\u9fff])[\s·.\-_*]+(?=[\u4e00-\u9fff])")
_SPELLED = re.compile(r"(?<!\w)\w(?:[ .\-_*/+~]{1,2}\w(?!\w)){2,}(?:[ .\-_*/+~]{3,}\w(?:[ .\-_*/+~]{1,2}\w(?!\w))+)*")


def forms(text: str) -> Iterator[str]:
    """The text in lower case without accents, then once more for each way of hiding words that it may use."""
    plain = _plain(text)
    seen: set[str] = set()
    for form in (plain, _plain(_CAMEL.sub(" ", text)), *_unhidden(plain)):
        words = form.replace("_", " ")
        if words not in seen:
            seen.add(words)
            yield words


def squeezed(text: str) -> Iterator[str]:
    """The runs of single letters in the text, without anything between them: "d.i.s.a.b.l.e t.h.e" -> disablethe."""
    for run in _SPELLED.findall(_plain(text)):
        for one in ("i", "l"):
            yield re.sub(r"[\W_]", "", _unleet(run, one))


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", html.unescape(text))
    text = unicodedata.normalize("NFKD", text.casefold())
    letters = (_letter(char) for char in text.translate(_LOOK_ALIKE))
    return re.sub(r"\s+", " ", "".join(letters))


@cache
def _letter(char: str) -> str:
    """The Latin letter that a styled character shows; nothing for one that is not seen."""
    if char.isascii():
        return char if char.isprintable() or char.isspace() else ""
    category = unicodedata.category(char)
    if category in ("Cf", "Mn", "Me", "Cc", "Co", "Cn"):
        return ""
    found = _NAMED.fullmatch(unicodedata.name(char, "").replace("NEGATIVE ", "").replace("SQUARED ", ""))
    return found[1].lower() if found else char.translate(_LOOK_ALIKE)


def _unhidden(plain: str) -> Iterator[str]:
    if re.search(r"[a-z]-[a-z]", plain):
        yield re.sub(r"(?<=[a-z])-(?=[a-z])", "", plain)
        yield re.sub(r"(?<=[a-z])-(?=[a-z])", " ", plain)
    if re.search(r"[a-z][*~.]+[a-z]", plain):
        yield re.sub(r"(?<=[a-z])[*~.]+(?=[a-z])", "", plain)
    if _SPELLED.search(plain):
        yield _SPELLED.sub(lambda run: _joined(run[0]), plain)
    if _HAN_GAP.search(plain):
        yield _HAN_GAP.sub("", plain)
    if re.search(r"[@$€!|0-9]", plain):
        for one in ("i", "l"):
            yield _LEET_WORD.sub(lambda word, one=one: _unleet(word[0], one), plain)  # type: ignore[misc]


def _joined(run: str) -> str:
    words = re.split(r"[ .\-_*/+~]{3,}", run)
    return " ".join(re.sub(r"[\W_]", "", word) for word in words)


def _unleet(word: str, one: str) -> str:
    """Letters for the digits and signs in a word; a word without letters is a number and stays."""
    if not any("a" <= char <= "z" for char in word):
        return word
    return "".join(one if char == "1" else _LEET.get(char, char) for char in word)
