"""Laws that hold for any gold and any list, and a plain restatement of the conventions to compare with."""

from math import isnan, log2

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragaudit.metrics.ranking import QueryRanks, measure_rows

ORDER_SENSITIVE = ("mrr@k", "ndcg@k", "ap@k")
law = settings(deadline=None, derandomize=True)
"""The same examples on every machine, however slow."""

GRADES = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])


@st.composite
def queries(draw, own_slots=False, own_groups=False):
    """Any query; on request with every gold id in a slot of its own, or in a group of its own."""
    returned = draw(st.integers(0, 12))
    n = draw(st.integers(0, 6))
    ranks = draw(st.lists(st.integers(0, returned), min_size=n, max_size=n))
    if own_slots:
        ranks = [0 if rank in ranks[:i] else rank for i, rank in enumerate(ranks)]
    groups = list(range(n)) if own_groups else draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return QueryRanks(
        ranks=tuple(ranks),
        grades=tuple(draw(st.lists(GRADES, min_size=n, max_size=n))),
        groups=tuple(groups),
        k=draw(st.integers(1, 14)),
        returned=returned,
    )


def one(row: QueryRanks, gain="linear") -> dict[str, float]:
    return {name: float(values[0]) for name, values in measure_rows([row], gain=gain).items()}


def plainly(row: QueryRanks) -> dict[str, float]:
    """The conventions in plain Python, slot by slot."""
    gold = [g for g in zip(row.ranks, row.grades, row.groups, strict=True) if g[1] >= 1]
    groups = {group for _, _, group in gold}
    if not groups:
        return dict.fromkeys(("hit@k", "recall@k", "precision@k", "precision@returned", *ORDER_SENSITIVE), np.nan)
    covered: set[int] = set()
    slots = gain = 0.0
    first_slot, precision_sum = 0, 0.0
    for slot in range(1, row.k + 1):
        here = [g for g in gold if g[0] == slot]
        slots += bool(here)
        first_slot = first_slot or (slot if here else 0)
        new = {group for _, _, group in here} - covered
        covered |= new
        precision_sum += len(new) * min(1.0, len(covered) / slot)
        gain += sum(max(grade for _, grade, g in here if g == group) for group in new) / log2(slot + 1)
    best = sorted((max(grade for _, grade, g in gold if g == group) for group in groups), reverse=True)
    ideal = sum(grade / log2(slot + 1) for slot, grade in enumerate(best[: row.k], start=1))
    seen = min(row.k, row.returned)
    return {
        "hit@k": float(bool(covered)),
        "recall@k": len(covered) / len(groups),
        "precision@k": slots / row.k,
        "precision@returned": slots / seen if seen else 0.0,
        "mrr@k": 1 / first_slot if first_slot else 0.0,
        "ndcg@k": min(1.0, gain / ideal),
        "ap@k": precision_sum / len(groups),
    }


@law
@given(st.lists(queries(), max_size=5))
def test_the_kernels_agree_with_the_conventions_in_plain_python(rows):
    got = measure_rows(rows)
    for i, row in enumerate(rows):
        assert {name: float(values[i]) for name, values in got.items()} == pytest.approx(plainly(row), nan_ok=True)


@law
@given(queries(), st.sampled_from(["linear", "exp"]))
def test_every_value_is_undefined_or_between_zero_and_one(row, gain):
    values = one(row, gain)
    undefined = not any(grade >= 1 for grade in row.grades)
    assert all(isnan(value) if undefined else 0.0 <= value <= 1.0 for value in values.values())


@law
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 5), st.sampled_from(["linear", "exp"]))
def test_a_perfect_ranking_scores_one_once_k_holds_every_group(grades, spare, gain):
    n = len(grades)
    best_first = tuple(sorted(map(float, grades), reverse=True))
    values = one(QueryRanks(tuple(range(1, n + 1)), best_first, tuple(range(n)), n + spare, n + spare), gain)
    assert [values[name] for name in ("hit@k", "recall@k", *ORDER_SENSITIVE)] == pytest.approx([1.0] * 5)
    assert values["precision@k"] == pytest.approx(n / (n + spare))


@law
@given(queries(own_slots=True, own_groups=True), st.data())
def test_a_relevant_id_that_moves_up_past_a_lesser_one_never_lowers_an_order_sensitive_metric(row, data):
    assume(any(rank > 1 and grade >= 1 for rank, grade in zip(row.ranks, row.grades, strict=True)))
    movable = [i for i, rank in enumerate(row.ranks) if rank > 1 and row.grades[i] >= 1]
    mover = data.draw(st.sampled_from(movable))
    to = data.draw(st.integers(1, row.ranks[mover] - 1))
    there = row.ranks.index(to) if to in row.ranks else None
    assume(there is None or row.grades[there] <= row.grades[mover])
    ranks = list(row.ranks)
    ranks[mover] = to
    if there is not None:
        ranks[there] = row.ranks[mover]
    before, after = one(row), one(row._replace(ranks=tuple(ranks)))
    assert all(after[name] >= before[name] - 1e-12 for name in after)


@law
@given(queries(), st.data())
def test_nothing_beyond_k_changes_a_value(row, data):
    beyond = st.one_of(st.just(0), st.integers(row.k + 1, row.k + 50))
    moved = tuple(rank if 0 < rank <= row.k else data.draw(beyond) for rank in row.ranks)
    returned = max(row.returned, *moved, 0) if row.returned >= row.k else row.returned
    assert one(row._replace(ranks=moved, returned=returned)) == pytest.approx(one(row), nan_ok=True)


@law
@given(queries(), st.data())
def test_a_gold_id_that_is_listed_twice_counts_once(row, data):
    assume(row.ranks)
    i = data.draw(st.integers(0, len(row.ranks) - 1))
    twice = row._replace(
        ranks=(*row.ranks, row.ranks[i]), grades=(*row.grades, row.grades[i]), groups=(*row.groups, row.groups[i])
    )
    assert one(twice) == pytest.approx(one(row), nan_ok=True)


@law
@given(st.permutations(["a", "b", "c", "x", "y"]), st.lists(st.sampled_from("abcxy"), max_size=4), st.integers(1, 6))
def test_a_repeated_id_in_the_list_counts_once_at_its_first_position_and_keeps_its_slot(ranking, repeats, k):
    listed = [*ranking[:2], *repeats, *ranking[2:]]
    ranks = tuple(listed.index(chunk_id) + 1 for chunk_id in "abc")
    values = one(QueryRanks(ranks, (1.0,) * 3, (0, 1, 2), k, len(listed)))
    distinct_gold_in_top = len(set(listed[:k]) & set("abc"))
    assert values["precision@k"] == pytest.approx(distinct_gold_in_top / k)
    assert values["recall@k"] == pytest.approx(distinct_gold_in_top / 3)


@law
@given(queries(own_groups=True), st.permutations(range(6)))
def test_groups_of_one_are_plain_gold_whatever_their_numbers_and_order(row, order):
    take = [i for i in order if i < len(row.ranks)]
    shuffled = row._replace(
        ranks=tuple(row.ranks[i] for i in take),
        grades=tuple(row.grades[i] for i in take),
        groups=tuple(1_000 - 7 * i for i in take),
    )
    assert one(shuffled) == pytest.approx(one(row), nan_ok=True)
    # The path for groups that share ids, on the same gold: the last query alone makes it be taken.
    shared = QueryRanks((1, 1), (1.0, 1.0), (0, 0), 1, 1)
    with_groups = {name: float(values[0]) for name, values in measure_rows([row, shared]).items()}
    assert with_groups == pytest.approx(one(row), nan_ok=True)
