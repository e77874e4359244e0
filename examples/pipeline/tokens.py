"""Words: tokenizers, stems, stop words, token counts."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

CJK = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[a-z]+-\d+|[^\W_{CJK}]+|[{CJK}]+")
_CJK_RUN = re.compile(rf"[{CJK}]")
_COUNT = re.compile(rf"[{CJK}]|[^\W{CJK}]+|[^\w\s]")
_STOP_WORDS = (
    "a an and are as at be by can do does for from has have how i if in into is it its may me my of on or our "
    "long much many often fast soon must should there here after before "
    "that the their them they this to us was we what when where which who whom whose will with would you your "
    "der die das den dem des ein eine einen einem im in ist sind und oder zu zum zur von vom mit für wie was "
    "welche wann wer nach bei ich wir man bis auf wird werden"
)
_STOP = frozenset(_STOP_WORDS.split())
_STEM = 6


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """Lower-case tokens without stop words; Japanese runs become character pairs."""
    found: list[str] = []
    for token in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if _CJK_RUN.match(token):
            found.extend(token[i : i + 2] for i in range(max(1, len(token) - 1)))
        elif token not in _STOP:
            found.append(token)
    return tuple(found)


def whitespace_words(text: str) -> tuple[str, ...]:
    """Tokens between blanks. A Japanese sentence is one token: this tokenizer is a fault there."""
    return tuple(re.sub(r"[^\w-]", "", token) for token in unicodedata.normalize("NFKC", text).lower().split())


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """Tokens cut to six characters, so that inflected forms meet."""
    return frozenset(stem(token) for token in words(text))


def stem(token: str) -> str:
    """A token cut to its first six characters; codes and numbers stay whole."""
    if any(char.isdigit() for char in token):
        return token
    return token[:_STEM]


def count_tokens(text: str) -> int:
    """Size of a text: words, signs and single Japanese characters."""
    return len(_COUNT.findall(text))


def sentences(paragraph: str) -> list[str]:
    """The sentences of one paragraph, with their closing mark."""
    parts = re.split(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ0-9])|(?<=。)", paragraph)
    return [part for part in parts if part.strip()]
