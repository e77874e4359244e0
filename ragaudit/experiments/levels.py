"""Where in the pipeline a change bites: behind which recorded list everything has to be computed again."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from ragaudit.model.pipeline import Pipeline


class Level(IntEnum):
    """The first thing that a change touches; what stands before it is taken from the log."""

    SEARCH = 0
    """What an arm returns, or something that no list shows: only a run can tell."""
    POOL = 1
    """The merged list: arms, fusion, floors."""
    FILTER = 2
    """How many candidates a filter behind the search is given."""
    RERANK = 3
    """The reranker, its candidates, and the floor on its score."""
    PACK = 4
    """The packer, and K."""


_LEVELS: dict[str, Level] = {
    "arms": Level.POOL,
    "fusion.k": Level.POOL,
    "fusion.weights": Level.POOL,
    "fusion.method": Level.POOL,
    "filter.fetch_k": Level.FILTER,
    "rerank.model": Level.RERANK,
    "rerank.candidates": Level.RERANK,
    "rerank.top_n": Level.RERANK,
    "rerank.blend": Level.RERANK,
    "pack.dedupe_by": Level.PACK,
    "pack.token_budget": Level.PACK,
    "pack.on_overflow": Level.PACK,
    "pack.max_per_source": Level.PACK,
    "k_final": Level.PACK,
}
"""Every key that a replay reads, but for the floors. A change of any other key needs a run."""

_WHOLE = ("fusion.weights",)


def level_of(was: Pipeline, now: Pipeline) -> Level | None:
    """The earliest level at which two configurations differ; None when they are the same."""
    if was == now:
        return None
    before, after = (_flat(pipeline.model_dump(exclude={"thresholds"})) for pipeline in (was, now))
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    found = [_LEVELS.get(name, Level.SEARCH) for name in names]
    on_pool, on_rerank = (
        [[t for t in side.thresholds if (t.on == "rerank") is reranked] for side in (was, now)]
        for reranked in (False, True)
    )
    if on_pool[0] != on_pool[1]:
        found.append(Level.POOL)
    if on_rerank[0] != on_rerank[1]:
        found.append(Level.RERANK)
    return min(found, default=None)


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name not in _WHOLE:
            found |= _flat(value, f"{name}.")
        elif value not in (None, {}, [], ()):
            found[name] = value
    return found
