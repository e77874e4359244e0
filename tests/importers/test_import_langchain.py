"""Events of LangChain: callbacks, astream_events, and documents that are no trace."""

import pytest
from import_helpers import DATA, ids, read
from run_builders import document, jsonl

from ragaudit.errors import InputError
from ragaudit.importers.registry import guess

FUSED_Q1 = ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-008#0", "kb-005#0", "kb-006#0"]


def start(run_id, parent=None, **more):
    """A callback that a run begins."""
    return {"event": "on_retriever_start", "name": run_id, "run_id": run_id, "parent_run_id": parent, **more}


def end(run_id, *hits, **more):
    """A callback that it ends."""
    return {"event": "on_retriever_end", "run_id": run_id, "documents": [document(each) for each in hits], **more}


@pytest.mark.parametrize(
    ("name", "query_id"),
    [("callbacks_q1.jsonl", "q-1"), ("astream_v2_q1.jsonl", "01a22995-6cea-7618-964a-b06ad2d118b4")],
)
def test_events_of_one_question_give_every_list(name, query_id):
    (row,), report = read("langchain", DATA / "langchain" / name)
    assert (row["query_id"], row["query_text"]) == (query_id, "how do I reset my password")
    assert {arm: ids(hits) for arm, hits in row["arms"].items()} == {
        "VectorStoreRetriever": ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"],
        "BM25Retriever": ["kb-001#0", "kb-007#0", "kb-001#1", "kb-008#0", "kb-006#0"],
    }
    assert ids(row["fused"]) == FUSED_Q1
    assert [(hit["id"], hit["score"]) for hit in row["after_rerank"]] == [
        ("kb-001#0", 0.19803),
        ("kb-001#1", 0.19803),
        ("kb-007#0", 0.109109),
    ]
    assert row["final_context_ids"] == ["kb-001#0", "kb-001#1", "kb-007#0"]
    assert row["answer"] == {"text": "Open Settings, choose Security and press Reset password."}
    assert "score" not in row["fused"][0]
    assert not report.skipped


def test_several_traces_in_one_file_stay_apart(tmp_path):
    events = [
        start("a", query="first", metadata={"query_id": "q-1"}),
        start("b", query="second"),
        end("b", "y"),
        end("a", "x"),
    ]
    rows, _ = read("langchain", jsonl(tmp_path / "events.jsonl", events))
    assert [
        (row["query_id"], row["query_text"], ids(row["arms"][arm])) for row, arm in zip(rows, "ab", strict=True)
    ] == [
        ("q-1", "first", ["x"]),
        ("b", "second", ["y"]),
    ]


def test_a_run_between_two_retrievers_that_was_not_logged_is_bridged(tmp_path):
    outer = {"event": "on_retriever_start", "name": "EnsembleRetriever", "run_id": "o", "parent_ids": ["root"]}
    inner = {"event": "on_retriever_start", "name": "dense", "run_id": "i", "parent_ids": ["root", "o", "unlogged"]}
    events = [each | {"data": {"input": {"query": "q?"}}, "tags": [], "metadata": {}} for each in (outer, inner)]
    ends = [
        {"event": "on_retriever_end", "run_id": run_id, "data": {"output": [document("x")]}, "parent_ids": parents}
        for run_id, parents in (("i", ["root", "o", "unlogged"]), ("o", ["root"]))
    ]
    (row,), _ = read("langchain", jsonl(tmp_path / "events.jsonl", [*events, *ends]))
    assert (row["query_id"], list(row["arms"]), ids(row["fused"])) == ("root", ["dense"], ["x"])


def test_errors_and_cut_files_are_no_empty_lists(tmp_path):
    events = [
        start("EnsembleRetriever", query="q?"),
        start("dense", "EnsembleRetriever", query="q?"),
        {"event": "on_retriever_error", "run_id": "dense", "error": "timeout"},
        start("bm25", "EnsembleRetriever", query="q?"),
        end("bm25", "x"),
    ]
    path = jsonl(tmp_path / "events.jsonl", events)
    with path.open("a") as file:
        file.write('{"event": "on_retriever_end", "run_id": "Ens')
    (row,), report = read("langchain", path)
    assert row["arm_status"]["dense"] == {"status": "errored", "error": "timeout"}
    assert (list(row["arms"]), "fused" in row) == (["bm25"], False)
    assert report.notes["steps that never ended: their lists are absent"].count == 1


def test_hostile_events_do_no_harm(tmp_path):
    events = [
        start("\x1b[2J<script>\u202e", "b", query="q?"),
        end("\x1b[2J<script>\u202e", "x"),
        {"event": "on_chain_start", "run_id": "b", "parent_run_id": "\x1b[2J<script>\u202e", "inputs": "'" * 9_000},
        {"event": "on_chain_start", "run_id": "c", "inputs": "(" * 9_000},
        {"event": "on_custom", "run_id": "d"},
        {"event": "on_retriever_end", "run_id": None},
        5,
    ]
    (row,), report = read("langchain", jsonl(tmp_path / "events.jsonl", events))
    assert ids(row["arms"]["\x1b[2J<script>\u202e"]) == ["x"]
    assert report.skipped["no event with a run_id"].count == 2


def test_documents_alone_are_no_trace_and_the_reason_says_what_to_log(tmp_path):
    path = jsonl(tmp_path / "documents.jsonl", [document("a"), document("b")])
    assert guess(path).why == "documents of LangChain"
    with pytest.raises(InputError, match=r"documents without a query are no trace. Log the retriever's run"):
        read("langchain", path)


def test_auto_says_why(tmp_path):
    found = guess(jsonl(tmp_path / "events.jsonl", [start("a", query="q?"), end("a")]))
    assert (found.format.name, found.why) == ("langchain", "events such as on_retriever_start")
