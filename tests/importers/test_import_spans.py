"""Span files: every encoding gives the same rows, and what a span cannot say is said."""

import gzip
import json

import pytest
from span_builders import (
    DATA,
    TEXTS,
    TRACE,
    documents,
    ids,
    imported,
    llm,
    otlp,
    reranker,
    retriever,
    root,
    span,
    spans_of,
)

from ragaudit.errors import ConfigError
from ragaudit.importers.registry import guess

QUERY = (
    retriever("dense", "c1", "c2", at=1),
    retriever("bm25", "c3", "c1", at=2),
    reranker("c1", "c3", given=("c1", "c3", "c2"), at=5, reranker__top_k=2),
    llm("c3", "c1"),
    root(metadata=json.dumps({"query_id": "q-1", "user_acl": ["tenant:acme"]}), session__id="s-1"),
)


def hits(*chunk_ids):
    return [{"id": each, "rank": n, "text": TEXTS[each]} for n, each in enumerate(chunk_ids, start=1)]


ROW = {
    "query_id": "q-1",
    "query_text": "how long?",
    "session_id": "s-1",
    "timestamp": "2026-11-29T22:59:00.000000Z",
    "user_acl": ["tenant:acme"],
    "after_rerank": hits("c1", "c3"),
    "arms": {"dense": hits("c1", "c2"), "bm25": hits("c3", "c1")},
    "arm_status": {"dense": {"status": "ran", "returned": 2}, "bm25": {"status": "ran", "returned": 2}},
    "rerank_input": hits("c1", "c3", "c2"),
    "k_final": 2,
    "prompt_ids": ["c3", "c1"],
    "final_context_ids": ["c3", "c1"],
    "answer": {"text": "Four hours."},
    "provenance": {"arms": "derived", "k_final": "derived", "prompt_ids": "derived", "final_context_ids": "derived"},
}


def test_the_spans_of_a_query_become_its_row(tmp_path):
    rows, report = spans_of(tmp_path, *QUERY)
    assert rows == [ROW]
    assert report.skipped == {}


@pytest.mark.parametrize("form", [{}, {"snake": True}, {"as_base64": True}])
def test_otlp_gives_the_same_row_in_both_spellings_and_with_both_kinds_of_ids(tmp_path, form):
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(otlp(*QUERY, **form), indent=1))
    rows, _ = imported("spans", path)
    assert rows == [ROW | {"timestamp": "2026-11-29T22:59:34.000000Z"}]


def test_a_collector_spreads_one_query_over_lines_in_any_order_and_between_others(tmp_path):
    other = [dict(each, context=each["context"] | {"trace_id": "0x" + "ab" * 16}) for each in QUERY]
    lines = [otlp(each) for pair in zip(reversed(QUERY), other, strict=True) for each in pair]
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows, report = imported("spans", path)
    assert [row["query_id"] for row in rows] == ["q-1", "q-1~abababababab"]
    assert rows[0] == ROW | {"timestamp": "2026-11-29T22:59:34.000000Z"}
    assert rows[1] == rows[0] | {"query_id": "q-1~abababababab"}
    assert report.notes["a query id came again: the trace's id is added to it"].count == 1


def test_a_span_that_two_exporters_wrote_counts_once(tmp_path):
    rows, report = spans_of(tmp_path, *QUERY, *QUERY)
    assert rows == [ROW]
    assert report.notes["spans that came twice: counted once, by span id"].count == 5


def test_of_two_states_of_a_span_the_one_that_says_more_stays(tmp_path):
    started = dict(QUERY[0], attributes={"openinference.span.kind": "RETRIEVER"})
    assert spans_of(tmp_path, started, *QUERY)[0] == [ROW]
    assert spans_of(tmp_path, *QUERY, started)[0] == [ROW]


def test_a_last_line_that_is_cut_is_skipped_and_the_rest_is_read(tmp_path):
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in QUERY) + json.dumps(QUERY[0])[:200])
    rows, report = imported("spans", path)
    assert rows == [ROW]
    assert [reason.places for reason in report.skipped.values()] == [("spans.jsonl:6",)]


def test_the_rank_is_the_index_of_the_attribute_and_not_its_place_in_the_file(tmp_path):
    mixed = span("dense", "RETRIEVER", at=1)
    mixed["attributes"] |= dict(reversed(documents(*TEXTS).items()))
    (row,), _ = spans_of(tmp_path, root(), mixed)
    assert ids(row["arms"]["dense"]) == list(TEXTS)


def test_a_hole_in_the_list_keeps_the_ranks_behind_it(tmp_path):
    holed = retriever("dense", "c1", "c2", "c3")
    holed["attributes"] = {k: v for k, v in holed["attributes"].items() if ".1." not in k}
    (row,), report = spans_of(tmp_path, root(), holed)
    assert [(hit["id"], hit["rank"]) for hit in row["arms"]["dense"]] == [("c1", 1), ("c3", 3)]
    assert report.notes["hits without id and text: left out"].count == 1


def test_a_list_whose_first_ranks_were_dropped_is_refused_with_what_to_set():
    rows, report = imported("spans", DATA / "openinference_overflow.otlp.json")
    assert rows == []
    assert list(report.skipped) == [
        "no list that can be ranked: its first ranks are missing. The SDK drops the oldest attributes beyond 128: "
        "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000"
    ]


def test_a_list_of_a_span_that_lost_attributes_is_not_used_although_rank_1_is_there(tmp_path):
    path = tmp_path / "spans.jsonl"
    lines = [otlp(root()), otlp(QUERY[0], dropped=3), otlp(QUERY[1])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (row,), report = imported("spans", path)
    assert (list(row["arms"]), row["arm_status"]["dense"]) == (["bm25"], {"status": "ran"})
    (note,) = (text for text in report.notes if text.startswith("a list is not used"))
    assert note.startswith("a list is not used: attributes of its span were dropped.")


def test_a_list_whose_first_document_lost_its_id_is_not_used_although_no_drop_is_counted(tmp_path):
    cut = retriever("dense", "c1", "c2", "c3")
    del cut["attributes"]["retrieval.documents.0.document.id"]
    (row,), report = spans_of(tmp_path, root(), cut, QUERY[1])
    assert list(row["arms"]) == ["bm25"]
    assert [text for text in report.notes if text.startswith("a list is not used: attributes of its span were dropped")]


def test_a_retriever_that_found_nothing_is_not_one_that_logged_nothing(tmp_path):
    empty = span("dense", "RETRIEVER", at=1, output__value='{"documents": []}')
    silent = span("bm25", "RETRIEVER", at=2)
    (row,), _ = spans_of(tmp_path, root(), empty, silent)
    assert row["arms"] == {"dense": []}
    assert row["arm_status"]["bm25"] == {"status": "ran"}


def test_an_arm_that_failed_is_errored_and_has_no_list(tmp_path):
    failed = span("bm25", "RETRIEVER", at=2) | {"status": {"status_code": "ERROR", "description": "timeout"}}
    (row,), _ = spans_of(tmp_path, root(), QUERY[0], failed)
    assert list(row["arms"]) == ["dense"]
    assert row["arm_status"]["bm25"] == {"status": "errored", "error": "timeout"}


def test_without_a_prompt_the_final_context_is_assumed_and_that_is_said(tmp_path):
    (row,), report = spans_of(tmp_path, *QUERY[:3], QUERY[4])
    assert (row["final_context_ids"], row["provenance"]["final_context_ids"]) == (["c1", "c3"], "assumed")
    assert "prompt_ids" not in row
    assert (
        report.notes["the prompt shows no chunk or was not logged: the last list is taken for what it held"].count == 1
    )


def test_a_chunk_that_was_cut_from_the_prompt_is_not_in_the_final_context(tmp_path):
    (row,), _ = spans_of(tmp_path, *QUERY[:3], llm("c3"), QUERY[4])
    assert (row["final_context_ids"], row["provenance"]["final_context_ids"]) == (["c3"], "derived")


def test_what_a_model_saw_inside_the_reranker_is_no_prompt(tmp_path):
    from span_builders import span_id

    inner = llm("c1", "c3", "c2", at=5)
    inner["parent_id"] = "0x" + span_id("Ranker.run", 5)
    (row,), _ = spans_of(tmp_path, *QUERY[:3], inner, QUERY[4])
    assert row["provenance"]["final_context_ids"] == "assumed"


def test_another_text_for_the_search_is_a_rewrite(tmp_path):
    arms = (retriever("dense", "c1", query="duration of audit logs"), retriever("bm25", "c1", query="audit logs", at=2))
    (row,), _ = spans_of(tmp_path, root(), arms[0])
    assert (row["query_rewrite"], row["provenance"]["query_rewrite"]) == ("duration of audit logs", "derived")
    (row,), _ = spans_of(tmp_path, root(), *arms)
    assert row["query_rewrite"] == ["duration of audit logs", "audit logs"]
    assert row["arm_status"]["bm25"]["query_text"] == "audit logs"


def test_a_trace_without_retrieval_is_skipped_and_one_without_a_question_too(tmp_path):
    nameless = retriever("dense", "c1", query="", trace="12" * 16)
    rows, report = spans_of(tmp_path, root(), nameless)
    assert rows == []
    assert {why: reason.count for why, reason in report.skipped.items()} == {
        "no retrieval in the trace": 1,
        "no question in the trace: log it as the input of its root span": 1,
    }


def test_feedback_of_people_is_kept_with_its_session_and_that_of_models_is_not(tmp_path):
    from ragaudit.importers.formats import Options
    from ragaudit.importers.registry import format_named
    from ragaudit.importers.report import ImportReport

    said = {
        "annotations.0.annotation.name": "thumb",
        "annotations.0.annotation.score": 1,
        "annotations.1.annotation.name": "judge",
        "annotations.1.annotation.score": 0,
        "annotations.1.annotation.annotator_kind": "LLM",
    }
    top = dict(QUERY[4], attributes=QUERY[4]["attributes"] | said)
    event = {"name": "gen_ai.evaluation.result", "timestamp": "2026-11-29T23:00:00Z"}
    top["events"] = [
        event | {"attributes": {"gen_ai.evaluation.name": "user_feedback", "gen_ai.evaluation.score.label": "good"}},
        event | {"attributes": {"gen_ai.evaluation.name": "faithfulness", "gen_ai.evaluation.score.value": 0.2}},
    ]
    path, report = tmp_path / "spans.jsonl", ImportReport()
    path.write_text("".join(json.dumps(each) + "\n" for each in (*QUERY[:4], top)))
    rows = [row for table, row in format_named("spans").read(path, Options(), report) if table == "feedback"]
    about = {"session_id": "s-1", "query_id": "q-1"}
    assert rows == [
        about | {"rating": 1, "ts": "2026-11-29T22:59:00.900000Z", "name": "thumb"},
        about | {"rating": "good", "ts": "2026-11-29T23:00:00.000000Z", "name": "user_feedback"},
    ]
    assert report.notes["annotations by models or code: not read as feedback"].count == 1
    assert "evaluation results: not read as feedback, as nothing says that a user gave them" in report.notes


def test_a_stage_that_there_is_none_of_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"^--stage rrf=fusd: no such list\. Use arm:NAME, or one of: arm, fused"):
        spans_of(tmp_path, *QUERY, stages={"rrf": "fusd"})


def test_a_stage_for_a_name_that_no_span_has_is_said(tmp_path):
    _, report = spans_of(tmp_path, *QUERY, stages={"rff": "fused"})
    assert "--stage rff: no span has this name" in report.notes


def test_auto_says_why(tmp_path):
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(otlp(*QUERY)))
    assert (guess(path).format.name, guess(path).why) == ("spans", "OTLP")
    path.write_text("".join(json.dumps(each) + "\n" for each in QUERY))
    assert (guess(path).format.name, guess(path).why) == ("spans", "an SDK's spans")


def test_the_trace_id_is_the_query_id_where_none_is_logged(tmp_path):
    (row,), _ = spans_of(tmp_path, *QUERY[:4], root())
    assert row["query_id"] == TRACE


def test_the_files_of_a_folder_are_one_because_a_collector_cuts_through_queries(tmp_path):
    for number, part in enumerate((QUERY[:2], QUERY[2:])):
        (tmp_path / f"spans-{number}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in part))
    (tmp_path / "notes.txt").write_text("no spans")
    assert (guess(tmp_path).format.name, guess(tmp_path).why) == ("spans", "a folder of files with an SDK's spans")
    rows, _ = imported("spans", tmp_path)
    assert rows == [ROW]


def test_a_gzip_file_is_read(tmp_path):
    path = tmp_path / "spans.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in QUERY).encode()))
    assert guess(path).why == "an SDK's spans"
    assert imported("spans", path)[0] == [ROW]


@pytest.mark.parametrize("indent", [4, 0])
def test_what_a_console_exporter_printed_is_read(tmp_path, indent):
    path = tmp_path / "spans.json"
    path.write_text("".join(json.dumps(each, indent=indent) + "\n" for each in QUERY[: 1 if indent == 0 else 5]))
    rows, report = imported("spans", path)
    if indent:
        assert rows == [ROW]
    else:
        assert ids(rows[0]["arms"]["dense"]) == ["c1", "c2"]
    assert report.skipped == {}


def test_a_console_exporter_that_was_stopped_loses_its_last_span_only(tmp_path):
    path = tmp_path / "spans.json"
    path.write_text("".join(json.dumps(each, indent=4) + "\n" for each in (*QUERY, QUERY[0]))[:-200])
    rows, report = imported("spans", path)
    assert rows == [ROW]
    assert sum(reason.count for reason in report.skipped.values()) == 1


def test_the_list_of_a_span_of_another_kind_counts_too(tmp_path):
    tool = retriever("search_docs", "c1", at=1)
    tool["attributes"]["openinference.span.kind"] = "TOOL"
    (row,), _ = spans_of(tmp_path, root(), tool)
    assert ids(row["arms"]["search_docs"]) == ["c1"]


def test_stage_names_the_answer_and_the_final_context(tmp_path):
    packed = span("format_docs", "CHAIN", at=6, input__value=json.dumps([{"id": "c3", "page_content": TEXTS["c3"]}]))
    said = span("postprocess", "CHAIN", at=7, output__value="Ninety days.")
    told = {"format_docs": "final", "postprocess": "answer"}
    (row,), _ = spans_of(tmp_path, *QUERY, packed, said, stages=told)
    assert (row["final_context_ids"], row["prompt_ids"]) == (["c3"], ["c3"])
    assert row["answer"] == {"text": "Ninety days."}


def test_what_a_model_said_before_the_search_is_no_answer(tmp_path):
    rewriting = span("Rewrite", "LLM", at=0, **{"llm.output_messages.0.message.content": "retention of audit logs"})
    (row,), _ = spans_of(tmp_path, root(), rewriting, QUERY[0])
    assert "answer" not in row
