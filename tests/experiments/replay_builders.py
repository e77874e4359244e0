"""A query with two arms by hand, the configuration it ran under, and the chunk table beside it."""

from ragaudit.experiments.levels import Level
from ragaudit.experiments.replay import ChunkTable, replay
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Gold, Hit, Trace

PIPELINE = {"arms": ["dense", "bm25"], "k_final": 3, "fusion": {"method": "rrf", "k": 60}, "thresholds": []}
ARMS = {"dense": {"a": 0.9, "b": 0.8, "c": 0.7}, "bm25": {"b": 12.0, "d": 9.0}}
"""By reciprocal ranks: b 1/62 + 1/61, a 1/61, d 1/62, c 1/63."""
FUSED = ("b", "a", "d", "c")


def hits(ids):
    """A list from `("a", "b")` or, with scores, `{"a": 0.9}`."""
    scores = ids if isinstance(ids, dict) else dict.fromkeys(ids)
    return tuple(Hit(id=name, rank=rank, score=score) for rank, (name, score) in enumerate(scores.items(), start=1))


def trace(arms=ARMS, query_id="q1", k=3, gold=("g",), **over):
    for name in ("fused", "rerank_input", "after_rerank", "after_filter", "after_threshold"):
        if over.get(name) is not None:
            over[name] = hits(over[name])
    logged = None if arms is None else {name: hits(ids) for name, ids in arms.items()}
    labels = tuple(Gold(id=name) for name in gold)
    return Trace(query_id=query_id, query_text="?", k_final=k, arms=logged, gold=labels, gold_labelled=True, **over)


def pipeline(**over):
    return Pipeline.model_validate(PIPELINE).with_overrides(over)


def table(tokens=None, source=None, text=None):
    return ChunkTable(source or {}, tokens or {}, text or {})


def packed(query, chunks=None, level=Level.POOL, was=None, meets=None, **over):
    """What would be packed under the configuration with these keys changed, as letters; or why nobody knows.

    `was` holds the keys it was logged under, where the reason depends on them; by default the same.
    """
    now = pipeline(**over)
    found = replay(query, now if was is None else pipeline(**was), now, chunks or table(), level, meets or {})
    return "".join(found) if isinstance(found, tuple) else found.reason
