"""Finds in the text of a prompt which chunks were packed into it, and in which order."""

from collections.abc import Iterable

from ragaudit.evidence.spans import folded

SHORTEST = 16
"""Characters; a shorter text is in many prompts by chance."""


def packed(candidates: Iterable[tuple[str, str]], prompt: str) -> list[str] | None:
    """The ids of the candidates whose text stands in the prompt, in the order of their places there.

    Args:
        candidates: (id, text) of the hits of the last list; the same id counts once.
        prompt: The rendered prompt.

    Returns:
        None when no candidate has a text long enough to be looked for: then nothing was observed.
    """
    hay = folded(prompt)
    places: dict[str, int] = {}
    looked = False
    for chunk_id, text in candidates:
        needle = folded(text)
        if len(needle) < SHORTEST:
            continue
        looked = True
        place = hay.find(needle)
        if place >= 0:
            places.setdefault(chunk_id, place)
    return sorted(places, key=lambda chunk_id: places[chunk_id]) if looked else None
