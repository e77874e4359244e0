"""Each formula on cases small enough to work by hand; the arithmetic stands beside the number."""

from math import log2

import numpy as np
import pytest

from ragaudit.metrics.ranking import MAX_CELLS, MAX_QUERIES, Gain, GoldRanks, QueryRanks, measure, measure_rows
from ragaudit.model.result import METRICS


def query(ranks=(), grades=None, groups=None, k=4, returned=10) -> QueryRanks:
    grades = tuple(1.0 for _ in ranks) if grades is None else grades
    groups = tuple(range(len(ranks))) if groups is None else groups
    return QueryRanks(ranks=ranks, grades=grades, groups=groups, k=k, returned=returned)


def one(row: QueryRanks, gain: Gain = "linear") -> dict[str, float]:
    return {name: values[0] for name, values in measure_rows([row], gain=gain).items()}


def test_every_metric_of_a_list_with_two_of_three_gold_ids():
    # Gold at 1 and 3, one not found, K = 4.
    got = one(query((1, 3, 0)))
    assert got == pytest.approx(
        {
            "hit@k": 1.0,
            "recall@k": 2 / 3,
            "precision@k": 2 / 4,
            "precision@returned": 2 / 4,
            "mrr@k": 1.0,
            # DCG 1/log2(2) + 1/log2(4) = 1.5; ideal of three: 1 + 1/log2(3) + 1/2 = 2.1309
            "ndcg@k": 1.5 / (1.5 + 1 / log2(3)),
            # (1/1 + 2/3 + 0) / 3 = 5/9
            "ap@k": 5 / 9,
        }
    )
    assert tuple(got) == METRICS


def test_nothing_in_the_first_k_scores_zero_everywhere():
    assert set(one(query((5, 0), k=4)).values()) == {0.0}


def test_an_empty_list_scores_zero_on_every_metric():
    assert set(one(query((0, 0), returned=0)).values()) == {0.0}


def test_a_query_without_gold_is_undefined_on_every_metric():
    got = measure_rows([query(()), query((1,))])
    assert all(np.isnan(values[0]) and not np.isnan(values[1]) for values in got.values())
    assert all(np.isnan(values).all() for values in measure_rows([query(()), query(())]).values())


def test_a_query_whose_gold_has_no_relevant_grade_is_undefined():
    assert all(np.isnan(value) for value in one(query((1, 2), grades=(0.0, 0.5))).values())


def test_no_queries_give_empty_arrays():
    assert {name: len(values) for name, values in measure_rows([]).items()} == dict.fromkeys(METRICS, 0)


def test_a_grade_below_one_brings_no_gain_and_no_credit():
    # The chunk of grade 0.9 at position 1 counts as any other chunk.
    assert one(query((1, 2), grades=(0.9, 1.0))) == one(query((2,)))


def test_precision_at_k_counts_empty_slots_and_precision_at_returned_does_not():
    got = one(query((1, 2), k=8, returned=3))
    assert (got["precision@k"], got["precision@returned"]) == (2 / 8, 2 / 3)


def test_precision_at_returned_looks_no_further_than_k():
    assert one(query((1, 6), k=5, returned=50))["precision@returned"] == 1 / 5


def test_mrr_is_cut_at_k():
    assert [one(query((3,), k=k))["mrr@k"] for k in (2, 3, 4)] == [0.0, 1 / 3, 1 / 3]


def test_linear_gain_is_the_grade():
    # Grades 1 and 3 at positions 1 and 2: (1/1 + 3/log2(3)) / (3/1 + 1/log2(3))
    assert one(query((1, 2), grades=(1.0, 3.0)))["ndcg@k"] == pytest.approx((1 + 3 / log2(3)) / (3 + 1 / log2(3)))


def test_exponential_gain_is_two_to_the_grade_less_one():
    # 2^1 - 1 = 1 and 2^3 - 1 = 7
    got = one(query((1, 2), grades=(1.0, 3.0)), gain="exp")["ndcg@k"]
    assert got == pytest.approx((1 + 7 / log2(3)) / (7 + 1 / log2(3)))


@pytest.mark.parametrize("gain", ["linear", "exp"])
def test_a_huge_grade_does_not_overflow(gain):
    assert one(query((2, 1), grades=(1e308, 1e308)), gain)["ndcg@k"] == pytest.approx(1.0)
    assert one(query((2, 0), grades=(1e308, 1.0)), gain)["ndcg@k"] == pytest.approx(1 / log2(3))


def test_the_ideal_list_is_cut_at_k():
    # Three gold ids, K = 2, both slots right: nothing better can be packed.
    got = one(query((1, 2, 0), k=2))
    assert got["ndcg@k"] == 1.0
    # trec_eval's map_cut and recall still divide by all three.
    assert (got["ap@k"], got["recall@k"]) == pytest.approx((2 / 3, 2 / 3))


def test_one_id_of_a_group_is_enough():
    # Group 0 = {a at 2, b missing}, group 1 = {c missing}.
    got = one(query((2, 0, 0), groups=(0, 0, 1)))
    assert (got["recall@k"], got["ap@k"]) == (1 / 2, (1 / 2) / 2)


def test_a_second_id_of_a_group_counts_for_precision_only():
    together, alone = one(query((1, 2), groups=(0, 0))), one(query((1,)))
    assert together.pop("precision@k") == 2 / 4
    assert together.pop("precision@returned") == 2 / 4
    assert together == {name: value for name, value in alone.items() if name in together}


def test_a_group_brings_the_gain_of_its_first_id_and_its_best_grade_is_the_ideal():
    # Grade 1 at position 1, grade 3 at position 2, one group: 1 of a possible 3.
    assert one(query((1, 2), grades=(1.0, 3.0), groups=(7, 7)))["ndcg@k"] == pytest.approx(1 / 3)


def test_an_irrelevant_id_does_not_stand_for_its_group():
    got = one(query((1, 3), grades=(0.0, 1.0), groups=(0, 0)))
    assert (got["mrr@k"], got["recall@k"], got["precision@k"]) == (1 / 3, 1.0, 1 / 4)


def test_one_slot_may_stand_for_several_groups_and_no_value_exceeds_one():
    # A parent chunk at position 1 holds both gold children.
    got = one(query((1, 1)))
    assert got == {
        "hit@k": 1.0,
        "recall@k": 1.0,
        "precision@k": 1 / 4,
        "precision@returned": 1 / 4,
        "mrr@k": 1.0,
        "ndcg@k": 1.0,
        "ap@k": 1.0,
    }


def test_groups_found_in_one_slot_are_found_together():
    # Both at 4: precision there is 2/4 for each. A third at 8, K = 8: 3/8.
    assert one(query((4, 8, 4), k=8))["ap@k"] == pytest.approx((2 / 4 + 2 / 4 + 3 / 8) / 3)


def test_two_ids_of_one_group_in_one_slot_take_the_better_grade():
    assert one(query((1, 1), grades=(1.0, 2.0), groups=(0, 0)))["ndcg@k"] == 1.0


def test_each_query_is_cut_at_its_own_k():
    got = measure_rows([query((3,), k=2), query((3,), k=3)])
    assert got["recall@k"].tolist() == [0.0, 1.0]


def test_padding_changes_no_value():
    rows = [query((1,)), query((2, 5, 0, 3), groups=(0, 0, 1, 2), grades=(1.0, 2.0, 1.0, 3.0)), query(())]
    together = measure_rows(rows)
    for i, row in enumerate(rows):
        assert {name: values[i] for name, values in together.items()} == pytest.approx(one(row), nan_ok=True)


def test_many_queries_in_several_passes_equal_one_by_one():
    n = MAX_QUERIES + 3
    got = measure_rows([query((i % 5,), k=4) for i in range(n)])
    expected = np.array([0.0, 1.0, 1 / 2, 1 / 3, 1 / 4])[np.arange(n) % 5]
    np.testing.assert_array_equal(got["mrr@k"], expected)


def test_one_query_with_very_many_gold_ids_does_not_widen_the_others():
    n = 2_000
    huge = query(tuple(range(1, 1_001)), k=1_000, returned=1_000)
    rows = [query((i % 5,)) for i in range(n)]
    rows[700] = huge
    assert n * len(huge.ranks) > MAX_CELLS
    got = measure_rows(rows)
    assert {values[700] for values in got.values()} == {1.0}
    expected = np.array([0.0, 1.0, 1 / 2, 1 / 3, 1 / 4])[np.arange(n) % 5]
    expected[700] = 1.0
    np.testing.assert_array_equal(got["mrr@k"], expected)


def test_arrays_are_padded_as_documented():
    gold = GoldRanks.of([query((2, 0), grades=(1.0, 2.0), groups=(0, 1), k=3, returned=7), query(())])
    assert gold.rank.tolist() == [[2, 0], [0, 0]]
    assert gold.grade.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert gold.group.tolist() == [[0, 1], [-1, -1]]
    assert (gold.k.tolist(), gold.returned.tolist()) == ([3, 4], [7, 10])
    assert (gold.rank.dtype, gold.grade.dtype, gold.group.dtype) == (np.int32, np.float64, np.int32)


def test_a_k_beyond_any_list_is_no_error():
    assert one(query((2,), k=10**12))["recall@k"] == 1.0


def test_the_arrays_given_are_not_changed():
    gold = GoldRanks.of([query((3, 1), k=2)])
    before = gold.rank.copy()
    measure(gold)
    np.testing.assert_array_equal(gold.rank, before)


def test_the_worked_example_of_the_documentation():
    # K = 4, list x b y a; gold a (1), b (3), c (1).
    got = one(query((4, 2, 0), grades=(1.0, 3.0, 1.0), k=4, returned=4))
    assert {name: round(value, 4) for name, value in got.items()} == {
        "hit@k": 1.0,
        "recall@k": 0.6667,
        "precision@k": 0.5,
        "precision@returned": 0.5,
        "mrr@k": 0.5,
        "ndcg@k": 0.5625,
        "ap@k": 0.3333,
    }
