"""Finds names of people: those of a list, or those that presidio-analyzer sees."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

from ragaudit.errors import ConfigError, MissingExtraError
from ragaudit.redact.finding import Found
from ragaudit.redact.pseudonyms import Kind

Finder = Callable[[str], Iterator[Found]]
_WORD = re.compile(r"[\w\u0300-\u036f]+")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
MAX_TEXT = 100_000
"""Characters that go to the name model at once; a longer text goes in pieces."""


def listed_names(names: Iterable[str]) -> Finder:
    """A finder of these names: whole words in any case, or anywhere in a script that has no spaces.

    Raises:
        ConfigError: A name has one character, or no letter.
    """
    by_first: dict[str, list[tuple[str, ...]]] = {}
    unspaced = []
    for name in names:
        words = tuple(_folded(word) for word in _WORD.findall(name))
        if len("".join(words)) < 2 or not any(c.isalpha() for c in name):
            raise ConfigError("names file: a name has fewer than two letters or digits. It would be found everywhere.")
        if _UNSPACED.search(name):
            unspaced.append(re.escape(name.strip()))
        else:
            by_first.setdefault(words[0], []).append(words)
    for ways in by_first.values():
        ways.sort(key=len, reverse=True)
    anywhere = re.compile("|".join(sorted(unspaced, key=len, reverse=True))) if unspaced else None

    def find(text: str) -> Iterator[Found]:
        if anywhere is not None:
            for found in anywhere.finditer(text):
                yield Found(found.start(), found.end(), Kind.NAME, _folded(found[0]))
        words = [(found.start(), found.end(), _folded(found[0])) for found in _WORD.finditer(text)] if by_first else []
        for n, (start, _, word) in enumerate(words):
            for way in by_first.get(word, ()):
                if tuple(w for _, _, w in words[n : n + len(way)]) == way and _together(text, words[n : n + len(way)]):
                    yield Found(start, words[n + len(way) - 1][1], Kind.NAME, " ".join(way))
                    break

    return find


def presidio_names(language: str, model: str) -> Finder:
    """A finder that asks presidio-analyzer for persons, with a spaCy model that is installed already.

    Raises:
        MissingExtraError: presidio-analyzer is not installed.
        ConfigError: The model is not installed. Nothing is downloaded here, though presidio would.
    """
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider
        from spacy.util import is_package
    except ImportError:
        what = "--names presidio: presidio-analyzer is not installed. Run: pip install 'ragaudit[presidio]'."
        raise MissingExtraError(what) from None
    if not is_package(model):
        raise ConfigError(
            f"--names presidio: the spaCy model {model} is not installed. Run: python -m spacy download {model},"
            " or name another with --names-model."
        )
    settings = {"nlp_engine_name": "spacy", "models": [{"lang_code": language, "model_name": model}]}
    engine = NlpEngineProvider(nlp_configuration=settings).create_engine()
    analyzer: Any = AnalyzerEngine(nlp_engine=engine, supported_languages=[language])

    def find(text: str) -> Iterator[Found]:
        for at in range(0, len(text), MAX_TEXT):
            piece = text[at : at + MAX_TEXT]
            for seen in analyzer.analyze(text=piece, language=language, entities=["PERSON"]):
                value = " ".join(_folded(word) for word in _WORD.findall(piece[seen.start : seen.end]))
                if value and "\0" not in piece[seen.start : seen.end]:
                    yield Found(at + seen.start, at + seen.end, Kind.NAME, value)

    return find


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()


def _together(text: str, words: list[tuple[int, int, str]]) -> bool:
    """Words of one name have a space, a hyphen, an apostrophe or a dot between them."""
    gaps = (text[a[1] : b[0]] for a, b in pairwise(words))
    return all(re.fullmatch(r"\.?[ \t\n]{1,4}|-|\. ?|['’]", gap) for gap in gaps)
