"""The final context, recomputed by hand from recorded lists under one change after another."""

from collections import Counter
from pathlib import Path

import pytest
from replay_builders import ARMS, FUSED, hits, packed, pipeline, table, trace

from ragaudit.config import load_settings
from ragaudit.experiments.levels import Level, level_of
from ragaudit.experiments.pool import Unreplayable
from ragaudit.experiments.replay import ChunkTable, replay
from ragaudit.experiments.score_fusion import fused_by_score
from ragaudit.model.inventory import Chunk, Inventory
from ragaudit.readers.bundle import locate, open_bundle, read_traces

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
CUT = "the reranker's output was cut, and the scores below the cut are not logged"
SHORT = "the recorded list ends before the context is full, and may have been cut there"


def reranked(order="dcab", given=FUSED, **over):
    return trace(rerank_input=tuple(given), after_rerank=tuple(order), **over)


# --- fusion -------------------------------------------------------------------------------------------------------


def test_arms_are_fused_by_reciprocal_rank_and_cut_at_k():
    assert packed(trace(), k_final=4) == "badc"
    assert packed(trace()) == "bad"


def test_the_query_s_own_k_counts_when_the_configuration_has_none():
    assert packed(trace(k=2), k_final=None) == "ba"


def test_ties_keep_the_logged_order():
    arms = {"dense": ("a", "c"), "bm25": ("b", "d")}
    assert packed(trace(arms, fused=("b", "a", "d", "c")), k_final=4) == "badc"


def test_ties_without_a_fused_list_keep_the_order_of_first_sight():
    assert packed(trace({"dense": ("a", "c"), "bm25": ("b", "d")}), k_final=4) == "abcd"


def test_a_small_constant_favours_the_first_rank():
    # k 60: c 1/63 + 1/62 over a 1/61. k 0: a 1, c 1/3 + 1/2.
    arms = {"dense": ("a", "b", "c"), "bm25": ("d", "c")}
    assert packed(trace(arms), k_final=1) == "c"
    assert packed(trace(arms), k_final=1, fusion={"k": 0.1}) == "a"


def test_weights_count_for_the_arm_that_brought_the_id():
    # a 1/61, d 3/62, c 1/63, b 1/62 + 3/61
    assert packed(trace(), k_final=4, fusion={"weights": {"bm25": 3.0}}) == "bdac"
    assert packed(trace(), k_final=4, fusion={"weights": {"dense": 0.0}})[:2] == "bd"


def test_an_arm_that_is_dropped_brings_nothing():
    assert packed(trace(), arms=["bm25"]) == "bd"
    assert packed(trace(fused=FUSED), arms=["dense"]) == "abc"


def test_one_arm_alone_needs_no_fusion():
    assert packed(trace({"dense": ("c", "a", "b", "d")}), arms=["dense"], fusion={"method": None}) == "cab"


def test_a_fusion_that_is_not_known_is_refused():
    assert packed(trace(), fusion={"method": "Weighted"}) == "fusion weighted is not recomputed"
    assert packed(trace(), fusion={"method": None}) == "fusion method unknown is not recomputed"


def test_scores_scaled_from_least_to_greatest_are_summed():
    # dense a 1, b 0.5, c 0; bm25 b 1, d 0: b 1.5, a 1, c 0, d 0
    assert packed(trace(), k_final=4, fusion={"method": "relative_score"}) == "bacd"
    assert packed(trace(), k_final=2, fusion={"method": "relative_score", "weights": {"bm25": 0.4}}) == "ab"


def test_scores_scaled_by_their_spread_are_summed():
    # three deviations about the mean: dense a 0.704, b 0.5, c 0.296 (sd 0.0816); bm25 b 0.667, d 0.333
    found = fused_by_score({n: hits(ids) for n, ids in ARMS.items()}, pipeline().fusion, "distribution_based")
    assert found == pytest.approx({"b": 0.5 + 2 / 3, "a": 0.704124, "d": 1 / 3, "c": 0.295876}, abs=1e-6)
    assert packed(trace(), k_final=4, fusion={"method": "distribution_based"}) == "badc"


def test_distances_are_turned_around_and_equal_scores_are_all_one():
    distances = {"dense": hits({"a": 0.1, "b": 0.3, "c": 0.5}), "bm25": hits({"b": 2.0, "d": 2.0})}
    found = fused_by_score(distances, pipeline().fusion, "relative_score")
    assert found == pytest.approx({"a": 1.0, "b": 1.5, "c": 0.0, "d": 1.0})


def test_fusion_by_score_without_a_score_is_refused():
    said = packed(trace({"dense": ("a", "b"), "bm25": ("b",)}), fusion={"method": "relative_score"})
    assert said == "an arm's scores are not logged, and fusion reads them"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (trace(None), "arms are not logged"),
        (trace(after_filter=("a",)), "a filter behind the search may drop rows that only a run would show"),
        (trace(id_map={"vec-1": "a"}), "lists use several id spaces"),
    ],
)
def test_what_the_lists_cannot_tell_is_refused_with_its_reason(query, reason):
    assert packed(query) == reason


# --- floors -------------------------------------------------------------------------------------------------------


def floor(on, value, **over):
    return [{"on": on, "value": value, "direction": "min", **over}]


def test_a_floor_on_an_arm_cuts_that_arm_before_fusion():
    # without c in dense: b 1/62 + 1/61, a 1/61, d 1/62
    assert packed(trace(), k_final=4, thresholds=floor("dense", 0.8)) == "bad"
    assert packed(trace(), k_final=4, thresholds=floor("bm25", 10)) == "bac"


def test_a_floor_may_keep_what_is_low():
    assert packed(trace(), k_final=4, thresholds=[{"on": "dense", "value": 0.8, "direction": "max"}]) == "bcd"


def test_a_floor_on_the_fused_list_that_reads_an_arm_s_score_loses_every_hit_of_the_other_arm_alone():
    assert packed(trace(), k_final=4, thresholds=floor("fused", 0.1, score="dense")) == "bac"
    assert packed(trace(), k_final=4, thresholds=floor("fused", 0.75, score="cosine")) == "ba"


def test_a_floor_on_the_fused_score_is_recomputed():
    assert packed(trace(), k_final=4, thresholds=floor("fused", 1 / 61.5)) == "ba"


def test_a_floor_that_is_off_cuts_nothing():
    assert packed(trace(), k_final=4, thresholds=floor("dense", None)) == "badc"


def test_a_floor_on_a_score_that_nobody_logged_is_refused():
    said = packed(trace(), thresholds=floor("fused", 0.1, score="colbert"))
    assert said == "a floor on fused reads colbert, which is not logged"


# --- reranking ----------------------------------------------------------------------------------------------------


def test_the_reranker_s_recorded_order_is_taken():
    assert packed(reranked(), k_final=4) == "dcab"


def test_fewer_candidates_leave_those_in_the_reranker_s_order():
    assert packed(reranked(), k_final=4, rerank={"candidates": 2}) == "ab"
    assert packed(reranked(), k_final=4, rerank={"candidates": 3}) == "dab"


def test_a_candidate_that_was_never_scored_is_refused():
    said = packed(reranked("ab", given="ba"), rerank={"candidates": 3, "top_n": 2})
    assert said == "the reranker never scored some of the candidates"


def test_a_fusion_that_brings_other_candidates_is_refused():
    query = reranked("ab", given="ba")
    assert packed(query, rerank={"candidates": 2}) == "ab"
    said = packed(query, rerank={"candidates": 2}, fusion={"weights": {"bm25": 3.0}})
    assert said == "the reranker never scored some of the candidates"


def test_top_n_cuts_the_reranked_list():
    assert packed(reranked(), rerank={"top_n": 2}) == "dc"


def test_below_the_reranker_s_own_cut_nothing_is_known():
    query = reranked("dc")
    assert packed(query, rerank={"top_n": 2}) == "dc"
    assert packed(query, rerank={"top_n": 3}) == CUT
    assert packed(query) == CUT


def test_without_the_reranker_the_fused_order_is_packed():
    assert packed(reranked(), k_final=4, rerank={"model": ""}) == "badc"


@pytest.mark.parametrize(("weight", "order"), [(1.0, "cba"), (0.75, "cba"), (0.5, "acb"), (0.0, "abc")])
def test_a_blend_weighs_the_reranker_s_rank_against_the_rank_before_it(weight, order):
    # at 0.5: a 1/61 + 1/63 = c 1/63 + 1/61, over b 2/62; the tie keeps the order before reranking
    query = trace({"dense": ("a", "b", "c")}, rerank_input=("a", "b", "c"), after_rerank=("c", "b", "a"))
    assert packed(query, arms=["dense"], rerank={"blend": weight}) == order


def test_a_floor_on_the_reranker_s_score():
    query = trace(rerank_input=FUSED, after_rerank={"d": 0.9, "a": 0.5, "c": 0.2, "b": 0.1})
    assert packed(query, thresholds=floor("rerank", 0.3)) == "da"


# --- packing ------------------------------------------------------------------------------------------------------


def test_duplicates_are_dropped_by_source_by_text_or_by_chunk():
    chunks = table(source={"b": "s1", "a": "s1", "d": "s2", "c": "s2"}, text={"b": "h1", "a": "h2", "d": "h1"})
    assert packed(trace(), chunks, pack={"dedupe_by": "source_id"}) == "bd"
    assert packed(trace(), chunks, pack={"dedupe_by": "content_hash"}) == "bac"
    assert packed(trace(), chunks, pack={"dedupe_by": "chunk"}) == "bad"


def test_an_unknown_way_to_drop_duplicates_is_refused():
    assert packed(trace(), pack={"dedupe_by": "minhash"}) == "duplicates are removed by 'minhash'"


def test_what_is_over_the_budget_is_skipped_or_ends_the_packing():
    chunks = table(tokens={"b": 50, "a": 80, "d": 40, "c": 10})
    assert packed(trace(), chunks, k_final=4, pack={"token_budget": 100}) == "bdc"
    assert packed(trace(), chunks, k_final=4, pack={"token_budget": 100, "on_overflow": "stop"}) == "b"
    assert packed(trace(), chunks, k_final=4, pack={"token_budget": 130, "on_overflow": "stop"}) == "ba"


def test_a_duplicate_costs_no_budget():
    chunks = table(tokens={"b": 50, "a": 50, "d": 40, "c": 10}, text={"b": "h1", "a": "h1"})
    assert packed(trace(), chunks, pack={"token_budget": 100, "dedupe_by": "content_hash"}) == "bdc"


def test_a_budget_without_token_counts_is_refused():
    assert packed(trace(), pack={"token_budget": 100}) == "token counts are not known, and the budget needs them"


def test_so_many_of_a_source_and_0_is_no_limit():
    chunks = table(source={"b": "s1", "a": "s1", "d": "s1", "c": "s2"})
    assert packed(trace(), chunks, pack={"max_per_source": 1}) == "bc"
    assert packed(trace(), chunks, pack={"max_per_source": 2}) == "bac"
    assert packed(trace(), chunks, pack={"max_per_source": 0}) == "bad"


def test_parents_are_refused():
    assert packed(trace(), pack={"parent_expansion": True}) == "parents are packed for their children"


def test_the_chunk_table_knows_aliases():
    rows = {"b": Chunk(chunk_id="b", aliases=("old-b",), source_id="s1", tokens=50, content_hash="h1")}
    found = ChunkTable.of(Inventory.of(None, rows, None))
    assert (found.source["old-b"], found.tokens["old-b"], found.text["old-b"]) == ("s1", 50, "h1")


# --- where a replay begins ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("over", "level"),
    [
        ({}, None),
        ({"k_final": 4}, Level.PACK),
        ({"pack": {"token_budget": 9}}, Level.PACK),
        ({"rerank": {"blend": 0.5}}, Level.RERANK),
        ({"thresholds": [{"on": "rerank", "value": 0.1}]}, Level.RERANK),
        ({"thresholds": [{"on": "dense", "value": 0.1}]}, Level.POOL),
        ({"fusion": {"weights": {"bm25": 2.0}}}, Level.POOL),
        ({"arms": ["dense"]}, Level.POOL),
        ({"k_final": 4, "fusion": {"k": 10}}, Level.POOL),
        ({"filter": {"fetch_k": 50}}, Level.FILTER),
        ({"filter": {"mode": "pre"}}, Level.SEARCH),
        ({"filter": {"expected": {"tenant": "b"}}}, Level.SEARCH),
        ({"search": {"dense": {"fetch_k": 50}}}, Level.SEARCH),
        ({"pack": {"parent_expansion": True}}, Level.SEARCH),
        ({"fusion": {"id_key": "chunk_id"}}, Level.SEARCH),
        ({"of_our_own": {"switch": 1}}, Level.SEARCH),
    ],
)
def test_a_change_is_replayed_from_the_first_thing_that_it_touches(over, level):
    assert level_of(pipeline(), pipeline(**over)) is level


def test_what_the_search_would_return_is_never_replayed():
    said = packed(trace(), level=Level.SEARCH)
    assert said == "what the search returns is not recorded for another configuration"


def test_a_configured_arm_that_was_not_logged_makes_fusion_unknown():
    alone = trace({"dense": ARMS["dense"]}, fused=FUSED)
    assert packed(alone) == "bm25: configured, and not logged"
    assert packed(alone, was={"arms": ["dense", "bm25"]}, arms=["dense"]) == "abc"


@pytest.mark.parametrize("status", ["off", "errored"])
def test_an_arm_that_did_not_run_brought_nothing(status):
    asked = {"dense": {"status": "ran"}, "bm25": {"status": status}}
    assert packed(trace({"dense": ARMS["dense"]}, fused=("a", "b", "c"), arm_status=asked)) == "abc"


def test_an_arm_that_a_change_brings_in_was_not_recorded():
    alone = trace({"dense": ARMS["dense"]}, arm_status={"bm25": {"status": "off"}})
    assert packed(alone, was={"arms": ["dense"]}) == "bm25: configured, and not logged"


def test_the_packer_is_replayed_on_the_logged_list_whatever_fusion_did():
    lost = trace(None, fused="badcefg")
    assert packed(lost) == "arms are not logged"
    assert packed(lost, level=Level.PACK, k_final=5) == "badce"
    assert packed(lost, level=Level.PACK, k_final=8) == SHORT


def test_the_packer_is_replayed_on_what_the_reranker_returned():
    query = trace(None, after_rerank="dcab")
    assert packed(query, level=Level.PACK, k_final=2) == "dc"
    assert packed(query, level=Level.PACK, k_final=4) == "dcab"
    assert packed(query, level=Level.PACK, k_final=5) == CUT
    assert packed(query, level=Level.PACK, k_final=5, rerank={"top_n": 4}) == "dcab"
    whole = trace(None, rerank_input="abcd", after_rerank="dcab")
    assert packed(whole, level=Level.PACK, k_final=5) == "dcab"


def test_the_reranker_is_taken_off_the_logged_list_where_no_arm_was_logged():
    query = trace(None, fused="badce", rerank_input="bad", after_rerank="dab")
    assert packed(query, level=Level.RERANK, rerank={"model": ""}) == "bad"
    assert packed(query, level=Level.RERANK, k_final=6, rerank={"model": ""}) == SHORT


def test_the_logged_list_goes_on_below_where_the_arms_say_so():
    query = trace(fused="ba")
    assert packed(query, level=Level.PACK, k_final=4) == "badc"
    assert packed(trace(fused=()), level=Level.PACK, k_final=4) == ""
    other = trace(fused="da")
    assert packed(other, level=Level.PACK, k_final=2) == "da"
    assert packed(other, level=Level.PACK, k_final=3) == SHORT


def test_a_filter_or_a_floor_behind_fusion_is_taken_as_logged():
    filtered = trace(fused=FUSED, after_filter="bdc")
    assert packed(filtered, level=Level.PACK, k_final=2) == "bd"
    assert packed(trace(fused=FUSED, after_threshold="bc"), level=Level.PACK, k_final=1) == "b"
    asked = [{"on": "fused", "value": 0.75, "score": "dense", "direction": "min"}]
    assert packed(trace(fused=FUSED), level=Level.PACK, k_final=2, thresholds=asked) == "ba"


def test_a_filter_behind_each_arm_leaves_the_lists_that_were_fused():
    after = {"dense": hits({"b": 0.8, "c": 0.7}), "bm25": hits({"d": 9.0})}
    query = trace().model_copy(update={"after_filter": after})
    assert packed(query) == "bdc"


MEETS = {"b": False, "a": True, "d": False, "c": True}
POST = {"mode": "post", "fetch_k": 2}


def filtered(query, fetch, meets=None, **over):
    known = MEETS if meets is None else meets
    return packed(query, level=Level.FILTER, meets=known, filter={**POST, "fetch_k": fetch}, **over)


def test_more_candidates_for_a_filter_behind_fusion_bring_the_rows_that_meet_it():
    query = trace(fused=FUSED, after_filter="a")
    assert [filtered(query, fetch) for fetch in (2, 3, 4, 9)] == ["a", "a", "ac", "ac"]


def test_a_row_of_which_it_is_not_known_whether_it_meets_the_filter_is_refused():
    query = trace(fused=FUSED, after_filter="a")
    assert filtered(query, 2, {"b": False, "a": True}) == "a"
    assert filtered(query, 3, {"b": False, "a": True}) == "whether some candidates meet the filter is not known"


def test_a_filter_is_not_replayed_where_the_list_before_it_ends_or_nobody_said_what_it_was_given():
    alone = trace(None, fused="badc", after_filter="a")
    assert filtered(alone, 4) == "ac"
    assert filtered(alone, 5) == SHORT
    assert filtered(alone, None) == "how many candidates the filter was given is not known"
    assert filtered(trace(fused=FUSED), 4) == "the list behind the filter is not logged"


def test_more_candidates_for_a_filter_behind_each_arm():
    asked = {"dense": {"limit": 5}, "bm25": {"limit": 2}}
    query = trace(arm_status=asked).model_copy(update={"after_filter": {"dense": hits("a"), "bm25": ()}})
    assert [filtered(query, fetch) for fetch in (1, 2)] == ["a", "a"]
    assert filtered(query, 3) == SHORT  # bm25 was asked for two
    longer = query.model_copy(update={"arm_status": trace(arm_status={n: {"limit": 9} for n in ARMS}).arm_status})
    assert filtered(longer, 3) == "ac"


def test_another_reranker_s_scores_are_not_recorded():
    query = reranked()
    assert packed(query, was={"rerank": {"model": "m1"}}, rerank={"model": "m2"}) == (
        "the scores of another reranker are not recorded"
    )
    assert packed(trace(), was={"rerank": {"model": ""}}, rerank={"model": "m"}) == (
        "no reranker ran, so its scores are not recorded"
    )


# --- no change ----------------------------------------------------------------------------------------------------


def test_the_demo_is_reproduced_or_refused_at_every_level():
    paths = locate(DEMO)
    bundle = open_bundle(paths, load_settings(paths.config, env={}, flags={}))
    chunks = ChunkTable.of(bundle.inventory)
    refused: dict[Level, Counter[str]] = {level: Counter() for level in Level}
    other: list[tuple[str, Level]] = []
    for query in read_traces(bundle):
        configured = bundle.settings.pipeline.with_overrides(query.config).with_overrides({"k_final": query.k_final})
        for level in (Level.POOL, Level.RERANK, Level.PACK):
            found = replay(query, configured, configured, chunks, level)
            if isinstance(found, Unreplayable):
                refused[level][found.reason] += 1
            elif found != query.final_context_ids:
                other.append((query.query_id, level))
    assert other == []
    packing = {
        "arms are not logged": 2,
        "bm25: configured, and not logged": 1,
        "parents are packed for their children": 2,
        "token counts are not known, and the budget needs them": 1,  # packed under the ids of the vector store
    }
    assert refused[Level.PACK] == refused[Level.RERANK] == packing
    assert refused[Level.POOL] == {
        "the reranker never scored some of the candidates": 2,  # fusion itself was broken for these two
        "arms are not logged": 2,
        "parents are packed for their children": 2,
        "bm25: configured, and not logged": 1,
        "lists use several id spaces": 1,
    }


def test_the_builder_s_arms_are_what_its_comment_says():
    assert tuple(packed(trace(ARMS), k_final=4)) == FUSED
