"""Which list a span made: told, by its place in the tree, by its name; and several retrievals kept apart."""

import json

import pytest
from span_builders import ids, llm, reranker, retriever, root, span, span_id, spans_of

from ragaudit.importers.predicates import clauses_of


def lists(row):
    found = {f"arm:{name}": ids(hits) for name, hits in row.get("arms", {}).items()}
    return found | {name: ids(row[name]) for name in ("fused", "rerank_input", "after_rerank") if name in row}


def test_a_retriever_above_others_merged_them_and_a_compressor_above_that_reranked(tmp_path):
    outer = retriever("ContextualCompressionRetriever", "c2", at=8)
    merged = retriever("EnsembleRetriever", "c1", "c2", at=7, parent=span_id("ContextualCompressionRetriever", 8))
    below = span_id("EnsembleRetriever", 7)
    arms = (retriever("A", "c1", parent=below, at=2), retriever("B", "c2", parent=below, at=3))
    (row,), _ = spans_of(tmp_path, root(), outer, merged, *arms)
    assert lists(row) == {"arm:A": ["c1"], "arm:B": ["c2"], "fused": ["c1", "c2"], "after_rerank": ["c2"]}
    assert {row["provenance"][name] for name in ("arms", "fused", "after_rerank")} == {"derived"}


FLAT = (
    retriever("dense", "c1", "c2", at=1),
    retriever("bm25", "c2", "c3", at=2),
    retriever("combine", "c2", "c1", "c3", at=3),
)


def test_a_flat_pipeline_is_told_apart_by_names(tmp_path):
    named = retriever("rrf", "c2", "c1", "c3", at=3)
    ranked = retriever("cross-encoder", "c3", at=4)
    (row,), _ = spans_of(tmp_path, root(), *FLAT[:2], named, ranked)
    assert lists(row) == {
        "arm:dense": ["c1", "c2"],
        "arm:bm25": ["c2", "c3"],
        "fused": ["c2", "c1", "c3"],
        "after_rerank": ["c3"],
    }


def test_a_flat_list_of_other_arms_hits_is_asked_about_and_stage_tells(tmp_path):
    (row,), report = spans_of(tmp_path, root(), *FLAT)
    assert list(row["arms"]) == ["dense", "bm25", "combine"]
    asked = "an arm returned only what other arms had: if it is their merged list, pass --stage NAME=fused"
    assert report.notes[asked].count == 1
    (row,), report = spans_of(tmp_path, root(), *FLAT, stages={"combine": "fused", "dense": "arm:vector"})
    assert lists(row) == {"arm:vector": ["c1", "c2"], "arm:bm25": ["c2", "c3"], "fused": ["c2", "c1", "c3"]}
    assert (asked in report.notes, "fused" in row["provenance"]) == (False, False)


def test_metadata_names_arm_and_stage(tmp_path):
    told = [
        retriever("x1", "c1", at=1, metadata=json.dumps({"arm": "dense", "top_k": 6, "filters": {"tenant": "acme"}})),
        retriever("x2", "c2", at=2, metadata=json.dumps({"arm": "bm25", "filters": {"tenant": "acme"}})),
        retriever("x3", "c2", "c1", at=3, metadata="{'stage': 'fused'}"),
        retriever("x4", "c1", at=4, metadata=json.dumps({"stage": "final"})),
    ]
    (row,), _ = spans_of(tmp_path, root(), *told)
    assert lists(row) == {"arm:dense": ["c1"], "arm:bm25": ["c2"], "fused": ["c2", "c1"]}
    assert row["arm_status"]["dense"] == {
        "status": "ran",
        "filter": {"tenant": "acme"},
        "limit": 6,
        "returned": 1,
    }
    assert (row["final_context_ids"], row["filters_applied"]) == (["c1"], {"tenant": "acme"})
    assert row["provenance"] == {"k_final": "derived"}


def test_arms_with_different_filters_have_no_common_one(tmp_path):
    filtered = retriever("dense", "c1", at=1, metadata=json.dumps({"filters": {"tenant": "acme"}}))
    (row,), report = spans_of(tmp_path, root(), filtered, retriever("bm25", "c4", at=2))
    assert "filters_applied" not in row
    assert [status.get("filter") for status in row["arm_status"].values()] == [{"tenant": "acme"}, None]
    assert "the arms did not all use the same filter: each has its own in arm_status" in report.notes


def test_a_method_that_calls_another_of_its_class_is_one_retrieval(tmp_path):
    outer = retriever("VectorIndexRetriever.retrieve", "c1", at=3)
    inner = span("VectorIndexRetriever._retrieve", "RETRIEVER", span_id("VectorIndexRetriever.retrieve", 3), 2)
    (row,), _ = spans_of(tmp_path, root(), outer, inner)
    assert lists(row) == {"arm:VectorIndexRetriever": ["c1"]}


def test_a_retriever_that_passes_on_one_search_is_no_merge(tmp_path):
    outer = retriever("Wrapper", "c1", "c2", at=3)
    inner = retriever("Store", "c1", "c2", at=2, parent=span_id("Wrapper", 3))
    (row,), _ = spans_of(tmp_path, root(), outer, inner)
    assert lists(row) == {"arm:Store": ["c1", "c2"]}


def test_searches_of_one_name_with_other_texts_are_arms_of_their_own(tmp_path):
    outer = retriever("MultiQueryRetriever", "c1", "c2", at=9)
    above = span_id("MultiQueryRetriever", 9)
    searches = [
        retriever("Store", "c1", at=1, parent=above),
        retriever("Store", "c2", at=2, parent=above, query="what duration?"),
        retriever("Store", "c2", at=3, parent=above, query="what duration?"),
    ]
    (row,), report = spans_of(tmp_path, root(), outer, *searches)
    assert lists(row) == {"arm:Store": ["c1"], "arm:Store #2": ["c2"], "fused": ["c1", "c2"]}
    assert row["arm_status"]["Store #2"]["query_text"] == "what duration?"
    assert report.notes["an arm was asked several times in one query: each is an arm, NAME #2"].count == 1
    assert report.notes["an arm was asked again and answered alike: kept once"].count == 1


def test_two_retrievals_that_do_not_feed_each_other_become_two_rows(tmp_path):
    spans = [
        retriever("dense", "c1", at=1, query="audit logs"),
        reranker("c1", given=["c1"], at=2),
        retriever("dense", "c2", at=3, query="refunds"),
        reranker("c2", given=["c2"], at=4),
        llm("c1", "c2"),
        root("audit logs and refunds?"),
    ]
    rows, report = spans_of(tmp_path, *spans)
    assert [row["query_id"][-2:] for row in rows] == ["~1", "~2"]
    assert [row["query_text"] for row in rows] == ["audit logs", "refunds"]
    assert [lists(row)["arm:dense"] for row in rows] == [["c1"], ["c2"]]
    assert [row["final_context_ids"] for row in rows] == [["c1"], ["c2"]]
    assert ["answer" in row for row in rows] == [False, True]
    assert rows[0]["notes"] == "retrieval 1 of 2 of the trace; asked: audit logs and refunds?"
    assert "several retrievals in one trace, apart by their text: a row each, id~1, id~2" in report.notes


def test_two_rerankers_in_a_row_are_one_retrieval(tmp_path):
    second = reranker("c3", given=["c1", "c3"], at=6)
    (row,), report = spans_of(tmp_path, root(), *FLAT[:2], reranker("c1", "c3", given=["c1", "c2", "c3"]), second)
    assert (lists(row)["after_rerank"], lists(row)["rerank_input"]) == (["c3"], ["c1", "c2", "c3"])
    assert report.notes["several lists for after_rerank: the last one is taken"].count == 1


def test_scores_that_fusion_wrote_into_the_arms_are_dropped(tmp_path):
    outer = retriever("QueryFusionRetriever", "c1", "c2", "c3", at=9, scores=(0.033, 0.032, 0.016))
    above = span_id("QueryFusionRetriever", 9)
    dense = retriever("Vector", "c2", "c3", at=1, parent=above, scores=(0.71, 0.32))
    bm25 = retriever("BM25", "c1", "c2", at=2, parent=above, scores=(0.033, 0.032))
    (row,), report = spans_of(tmp_path, root(), outer, dense, bm25)
    assert [hit.get("score") for hit in row["arms"]["Vector"]] == [0.71, 0.32]
    assert [hit.get("score") for hit in row["arms"]["BM25"]] == [None, None]
    assert report.notes["scores of an arm are those of the merged list, written over them: dropped"].count == 1


def test_a_merged_list_with_hits_of_no_arm_says_that_an_arm_is_not_logged(tmp_path):
    outer = retriever("Ensemble", "c1", "c9", at=9)
    (row,), report = spans_of(tmp_path, root(), outer, retriever("A", "c1", at=1, parent=span_id("Ensemble", 9)))
    assert row["provenance"]["arms"] == "assumed"
    assert "the merged list holds what no logged arm returned: an arm is not logged" in report.notes


@pytest.mark.parametrize(
    ("written", "clauses"),
    [
        ({"tenant": "acme", "year": [2025, 2026]}, {"tenant": "acme", "year": [2025, 2026]}),
        ({"field": "meta.tenant", "operator": "==", "value": "acme"}, {"tenant": "acme"}),
        (
            {
                "operator": "AND",
                "conditions": [
                    {"field": "meta.year", "operator": ">=", "value": 2025},
                    {"field": "meta.year", "operator": "<", "value": 2027},
                    {"field": "meta.acl", "operator": "in", "value": ["a", "b"]},
                ],
            },
            {"year": {"gte": 2025, "lt": 2027}, "acl": ["a", "b"]},
        ),
        ({"$and": [{"tenant": {"$eq": "acme"}}, {"year": {"$gt": 2024}}]}, {"tenant": "acme", "year": {"gt": 2024}}),
        ({"tenant": {"$ne": "globex"}}, None),
        ({"$or": [{"tenant": "acme"}, {"tenant": "globex"}]}, None),
        ({"operator": "OR", "conditions": []}, None),
        ({"tenant": "acme", "year": {"$nin": [1]}}, None),
        ("tenant = acme", None),
    ],
)
def test_a_filter_is_understood_whole_or_not_at_all(written, clauses):
    assert clauses_of(written) == clauses
