import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from import_helpers import ids, read, read_rows, write

from ragaudit.errors import InputError
from ragaudit.importers.registry import guess

QA = {"qid": ["q1"], "query": ["q?"], "generation_gt": [["a", "b"]], "retrieval_gt": [[["a1", "a2"], ["b1"]]]}
ARMS = {
    "retrieved_ids_lexical": [["a1", "a1", "b1", "a1"]],
    "retrieve_scores_lexical": [[9.0, 9.0, 4.0, 2.0]],
    "retrieved_contents_lexical": [["ta", "ta", "tb", "ta"]],
    "retrieved_ids_semantic": [["c1", "b1"]],
    "retrieve_scores_semantic": [[0.9, 0.8]],
    "retrieved_contents_semantic": [["tc", "tb"]],
}
FUSED = {"retrieved_ids": [["a1", "c1", "b1"]], "retrieve_scores": [[1.0, 0.5, 0.2]]}
RERANKED = {"retrieved_ids": [["b1", "a1"]], "retrieve_scores": [[0.7, 0.1]], "passage_reranker_retrieval_f1": [0.5]}
OVERWRITTEN = "a later node wrote over the fused list: pass the result of hybrid_retrieval too"


def table(path, *parts):
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {}
    for part in parts:
        columns |= part
    pq.write_table(pa.table(columns), path)
    return path


def test_the_hybrid_node_holds_both_arms_and_the_fused_list(tmp_path):
    (row,), report = read("autorag", table(tmp_path / "hybrid.parquet", QA, ARMS, FUSED))
    assert ids(row["arms"]["lexical"]) == ["a1", "b1"]
    assert row["arms"]["lexical"][1] == {"id": "b1", "rank": 2, "score": 4.0, "text": "tb"}
    assert ids(row["arms"]["semantic"]) == ["c1", "b1"]
    assert ids(row["fused"]) == ["a1", "c1", "b1"]
    assert "an id more than once in a list (query expansion): the first place counts" in report.notes
    assert row["provenance"] == {"final_context_ids": "assumed", "k_final": "assumed"}


def test_the_reranker_wrote_over_the_fused_list_which_its_node_alone_has_lost(tmp_path):
    (row,), report = read("autorag", table(tmp_path / "rerank.parquet", QA, ARMS, RERANKED))
    assert ids(row["after_rerank"]) == ["b1", "a1"]
    assert "fused" not in row
    assert OVERWRITTEN in report.notes


def test_the_hybrid_node_beside_it_brings_the_fused_list_back(tmp_path):
    reranked, hybrid = (
        table(tmp_path / "r.parquet", QA, ARMS, RERANKED),
        table(tmp_path / "h.parquet", QA, ARMS, FUSED),
    )
    (row,), report = read("autorag", reranked, hybrid)
    assert (ids(row["fused"]), ids(row["after_rerank"])) == (["a1", "c1", "b1"], ["b1", "a1"])
    assert row["final_context_ids"] == ["b1", "a1"]
    assert OVERWRITTEN not in report.notes


@pytest.mark.parametrize(
    ("truth", "groups"),
    [
        ([[["a1", "a2"], ["b1"]]], [["a1", "a2"], ["b1"]]),
        ([["a1", "b1"]], [["a1"], ["b1"]]),
        ([[[]]], None),
    ],
    ids=["and-of-or", "one-dimension-is-and", "no-label"],
)
def test_gold_is_an_and_of_ors(tmp_path, truth, groups):
    (row,), report = read("autorag", table(tmp_path / "h.parquet", QA | {"retrieval_gt": truth}, FUSED))
    assert row.get("gold_groups") == groups
    assert ("retrieval_gt is empty ([[]]): read as no label" in report.notes) == (groups is None)


def test_several_reference_answers_keep_the_first(tmp_path):
    (row,), report = read("autorag", table(tmp_path / "h.parquet", QA, FUSED))
    assert row["reference"] == "a"
    assert "several reference answers: the first is kept" in report.notes


def test_expanded_queries_are_the_rewrite(tmp_path):
    (row,), _ = read("autorag", table(tmp_path / "h.parquet", QA, FUSED, {"queries": [["x", "y"]]}))
    assert row["query_rewrite"] == ["x", "y"]


def test_the_prompt_says_what_was_packed(tmp_path):
    texts = {"retrieved_contents": [["the first passage here", "the second passage", "the third passage here"]]}
    prompts = {"prompts": ["Answer from: the third passage here ... THE FIRST passage here"]}
    (row,), _ = read("autorag", table(tmp_path / "h.parquet", QA, FUSED, texts, prompts))
    assert row["final_context_ids"] == ["b1", "a1"]
    assert row["provenance"] == {"final_context_ids": "derived", "k_final": "derived"}


def test_labels_alone_give_no_trace(tmp_path):
    rows, report = read("autorag", table(tmp_path / "qa.parquet", QA))
    assert rows == []
    assert list(report.skipped) == ["labels without results: pass the result of a node too"]


def test_the_corpus_is_the_inventory_and_a_trial_is_read_by_its_folder(tmp_path):
    trial = tmp_path / "0"
    table(trial / "line" / "hybrid_retrieval" / "best_0.parquet", QA, ARMS, FUSED)
    table(trial / "line" / "passage_reranker" / "best_0.parquet", QA, ARMS, RERANKED)
    corpus = table(
        tmp_path / "corpus.parquet",
        {"doc_id": ["a1"], "contents": ["ta"], "path": ["x.pdf"], "metadata": [{"page": 1}]},
    )
    tables, _ = read_rows("autorag", trial, corpus)
    assert tables["chunks"] == [{"chunk_id": "a1", "text": "ta", "source_id": "x.pdf", "metadata": {"page": 1}}]
    assert [ids(row["after_rerank"]) for row in tables["traces"]] == [["b1", "a1"]]
    assert guess(trial).why == "a folder with results of nodes"


def test_a_table_that_is_none_of_the_kinds_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no qa, corpus or node result"):
        read("autorag", write(tmp_path / "x.jsonl", '{"a": 1}\n'))
