"""MLflow: JSON inside texts, ids of both versions, assessments as feedback and gold."""

import csv
import json

import pytest
from span_builders import DATA, ids, imported

from ragaudit.errors import InputError
from ragaudit.importers.formats import Options
from ragaudit.importers.matching import Texts
from ragaudit.importers.registry import format_named, guess
from ragaudit.importers.report import ImportReport


def sample():
    return json.loads((DATA / "mlflow_traces.json").read_text())[0]


def of(tmp_path, *traces, **options):
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in traces))
    return imported("mlflow", path, **options)


def expecting(value):
    found = sample()
    found["info"]["assessments"] = [
        {"assessment_name": "expected_retrieved_context", "expectation": {"value": value}},
        {"assessment_name": "expected_response", "expectation": {"value": "90 days."}},
    ]
    return found


def test_a_trace_of_version_3_becomes_a_row():
    (row,), _ = imported("mlflow", DATA / "mlflow_traces.json")
    lists = {name: ids(hits) for name, hits in row["arms"].items()}
    assert lists == {
        "dense": ["kb-005#0", "kb-003#1", "kb-004#0", "kb-001#1", "kb-002#1"],
        "bm25": ["kb-005#0", "kb-004#0", "kb-003#0", "kb-008#0", "kb-001#0"],
    }
    assert ids(row["rerank_input"])[:3] == ["kb-005#0", "kb-003#1", "kb-004#0"]
    assert [(hit["id"], hit["score"]) for hit in row["after_rerank"]] == [
        ("kb-005#0", 0.436436),
        ("kb-004#0", 0.210819),
        ("kb-003#0", 0.113228),
    ]
    others = ("query_id", "query_text", "session_id", "k_final", "final_context_ids", "answer", "timestamp")
    assert {name: row[name] for name in others} == {
        "query_id": "x",
        "query_text": "how long are audit logs kept",
        "session_id": "s-1",
        "k_final": 3,
        "final_context_ids": ["kb-005#0", "kb-004#0", "kb-003#0"],
        "answer": {"text": "90 days on Standard, 365 days on Enterprise."},
        "timestamp": "2026-11-29T23:08:42.799529Z",
    }
    assert row["after_rerank"][0]["source_id"] == "kb-005"


def test_feedback_of_people_is_kept_and_that_of_models_is_not(tmp_path):
    found = sample()
    judged = {"assessment_name": "judge", "source": {"source_type": "LLM_JUDGE"}, "feedback": {"value": "no"}}
    found["info"]["assessments"].append(judged)
    path, report = tmp_path / "traces.json", ImportReport()
    path.write_text(json.dumps([found]))
    rows = [row for table, row in format_named("mlflow").read(path, Options(), report) if table == "feedback"]
    assert rows == [
        {
            "session_id": "s-1",
            "query_id": "x",
            "rating": True,
            "ts": "2026-11-29T23:08:44.126000Z",
            "name": "user_thumb",
        }
    ]
    assert report.notes["assessments by models or code: not read as feedback"].count == 1


def test_expected_chunks_are_gold_by_id_or_by_text_through_the_inventory(tmp_path):
    (row,), _ = of(tmp_path, expecting([{"id": "kb-005#0"}, {"chunk_id": "kb-003#0"}]))
    assert (row["gold_ids"], row["reference"]) == (["kb-005#0", "kb-003#0"], "90 days.")
    texts = Texts.of([{"chunk_id": "kb-005#0", "text": "Audit logs are kept for 90 days."}])
    (row,), report = of(tmp_path, expecting([{"content": "audit logs are kept for 90 days."}]), texts=texts)
    assert row["gold_groups"] == [["kb-005#0"]]
    assert report.notes["gold found by text in the inventory: same text after folding"].count == 1


def test_expected_documents_that_are_addresses_name_no_chunk(tmp_path):
    (row,), report = of(tmp_path, expecting([{"doc_uri": "kb-005"}]))
    assert not {"gold_ids", "gold_groups"} & set(row)
    assert report.notes["expected documents that are named by address only: no chunk, so left out"].count == 1


def test_spans_of_version_2_have_hex_ids_in_a_context(tmp_path):
    found = sample()
    for n, span in enumerate(found["data"]["spans"]):
        trace_id, parent = span.pop("trace_id"), span.pop("parent_span_id")
        span["context"] = {"span_id": f"0x{n:016x}", "trace_id": trace_id}
        span.pop("span_id")
        span["parent_id"] = None if parent is None else f"0x{0:016x}"
    found["info"]["request_id"] = found["info"].pop("trace_id")
    found["info"]["request_metadata"] = found["info"].pop("trace_metadata")
    found["info"]["tags"] = {}
    (row,), _ = of(tmp_path, found)
    assert (row["query_id"], row["session_id"]) == ("tr-31ededd94194c02d2c7d2ef9587b2d10", "s-1")
    assert list(row["arms"]) == ["dense", "bm25"]


def test_the_csv_of_search_traces_is_read_by_its_column_trace_and_refused_without_it(tmp_path):
    path = tmp_path / "traces.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["trace_id", "trace", "spans"], ["tr-1", json.dumps(sample()), "[Span(...)]"]])
    (row,), _ = imported("mlflow", path)
    assert row["query_text"] == "how long are audit logs kept"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["trace_id", "trace_metadata", "spans"], ["tr-1", "{}", "[Span(...)]"]])
    assert guess(path).why == "the columns of search_traces"
    with pytest.raises(InputError, match=r"has no whole traces in a column `trace`\. Export them: "):
        imported("mlflow", path)


def test_auto_says_why():
    found = guess(DATA / "mlflow_traces.json")
    assert (found.format.name, found.why, found.others) == ("mlflow", "traces with info and data.spans", ())


def test_attributes_of_the_users_own_name_access_and_stage(tmp_path):
    found = sample()
    top, _, _, rerank, _ = found["data"]["spans"]
    top["attributes"] |= {"user_acl": '["tenant:acme"]', "k_final": "3", "index_revision": '"r1"'}
    merged = {"stage": '"fused"', "mlflow.spanType": '"CHAIN"', "mlflow.spanOutputs": '[{"id": "kb-005#0"}]'}
    step = dict(rerank, span_id="AAAAAAAAAAE=", name="merge", attributes=merged)
    found["data"]["spans"].insert(3, step)
    (row,), _ = of(tmp_path, found)
    assert (row["user_acl"], row["k_final"], row["index_revision"]) == (["tenant:acme"], 3, "r1")
    assert ids(row["fused"]) == ["kb-005#0"]
    assert not {"user_acl", "k_final", "index_revision", "fused"} & set(row["provenance"])
