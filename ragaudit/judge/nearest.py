"""When a reply is not on the tape: the recording that comes nearest to the request, and where the two part."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ragaudit.judge.redact import shown

Asked = Mapping[str, Any]

_MARK = re.compile(r"<\w+:([0-9a-f]{8})>")


def nearest(wanted: Asked, recorded: Iterable[Asked]) -> Asked | None:
    """The recorded question most like the wanted one: same prompt first, then most lines shared."""
    lines = _lines(wanted)
    best, best_score = None, (-1, -1.0)
    for question in recorded:
        theirs = _lines(question)
        shared = 2 * (lines & theirs).total() / max(1, lines.total() + theirs.total())
        # The texts say more than a version or a model, which were changed for all of them; those break ties.
        alike = sum(question.get(name) == wanted[name] for name in ("version", "model"))
        score = (int(question.get("prompt") == wanted["prompt"]), shared + 0.001 * alike)
        if score > best_score:
            best, best_score = question, score
    return best


def first_difference(wanted: Asked, recorded: Asked) -> str:
    """Where the wanted request first differs from a recorded one, in words."""
    for name in ("prompt", "version", "model", "api_base"):
        if wanted[name] != recorded.get(name):
            return f"{name} is {_value(wanted[name])}, recorded {_value(recorded.get(name))}"
    ours, theirs = wanted["parameters"], recorded.get("parameters") or {}
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            return f"parameter {name} is {_value(ours.get(name))}, recorded {_value(theirs.get(name))}"
    if wanted["reply_schema"] != recorded.get("reply_schema"):
        return "the reply schema"
    return _message_difference(wanted["messages"], recorded.get("messages") or ())


def _message_difference(wanted: Iterable[Mapping[str, str]], recorded: Iterable[Mapping[str, str]]) -> str:
    ours, theirs = list(wanted), list(recorded)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if mine.get("role") != other.get("role"):
            return f"message {number} is from {_value(mine.get('role'))}, recorded {_value(other.get('role'))}"
        our_lines, their_lines = _lines_of(mine), _lines_of(other)
        for line, (one, two) in enumerate(zip(our_lines, their_lines, strict=False), start=1):
            if one != two:
                start = max(0, _parting(one, two) - 20)
                lead = "…" if start else ""
                return (
                    f"message {number}, line {line} is {shown(lead + one[start:])}, "
                    f"recorded {shown(lead + two[start:])}"
                )
        if len(our_lines) != len(their_lines):
            return f"message {number} has {len(our_lines)} lines, recorded {len(their_lines)}"
    return (
        f"{len(ours)} messages, recorded {len(theirs)}"
        if len(ours) != len(theirs)
        else "none, but its reply cannot be used"
    )


def _parting(one: str, two: str) -> int:
    pairs = enumerate(zip(one, two, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(two)))


def _lines_of(message: Mapping[str, str]) -> list[str]:
    """The lines, with the key of the marks blanked: it is a hash of the texts, and differs wherever they do."""
    content = message.get("content", "")
    mark = _MARK.search(content)
    return (content if mark is None else content.replace(mark[1], "KEY")).split("\n")


def _value(value: object) -> str:
    if isinstance(value, str):
        return shown(value)
    return "not set" if value is None else shown(json.dumps(value, default=str))[1:-1]


def _lines(question: Asked) -> Counter[str]:
    return Counter(line for message in question.get("messages") or () for line in _lines_of(message) if line)
