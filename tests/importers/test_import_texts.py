"""RAGChecker, continuous-eval and Open RAG Eval: tools that keep texts, and ids that are none."""

import json

from import_helpers import read, write

from ragaudit.importers.matching import Texts, text_id

TEXTS = Texts.of([{"chunk_id": "c1", "text": "one text"}, {"chunk_id": "c2", "text": "two texts"}])


def checker(tmp_path, *results, **options):
    return read("ragchecker", write(tmp_path / "x.json", json.dumps({"results": list(results)})), **options)


def result(query_id, *passages):
    return {
        "query_id": query_id,
        "query": "q?",
        "gt_answer": "g",
        "response": "r",
        "retrieved_context": [{"doc_id": key, "text": text} for key, text in passages],
    }


def test_ragchecker_keeps_doc_ids_that_name_one_text_each(tmp_path):
    rows, _ = checker(tmp_path, result("0", ("000", "one"), ("001", "two")), result("1", ("000", "one")))
    assert [row["final_context_ids"] for row in rows] == [["000", "001"], ["000"]]
    assert (rows[0]["reference"], rows[0]["answer"], rows[0]["k_final"]) == ("g", {"text": "r"}, 2)


def test_ragchecker_doc_ids_that_count_passages_are_no_ids(tmp_path):
    rows, report = checker(tmp_path, result("0", ("000", "one text")), result("1", ("000", "two texts")), texts=TEXTS)
    assert [row["final_context_ids"] for row in rows] == [["c1"], ["c2"]]
    assert "doc_id names different texts in different queries: a counter, not taken for an id" in report.notes


def test_ragchecker_passages_without_an_id_are_named_by_their_text(tmp_path):
    rows, _ = checker(tmp_path, result("0", (None, "one text")))
    assert rows[0]["final_context_ids"] == [text_id("one text")]


def test_continuous_eval_finds_hits_and_gold_in_the_inventory(tmp_path):
    record = {
        "question": "q?",
        "retrieved_contexts": ["two  texts", "elsewhere"],
        "ground_truth_contexts": ["One text", "not there"],
        "ground_truths": ["a", "b"],
    }
    (row,), report = read("continuous-eval", write(tmp_path / "x.jsonl", json.dumps(record)), texts=TEXTS)
    assert row["final_context_ids"] == ["c2", text_id("elsewhere")]
    assert row["gold_groups"] == [["c1"]]
    assert row["reference"] == "a"
    assert set(report.notes) == {
        "ids of hits: looked up by text in the inventory (same text)",
        "ids of hits: none was logged, the hash of the text stands for it",
        "gold found by text in the inventory: same text after folding",
        "gold texts that no chunk of the inventory holds: left out",
        "several reference answers: the first is kept",
    }


def test_continuous_eval_without_an_inventory_leaves_the_query_unlabelled(tmp_path):
    record = {"question": "q?", "retrieved_contexts": ["one"], "ground_truth_contexts": ["one"]}
    (row,), report = read("continuous-eval", write(tmp_path / "x.jsonl", json.dumps(record)))
    assert not {"gold_ids", "gold_groups"} & set(row)
    assert "gold is given as text: pass --chunks to find its ids, else these queries are unlabelled" in report.notes


OPEN = """\ufeffquery_id,query,query_run,passage_id,passage,generated_answer
q1,what?,1,[1],one text,"An answer [1]

with a blank line"
q1,what?,1,[2],two texts,
q1,what?,2,[1],two texts,Another
"""


def test_open_rag_eval_counts_its_passages_and_each_run_is_a_trace(tmp_path):
    rows, report = read("open-rag-eval", write(tmp_path / "x.csv", OPEN), texts=TEXTS)
    assert [(row["query_id"], row["final_context_ids"]) for row in rows] == [("q1", ["c1", "c2"]), ("q1#run-2", ["c2"])]
    assert rows[0]["answer"] == {"text": "An answer [1]\n\nwith a blank line"}
    assert "passage_id counts the passages of each query: not taken for an id" in report.notes
    assert "a query was run several times: each run is a trace, named QUERY#run-N" in report.notes


def test_a_chunk_twice_in_a_context_keeps_both_places(tmp_path):
    rows, _ = read("open-rag-eval", write(tmp_path / "x.csv", OPEN.replace("two texts", "one text")), texts=TEXTS)
    assert [row["final_context_ids"] for row in rows] == [["c1", "c1"], ["c1"]]


def test_a_text_that_is_part_of_several_chunks_is_named_by_its_hash(tmp_path):
    part = "the same sentence stands in both of them"
    texts = Texts.of([{"chunk_id": name, "text": f"{name}: {part}."} for name in ("c1", "c2")])
    record = {"question": "q?", "retrieved_contexts": [part]}
    (row,), report = read("continuous-eval", write(tmp_path / "x.jsonl", json.dumps(record)), texts=texts)
    assert row["final_context_ids"] == [text_id(part)]
    assert list(report.notes) == ["ids of hits: the text is part of several chunks, its hash stands for it"]
