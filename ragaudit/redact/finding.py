"""One value that was found in a text."""

from dataclasses import dataclass

from ragaudit.redact.pseudonyms import Kind


@dataclass(frozen=True, slots=True)
class Found:
    """Where it stands in the shadow, what it is, and the one spelling that all spellings of it have in common."""

    start: int
    end: int
    kind: Kind
    value: str
