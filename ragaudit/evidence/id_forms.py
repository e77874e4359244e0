"""How ids look: whether two lists may name the same things in two ways."""

import re

_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_CHANGES = re.compile(r"(?=a9|9a)")


def form_of(each: str) -> str:
    """How an id looks: runs of letters as `a`, of digits as `9`, the rest as it is: `doc-12#p3` is `a-9#a9`.

    Where letters and digits change places three times or more it is a hash, a UUID or the like: any two of them look
    different, and all are `x`.
    """
    form = _DIGITS.sub("9", _LETTERS.sub("a", each))
    return "x" if len(_CHANGES.findall(form)) >= 3 else form
