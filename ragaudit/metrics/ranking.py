"""What each ranking metric is: numpy kernels from the ranks of a query's gold ids to one value a query.

The conventions hold for every metric here; `docs/metrics.md` gives them with examples.

* A position counts the slots of the list as logged. An id that is repeated counts once, at its first position, and
  keeps its slots (the caller gives first positions).
* Relevant means grade >= 1. A lower grade is no relevance: it is no gold and brings no gain.
* Metrics count gold *groups*, of which one id is enough. An id on its own is a group of one.
* One slot may stand for several groups (a parent chunk for its children): it covers each of them, and no value
  exceeds 1.
* An empty list scores 0. A query without a relevant group is undefined: NaN, never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragaudit.model.result import METRICS

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Gain = Literal["linear", "exp"]

RELEVANT = 1.0
"""The lowest grade that counts, as trec_eval's default `-l 1`."""

MAX_QUERIES = 8_192
"""Queries in one pass of a kernel: the arrays stay in the cache. A million at once costs a fifth more a query."""

_NOWHERE = np.iinfo(np.int32).max
"""A position after every other, and the largest K."""

MAX_CELLS = 1 << 20
"""Padded gold cells in one pass: one query with thousands of gold ids must not widen the rows of all the others."""


class QueryRanks(NamedTuple):
    """One query's gold against one list: the three tuples go together, one entry for each gold id."""

    ranks: tuple[int, ...]
    """First position in the list from 1; 0 = not in it."""
    grades: tuple[float, ...]
    groups: tuple[int, ...]
    k: int
    returned: int
    """Length of the list, not cut at K."""


@dataclass(frozen=True)
class GoldRanks:
    """Many queries' gold against their lists: n queries, padded to g gold ids."""

    rank: Ints
    """(n, g): position of the id in the list from 1; 0 = not in it."""
    grade: Floats
    """(n, g): 0 in padding or not relevant."""
    group: Ints
    """(n, g): which group of the query the id belongs to; -1 = padding."""
    k: Ints
    """(n,): each query's own K."""
    returned: Ints
    """(n,): length of the list, not cut at K."""

    @classmethod
    def of(cls, rows: Sequence[QueryRanks]) -> "GoldRanks":
        """Pad the queries' tuples into arrays. `measure_rows` does this with bounded memory."""
        n = len(rows)
        # By column, so that no Python code runs for each query: this halves the cost of the whole measurement.
        ranks, grades, groups, k, returned = zip(*rows, strict=True) if rows else ((),) * 5
        width = np.fromiter(map(len, ranks), np.int32, n)
        cells = int(width.sum())
        is_gold = np.arange(width.max(initial=0)) < width[:, None]
        rank, grade = np.zeros(is_gold.shape, np.int32), np.zeros(is_gold.shape)
        group = np.full(is_gold.shape, -1, np.int32)
        rank[is_gold] = np.fromiter(chain.from_iterable(ranks), np.int32, cells)
        grade[is_gold] = np.fromiter(chain.from_iterable(grades), np.float64, cells)
        group[is_gold] = np.fromiter(chain.from_iterable(groups), np.int32, cells)
        return cls(
            rank=rank,
            grade=grade,
            group=group,
            k=np.fromiter(map(min, k, repeat(_NOWHERE)), np.int32, n),
            returned=np.fromiter(returned, np.int32, n),
        )

    def part(self, start: int, stop: int) -> "GoldRanks":
        """The queries from start to stop, as views."""
        rows = slice(start, stop)
        return GoldRanks(self.rank[rows], self.grade[rows], self.group[rows], self.k[rows], self.returned[rows])


def measure_rows(rows: Sequence[QueryRanks], *, gain: Gain = "linear") -> dict[str, Floats]:
    """Every id-based metric of every query, in the order of `rows`; see `measure`.

    Queries of like gold count go through together, so that the memory used follows the gold there is.
    """
    widths = [len(row.ranks) for row in rows]
    if len(rows) * max(widths, default=0) <= MAX_CELLS:
        return measure(GoldRanks.of(rows), gain=gain)
    out = {name: np.full(len(rows), np.nan) for name in METRICS}
    order = sorted(range(len(rows)), key=widths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        take = order[start : start + max(1, MAX_CELLS // max(1, widths[order[start]]))]
        for name, values in measure(GoldRanks.of([rows[i] for i in take]), gain=gain).items():
            out[name][take] = values
        start += len(take)
    return out


def measure(gold: GoldRanks, *, gain: Gain = "linear") -> dict[str, Floats]:
    """Every id-based metric of every query, under the names of `METRICS`.

    Args:
        gold: ranks, grades and groups of the eligible gold ids.
        gain: of nDCG; "linear" is the grade itself (trec_eval), "exp" is 2^grade - 1.

    Returns:
        One float64 (n,) array a metric; NaN where a query has no group with a relevant id.
    """
    n = len(gold.k)
    out = {name: np.empty(n) for name in METRICS}
    for start in range(0, n, MAX_QUERIES):
        stop = start + MAX_QUERIES
        for name, values in _measure(gold.part(start, stop), gain).items():
            out[name][start:stop] = values
    return out


def _measure(gold: GoldRanks, gain: Gain) -> dict[str, Floats]:
    k = gold.k[:, None]
    groups = _groups(gold)
    first = np.where(groups.first <= k, groups.first, 0)
    n_groups = (groups.best > 0).sum(axis=1)
    n_relevant = _relevant_slots(gold, k)
    values = {
        "hit@k": hit(first),
        "recall@k": recall(first, n_groups),
        "precision@k": precision(n_relevant, gold.k),
        "precision@returned": precision(n_relevant, np.minimum(gold.k, gold.returned)),
        "mrr@k": reciprocal_rank(first),
        "ndcg@k": ndcg(first, groups.grade, groups.best, gold.k, gain),
        "ap@k": average_precision(first, n_groups),
    }
    for value in values.values():
        value[n_groups == 0] = np.nan
    return values


def hit(first: Ints) -> Floats:
    """Is there any relevant id in the first K: 1 or 0. trec_eval's `success_K`.

    Args:
        first: (n, m) position of each group's first relevant id; 0 = not in the first K. So in every formula here.
    """
    return np.asarray((first > 0).any(axis=1), dtype=np.float64)


def recall(first: Ints, n_groups: NDArray[np.intp]) -> Floats:
    """Share of the groups with a relevant id that have one in the first K (Kent et al. 1955; `recall_K`)."""
    return _ratio((first > 0).sum(axis=1), n_groups)


def precision(n_relevant: NDArray[np.intp], slots: Ints) -> Floats:
    """Share of the slots that hold a relevant id (Kent et al. 1955).

    Over K slots this is trec_eval's `P_K`, which counts the slots that a short list left empty. Over the slots that
    came back it is what many RAG harnesses call precision. The two differ, so each has its own name. Every relevant
    id counts here, also the second one of a group. No slots: 0, since an empty list scores 0.
    """
    return _ratio(n_relevant, slots)


def reciprocal_rank(first: Ints) -> Floats:
    """1 / position of the first relevant id, 0 when it is not in the first K (Voorhees 1999; `recip_rank`)."""
    best: Ints = np.where(first > 0, first, _NOWHERE).min(axis=1, initial=_NOWHERE)
    return np.where(best < _NOWHERE, 1.0, 0.0) / best


def ndcg(first: Ints, grade: Floats, best: Floats, k: Ints, gain: Gain) -> Floats:
    """Discounted gain over that of the ideal list (Järvelin and Kekäläinen 2002; trec_eval's `ndcg_cut_K`).

    The discount is 1 / log2(position + 1). A group brings the gain of its first relevant id in the list, once. The
    ideal list has the groups' best grades in falling order, cut at K. `exp` gain is that of Burges et al. 2005.

    Args:
        first: as in `hit`.
        grade: (n, m) grade of the id at `first`.
        best: (n, m) best grade in the group; 0 = no relevant id.
        k: (n,) the cut.
        gain: "linear" or "exp".
    """
    top = best.max(axis=1, initial=RELEVANT, keepdims=True)
    found = np.where(first > 0, _gain(grade, top, gain), 0.0)
    dcg = (found / np.log2(np.maximum(first, 1) + 1)).sum(axis=1)
    ideal = -np.sort(-_gain(best, top, gain), axis=1)
    position = np.arange(1, best.shape[1] + 1)
    ideal_dcg = np.where(position <= k[:, None], ideal / np.log2(position + 1), 0.0).sum(axis=1)
    ratio: Floats = np.minimum(_ratio(dcg, ideal_dcg), 1.0)
    return ratio


def average_precision(first: Ints, n_groups: NDArray[np.intp]) -> Floats:
    """Mean over all groups of the precision where the group is first found, 0 if not in the first K.

    trec_eval's `map_cut_K`: the divisor is every group, also when there are more than K (Manning, Raghavan and
    Schütze 2008, chapter 8). Precision here counts groups, not ids. Groups found in the same slot are found together.
    """
    at = np.sort(np.where(first > 0, first, _NOWHERE), axis=1)
    found_by = np.broadcast_to(np.arange(1, at.shape[1] + 1), at.shape)
    if (at[:, 1:] == at[:, :-1]).any():
        last_of_slot = np.ones(at.shape, dtype=bool)
        last_of_slot[:, :-1] = at[:, 1:] != at[:, :-1]
        marked = np.where(last_of_slot, found_by, at.shape[1])
        found_by = np.minimum.accumulate(marked[:, ::-1], axis=1)[:, ::-1]
    precision_there = np.where(at < _NOWHERE, np.minimum(found_by / at, 1.0), 0.0)
    return _ratio(precision_there.sum(axis=1), n_groups)


@dataclass(frozen=True)
class _Groups:
    """Gold with one column a group: (n, m) each, zeros where there is no relevant id."""

    first: Ints
    grade: Floats
    best: Floats


def _groups(gold: GoldRanks) -> _Groups:
    is_relevant = (gold.group >= 0) & (gold.grade >= RELEVANT)
    in_row_order = np.sort(gold.group, axis=1)
    shared = (in_row_order[:, 1:] == in_row_order[:, :-1]) & (in_row_order[:, 1:] >= 0)
    if not shared.any():
        grade = np.where(is_relevant, gold.grade, 0.0)
        return _Groups(first=np.where(is_relevant, gold.rank, 0), grade=grade, best=grade)
    return _merged(gold, is_relevant)


def _merged(gold: GoldRanks, is_relevant: NDArray[np.bool_]) -> _Groups:
    """Of each group: the first relevant id in the list (of two in one slot the better grade), and the best grade."""
    row, _ = np.nonzero(is_relevant)
    rank, grade, group = gold.rank[is_relevant], gold.grade[is_relevant], gold.group[is_relevant]
    order = np.lexsort((-grade, np.where(rank > 0, rank, _NOWHERE), group, row))
    row, rank, grade, group = row[order], rank[order], grade[order], group[order]
    is_head = np.ones(len(row), dtype=bool)
    is_head[1:] = (row[1:] != row[:-1]) | (group[1:] != group[:-1])
    heads = np.flatnonzero(is_head)
    head_row = row[heads]
    width = np.bincount(head_row, minlength=len(gold.k))
    column = np.arange(len(heads)) - (np.cumsum(width) - width)[head_row]
    shape = (len(gold.k), int(width.max(initial=0)))
    merged = _Groups(first=np.zeros(shape, np.int32), grade=np.zeros(shape), best=np.zeros(shape))
    if len(heads):
        merged.first[head_row, column] = rank[heads]
        merged.grade[head_row, column] = grade[heads]
        merged.best[head_row, column] = np.maximum.reduceat(grade, heads)
    return merged


def _relevant_slots(gold: GoldRanks, k: Ints) -> NDArray[np.intp]:
    """How many of the first K slots hold a relevant id; a slot that stands for two gold ids is one slot."""
    counts = (gold.group >= 0) & (gold.grade >= RELEVANT) & (gold.rank <= k)
    slots = np.sort(np.where(counts, gold.rank, 0), axis=1)
    is_new: NDArray[np.bool_] = np.diff(slots, axis=1, prepend=0) > 0
    n_slots: NDArray[np.intp] = is_new.sum(axis=1)
    return n_slots


def _gain(grade: Floats, top: Floats, gain: Gain) -> Floats:
    """The gain, scaled by the query's best grade: the ratio is the same, and no grade overflows."""
    if gain == "linear":
        return grade / top
    scaled: Floats = np.exp2(grade - top) - np.exp2(-top)
    return scaled


def _ratio(part: NDArray[np.intp] | Floats, whole: NDArray[np.intp] | Floats | Ints) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
