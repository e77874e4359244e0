import json
from pathlib import Path

import pytest

from ragaudit.importers.formats import Options, Table
from ragaudit.importers.matching import Texts
from ragaudit.importers.ragas import FORMAT
from ragaudit.importers.registry import guess
from ragaudit.importers.report import ImportReport

SAMPLE = {
    "user_input": "how do I reset my password?",
    "retrieved_contexts": ["Open Settings, choose Security.", "Links expire."],
    "retrieved_context_ids": ["kb-1", 2],
    "reference_context_ids": ["kb-1"],
    "response": "Open Settings.",
    "reference": "Settings.",
}


def read(tmp_path, *samples, **options):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    report = ImportReport()
    return [row for _, row in FORMAT.read(path, Options(**options), report)], report


def test_a_sample_becomes_a_trace_with_the_contexts_as_final_context(tmp_path):
    (row,), _ = read(tmp_path, SAMPLE)
    assert row == {
        "query_id": "1-cf60e190",
        "query_text": "how do I reset my password?",
        "final_context_ids": ["kb-1", "2"],
        "context_texts": {"kb-1": "Open Settings, choose Security.", "2": "Links expire."},
        "gold_ids": ["kb-1"],
        "reference": "Settings.",
        "answer": {"text": "Open Settings."},
        "k_final": 2,
        "provenance": {"k_final": "derived"},
    }


def test_names_of_0_1_are_read(tmp_path):
    (row,), _ = read(tmp_path, {"question": "q?", "contexts": ["one text"], "answer": "a", "ground_truth": "g"})
    assert (row["query_text"], row["answer"], row["reference"]) == ("q?", {"text": "a"}, "g")


def test_a_context_without_an_id_is_named_by_the_hash_of_its_text_and_that_is_said(tmp_path):
    (row,), report = read(tmp_path, {"user_input": "q?", "retrieved_contexts": ["one text"]})
    assert row["final_context_ids"][0].startswith("text-")
    assert list(report.notes) == ["ids of hits: none was logged, the hash of the text stands for it"]


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("Open Settings, choose Security.", "same text"),
        ("open settings,  choose SECURITY.", "same text after folding"),
        ("choose Security, then press the reset button", "part of the chunk"),
    ],
)
def test_gold_that_is_text_is_found_in_the_inventory_and_the_method_is_said(tmp_path, text, method):
    texts = Texts.of(
        [
            {"chunk_id": "kb-1", "text": "Open Settings, choose Security."},
            {"chunk_id": "kb-2", "text": "In Settings choose Security, then press the reset button twice."},
        ]
    )
    (row,), report = read(tmp_path, {"user_input": "q?", "reference_contexts": [text]}, texts=texts)
    assert row["gold_groups"] == [["kb-2" if method == "part of the chunk" else "kb-1"]]
    assert row["provenance"]["gold_groups"] == "derived"
    assert list(report.notes) == [f"gold found by text in the inventory: {method}"]


def test_gold_text_that_no_chunk_holds_leaves_the_query_unlabelled(tmp_path):
    (row,), report = read(tmp_path, {"user_input": "q?", "reference_contexts": ["x"]}, texts=Texts.of([]))
    assert not {"gold_ids", "gold_groups"} & set(row)
    assert list(report.notes) == ["gold texts that no chunk of the inventory holds: left out"]


def test_k_on_the_command_line_wins(tmp_path):
    (row,), _ = read(tmp_path, SAMPLE, k=8)
    assert (row["k_final"], "provenance" in row) == (8, False)


def test_a_line_that_is_no_json_is_skipped_and_the_rest_is_read(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(SAMPLE) + "\nnot json\n" + json.dumps(SAMPLE) + "\n")
    report = ImportReport()
    rows = list(FORMAT.read(path, Options(), report))
    assert [table for table, _ in rows] == [Table.TRACES, Table.TRACES]
    assert [(reason.count, reason.places) for reason in report.skipped.values()] == [(1, ("data.jsonl:2",))]


def test_auto_says_why(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(SAMPLE) + "\n")
    found = guess(path)
    assert (found.format.name, found.why) == ("ragas", "records with user_input")


def test_lists_that_csv_holds_as_python_or_numpy_wrote_them(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(
        "user_input,retrieved_contexts,retrieved_context_ids,reference_context_ids\n"
        "q?,\"['one, text', \"\"it's two\"\"]\",\"['kb-1', 'kb-2']\",['kb-1']\n"
        "q?,\"['one' 'two']\",,\n"
    )
    rows = [row for _, row in FORMAT.read(path, Options(), ImportReport())]
    assert rows[0]["context_texts"] == {"kb-1": "one, text", "kb-2": "it's two"}
    assert rows[0]["gold_ids"] == ["kb-1"]
    assert list(rows[1]["context_texts"].values()) == ["one", "two"]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_conversation_is_skipped_also_where_csv_holds_it_as_text(tmp_path, ending):
    turns = [{"content": "hello", "type": "human"}]
    path = tmp_path / f"data.{ending}"
    path.write_text(json.dumps({"user_input": turns}) + "\n" if ending == "jsonl" else f'user_input,x\n"{turns}",1\n')
    report = ImportReport()
    assert list(FORMAT.read(path, Options(), report)) == []
    assert list(report.skipped) == ["no user_input as text (a conversation, or annotations of a metric, is no sample)"]


def test_jsonl_csv_and_parquet_of_one_dataset_give_the_same_traces():
    folder = Path(__file__).parent / "data" / "ragas"
    found = [
        [row for _, row in FORMAT.read(folder / f"evaluation_dataset.{ending}", Options(), ImportReport())]
        for ending in ("jsonl", "csv", "parquet")
    ]
    assert found[0] == found[1] == found[2]
    assert [row["gold_ids"] for row in found[0]] == [
        ["kb-001#0"],
        ["kb-002#0"],
        ["kb-005#0"],
        ["kb-003#1"],
        ["kb-009#0"],
    ]


def test_as_many_ids_as_texts_there_are_not_keeps_the_ids(tmp_path):
    (row,), report = read(tmp_path, SAMPLE | {"retrieved_context_ids": ["kb-1"]})
    assert row["final_context_ids"] == ["kb-1"]
    assert "context_texts" not in row
    assert "as many ids as texts there are not: the ids were taken, without texts" in report.notes
