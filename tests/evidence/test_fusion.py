"""Reciprocal rank fusion, recomputed and recognised. Worked values: 1/(60 + rank) summed over the arms."""

import pytest
from evidence_builders import ranking, trace
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.evidence.fusion import contributing, recompute, rrf_constant
from ragaudit.evidence.sources import lexical_only, named_lexical, top_k_sources
from ragaudit.model.pipeline import Fusion
from ragaudit.model.trace import Hit, Ranking

DENSE, BM25 = ranking("a", "b", "c"), ranking("c", "d", "a")
ARMS = {"dense": DENSE, "bm25": BM25}


def same(hit_id: str) -> str:
    return hit_id


def scored(**scores: float) -> Ranking:
    return tuple(Hit(name, rank, rrf=score) for rank, (name, score) in enumerate(scores.items(), 1))


def test_scores_are_those_worked_by_hand() -> None:
    got = recompute(ARMS, Fusion(), 60, same)
    assert got.scores == pytest.approx(
        {"a": 1 / 61 + 1 / 63, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 62},
    )
    assert (got.ranks("a"), got.ranks("c")) == ((1, 2), (1, 2))
    assert (got.ranks("b"), got.ranks("d")) == ((3, 4), (3, 4))
    assert got.ranks("nobody") is None


def test_without_ties_a_rank_is_one_number() -> None:
    got = recompute({"dense": DENSE, "bm25": ranking("b")}, Fusion(), 1, same)
    assert [got.ranks(item) for item in "bac"] == [(1, 1), (2, 2), (3, 3)]


def test_weights_count_and_an_arm_without_one_weighs_1() -> None:
    got = recompute(ARMS, Fusion(weights={"bm25": 0.5}), 60, same)
    assert got.scores["d"] == pytest.approx(0.5 / 62)
    assert got.scores["a"] == pytest.approx(1 / 61 + 0.5 / 63)


def test_ranks_that_start_at_0_shift_the_constant() -> None:
    assert recompute(ARMS, Fusion(rank_base=0), 60, same).scores["b"] == pytest.approx(1 / 61)
    assert recompute(ARMS, Fusion(rank_base=1), 60, same).scores["b"] == pytest.approx(1 / 62)


def test_an_arm_counts_an_id_once_at_its_best_rank_under_whatever_name() -> None:
    twice = {"dense": ranking("a", "x", "a", "row-a")}
    got = recompute(twice, Fusion(), 60, lambda hit: "a" if hit == "row-a" else hit)
    assert got.scores == pytest.approx({"a": 1 / 61, "x": 1 / 62})


def test_canonical_ids_let_the_arms_meet() -> None:
    split = {"dense": ranking("row-a"), "bm25": ranking("x", "a")}
    met = recompute(split, Fusion(), 60, lambda hit: hit.removeprefix("row-"))
    assert met.scores["a"] == pytest.approx(1 / 61 + 1 / 62)
    assert met.ranks("a") == (1, 1)


ids = st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True)


@given(ids, ids, ids)
def test_fusing_does_not_depend_on_the_order_of_the_arms(one: list[str], two: list[str], three: list[str]) -> None:
    arms = {"x": ranking(*one), "y": ranking(*two), "z": ranking(*three)}
    forward = recompute(arms, Fusion(), 60, same)
    backward = recompute(dict(reversed(arms.items())), Fusion(), 60, same)
    assert forward.scores == pytest.approx(dict(backward.scores))
    assert {item: forward.ranks(item) for item in forward.scores} == {
        item: backward.ranks(item) for item in forward.scores
    }


@given(ids, ids)
def test_rank_ranges_fill_the_list_without_a_gap(one: list[str], two: list[str]) -> None:
    got = recompute({"x": ranking(*one), "y": ranking(*two)}, Fusion(), 60, same)
    ranges = [got.ranks(item) for item in got.scores]
    covered = {rank for found in ranges if found for rank in range(found[0], found[1] + 1)}
    assert covered == set(range(1, len(got.scores) + 1))


# --- is it reciprocal rank fusion, and with which constant? -------------------------------------------------------


@pytest.mark.parametrize("constant", [60, 2, 1, 10, 100])
def test_the_constant_is_found_from_the_logged_scores(constant: int) -> None:
    scores = recompute(ARMS, Fusion(), constant, same).scores
    logged = scored(**{name: round(score, 5) for name, score in scores.items()})
    assert rrf_constant(ARMS, logged, Fusion()) == constant


def test_scores_of_another_fusion_have_no_constant() -> None:
    assert rrf_constant(ARMS, scored(a=0.9, c=0.7, b=0.2), Fusion()) is None
    assert rrf_constant(ARMS, ranking("a", "c"), Fusion()) is None
    assert rrf_constant(ARMS, (), Fusion()) is None


def test_a_configured_method_is_believed() -> None:
    assert rrf_constant(ARMS, (), Fusion(method="RRF")) == 60
    assert rrf_constant(ARMS, (), Fusion(method="rrf", k=10)) == 10
    assert rrf_constant(ARMS, scored(a=1 / 61), Fusion(method="weighted")) is None


def test_an_id_that_one_arm_lost_is_still_explained_by_the_other() -> None:
    assert rrf_constant(ARMS, scored(a=1 / 61, c=1 / 61), Fusion()) == 60


def test_an_arm_that_left_no_mark_on_the_scores_does_not_contribute() -> None:
    both = recompute(ARMS, Fusion(), 60, same).scores
    assert contributing(ARMS, scored(**both), 60) == {"dense", "bm25"}
    alone = recompute({"dense": DENSE}, Fusion(), 60, same).scores
    assert contributing(ARMS, scored(**alone), 60) == {"dense"}


# --- which arm did the top K come from? ---------------------------------------------------------------------------


def test_the_top_k_is_counted_by_the_arms_that_found_it() -> None:
    query = trace(arms=ARMS, final_context_ids=("a", "b", "d", "c"))
    assert top_k_sources(query) == {"both": 1, "dense": 1, "bm25": 1}
    assert top_k_sources(trace(arms=ARMS)) == {}
    assert top_k_sources(trace(arms=ARMS, final_context_ids=("elsewhere",))) == {}


@pytest.mark.parametrize(
    ("packed", "expected"), [(("a", "b"), "none"), (("a", "d"), "some"), (("d",), "all"), ((), None), (None, None)]
)
def test_how_much_of_the_top_k_only_a_lexical_arm_found(packed: tuple[str, ...] | None, expected: str | None) -> None:
    assert lexical_only(trace(arms=ARMS, final_context_ids=packed)) == expected


def test_one_arm_has_no_share() -> None:
    assert lexical_only(trace(arms={"bm25": BM25}, final_context_ids=("d",))) is None


@pytest.mark.parametrize(
    ("arm", "lexical"), [("bm25", True), ("pg_fulltext", True), ("SPLADE", True), ("dense", False)]
)
def test_an_arm_s_name_says_whether_it_matches_words(arm: str, lexical: bool) -> None:
    assert named_lexical(arm) is lexical
