"""Haystack: its own spans, saved outputs, the in-memory store, and reports of evaluations."""

import json

import pytest
from span_builders import DATA, ids, imported

from ragaudit.errors import InputError
from ragaudit.importers.formats import Options, Table
from ragaudit.importers.registry import format_named, guess, sample_of
from ragaudit.importers.report import ImportReport

MERGED = ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"]
LISTS = {
    "arms": {"bm25": ["kb-001#0", "kb-001#1", "kb-007#0"], "dense": MERGED},
    "fused": MERGED,
    "after_rerank": ["kb-001#0", "kb-001#1", "kb-007#0"],
}


def lists(row):
    arms = {"arms": {name: ids(hits) for name, hits in row["arms"].items()}}
    return arms | {name: ids(row[name]) for name in ("fused", "after_rerank")}


def test_spans_of_its_tracing_name_components_and_show_filters():
    (row,), _ = imported("haystack", DATA / "haystack_native.jsonl")
    assert lists(row) == LISTS
    assert ids(row["rerank_input"]) == MERGED
    assert row["fused"][0] == {
        "id": "kb-001#0",
        "rank": 1,
        "score": 1.0,
        "text": "To reset your password open Settings, choose Security and press Reset password. "
        "A link is mailed to the account owner.",
        "source_id": "kb-001",
        "metadata": {
            "source_id": "kb-001",
            "tenant": "acme",
            "acl": ["role:support", "role:public"],
            "content_hash": "491e83a78575f48c",
            "embedding_model": "fake-bow-64",
            "index_revision": "idx-2026-11-01T12:00Z",
        },
    }
    assert (row["filters_applied"], row["query_text"]) == ({"tenant": "acme"}, "how do I reset my password")
    assert row["provenance"] == {
        "embedding_model": "derived",
        "index_revision": "derived",
        "prompt_ids": "derived",
        "final_context_ids": "derived",
        "k_final": "derived",
    }
    found = guess(DATA / "haystack_native.jsonl")
    assert (found.format.name, found.why) == ("haystack", "spans with haystack.component.name")


def test_content_tracing_that_was_off_is_said(tmp_path):
    path = tmp_path / "spans.jsonl"
    spans = [json.loads(line) for line in (DATA / "haystack_native.jsonl").read_text().splitlines()]
    for each in spans:
        for name in list(each["attributes"]):
            if name.endswith((".input", ".output", ".input_data")):
                del each["attributes"][name]
    path.write_text("".join(json.dumps(each) + "\n" for each in spans))
    rows, report = imported("haystack", path)
    assert rows == []
    assert list(report.skipped) == ["Haystack's content tracing was off: set HAYSTACK_CONTENT_TRACING_ENABLED=true"]


def test_saved_outputs_of_a_pipeline_become_a_row_whose_stages_are_derived_from_names():
    (row,), _ = imported("haystack", DATA / "haystack_outputs.json")
    assert lists(row) == LISTS
    assert (row["query_id"], row["query_text"]) == ("q-1", "how do I reset my password")
    assert row["final_context_ids"] == ["kb-001#0", "kb-001#1", "kb-007#0"]
    assert row["answer"] == {"text": "(answer) e.\n\nQuestion: how do I reset my password"}
    assert {row["provenance"][name] for name in ("arms", "fused", "after_rerank")} == {"derived"}


def test_saved_outputs_without_a_question_are_skipped(tmp_path):
    (record,) = json.loads((DATA / "haystack_outputs.json").read_text())
    path = tmp_path / "outputs.json"
    path.write_text(json.dumps([record["pipeline_output"], {"query": "x", "pipeline_output": {}}]))
    rows, report = imported("haystack", path)
    assert rows == []
    assert list(report.skipped) == [
        "no question beside the outputs: save {'query': ..., 'pipeline_output': ...}",
        "no outputs of components: save Pipeline.run(..., include_outputs_from={...})",
    ]


def test_an_in_memory_store_becomes_chunks():
    rows = list(format_named("haystack").read(DATA / "haystack_store.json", Options(), ImportReport()))
    assert [table for table, _ in rows] == [Table.CHUNKS, Table.CHUNKS]
    assert rows[1][1] == {
        "chunk_id": "kb-001#1",
        "source_id": "kb-001",
        "text": "Password reset links expire after 30 minutes. Request a new link when the old one has expired.",
        "metadata": {
            "source_id": "kb-001",
            "tenant": "acme",
            "acl": ["role:support", "role:public"],
            "content_hash": "baf883fd7e2a5669",
            "embedding_model": "fake-bow-64",
            "index_revision": "idx-2026-11-01T12:00Z",
        },
        "acl": ["role:support", "role:public"],
        "embedding_model": "fake-bow-64",
    }


def test_a_report_of_evaluators_is_refused_with_the_command_that_reads_it(tmp_path):
    path = tmp_path / "report.csv"
    path.write_text("question,contexts,DocumentMRREvaluator\nwhy?,\"['because']\",1.0\n")
    assert guess(path).format.name == "haystack"
    with pytest.raises(InputError, match="ragaudit import table --map query_text=question"):
        imported("haystack", path)


def test_records_of_another_tool_with_documents_somewhere_are_not_claimed(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({"vars": {"documents": ["a"]}, "success": True, "query": "x"}) + "\n")
    assert format_named("haystack").sniff(sample_of(path)) is None
