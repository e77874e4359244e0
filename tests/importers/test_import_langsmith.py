"""Runs of LangSmith: real ones of a hybrid pipeline with a reranker, and the traps of the format."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest
from import_helpers import DATA, ids, read, read_rows
from run_builders import document, jsonl, run

from ragaudit.errors import ConfigError
from ragaudit.importers.registry import guess

HYBRID = [
    run("chain", kind="chain", hits=None),
    run("EnsembleRetriever", "chain", second=1, hits=["a", "b", "c"]),
    run("VectorStoreRetriever", "EnsembleRetriever", second=2, hits=["a", "b"]),
    run("BM25Retriever", "EnsembleRetriever", second=3, hits=["c", "a"]),
]


def test_a_langchain_pipeline_gives_arms_fused_list_reranked_list_and_what_the_prompt_holds():
    (row,), report = read("langsmith", DATA / "langsmith" / "runs_q3.jsonl")
    texts = {hit["id"]: hit.pop("text") for hits in row["arms"].values() for hit in hits}
    lists = {name: ids(row[name]) for name in ("fused", "after_rerank")}
    assert (row["query_id"], row["query_text"]) == ("q-3", "how long are audit logs kept")
    assert {name: ids(hits) for name, hits in row["arms"].items()} == {
        "VectorStoreRetriever": ["kb-005#0", "kb-003#1", "kb-001#1", "kb-002#1", "kb-003#0"],
        "BM25Retriever": ["kb-005#0", "kb-004#0", "kb-003#0", "kb-008#0", "kb-006#0"],
    }
    assert lists == {
        "fused": ["kb-005#0", "kb-003#0", "kb-003#1", "kb-004#0", "kb-001#1", "kb-002#1", "kb-008#0", "kb-006#0"],
        "after_rerank": ["kb-005#0", "kb-004#0", "kb-003#0"],
    }
    assert row["rerank_input"] == row["fused"]
    assert [hit["score"] for hit in row["after_rerank"]] == [0.436436, 0.210819, 0.113228]
    assert row["arms"]["BM25Retriever"][1] == {
        "id": "kb-004#0",
        "rank": 2,
        "source_id": "kb-004",
        "metadata": {
            "source_id": "kb-004",
            "tenant": "globex",
            "content_hash": "d99f0cf06f10d2fc",
            "embedding_model": "fake-bow-64",
            "index_revision": "idx-2026-11-01T12:00Z",
            "chunk_id": "kb-004#0",
        },
    }
    assert texts["kb-005#0"].startswith("Audit logs are kept for 90 days")
    assert (row["final_context_ids"], row["prompt_ids"], row["k_final"]) == (lists["after_rerank"],) * 2 + (3,)
    assert row["answer"] == {"text": "90 days on Standard, 365 days on Enterprise."}
    assert (row["index_revision"], row["embedding_model"]) == ("idx-2026-11-01T12:00Z", "fake-bow-64")
    derived = ("arms", "fused", "after_rerank", "final_context_ids", "k_final", "index_revision", "embedding_model")
    assert {row["provenance"][name] for name in derived} == {"derived"}
    assert {"user_acl", "filters_applied", "gold_ids"}.isdisjoint(row)
    assert "final context: found by text in the prompt" in report.notes


def test_a_traceable_retriever_shows_its_limit_and_filter():
    (row,), report = read("langsmith", DATA / "langsmith" / "traceable_retriever_runs.jsonl")
    assert ids(row["arms"]["dense"]) == ["kb-001#0", "kb-001#1", "kb-002#0"]
    assert [hit["score"] for hit in row["arms"]["dense"]] == [0.19803, 0.19803, 0.0]
    assert row["arm_status"] == {"dense": {"status": "ran", "filter": {"tenant": "acme"}, "limit": 3, "returned": 3}}
    assert (row["filters_applied"], row["index_revision"]) == ({"tenant": "acme"}, "idx-2026-11-01T12:00Z")
    assert (row["k_final"], row["provenance"]["final_context_ids"]) == (3, "assumed")
    assert "ids of hits: metadata.chunk_id" in report.notes


def test_runs_nested_in_one_document_give_the_same_trace_as_a_line_each(tmp_path):
    top = {**HYBRID[0], "child_runs": [{**HYBRID[1], "child_runs": HYBRID[2:]}]}
    path = tmp_path / "tree.json"
    path.write_text(json.dumps([top]))
    assert read("langsmith", path)[0] == read("langsmith", jsonl(tmp_path / "flat.jsonl", HYBRID))[0]


def test_parquet_holds_inputs_outputs_and_extra_as_json_texts(tmp_path):
    rows = [
        {k: json.dumps(v) if k in ("inputs", "outputs", "extra") else v for k, v in each.items()}
        for each in ({**one, "extra": {"metadata": {"query_id": "q-7"}}} for one in HYBRID)
    ]
    path = tmp_path / "runs.parquet"
    pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    (row,), _ = read("langsmith", path)
    assert (row["query_id"], ids(row["fused"])) == ("q-7", ["a", "b", "c"])


def test_post_and_patch_are_merged_by_id_in_any_order(tmp_path):
    whole = run("dense", second=1, hits=["a"])
    post = {key: value for key, value in whole.items() if key not in ("outputs", "end_time")}
    patch = {key: whole[key] for key in ("id", "trace_id", "outputs", "end_time")}
    for batches in ([{"post": [post]}, {"patch": [patch]}], [{"post": [post], "patch": [patch]}], [post, patch]):
        (row,), report = read("langsmith", jsonl(tmp_path / "batches.jsonl", batches))
        assert ids(row["arms"]["dense"]) == ["a"]
        assert report.notes["runs that come in parts (post and patch): merged by id"].count == 1


def test_children_may_come_before_their_parents(tmp_path):
    backwards = read("langsmith", jsonl(tmp_path / "a.jsonl", HYBRID[::-1]))[0]
    assert backwards == read("langsmith", jsonl(tmp_path / "b.jsonl", HYBRID))[0]


def test_the_tree_stands_in_dotted_order_where_parent_and_trace_are_missing(tmp_path):
    outer = "20261129T100000000000Zouter"
    runs = [
        {"id": "outer", "name": "EnsembleRetriever", "dotted_order": outer, "run_type": "retriever"},
        {"id": "inner", "name": "BM25Retriever", "dotted_order": f"{outer}.20261129T100001000000Zinner"},
    ]
    runs = [{**run("x", hits=["a"]), "trace_id": None, "parent_run_id": None, **each} for each in runs]
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert (row["query_id"], list(row["arms"]), ids(row["fused"])) == ("outer", ["BM25Retriever"], ["a"])


@pytest.mark.parametrize(
    "written",
    [
        {"id": "a", "page_content": "the text", "metadata": {"source_id": "s"}, "type": "Document"},
        {"id": None, "page_content": "the text", "metadata": {"chunk_id": "a", "source_id": "s"}},
        {"pageContent": "the text", "metadata": {"id": "a", "source_id": "s"}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "document", "Document"],
            "kwargs": {"id": "a", "page_content": "the text", "metadata": {"source_id": "s"}},
        },
    ],
    ids=["python", "id in metadata", "JavaScript", "constructor"],
)
def test_every_way_to_write_a_document_is_read(tmp_path, written):
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", [run("dense", hits=[written])]))
    (hit,) = row["arms"]["dense"]
    assert (hit["id"], hit["text"], hit["source_id"], hit["rank"]) == ("a", "the text", "s", 1)


def test_arms_are_named_by_their_run_and_not_by_the_inherited_retriever_name(tmp_path):
    inherited = {"extra": {"metadata": {"ls_retriever_name": "contextualcompression"}}}
    runs = [
        run("EnsembleRetriever", hits=["a"]),
        run("1", "EnsembleRetriever", second=1, hits=["a"], tags=["retriever_1", "FAISS"]) | inherited,
        run("2", "EnsembleRetriever", second=2, hits=["a"], tags=["retriever_2"]) | inherited,
    ]
    named = [runs[0], *({**each, "name": "VectorStoreRetriever"} for each in runs[1:])]
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", named))
    assert list(row["arms"]) == ["VectorStoreRetriever", "VectorStoreRetriever retriever_2"]


def test_stages_can_be_said_where_nothing_tells_them(tmp_path):
    flat = [
        run("chain", kind="chain"),
        run("a-search", "chain", second=1, hits=["a"]),
        run("b-search", "chain", second=2, hits=["b"]),
        run("put together", "chain", second=3, hits=["b", "a"]),
        run("sorted", "chain", kind="chain", second=4, hits=["a"]),
    ]
    path = jsonl(tmp_path / "runs.jsonl", flat)
    (row,), _ = read("langsmith", path)
    assert (list(row["arms"]), "fused" in row) == (["a-search", "b-search", "put together"], False)
    stages = {"put together": "fused", "sorted": "after_rerank", "a-search": "arm:dense", "typo": "fused"}
    (row,), report = read("langsmith", path, stages=stages)
    assert "--stage typo: no run has this name" in report.notes
    assert (list(row["arms"]), ids(row["fused"]), ids(row["after_rerank"])) == (
        ["dense", "b-search"],
        ["b", "a"],
        ["a"],
    )
    with pytest.raises(ConfigError, match="no such list"):
        read("langsmith", path, stages={"put together": "merged"})


def test_a_flat_pipeline_is_told_apart_by_names(tmp_path):
    flat = [
        run("chain", kind="chain"),
        run("dense", "chain", second=1, hits=["a"]),
        run("bm25", "chain", second=2, hits=["b"]),
        run("rrf", "chain", kind="chain", second=3, hits=["b", "a"]),
        run("rerank", "chain", kind="tool", second=4, hits=["a"]),
    ]
    (row,), report = read("langsmith", jsonl(tmp_path / "runs.jsonl", flat))
    assert (list(row["arms"]), ids(row["fused"]), ids(row["after_rerank"])) == (["dense", "bm25"], ["b", "a"], ["a"])
    assert "taken for a step of the retrieval, because its output is a list of hits: rrf" in report.notes


def test_retrievals_of_an_agent_stay_apart(tmp_path):
    runs = [
        run("agent", kind="chain", query="the question"),
        *({**each, "id": f"1{each['id']}"} for each in [run("EnsembleRetriever", second=1, hits=["a"], query="first")]),
        {**run("BM25Retriever", "1EnsembleRetriever", second=2, hits=["a"], query="first"), "id": "1b"},
        {**run("EnsembleRetriever", second=3, hits=["z"], query="second"), "id": "2e"},
        {**run("BM25Retriever", "2e", second=4, hits=["z"], query="second"), "id": "2b"},
    ]
    for each in runs[1:]:
        each["parent_run_id"] = each["parent_run_id"] or "agent"
    (first, second), report = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert [(r["query_id"], r["query_text"], ids(r["fused"])) for r in (first, second)] == [
        ("t~1", "first", ["a"]),
        ("t~2", "second", ["z"]),
    ]
    assert second["notes"] == "retrieval 2 of 2 of the trace; asked: the question"
    assert "several retrievals in one trace, apart by their text: a row each, id~1, id~2" in report.notes


def test_a_search_for_other_words_than_the_question_is_a_rewrite(tmp_path):
    runs = [run("chain", kind="chain", query="and for globex?"), run("dense", "chain", second=1, hits=["a"], query="x")]
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert (row["query_text"], row["query_rewrite"]) == ("and for globex?", "x")
    assert row["arm_status"]["dense"]["query_text"] == "x"


def test_the_prompt_decides_what_was_packed_and_in_which_order(tmp_path):
    prompts = {"messages": [["system", "Context: the text of chunk-b ... The  TEXT of\nchunk-a"], ["human", "q?"]]}
    llm = run("model", "chain", kind="llm", second=5) | {"inputs": prompts}
    runs = [run("chain", kind="chain"), run("dense", "chain", second=1, hits=["chunk-a", "chunk-b", "chunk-c"]), llm]
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert (row["final_context_ids"], row["k_final"]) == (["chunk-b", "chunk-a"], 2)
    flat = llm | {"inputs": {"prompts": ["System: the text of chunk-c\nHuman: q?"]}}
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", [*runs[:2], flat]))
    assert row["final_context_ids"] == ["chunk-c"]
    other = llm | {"inputs": {"prompts": ["no context at all"]}}
    (row,), report = read("langsmith", jsonl(tmp_path / "runs.jsonl", [*runs[:2], other]))
    assert row["provenance"]["final_context_ids"] == "assumed"
    assert "final context: no candidate's text stands in a prompt, so it is assumed" in report.notes


def test_runs_that_never_ended_are_said_and_their_lists_are_absent_not_empty(tmp_path):
    late = run("BM25Retriever", "EnsembleRetriever", second=3) | {"end_time": None}
    (row,), report = read("langsmith", jsonl(tmp_path / "runs.jsonl", [*HYBRID[:3], late]))
    assert list(row["arms"]) == list(row["arm_status"]) == ["VectorStoreRetriever"]
    assert report.notes["steps that never ended: their lists are absent"].count == 1
    rows, report = read("langsmith", jsonl(tmp_path / "runs.jsonl", [late | {"parent_run_id": None}]))
    assert (rows, list(report.skipped)) == ([], ["the retrieval never ended"])


def test_an_arm_that_failed_is_errored_and_one_that_found_nothing_ran(tmp_path):
    runs = [
        run("EnsembleRetriever", hits=["a"]),
        run("dense", "EnsembleRetriever", second=1) | {"error": "timeout"},
        run("bm25", "EnsembleRetriever", second=2, hits=[]),
    ]
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert row["arms"] == {"bm25": []}
    assert row["arm_status"] == {
        "dense": {"status": "errored", "error": "timeout"},
        "bm25": {"status": "ran", "returned": 0},
    }


def test_same_text_under_two_ids_is_one_document_to_ensemble_retriever(tmp_path):
    same = "the same words in two chunks"
    runs = [
        run("EnsembleRetriever", hits=[document("a", same)]),
        run("dense", "EnsembleRetriever", second=1, hits=[document("a", same)]),
        run("bm25", "EnsembleRetriever", second=2, hits=[document("b", same)]),
    ]
    _, report = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    what = "EnsembleRetriever keeps one id of those with the same text: the other ids are in no later list"
    assert report.notes[what].count == 1


def test_metadata_by_convention_fills_what_no_field_holds(tmp_path):
    said = {
        "query_id": "q-9",
        "user_acl": ["tenant:acme"],
        "index_revision": "r1",
        "filters": {"tenant": "acme"},
        "thread_id": "s-1",
        "k_final": 4,
        "slices": {"language": "en"},
    }
    runs = [run("chain", kind="chain", extra={"metadata": said}), run("dense", "chain", second=1, hits=["a"])]
    (row,), report = read("langsmith", jsonl(tmp_path / "runs.jsonl", [{**each, "session_id": "p"} for each in runs]))
    assert {name: row[name] for name in ("query_id", "user_acl", "index_revision", "k_final", "slices")} == {
        name: said[name] for name in ("query_id", "user_acl", "index_revision", "k_final", "slices")
    }
    assert (row["filters_applied"], row["session_id"]) == ({"tenant": "acme"}, "s-1")
    assert "user_acl: taken from the field user_acl that you added" in report.notes


def test_a_query_id_that_comes_again_gets_the_id_of_its_trace(tmp_path):
    said = {"extra": {"metadata": {"query_id": "q-1"}}}
    runs = [run("dense", hits=["a"], trace=trace) | said | {"id": trace} for trace in ("t1", "t2")]
    rows, report = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert [row["query_id"] for row in rows] == ["q-1", "q-1~t2"]
    assert report.notes["a query id came again: the trace's id is added to it"].count == 1


def test_feedback_and_examples_are_joined_whatever_file_they_stand_in(tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    root = run("chain", kind="chain", reference_example_id="e-1", extra={"metadata": {"query_id": "q-1"}})
    jsonl(folder / "runs.jsonl", [root, run("dense", "chain", second=1, hits=["a"])])
    outputs = {"answer": "the reference", "gold_ids": ["a", "b"]}
    jsonl(folder / "examples.jsonl", [{"id": "e-1", "inputs": {"query": "q?"}, "outputs": outputs, "dataset_id": "d"}])
    said = {"run_id": "chain", "key": "user_score", "score": 1.0, "created_at": "2026-11-29T10:02:00"}
    by_model = {**said, "key": "helpful", "feedback_source": {"type": "model"}}
    jsonl(folder / "feedback.jsonl", [said, by_model, {**said, "run_id": "elsewhere"}])
    assert (guess(folder).format.name, guess(folder).why) == ("langsmith", "runs with run_type")
    for inputs in ([folder], sorted(folder.iterdir())):
        tables, report = read_rows("langsmith", *inputs)
        (row,) = tables["traces"]
        assert (row["reference"], row["gold_ids"]) == ("the reference", ["a", "b"])
        assert tables["feedback"] == [
            {"query_id": "q-1", "rating": 1.0, "ts": "2026-11-29T10:02:00", "name": "user_score"}
        ]
        assert list(report.skipped) == [
            "feedback by an evaluator: no user said it",
            "feedback on a run that gave no trace",
        ]


def test_hostile_runs_do_no_harm(tmp_path):
    records = [
        run("<b>\x1b[31m\u202eevil</b>", "circle", hits=["a"], trace="circle"),
        run("circle", "<b>\x1b[31m\u202eevil</b>", hits=["a"], trace="circle"),
        run("self", "self", hits=["a"], trace="self"),
        run("bad", hits=[document("n", score=float("nan"))], trace="nan") | {"tags": "x", "extra": [1], "inputs": 5},
        "a text",
        {"id": 1},
    ]
    path = jsonl(tmp_path / "runs.jsonl", records)
    with path.open("a") as file:
        file.write('{"id": "deep", "run_type": "chain", "child_runs": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
        file.write('{"id": "cut", "run_ty')
    rows, report = read("langsmith", path)
    assert [row["query_id"] for row in rows] == ["circle", "self"]
    assert list(report.skipped) == [
        "the record is no object",
        "no run, feedback or example of LangSmith",
        "the line is nested too deeply to read. Log flat records.",
        "the line the file ends in mid-line: was the writer stopped? Write this line again, whole.",
        "no text of the query was logged",
    ]


def test_a_retriever_under_thousands_of_runs_is_found_under_the_nearest_list(tmp_path):
    chain = [run(f"step {n}", f"step {n - 1}" if n else "EnsembleRetriever", kind="chain") for n in range(20_000)]
    runs = [
        run("EnsembleRetriever", hits=["a", "b"]),
        *chain,
        run("dense", "step 19999", second=1, hits=["a"]),
        run("bm25", "step 5", second=2, hits=["b"]),
    ]
    (row,), _ = read("langsmith", jsonl(tmp_path / "runs.jsonl", runs))
    assert (list(row["arms"]), ids(row["fused"])) == (["dense", "bm25"], ["a", "b"])


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (HYBRID, "runs with run_type"),
        ([{**HYBRID[0], "child_runs": HYBRID[1:2]}], "runs with run_type and child_runs"),
        ([{"post": HYBRID, "patch": []}], "batches of runs with post and patch"),
    ],
)
def test_auto_says_why(tmp_path, records, why):
    found = guess(jsonl(tmp_path / "runs.jsonl", records))
    assert (found.format.name, found.why) == ("langsmith", why)
