"""LlamaIndex: events of the instrumentation, whose tree is inferred, responses, evaluations and data sets."""

import json

import pytest
from import_helpers import DATA, ids, read, read_rows
from run_builders import event, jsonl, node, retrieval

from ragaudit.errors import InputError
from ragaudit.importers.matching import Texts
from ragaudit.importers.registry import guess

DENSE = [node("a", 0.8), node("b", 0.6)]
BM25 = [node("b", 7.5), node("c", 2.0)]
RRF = [node("b", 0.033), node("a", 0.0163), node("c", 0.0161)]
OVERWRITTEN = "scores of an arm are those of the merged list, written over them: dropped"


def hybrid(question="q?", dense=DENSE, bm25=BM25):
    """A fusion retriever around two others."""
    inside = [*retrieval("VectorIndexRetriever", question, *dense), *retrieval("BM25Retriever", question, *bm25)]
    return retrieval("QueryFusionRetriever", question, *RRF, inside=inside)


def asked(question, *events, engine="RetrieverQueryEngine", nodes=None, **more):
    """A query engine's events around others."""
    response = {"response": "an answer", "source_nodes": nodes if nodes is not None else RRF}
    begin = event("QueryStart", f"{engine}.query", query=question, **more)
    return [begin, *events, event("QueryEnd", f"{engine}.query", query=question, response=response)]


def test_events_of_a_query_give_arms_with_their_own_scores_fused_and_reranked_list_and_prompt():
    (row,), report = read("llamaindex", DATA / "llamaindex" / "events_q2.jsonl")
    assert (row["query_id"], row["query_text"]) == (
        "41a2ccf8-902c-42d8-ad4d-dcd202f40826",
        "what does error E4042 mean",
    )
    assert {arm: [(hit["id"], hit["score"]) for hit in hits[:2]] for arm, hits in row["arms"].items()} == {
        "VectorIndexRetriever": [("kb-002#0", 0.2696799449852969), ("kb-006#1", 0.20701966780270628)],
        "BM25Retriever": [("kb-002#0", 2.070892333984375), ("kb-002#1", 1.3189269304275513)],
    }
    fused = ["kb-002#0", "kb-002#1", "kb-006#1", "kb-001#1", "kb-008#0", "kb-001#0"]
    assert ids(row["fused"]) == ids(row["rerank_input"]) == fused
    assert [(hit["id"], hit["score"]) for hit in row["after_rerank"]] == [
        ("kb-002#0", 0.223607),
        ("kb-002#1", 0.11547),
        ("kb-006#1", 0.0),
    ]
    assert row["final_context_ids"] == row["prompt_ids"] == ["kb-002#0", "kb-002#1", "kb-006#1"]
    assert (row["k_final"], row["embedding_model"]) == (3, "fake-bow-64")
    assert row["arms"]["BM25Retriever"][0]["source_id"] == "kb-002"
    assert row["answer"]["text"].startswith("text text")
    assert OVERWRITTEN not in report.notes


def test_scores_that_fusion_wrote_into_the_nodes_of_an_arm_are_dropped(tmp_path):
    mutated = [node("b", 0.033), node("c", 0.0161)]
    (row,), report = read("llamaindex", jsonl(tmp_path / "e.jsonl", asked("q?", *hybrid(bm25=mutated))))
    assert [hit.get("score") for hit in row["arms"]["VectorIndexRetriever"]] == [0.8, 0.6]
    assert ["score" in hit for hit in row["arms"]["BM25Retriever"]] == [False, False]
    assert ids(row["arms"]["BM25Retriever"]) == ["b", "c"]
    assert report.notes[OVERWRITTEN].count == 1


def test_arms_that_run_at_the_same_time_are_not_taken_for_one_inside_the_other(tmp_path):
    one, other = retrieval("VectorIndexRetriever", "q?", *DENSE), retrieval("BM25Retriever", "q?", *BM25)
    inside = [one[0], *other, one[1]]
    events = asked("q?", *retrieval("QueryFusionRetriever", "q?", *RRF, inside=inside))
    (row,), _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", events))
    assert list(row["arms"]) == ["VectorIndexRetriever", "BM25Retriever"]
    assert ids(row["fused"]) == ["b", "a", "c"]


def test_a_retriever_of_your_own_that_gives_what_the_inner_ones_gave_is_their_merged_list(tmp_path):
    inside = [*retrieval("VectorIndexRetriever", "q?", *DENSE), *retrieval("BM25Retriever", "q?", *BM25)]
    events = asked("q?", *retrieval("Mine", "q?", node("c", 1), node("a", 0), inside=inside))
    (row,), _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", events))
    assert (list(row["arms"]), ids(row["fused"])) == (["VectorIndexRetriever", "BM25Retriever"], ["c", "a"])


def test_what_the_prompt_lost_of_the_source_nodes_is_visible(tmp_path):
    prompt = event("LLMCompletionStart", "MockLLM.complete", prompt="Context: The text of chunk-b. Query: q?")
    nodes = [node("chunk-a", 0.9), node("chunk-b", 0.8)]
    events = asked("q?", *retrieval("VectorIndexRetriever", "q?", *nodes), prompt, nodes=nodes)
    (row,), _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", events))
    assert (row["final_context_ids"], row["prompt_ids"]) == (["chunk-a", "chunk-b"], ["chunk-b"])


def test_a_postprocessor_that_sends_no_event_shows_in_the_source_nodes(tmp_path):
    replaced = [{"node": {"id_": "b", "text": "the sentences around b"}, "score": 0.033}]
    (row,), _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", asked("q?", *hybrid(), nodes=replaced)))
    assert (ids(row["fused"]), row["final_context_ids"]) == (["b", "a", "c"], ["b"])
    assert row["context_texts"] == {"b": "the sentences around b"}


def test_a_prompt_of_the_reranker_is_no_final_context(tmp_path):
    rerank = [
        event("ReRankStart", "LLMRerank._postprocess_nodes", query="q?", nodes=RRF, top_n=1, model_name="m"),
        event("LLMChatStart", "LLM.chat", messages=[{"role": "user", "content": "the text of chunk-a?"}]),
        event("ReRankEnd", "LLMRerank._postprocess_nodes", nodes=[node("b", 1.0)]),
    ]
    events = asked("q?", *hybrid(), *rerank, nodes=[node("b", 1.0)])
    (row,), _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", events))
    assert (ids(row["after_rerank"]), row["k_final"], "prompt_ids" in row) == (["b"], 1, False)


def test_queries_at_the_same_time_are_told_apart_by_their_texts(tmp_path):
    one = asked("first?", *retrieval("VectorIndexRetriever", "first?", node("a", 1)), engine="E1", nodes=[node("a", 1)])
    two = asked("second?", *retrieval("BM25Retriever", "second?", node("b", 1)), engine="E22", nodes=[node("b", 1)])
    mixed = [event for pair in zip(one, two, strict=True) for event in pair]
    rows, report = read("llamaindex", jsonl(tmp_path / "e.jsonl", mixed))
    assert [(row["query_text"], row["final_context_ids"]) for row in rows] == [("first?", ["a"]), ("second?", ["b"])]
    assert report.notes["queries overlap: their events are told apart by the text of the query"].count == 1


def test_retrievers_without_a_query_engine_are_one_query_while_their_text_is_the_same(tmp_path):
    events = [
        *retrieval("VectorIndexRetriever", "q?", *DENSE),
        *retrieval("BM25Retriever", "q?", *BM25),
        *retrieval("VectorIndexRetriever", "another?", node("z", 1)),
    ]
    rows, _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", events))
    assert [(row["query_text"], list(row["arms"])) for row in rows] == [
        ("q?", ["VectorIndexRetriever", "BM25Retriever"]),
        ("another?", ["VectorIndexRetriever"]),
    ]


def test_tags_say_what_no_event_says(tmp_path):
    tags = {"query_id": "q-1", "user_acl": ["tenant:acme"], "index_revision": "r1"}
    (row,), _ = read("llamaindex", jsonl(tmp_path / "e.jsonl", asked("q?", *hybrid(), tags=tags)))
    assert {name: row[name] for name in tags} == tags


def test_a_query_that_the_file_cuts_off_is_said(tmp_path):
    path = jsonl(tmp_path / "e.jsonl", [*asked("q?", *hybrid()), *asked("late?", *hybrid("late?"))[:3]])
    with path.open("a") as file:
        file.write('{"class_name": "Retr')
    rows, report = read("llamaindex", path)
    assert [row["query_text"] for row in rows] == ["q?"]
    assert report.skipped["the retrieval never ended"].count == 1
    assert report.notes["queries that never ended"].count == 1


def test_hostile_events_do_no_harm(tmp_path):
    name = "<b>\x1b[31m\u202eX</b>.retrieve-not-a-uuid"
    events = [
        {"class_name": "RetrievalStartEvent", "span_id": name, "str_or_query_bundle": {"query_str": "q?"}},
        {"class_name": "RetrievalEndEvent", "span_id": name, "nodes": [5, {"node": None}, node("a", "high")]},
        {"class_name": "RetrievalEndEvent", "span_id": "unknown", "nodes": []},
        {"class_name": "QueryEndEvent", "span_id": "q", "response": "text"},
        {"class_name": "LLMChatStartEvent", "span_id": "l", "messages": [None, {"blocks": [3]}]},
        {"class_name": "Event", "span_id": 5, "tags": 7},
        [],
    ]
    (row,), report = read("llamaindex", jsonl(tmp_path / "e.jsonl", events))
    assert (row["query_id"], row["arms"]) == (
        name,
        {name: [{"id": "a", "rank": 2, "text": "the text of a"}]},
    )
    assert list(report.skipped) == ["the end of a step whose start is not in the file", "the record is no object"]


def test_a_response_is_read_for_the_context_and_the_answer(tmp_path):
    value = {"query": "q?", "response": "an answer", "source_nodes": [node("a", 0.9), node("b", 0.8)]}
    path = tmp_path / "responses.json"
    path.write_text(json.dumps([value, {"response": "no query", "source_nodes": []}]))
    (row,), report = read("llamaindex", path)
    assert row == {
        "query_id": "1-9fe05e41",
        "query_text": "q?",
        "final_context_ids": ["a", "b"],
        "context_texts": {"a": "the text of a", "b": "the text of b"},
        "answer": {"text": "an answer"},
        "k_final": 2,
        "provenance": {"final_context_ids": "derived", "k_final": "derived"},
    }
    assert list(report.skipped) == ["a response without the text of its query: log it beside the source_nodes"]


def test_a_retrieval_evaluation_has_gold_ids_and_the_list_of_one_retriever(tmp_path):
    result = {
        "query": "q?",
        "expected_ids": ["a", "z"],
        "expected_texts": None,
        "retrieved_ids": ["b", "a"],
        "retrieved_texts": ["text of b", "text of a"],
        "mode": "text",
        "metric_dict": {},
    }
    (row,), _ = read("llamaindex", jsonl(tmp_path / "r.jsonl", [result]))
    assert row["arms"] == {
        "retriever": [{"id": "b", "rank": 1, "text": "text of b"}, {"id": "a", "rank": 2, "text": "text of a"}]
    }
    assert (row["gold_ids"], row["k_final"]) == (["a", "z"], 2)
    assert row["provenance"] == {"final_context_ids": "assumed", "k_final": "assumed"}


def test_an_embedding_qa_data_set_is_labels_and_chunks(tmp_path):
    value = {
        "queries": {"q-1": "q?"},
        "corpus": {"a": "text a"},
        "relevant_docs": {"q-1": ["a", "gone"]},
        "mode": "text",
    }
    path = tmp_path / "qa.json"
    path.write_text(json.dumps(value))
    tables, report = read_rows("llamaindex", path)
    assert tables == {
        "chunks": [{"chunk_id": "a", "text": "text a"}],
        "qrels": [
            {"query_id": "q-1", "id": "a", "grade": 1.0},
            {"query_id": "q-1", "id": "gone", "grade": 1.0},
        ],
    }
    assert report.notes["gold ids that the corpus does not hold"].count == 1


def rag(folder, *predictions):
    """A LabelledRagDataset with one example, and its predictions."""
    example = {"query": "q?", "reference_contexts": ["The text of A."], "reference_answer": "a reference"}
    (folder / "rag_dataset.json").write_text(json.dumps({"examples": [example]}))
    (folder / "rag_predictions.json").write_text(json.dumps({"predictions": list(predictions)}))
    return folder / "rag_dataset.json", folder / "rag_predictions.json"


def test_a_labelled_rag_data_set_is_joined_with_its_predictions_by_position_and_its_gold_by_text(tmp_path):
    files = rag(tmp_path, {"response": "an answer", "contexts": ["text of b", "the text  of a."]})
    texts = Texts.of([{"chunk_id": "a", "text": "The text of A."}, {"chunk_id": "b", "text": "text of b"}])
    assert guess(tmp_path).why == "a data set and its predictions"
    for inputs in (files, (tmp_path,)):
        (row,), report = read("llamaindex", *inputs, texts=texts)
        assert (row["final_context_ids"], row["gold_groups"]) == (["b", "a"], [["a"]])
        assert (row["reference"], row["answer"]) == ("a reference", {"text": "an answer"})
        assert report.notes["predictions joined with their examples by position"].count == 1


def test_predictions_without_their_examples_or_with_others_are_refused(tmp_path):
    dataset, predictions = rag(tmp_path, {"response": "", "contexts": []}, {"response": "", "contexts": []})
    with pytest.raises(InputError, match="predictions do not hold their queries"):
        read("llamaindex", predictions)
    with pytest.raises(InputError, match="2 predictions for 1 examples, and only their position joins them"):
        read("llamaindex", dataset, predictions)
    rows, report = read("llamaindex", dataset)
    assert (rows, list(report.skipped)) == (
        [],
        ["an example without its prediction: pass the predictions as a further INPUT"],
    )


def test_a_persisted_index_is_left_to_the_inventory(tmp_path):
    (tmp_path / "docstore.json").write_text('{"docstore/data": {}}')
    (tmp_path / "index_store.json").write_text('{"index_store/data": {}}')
    assert guess(tmp_path).why == "a persisted index (docstore.json, index_store.json)"
    for path in (tmp_path, tmp_path / "docstore.json"):
        with pytest.raises(InputError, match=r"is a persisted index, no traces. Read it with: ragaudit inventory"):
            read("llamaindex", path)


def test_auto_says_why(tmp_path):
    found = guess(jsonl(tmp_path / "e.jsonl", asked("q?", *hybrid())))
    assert (found.format.name, found.why) == ("llamaindex", "events such as QueryStartEvent")
