"""Which arms the top K came from: the canary that needs no gold."""

import re
from collections import Counter
from collections.abc import Iterable

from ragaudit.model.trace import Trace

SEVERAL = "both"
_LEXICAL_NAME = re.compile(r"bm25|lexic|sparse|keyword|fts|full.?text|tf.?idf|splade", re.IGNORECASE)
_VECTOR_NAME = re.compile(r"dense|vector|embed|semantic|knn|ann\b|hnsw|faiss|cosine|neural", re.IGNORECASE)


def named_lexical(arm: str) -> bool:
    """Does the arm's name say that it matches words rather than vectors?"""
    return _LEXICAL_NAME.search(arm) is not None


def named_vector(arm: str) -> bool:
    """Does the arm's name say that it compares vectors?"""
    return _VECTOR_NAME.search(arm) is not None


def lexical_arms(arms: Iterable[str]) -> list[str]:
    """The arms among these that match words."""
    return [arm for arm in arms if named_lexical(arm)]


def top_k_sources(trace: Trace) -> Counter[str]:
    """Chunks of the final context, cut at K, by the one arm that found them, or `both` when several did.

    A chunk that no logged list explains is not counted; without a final context the counter is empty.
    """
    found: Counter[str] = Counter()
    if not trace.final_context_ids:
        return found
    arms: dict[str, set[str]] = {}
    for hit in trace.fused or ():
        if hit.sources:
            arms.setdefault(hit.id, set()).update(hit.sources)
    for name, hits in (trace.arms or {}).items():
        for hit in hits:
            arms.setdefault(hit.id, set()).add(name)
    for chunk_id in trace.final_context_ids[: trace.k_final]:
        holding = arms.get(chunk_id)
        if holding:
            found[next(iter(holding)) if len(holding) == 1 else SEVERAL] += 1
    return found


def lexical_only(trace: Trace) -> str | None:
    """How much of the top K only a lexical arm found: "none", "some" or "all"; None when it is not known."""
    counts = top_k_sources(trace)
    total = sum(counts.values())
    if not total or len(trace.arms or {}) < 2:
        return None
    only = sum(n for arm, n in counts.items() if arm != SEVERAL and named_lexical(arm))
    return "none" if not only else "all" if only == total else "some"
