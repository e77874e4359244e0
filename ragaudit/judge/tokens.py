"""P(supported) out of the token probabilities of a reply: the token that began a verdict, and what stood beside it."""

import math
import re
from collections.abc import Mapping

from ragaudit.model.judgement import Reply, Verdict

_LETTERS = re.compile(r"[a-z]+")


def p_of_word(reply: Reply, name: str, word: str, words: Mapping[str, Verdict], *, yes: Verdict) -> float | None:
    """How probable the model held `yes` where it wrote `word` for the text `name`; None = it cannot be told.

    The mass of the alternatives that begin a word of the closed set is compared; what the model did not list, and what
    begins none of the words, counts against `yes`: the figure is never too high.

    Args:
        reply: With its tokens, when the model offered them.
        name: As the reply writes it.
        word: The verdict that was read for it.
        words: The closed set.
        yes: The verdict whose probability is wanted.
    """
    if not reply.tokens:
        return None
    texts = [str(token.get("token", "")) for token in reply.tokens]
    whole = "".join(texts)
    found = re.search(rf"""["']?{re.escape(name)}["']?\s*:\s*["']?(?={re.escape(word)})""", whole)
    if found is None:
        return None
    start = 0
    for token, text in zip(reply.tokens, texts, strict=True):
        if start <= found.end() < start + len(text):
            return _share(token, words, yes) if _begins(text[found.end() - start :], words) else None
        start += len(text)
    return None


def _share(token: Mapping[str, object], words: Mapping[str, Verdict], yes: Verdict) -> float | None:
    listed = token.get("top") or [token]
    masses: dict[str, float] = {}
    for one in listed if isinstance(listed, list | tuple) else []:
        logprob = one.get("logprob") if isinstance(one, Mapping) else None
        if isinstance(logprob, int | float) and logprob <= 0:
            masses[str(one.get("token", ""))] = math.exp(logprob)
    own = str(token.get("token", ""))
    logprob = token.get("logprob")
    if own not in masses and isinstance(logprob, int | float) and logprob <= 0:
        masses[own] = math.exp(logprob)
    if not masses:
        return None
    mass = sum(p for text, p in masses.items() if _begins(text, words) is yes)
    return min(1.0, mass / max(1.0, sum(masses.values())))


def _begins(text: str, words: Mapping[str, Verdict]) -> Verdict | None:
    """The one verdict whose word this token begins."""
    found = _LETTERS.search(text.casefold())
    if found is None:
        return None
    meant = {verdict for word, verdict in words.items() if word.startswith(found[0]) or found[0].startswith(word)}
    return meant.pop() if len(meant) == 1 else None
