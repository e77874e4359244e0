import json

import pytest
from import_helpers import DATA, read, write

from ragaudit.importers.matching import Texts
from ragaudit.importers.registry import guess

CASE = {
    "input": "how do I reset my password?",
    "actual_output": "Open Settings.",
    "expected_output": "Settings.",
    "retrieval_context": ["Open Settings, choose Security.", "Links expire."],
    "context": ["Open Settings, choose Security."],
}


def one(tmp_path, case, **options):
    rows, report = read("deepeval", write(tmp_path / "x.json", json.dumps([case])), **options)
    return (rows[0] if rows else None), report


def test_context_is_gold_and_retrieval_context_is_what_was_retrieved(tmp_path):
    texts = Texts.of(
        [{"chunk_id": "c1", "text": "Open Settings, choose Security."}, {"chunk_id": "c2", "text": "Links expire."}]
    )
    row, report = one(tmp_path, CASE, texts=texts)
    assert row == {
        "query_id": "1-cf60e190",
        "query_text": "how do I reset my password?",
        "final_context_ids": ["c1", "c2"],
        "context_texts": {"c1": "Open Settings, choose Security.", "c2": "Links expire."},
        "gold_groups": [["c1"]],
        "reference": "Settings.",
        "answer": {"text": "Open Settings."},
        "k_final": 2,
        "provenance": {"gold_groups": "derived", "k_final": "derived"},
    }
    assert "gold found by text in the inventory: same text" in report.notes


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv"])
def test_json_jsonl_and_csv_of_the_same_goldens_give_the_same_traces(ending):
    rows, report = read("deepeval", DATA / "deepeval" / f"goldens.{ending}")
    expected, _ = read("deepeval", DATA / "deepeval" / "goldens.json")
    assert rows == expected
    assert (rows[0]["query_id"], rows[0]["gold_ids"]) == ("q-1", ["kb-001#0"])
    assert len(rows[0]["final_context_ids"]) == 3
    joined = "lists joined by | (so save_as writes CSV and JSONL): a text that holds a | itself is cut there"
    assert (joined in report.notes) == (ending != "json")


def test_a_pipe_in_a_json_list_cuts_nothing(tmp_path):
    row, report = one(tmp_path, CASE | {"retrieval_context": ["a | b"]})
    assert list(row["context_texts"].values()) == ["a | b"]
    assert [note for note in report.notes if note.startswith("lists joined")] == []


def test_the_spelling_of_a_test_run_is_read(tmp_path):
    run = {
        "testCases": [{"input": "q?", "retrievalContext": ["one text"], "actualOutput": "a", "expectedOutput": "b"}],
        "conversationalTestCases": [{"turns": []}],
    }
    (row,), report = read("deepeval", write(tmp_path / "run.json", json.dumps(run)))
    assert (row["reference"], row["answer"], len(row["final_context_ids"])) == ("b", {"text": "a"}, 1)
    assert list(report.skipped) == ["a conversation is not read"]


def test_retriever_spans_of_a_test_run_are_arms_where_the_case_has_no_list(tmp_path):
    spans = [
        {"name": "vector", "input": "rewritten", "embedder": "m", "output": [{"score": 0.9, "text": "one"}]},
        {"name": "vector", "retrievalContext": ["two"]},
    ]
    run = {"testCases": [{"input": "q?", "trace": {"retrieverSpans": spans}}]}
    (row,), _ = read("deepeval", write(tmp_path / "run.json", json.dumps(run)), k=3)
    assert list(row["arms"]) == ["vector", "vector 2"]
    assert (row["arms"]["vector"][0]["score"], row["arms"]["vector"][0]["text"]) == (0.9, "one")
    assert (row["embedding_model"], row["query_rewrite"]) == ("m", "rewritten")
    assert row["provenance"] == {"arms": "derived"}


def test_an_item_with_a_source_keeps_it(tmp_path):
    (row,), _ = read(
        "deepeval",
        write(tmp_path / "x.json", json.dumps([CASE | {"retrieval_context": [{"context": "t", "source": "kb-1"}]}])),
    )
    assert list(row["context_texts"].values()) == ["t"]


def test_metadata_by_the_usual_names_is_taken_and_said(tmp_path):
    meta = {"query_id": "q-1", "gold_ids": ["c9"], "user_acl": ["a"], "k_final": 5, "retrieved_ids": ["c1", "c2"]}
    row, report = one(tmp_path, CASE | {"additional_metadata": meta})
    assert (row["query_id"], row["gold_ids"], row["user_acl"], row["k_final"]) == ("q-1", ["c9"], ["a"], 5)
    assert row["final_context_ids"] == ["c1", "c2"]
    assert "user_acl: taken from the field user_acl that you added" in report.notes


def test_auto_knows_it():
    assert guess(DATA / "deepeval" / "goldens.csv").why == "records with input and retrieval_context"
