import json

import pytest
from import_helpers import DATA, read, write

from ragaudit.importers.registry import guess


def result(**changes):
    base = {
        "vars": {"query": "q?", "expected_ids": "c1|0012"},
        "response": {"output": "a", "metadata": {"documents": [{"id": "c1", "content": "one"}, {"id": 2}]}},
        "provider": {"id": "rag"},
        "prompt": {"label": "Answer {{query}}"},
        "testCase": {"metadata": {}},
        "testIdx": 0,
        "promptIdx": 0,
    }
    return base | changes


def results(tmp_path, *found, **options):
    value = {"evalId": "e", "results": {"version": 3, "results": list(found)}}
    return read("promptfoo", write(tmp_path / "out.json", json.dumps(value)), **options)


def test_a_result_becomes_a_trace(tmp_path):
    (row,), _ = results(tmp_path, result())
    assert row == {
        "query_id": "test-0",
        "query_text": "q?",
        "final_context_ids": ["c1", "2"],
        "context_texts": {"c1": "one"},
        "gold_ids": ["c1", "0012"],
        "answer": {"text": "a"},
        "slices": {"provider": "rag", "prompt": "Answer {{query}}"},
        "k_final": 2,
        "provenance": {"k_final": "derived"},
    }


def test_one_test_with_two_prompts_is_two_queries_that_ids_and_slices_tell_apart(tmp_path):
    second = result(promptIdx=1, provider={"id": "other"}, vars={"query": "q?", "query_id": "q-7"})
    rows, report = results(tmp_path, result(vars={"query": "q?", "query_id": "q-7"}), second, second)
    assert [row["query_id"] for row in rows] == ["q-7", "q-7@prompt-1", "q-7@prompt-1#2"]
    assert [row["slices"]["provider"] for row in rows] == ["rag", "other", "other"]
    assert "several prompts or providers: from the second on, query ids are QUERY@prompt-N" in report.notes


def test_what_the_provider_returned_comes_before_the_variables(tmp_path):
    (row,), report = results(tmp_path, result(vars={"query": "q?", "context": "the variable"}))
    assert row["final_context_ids"] == ["c1", "2"]
    assert "context: taken from metadata.documents" in report.notes


def test_a_context_that_is_only_a_variable_is_assumed(tmp_path):
    (row,), report = results(tmp_path, result(vars={"query": "q?", "context": "one | long, text"}, response={}))
    assert list(row["context_texts"].values()) == ["one | long, text"]
    assert row["provenance"] == {"final_context_ids": "assumed", "k_final": "assumed"}
    assert "the context is one text: it may be several chunks in one" in report.notes


def test_a_query_under_another_variable_is_named_by_map(tmp_path):
    rows, report = results(tmp_path, result(vars={"ticket": "q?"}))
    assert rows == []
    assert list(report.skipped) == ["no variable holds the query (variables: ticket): --map query_text=NAME"]
    (row,), _ = results(tmp_path, result(vars={"ticket": "q?"}), columns={"query_text": "ticket"})
    assert row["query_text"] == "q?"


def test_json_and_jsonl_of_one_evaluation_give_the_same_traces():
    first, _ = read("promptfoo", DATA / "promptfoo" / "eval_output.json")
    second, _ = read("promptfoo", DATA / "promptfoo" / "eval_output.jsonl")
    assert first == second
    assert [row["gold_ids"] for row in first] == [["kb-001#0"], ["kb-002#0"]]


def test_csv_drops_what_the_provider_returned_and_that_is_said():
    rows, report = read("promptfoo", DATA / "promptfoo" / "eval_output.csv")
    assert [row["gold_ids"] for row in rows] == [["kb-001#0"], ["kb-002#0"]]
    assert [row.get("final_context_ids") is None for row in rows] == [False, True]
    assert rows[0]["answer"] == {"text": "answer for how do I reset my password"}
    assert rows[0]["slices"] == {"provider": "fake-rag", "prompt": "Answer {{query}}"}
    assert "the CSV drops what the provider returned as metadata: export JSON to keep it" in report.notes


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ("json", "an evaluation with evalId and results"),
        ("jsonl", "results with promptIdx, testIdx and vars"),
        ("csv", "columns Status, Score and Grader Reason"),
    ],
)
def test_auto_says_why(ending, why):
    found = guess(DATA / "promptfoo" / f"eval_output.{ending}")
    assert (found.format.name, found.why) == ("promptfoo", why)


def test_top_k_is_a_setting_of_the_model_and_no_k(tmp_path):
    (row,), _ = results(tmp_path, result(vars={"query": "q?", "top_k": 40}))
    assert (row["k_final"], row["provenance"]) == (2, {"k_final": "derived"})
