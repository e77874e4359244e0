"""What the guard knows of language: phrases that widen access, sentences on access, and what turns both around."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SENTENCE_END = re.compile(r"(?<=[.;!?])\s+|[。；！？]|\.\s*$")
CLAUSE_END = re.compile(r"[.;:!?,|。；，！？]")

SQUEEZED = re.compile(
    r"(?:bypass|disable|remove|skip|ignore|drop|delete|relax|widen|turnoff|switchoff|circumvent|override|without)"
    r"(?:the|all|any|this|that|your|our|its)?(?:acl|filter|permission|access|tenant|security|rls|auth)"
    r"|(?:abschalten|deaktivieren?|umgehen?|ohne)(?:den|die|das|der)?(?:filter|acl|zugriff|berechtigung)"
    r"|(?:filter|acl|berechtigung)(?:abschalten|deaktivieren|umgehen)"
    r"|(?:desactiver|contourner|supprimer|sans)(?:le|la|les)?(?:filtre|acl|permission)"
    r"|(?:desactivar|eliminar|sin)(?:el|la|los)?(?:filtro|acl|permiso)|(?:as|like)(?:an?)?(?:admin|root)"
)
"""For words spelled letter by letter, where nothing stands between them."""

CONDITIONS = re.compile(
    r"\b(?:if|unless|until|why|wenn|falls|warum|bis|si|sauf|pourquoi|salvo|porque)\b"
    r"|(?:hesit|zoger|dud|doubt|forget|oubli|olvid|vergiss)"
)
"""A negator in a clause with one of these turns nothing around: "if you do not ...", "do not hesitate to ..."."""

HAN_NEGATED = re.compile(
    r"(?:不要|不得|切勿|禁止|不可|不能|不应|不会|绝不|从不|永不|请勿|不允许|严禁|而不是|别|勿)[^。；;,，]{0,4}$"
)

FORBIDDEN_AFTER = re.compile(
    r"^[\"'`*)\]]*\s*(?:\w+\s+){0,2}?(?:is|are|would be|stays|remains|ist|bleibt|est|reste|es|esta)\s+"
    r"(?:strictly |always |strikt )?"
    r"(?:never|forbidden|prohibited|ruled out|refused|rejected|inexpressible|not (?:allowed|permitted|an option|"
    r"acceptable|proposed|a remedy|a fix)|no (?:remedy|fix|option|experiment|lever)|a security incident|verboten|"
    r"nicht erlaubt|untersagt|keine option|interdit|jamais|prohibido|no esta permitido)"
    r"|^[^。；]{0,4}(?:是|被)(?:不允许|禁止|严禁)|^是安全事故"
)
"""What may follow a phrase and turn it around: "... is forbidden"."""


@dataclass(frozen=True)
class Phrase:
    """A pattern, and what a text that matches it would do."""

    would: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Topic:
    """One language: how it is known, words of access, of a request for change, of access that stays as it is."""

    spoken: re.Pattern[str]
    access: re.Pattern[str]
    change: re.Pattern[str]
    keeps: re.Pattern[str]


@cache
def phrases() -> tuple[Phrase, ...]:
    """Every phrase of guard.toml. Compiled at the first use: most runs guard no text."""
    fragments = _file()["fragments"]
    return tuple(
        Phrase(group["would"], re.compile(_filled(pattern, fragments)))
        for group in _file()["phrases"]
        for pattern in group["patterns"]
    )


@cache
def topics() -> tuple[Topic, ...]:
    """What guard.toml knows of sentences on access, language by language."""
    fields = ("spoken", "access", "change", "keeps")
    return tuple(Topic(**{name: re.compile(topic[name]) for name in fields}) for topic in _file()["topics"])


@cache
def words(name: str) -> frozenset[str]:
    """A word list of guard.toml: negators, paired_negators or bridges."""
    return frozenset(_file()["words"][name])


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("guard.toml").read_text(encoding="utf-8"))


def _filled(pattern: str, fragments: dict[str, str]) -> str:
    """The pattern with each {NAME} replaced, down through the fragments that name others."""
    while True:
        filled = re.sub(r"\{([A-Z_]+)\}", lambda name: fragments[name[1]], pattern)
        if filled == pattern:
            return pattern
        pattern = filled
