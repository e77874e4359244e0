"""Preflight: ids in a list that the list before it lacks, with nothing that explains them."""

from collections.abc import Iterable, Iterator

from ragaudit.evidence.identity import Identities
from ragaudit.model.trace import Ranking, Trace


def out_of_nowhere(trace: Trace, identities: Identities, arms: Iterable[str]) -> tuple[str, str] | None:
    """The first list of a trace that holds an id which what it was made from lacks, and that id.

    Fusion merges the arms, and a reranker orders what it was given: neither finds chunks. An id that `id_map`,
    `aliases` or a parent explains is no surprise, and fusion is looked at only when every configured arm was logged.
    The packed context is left out: packing may add parents and neighbours.

    Args:
        trace: The query.
        identities: Of the inventory.
        arms: The configured arms.
    """
    for name, made, before in _steps(trace, arms):
        ids = {hit.id for hits in before for hit in hits}
        new = [hit.id for hit in made if hit.id not in ids]
        had = {identities.canonical(each, trace) for each in ids} if new else ids
        for each in new:
            one = identities.canonical(each, trace)
            if one not in had and had.isdisjoint(identities.children.get(one, ())):
                return name, each
    return None


def _steps(trace: Trace, arms: Iterable[str]) -> Iterator[tuple[str, Ranking, list[Ranking]]]:
    logged = trace.arms or {}
    whole = bool(logged) and set(arms) <= logged.keys()
    if trace.fused is not None and whole:
        yield "fused", trace.fused, list(logged.values())
    if trace.after_rerank is None:
        return
    if trace.rerank_input is not None:
        yield "after_rerank", trace.after_rerank, [trace.rerank_input]
    elif trace.fused is not None:
        yield "after_rerank", trace.after_rerank, [trace.fused]
    elif len(logged) == 1 and whole:
        yield "after_rerank", trace.after_rerank, list(logged.values())
