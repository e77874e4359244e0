"""What each dialect of spans says, read from what the real libraries wrote."""

import json

from span_builders import DATA, TRACE, ids, imported, root, span, spans_of

from ragaudit.importers.matching import Texts


def journey(row):
    """Name of a list -> its ids."""
    found = {name: ids(hits) for name, hits in row.get("arms", {}).items()}
    return found | {name: ids(row[name]) for name in ("fused", "rerank_input", "after_rerank") if name in row}


def lines(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def test_openinference_langchain_takes_ids_from_the_output_and_has_no_scores_of_arms():
    rows, report = imported("spans", DATA / "openinference_langchain.jsonl")
    assert [row["query_id"] for row in rows] == ["q-1", "q-2", "q-3"]
    assert journey(rows[2]) == {
        "VectorStoreRetriever": ["kb-005#0", "kb-003#1", "kb-001#1", "kb-002#1", "kb-003#0"],
        "BM25Retriever": ["kb-005#0", "kb-004#0", "kb-003#0", "kb-008#0", "kb-006#0"],
        "fused": [f"kb-{n}" for n in ("005#0", "003#0", "003#1", "004#0", "001#1", "002#1", "008#0", "006#0")],
        "after_rerank": ["kb-005#0", "kb-004#0", "kb-003#0"],
    }
    first = rows[2]["arms"]["BM25Retriever"][1]
    assert first == {
        "id": "kb-004#0",
        "rank": 2,
        "text": "Globex tenants keep audit logs for 400 days; export is available from the Compliance page.",
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
    assert {name: rows[2][name] for name in ("session_id", "k_final", "embedding_model", "final_context_ids")} == {
        "session_id": "s-q-3",
        "k_final": 3,
        "embedding_model": "fake-bow-64",
        "final_context_ids": ["kb-005#0", "kb-004#0", "kb-003#0"],
    }
    assert report.notes["a user id says nothing about what the user may read: log user_acl"].count == 3


def test_openinference_without_documents_in_the_output_takes_ids_from_metadata(tmp_path):
    spans = lines("openinference_langchain.jsonl")
    for each in spans:
        if each["attributes"]["openinference.span.kind"] == "RETRIEVER":
            del each["attributes"]["output.value"]
    rows, report = spans_of(tmp_path, *spans)
    assert journey(rows[2])["BM25Retriever"] == ["kb-005#0", "kb-004#0", "kb-003#0", "kb-008#0", "kb-006#0"]
    assert report.notes["ids of hits: metadata.chunk_id"].count == 62


def test_openinference_llamaindex_keeps_scores_and_leaves_out_the_inner_span_of_each_retriever():
    (row,), _ = imported("spans", DATA / "openinference_llamaindex.jsonl")
    assert journey(row) == {
        "VectorIndexRetriever": ["kb-005#0", "kb-003#1", "kb-001#1", "kb-002#1", "kb-006#1"],
        "BM25Retriever": ["kb-005#0", "kb-004#0", "kb-008#0", "kb-007#0", "kb-006#0"],
        "fused": ["kb-005#0", "kb-003#1", "kb-004#0", "kb-001#1", "kb-008#0", "kb-002#1"],
        "rerank_input": ["kb-005#0", "kb-003#1", "kb-004#0", "kb-001#1", "kb-008#0", "kb-002#1"],
        "after_rerank": ["kb-005#0", "kb-004#0", "kb-008#0"],
    }
    assert [hit["score"] for hit in row["arms"]["BM25Retriever"][:2]] == [2.2227296829223633, 1.3189269304275513]
    assert (row["k_final"], row["provenance"]["k_final"]) == (3, "derived")
    assert row["final_context_ids"] == ["kb-005#0", "kb-004#0", "kb-008#0"]


def test_openinference_haystack_joiner_shows_ids_the_filter_is_in_the_input_and_the_builder_is_no_model():
    (row,), _ = imported("spans", DATA / "openinference_haystack.jsonl")
    merged = ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"]
    assert journey(row) == {
        "InMemoryBM25Retriever": ["kb-001#0", "kb-001#1", "kb-007#0"],
        "InMemoryEmbeddingRetriever": merged,
        "fused": merged,
        "rerank_input": merged,
        "after_rerank": ["kb-001#0", "kb-001#1", "kb-007#0"],
    }
    assert row["query_text"] == "how do I reset my password"
    assert row["filters_applied"] == {"tenant": "acme"}
    assert row["answer"] == {"text": "(answer) e.\n\nQuestion: how do I reset my password"}
    assert "query_rewrite" not in row


def test_a_joiner_that_shows_nothing_made_what_the_reranker_was_given(tmp_path):
    spans = lines("openinference_haystack.jsonl")
    for each in spans:
        if each["name"] == "DocumentJoiner.run":
            del each["attributes"]["output.value"]
    (row,), _ = spans_of(tmp_path, *spans)
    assert journey(row)["fused"] == journey(row)["rerank_input"]
    assert row["provenance"]["fused"] == "derived"


def test_a_haystack_pipeline_without_a_ranker_is_packed_from_the_joiner_whose_texts_the_arms_hold(tmp_path):
    spans = [each for each in lines("openinference_haystack.jsonl") if each["name"] != "OverlapRanker.run"]
    (row,), _ = spans_of(tmp_path, *spans)
    assert journey(row)["fused"] == ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"]
    assert (row["final_context_ids"], row["k_final"]) == (["kb-001#0", "kb-001#1", "kb-007#0"], 3)
    assert row["provenance"]["final_context_ids"] == "derived"


def test_a_hand_made_pipeline_that_says_all_in_metadata_is_observed():
    (row,), _ = imported("spans", DATA / "openinference_manual.jsonl")
    assert row["provenance"] == {"k_final": "derived", "prompt_ids": "derived", "final_context_ids": "derived"}
    assert row["user_acl"] == ["tenant:acme", "role:support"]
    assert (row["filters_applied"], row["index_revision"]) == ({"tenant": "acme"}, "idx-2026-11-01T12:00Z")
    assert (row["embedding_model"], list(row["arms"])) == ("fake-bow-64", ["dense", "bm25"])
    assert row["final_context_ids"] == ["kb-005#0", "kb-003#0", "kb-008#0"]


def test_documents_as_one_json_text_are_read(tmp_path):
    listed = [{"document.id": "c1", "document.content": "text one"}, {"document": {"id": 7, "score": 0.5}}]
    found = span("dense", "RETRIEVER", **{"retrieval.documents": json.dumps(listed)})
    (row,), _ = spans_of(tmp_path, root(), found)
    assert row["arms"]["dense"] == [{"id": "c1", "rank": 1, "text": "text one"}, {"id": "7", "rank": 2, "score": 0.5}]


def test_messages_in_parts_are_a_prompt(tmp_path):
    found = span("dense", "RETRIEVER", **{"retrieval.documents.0.document.id": "c1"})
    found["attributes"]["retrieval.documents.0.document.content"] = "logs are kept for ninety days"
    model = span("Chat", "LLM", at=9)
    model["attributes"]["llm.input_messages.0.message.contents.0.message_content.text"] = (
        "Logs are kept\nfor ninety days."
    )
    (row,), _ = spans_of(tmp_path, root(), found, model)
    assert row["prompt_ids"] == ["c1"]


def test_one_genai_list_is_the_final_context_assumed_because_nested_searches_are_hidden():
    (row,), report = imported("spans", DATA / "genai_langchain.jsonl")
    assert row == {
        "query_id": "2a46332693004c83fd12eeb2ebebdc9b",
        "query_text": "how do I reset my password",
        "timestamp": "2026-11-29T23:06:09.718794Z",
        "final_context_ids": ["kb-001#0", "kb-001#1", "kb-007#0"],
        "k_final": 3,
        "provenance": {"final_context_ids": "assumed", "k_final": "assumed"},
    }
    assert [note for note in report.notes if note.startswith("one list of the GenAI conventions: its instrumentation")]


def test_the_user_can_say_what_the_one_genai_list_is():
    (row,), report = imported("spans", DATA / "genai_langchain.jsonl", stages={"retrieval": "arm:vector"}, k=3)
    assert ids(row["arms"]["vector"]) == ["kb-001#0", "kb-001#1", "kb-007#0"]
    assert row["provenance"] == {"final_context_ids": "assumed"}
    assert not [note for note in report.notes if note.startswith("one list")]


def test_genai_searches_of_named_sources_are_arms():
    (row,), report = imported("spans", DATA / "genai_util.jsonl")
    assert journey(row) == {
        "kb_chunks": ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"],
        "kb_bm25": ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#0", "kb-002#1"],
    }
    assert row["arm_status"]["kb_bm25"] == {"status": "ran", "limit": 5, "returned": 5}
    assert (row["query_id"], row["embedding_model"]) == ("q-1", "fake-bow-64")
    assert row["provenance"] == {"embedding_model": "derived"}
    assert "how many chunks the prompt may hold is not known: pass --k" in report.notes
    assert "what the prompt held is not known: it shows no chunk or was not logged" in report.notes


def test_content_capture_that_was_off_is_said(tmp_path):
    silent = span("retrieval", at=1, **{"gen_ai.operation.name": "retrieval", "gen_ai.provider.name": "qdrant"})
    rows, report = spans_of(tmp_path, span("root", "", "", 0, **{"gen_ai.operation.name": "invoke_workflow"}), silent)
    assert rows == []
    assert list(report.skipped) == [
        "content capture was off: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only and "
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
    ]


def test_a_genai_reranker_that_points_into_its_input_is_resolved(tmp_path):
    given = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    made = [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.4}]
    found = span(
        "rerank",
        at=2,
        **{
            "gen_ai.operation.name": "rerank",
            "gen_ai.rerank.input_documents": json.dumps(given),
            "gen_ai.rerank.output_documents": json.dumps(made),
        },
    )
    (row,), _ = spans_of(tmp_path, root(), found)
    assert [(hit["id"], hit["score"]) for hit in row["after_rerank"]] == [("c", 0.9), ("a", 0.4)]
    assert ids(row["rerank_input"]) == ["a", "b", "c"]


def test_openllmetry_langchain_takes_ids_from_metadata_and_the_prompt_from_system_instructions():
    (row,), report = imported("spans", DATA / "openllmetry_langchain.jsonl")
    assert journey(row) == {
        "VectorStoreRetriever": ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"],
        "BM25Retriever": ["kb-001#0", "kb-007#0", "kb-001#1", "kb-008#0", "kb-006#0"],
        "fused": ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-008#0", "kb-005#0", "kb-006#0"],
        "after_rerank": ["kb-001#0", "kb-001#1", "kb-007#0"],
    }
    assert row["prompt_ids"] == ["kb-001#0", "kb-001#1", "kb-007#0"]
    assert row["answer"] == {"text": "Open Settings, choose Security and press Reset password."}
    assert report.notes["ids of hits: metadata.chunk_id"].count == 20


def test_a_chroma_query_inside_a_workflow_is_an_arm_with_its_filter(tmp_path):
    (query,) = lines("openllmetry_chroma.jsonl")
    trace = query["context"]["trace_id"]
    top = span("ask.workflow", "", "", 0, trace=trace.removeprefix("0x"), **{"traceloop.span.kind": "workflow"})
    top["attributes"]["traceloop.entity.input"] = json.dumps({"inputs": "how do I reset my password"})
    query["parent_id"] = top["context"]["span_id"]
    (row,), _ = spans_of(tmp_path, top, query, k=4)
    assert [(hit["id"], round(hit["score"], 3)) for hit in row["arms"]["chroma.query"]][:2] == [
        ("kb-001#0", 1.304),
        ("kb-001#1", 1.406),
    ]
    assert row["filters_applied"] == {"tenant": "acme"}
    assert row["arm_status"]["chroma.query"] == {
        "status": "ran",
        "filter": {"tenant": "acme"},
        "limit": 4,
        "returned": 4,
    }


def test_a_store_under_a_retriever_is_the_same_search_and_gives_it_filter_and_limit(tmp_path):
    (query,) = lines("openllmetry_chroma.jsonl")
    above = span("VectorStoreRetriever", "RETRIEVER", at=1, **{"retrieval.documents.0.document.id": "kb-001#0"})
    query["context"]["trace_id"] = f"0x{TRACE}"
    query["parent_id"] = above["context"]["span_id"]
    (row,), _ = spans_of(tmp_path, root(), above, query)
    assert journey(row) == {"VectorStoreRetriever": ["kb-001#0"]}
    assert row["arm_status"]["VectorStoreRetriever"]["limit"] == 4
    assert row["filters_applied"] == {"tenant": "acme"}


def test_a_store_query_without_a_question_and_one_without_hits_are_refused_with_the_reason():
    rows, report = imported("spans", DATA / "openllmetry_chroma.jsonl")
    assert rows == []
    assert list(report.skipped) == ["no question in the trace: log it as the input of its root span"]
    rows, report = imported("spans", DATA / "openllmetry_qdrant.jsonl")
    assert rows == []
    assert list(report.skipped) == ["no list that can be ranked: qdrant's instrumentation records no hits"]


def test_one_store_call_with_several_queries_is_not_read_as_one(tmp_path):
    (query,) = lines("openllmetry_chroma.jsonl")
    query["attributes"]["db.chroma.query.embeddings_count"] = 2
    rows, report = spans_of(tmp_path, query)
    assert rows == []
    assert (
        "no list that can be ranked: one call asked several queries, whose hits cannot be told apart" in report.skipped
    )


def test_two_instrumentations_of_one_retrieval_are_one_list(tmp_path):
    spans = lines("openinference_manual.jsonl")
    dense = next(each for each in spans if each["name"] == "dense")
    trace = dense["context"]["trace_id"].removeprefix("0x")
    twin = span("retrieval kb", at=50, trace=trace, **{"gen_ai.operation.name": "retrieval"})
    twin["parent_id"] = dense["context"]["span_id"]
    twin["attributes"] |= {"gen_ai.data_source.id": "kb", "gen_ai.retrieval.documents": '[{"id": "kb-005#0"}]'}
    (row,), report = spans_of(tmp_path, *spans, twin)
    assert list(row["arms"]) == ["dense", "bm25"]
    assert report.notes["a retrieval was traced twice: what OpenInference says is used"].count == 1


def test_langfuse_spans_are_read_before_its_server_is(tmp_path):
    found = span("dense", at=1, **{"langfuse.observation.type": "retriever"})
    found["attributes"]["langfuse.observation.input"] = "how long?"
    found["attributes"]["langfuse.observation.output"] = json.dumps(
        [{"id": "c1", "page_content": "ninety days of logs"}]
    )
    top = span("ask", "", "", 0, **{"langfuse.observation.type": "span", "langfuse.observation.input": "how long?"})
    top["attributes"] |= {"langfuse.trace.metadata.query_id": '"q-9"', "langfuse.observation.output": "Ninety days."}
    found["parent_id"] = top["context"]["span_id"]
    (row,), _ = spans_of(tmp_path, top, found)
    assert (row["query_id"], journey(row), row["answer"]) == ("q-9", {"dense": ["c1"]}, {"text": "Ninety days."})


def test_texts_without_ids_are_found_in_the_inventory(tmp_path):
    found = span("dense", "RETRIEVER", **{"retrieval.documents.0.document.content": "Logs are kept for ninety days."})
    texts = Texts.of([{"chunk_id": "kb-9", "text": "logs are kept  for ninety days."}])
    (row,), report = spans_of(tmp_path, root(), found, texts=texts)
    assert ids(row["arms"]["dense"]) == ["kb-9"]
    assert "ids of hits: looked up by text in the inventory (same text after folding)" in report.notes


def test_a_genai_retrieval_before_a_reranker_is_an_arm_assumed(tmp_path):
    search = span("retrieval", at=1, **{"gen_ai.operation.name": "retrieval"})
    search["attributes"]["gen_ai.retrieval.documents"] = '[{"id": "a"}, {"id": "b"}]'
    ranked = span("rerank", at=2, **{"gen_ai.operation.name": "rerank"})
    ranked["attributes"]["gen_ai.rerank.output_documents"] = '[{"id": "b", "relevance_score": 0.9}]'
    (row,), report = spans_of(tmp_path, root(), search, ranked)
    assert journey(row) == {"retrieval": ["a", "b"], "after_rerank": ["b"]}
    assert row["provenance"]["arms"] == "assumed"
    assert "a GenAI retrieval before another list is taken for an arm: it may be merged already" in report.notes
