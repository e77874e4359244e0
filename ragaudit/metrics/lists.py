"""How alike two rankings of the same query are: how many ids they share at the top, and in how far the same order."""

from bisect import bisect_right, insort
from collections.abc import Sequence


def overlap_at(one: Sequence[str], other: Sequence[str], k: int) -> float | None:
    """Share of ids that the first `k` of both lists have in common, from 0 to 1.

    Of lists shorter than `k`, the longer one is the whole. None when both are empty. Ids stand once in a list.
    """
    tops = set(one[:k]), set(other[:k])
    longer = max(len(top) for top in tops)
    return len(tops[0] & tops[1]) / longer if longer else None


def kendall_tau(one: Sequence[str], other: Sequence[str]) -> float | None:
    """Kendall's tau (1938) over the ids that both lists hold: 1 the same order, -1 the reverse.

    (pairs in the same order - pairs in the other order) / all pairs; ranks have no ties. None with fewer than two
    ids in common.
    """
    places = {name: place for place, name in enumerate(other)}
    shared = [places[name] for name in one if name in places]
    n = len(shared)
    if n < 2:
        return None
    seen: list[int] = []
    inverted = 0
    for place in shared:
        inverted += len(seen) - bisect_right(seen, place)
        insort(seen, place)
    return 1.0 - 4.0 * inverted / (n * (n - 1))
