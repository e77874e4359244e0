"""Refuses texts that propose wider access, whoever wrote them, and lets known levers through by their ids only.

The guard stands in front of texts that a model wrote. It looks twice: for phrases that are known to widen access, and
for any sentence on access control that asks for a change without saying that access stays as it is. It errs on the
side of refusing: what it refuses is replaced by a template's text, which costs a phrase. No list of words is complete,
so the guard is the second line. The first is that advice is a lever's id, and no lever can express wider access.
"""

import re
from collections.abc import Iterable
from functools import cache

from ragaudit.experiments.guard_forms import forms, squeezed
from ragaudit.experiments.guard_words import (
    CLAUSE_END,
    CONDITIONS,
    FORBIDDEN_AFTER,
    HAN_NEGATED,
    SENTENCE_END,
    SQUEEZED,
    phrases,
    topics,
    words,
)
from ragaudit.experiments.levers import LEVERS
from ragaudit.model.experiment import Lever

LIMIT = 20_000
"""The guard reads no more characters than this, and refuses a text that is longer."""

_REACH = 8
"""Words before a phrase among which a negator is looked for."""


def refuses(text: str) -> str | None:
    """Why a text may not be shown as advice: it would widen access. None when it may be shown.

    Looks through letters of other scripts, invisible characters, accents, spelling with spaces or digits, and code.
    "Never disable the filter" is no proposal; "do not hesitate to disable the filter" is one. The reason never quotes
    the text.
    """
    if len(text) > LIMIT:
        return f"is longer than {LIMIT:,} characters"
    for form in forms(text):
        for phrase in phrases():
            if any(not _is_negated(form, found) for found in phrase.pattern.finditer(form)):
                return f"would {phrase.would}"
    for form in forms(_lever_words().sub("it", text)):
        if any(_asks_for_other_access(sentence) for sentence in SENTENCE_END.split(form) if sentence):
            return "would change who may read what"
    if any(SQUEEZED.search(run) for run in squeezed(text)):
        return "would widen access, in words that are spelled letter by letter"
    return None


def guarded(text: str, template: str) -> str:
    """The text, or the template's text in its place when the guard refuses it."""
    return template if refuses(text) else text


def allowed_levers(ids: Iterable[str]) -> tuple[Lever, ...]:
    """The known levers among ids that a model named, each once, in the catalogue's order; the rest is dropped."""
    named = {name for name in ids if isinstance(name, str)}
    return tuple(known for known in LEVERS if known.name in named)


@cache
def _lever_words() -> re.Pattern[str]:
    """A lever's key or id: what it names cannot widen access, whatever the name sounds like."""
    keys = (r"(?:pipeline\.)?" + re.escape(known.variable).replace(r"\*", r"\w+") for known in LEVERS)
    ids = (known.name for known in LEVERS if "_" in known.name)
    return re.compile(rf"(?<![\w.])(?:{'|'.join((*keys, *ids))})(?![\w.]*\w)")


def _asks_for_other_access(sentence: str) -> bool:
    return any(
        topic.spoken.search(sentence) is not None
        and topic.access.search(sentence) is not None
        and topic.keeps.search(sentence) is None
        and any(not _is_negated(sentence, found) for found in topic.change.finditer(sentence))
        for topic in topics()
    )


def _is_negated(text: str, found: re.Match[str]) -> bool:
    before, after = text[: found.start()], text[found.end() :]
    if HAN_NEGATED.search(before[-12:]) or FORBIDDEN_AFTER.match(after[:60]):
        return True
    clause = re.findall(r"[\w']+", CLAUSE_END.split(before[-160:])[-1])
    near = clause[-_REACH:]
    places = [place for place, word in enumerate(near) if _negates(word)]
    if not places or CONDITIONS.search(" ".join(clause)):
        return False
    is_tied = all(word in words("bridges") for word in near[places[-1] + 1 :])
    return is_tied and _turns_around([word for word in clause if _negates(word)])


def _negates(word: str) -> bool:
    return word in words("negators") or word.endswith(("n't", "n'"))


def _turns_around(negators: list[str]) -> bool:
    """Two negators in a clause cancel each other, unless they are a pair that counts as one: ne ... pas."""
    return len(negators) == 1 or negators[0] in words("paired_negators") or negators[-1] == "nor"
