"""Traces and observations of Langfuse: a LangChain pipeline, one written by hand, and the traps of each export."""

import csv
import json

import pytest
from import_helpers import DATA, ids, read, read_rows
from run_builders import document, jsonl, observation

from ragaudit.errors import InputError
from ragaudit.importers.langfuse import _iso
from ragaudit.importers.registry import guess

TRACE = {"id": "t", "name": "chain", "userId": "u-7", "sessionId": "s-1", "input": "q?", "output": "an answer"}
HITS = [document("a"), document("b")]


def traced(*observations, **more):
    """A v1 trace with observations."""
    return {**TRACE, "projectId": "p", "metadata": {"query_id": "q-1"}, "observations": list(observations), **more}


def test_a_v1_trace_of_a_langchain_pipeline_gives_every_list_and_its_score():
    tables, report = read_rows("langfuse", DATA / "langfuse" / "traces_v1_q2.json")
    (row,) = tables["traces"]
    assert (row["query_id"], row["query_text"], row["session_id"]) == ("q-2", "what does error E4042 mean", "s-q-2")
    assert {name: ids(hits) for name, hits in row["arms"].items()} == {
        "VectorStoreRetriever": ["kb-002#0", "kb-006#1", "kb-001#1", "kb-002#1", "kb-001#0"],
        "BM25Retriever": ["kb-002#0", "kb-008#0", "kb-006#1", "kb-007#0", "kb-006#0"],
    }
    assert ids(row["fused"]) == [
        "kb-002#0",
        "kb-006#1",
        "kb-008#0",
        "kb-001#1",
        "kb-002#1",
        "kb-007#0",
        "kb-001#0",
        "kb-006#0",
    ]
    assert [(hit["id"], hit["score"]) for hit in row["after_rerank"]] == [
        ("kb-002#0", 0.223607),
        ("kb-002#1", 0.11547),
        ("kb-006#1", 0.0),
    ]
    assert row["final_context_ids"] == row["prompt_ids"] == ids(row["after_rerank"])
    assert row["answer"] == {"text": "The payment gateway rejected the card token."}
    assert row["timestamp"] == "2026-11-29T23:02:18.864Z"
    assert tables["feedback"] == [
        {
            "query_id": "q-2",
            "rating": 1,
            "ts": "2026-11-29T23:02:18.871Z",
            "session_id": "s-q-2",
            "name": "user-feedback",
            "source": "API",
        }
    ]
    assert report.notes["hits taken from output"].count == 4


def test_observations_of_the_v2_api_are_texts_that_hold_json():
    (row,), report = read("langfuse", DATA / "langfuse" / "observations_v2_by_hand.json")
    assert {name: ids(hits) for name, hits in row["arms"].items()} == {
        "dense": ["kb-001#0", "kb-001#1", "kb-002#0", "kb-002#1", "kb-003#0"],
        "bm25": ["kb-002#0", "kb-002#1", "kb-003#0", "kb-003#1"],
    }
    assert [hit["score"] for hit in row["arms"]["dense"]] == [0.0953, 0.1085, 0.2535, 0.1, 0.0]
    assert row["arm_status"]["dense"] == {
        "status": "ran",
        "filter": {"tenant": "acme"},
        "limit": 5,
        "returned": 5,
    }
    assert "filters_applied" not in row
    assert "the arms did not all use the same filter: each has its own in arm_status" in report.notes
    assert (ids(row["after_rerank"]), row["index_revision"]) == (["kb-002#0", "kb-002#1"], "idx-2026-11-01T12:00Z")
    assert row["provenance"]["final_context_ids"] == "assumed"


def test_rows_of_the_blob_export_are_in_snake_case_with_times_without_a_zone(tmp_path):
    names = {"traceId": "trace_id", "startTime": "start_time", "parentObservationId": "parent_observation_id"}
    raw = observation("dense", output=json.dumps(HITS))
    row = {names.get(key, key): value for key, value in raw.items()}
    row["start_time"] = "2026-11-29 10:00:00.000"
    path = jsonl(tmp_path / "observations.jsonl", [row])
    (trace,), _ = read("langfuse", path)
    assert (trace["query_id"], ids(trace["arms"]["dense"])) == ("t", ["a", "b"])
    assert trace["timestamp"] == "2026-11-29T10:00:00.000Z"
    assert guess(path).why == "observations with parent_observation_id"


def test_traces_and_scores_of_other_files_are_joined(tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    jsonl(folder / "observations.jsonl", [observation("dense", output=HITS)])
    jsonl(folder / "traces.jsonl", [TRACE | {"metadata": '{"query_id": "q-1"}'}, {**TRACE, "id": "lonely"}])
    score = {"id": "s", "trace_id": "t", "name": "thumb", "data_type": "BOOLEAN", "value": 0, "timestamp": "now"}
    jsonl(folder / "scores.jsonl", [score, {**score, "source": "EVAL"}, {**score, "trace_id": "x"}])
    assert guess(folder).format.name == "langfuse"
    tables, report = read_rows("langfuse", folder)
    assert [(row["query_id"], row["session_id"]) for row in tables["traces"]] == [("q-1", "s-1")]
    assert [(event["query_id"], event["rating"]) for event in tables["feedback"]] == [("q-1", 0)]
    assert set(report.skipped) == {
        "a trace without its observations: export them too (GET /traces/ID holds them)",
        "scores by an evaluator: no user gave them",
        "scores on a trace that gave none",
    }


def test_expected_output_of_a_data_set_item_is_the_reference_and_its_metadata_may_hold_gold(tmp_path):
    item = {
        "id": "i-1",
        "datasetId": "d",
        "input": {"question": "q?"},
        "expectedOutput": {"answer": "the reference"},
        "metadata": {"gold_ids": ["a"]},
        "sourceTraceId": None,
    }
    joins = [{**item, "sourceTraceId": "t"}, {"datasetItemId": "i-1", "traceId": "t", "id": "r"}]
    for records in ([joins[0]], [item, joins[1]]):
        (row,), _ = read(
            "langfuse", jsonl(tmp_path / "all.jsonl", [traced(observation("dense", output=HITS)), *records])
        )
        assert (row["reference"], row["gold_ids"]) == ("the reference", ["a"])


def test_observations_that_come_twice_are_taken_once(tmp_path):
    twice = [observation("dense", output=HITS), observation("dense", output=HITS)]
    (row,), report = read("langfuse", jsonl(tmp_path / "o.jsonl", twice))
    assert list(row["arms"]) == ["dense"]
    assert report.notes["observations that come twice: taken once, by id"].count == 1


def test_default_fields_of_v2_have_no_content_and_are_not_zero_results(tmp_path):
    bare = [
        {key: value for key, value in each.items() if key not in ("input", "output", "metadata")}
        for each in (observation("chain", kind="CHAIN"), observation("dense", "chain", second=1))
    ]
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"data": bare, "meta": {"cursor": None}}))
    rows, report = read("langfuse", path)
    (why,) = report.skipped
    assert (rows, why) == (
        [],
        "content missing: no observation holds input or output, ask the API for fields=core,basic,io",
    )


def test_metadata_that_the_api_cut_is_said(tmp_path):
    cut = observation("dense", output=HITS, metadata={"user_acl": json.dumps(["tenant:acme"] * 30)[:200]})
    (row,), report = read("langfuse", jsonl(tmp_path / "o.jsonl", [cut]))
    assert "metadata of 200 characters: cut by the API and left out, ask with expandMetadata" in report.notes
    assert "user_acl" not in row


def test_plain_spans_of_before_the_retriever_type_are_known_by_their_hits(tmp_path):
    spans = [
        observation("chain", kind="SPAN", output="an answer"),
        observation("search", "chain", kind="SPAN", second=1, output={"results": {"matches": HITS}}),
        observation("chat", "chain", kind="SPAN", second=2, output=[{"role": "user", "content": "q?"}]),
    ]
    (row,), report = read("langfuse", jsonl(tmp_path / "o.jsonl", spans))
    assert {name: ids(hits) for name, hits in row["arms"].items()} == {"search": ["a", "b"]}
    assert report.notes["hits taken from output.results.matches"].count == 1
    assert "taken for a step of the retrieval, because its output is a list of hits: search" in report.notes


def test_a_retriever_whose_output_is_no_list_has_no_list(tmp_path):
    rows, report = read("langfuse", jsonl(tmp_path / "o.jsonl", [observation("dense", output="3 documents")]))
    assert rows == []
    assert "a retriever whose output holds no list of hits: its list is absent" in report.notes
    assert list(report.skipped) == ["content missing: the retrieval was logged without its output"]


def test_an_arm_that_failed_is_errored(tmp_path):
    records = [
        observation("EnsembleRetriever", output=HITS),
        observation("dense", "EnsembleRetriever", second=1, level="ERROR", statusMessage="timeout"),
        observation("bm25", "EnsembleRetriever", second=2, output=HITS),
    ]
    (row,), _ = read("langfuse", jsonl(tmp_path / "o.jsonl", records))
    assert row["arm_status"]["dense"] == {"status": "errored", "error": "timeout"}
    assert list(row["arms"]) == ["bm25"]


def test_a_root_whose_parent_is_outside_the_export_is_the_root(tmp_path):
    root = observation("chain", "a service elsewhere", kind="CHAIN", input="the question", output="an answer")
    (row,), _ = read(
        "langfuse", jsonl(tmp_path / "o.jsonl", [root, observation("dense", "chain", second=1, output=HITS)])
    )
    assert (row["query_text"], row["answer"]) == ("the question", {"text": "an answer"})


def test_spans_of_the_sdk_are_left_to_the_reader_of_spans(tmp_path):
    span = {"name": "x", "context": {"span_id": "0x1"}, "attributes": {"langfuse.observation.type": "retriever"}}
    path = jsonl(tmp_path / "spans.jsonl", [span, span])
    rows, report = read("langfuse", path)
    assert (rows, list(report.skipped)) == (
        [],
        ["OpenTelemetry spans, as the SDK sends them: ragaudit import spans"],
    )
    try:
        assert guess(path).format.name != "langfuse"
    except InputError as error:
        assert "no known format" in str(error)


def test_hostile_observations_do_no_harm(tmp_path):
    deep = "[" * 50_000 + "]" * 50_000
    records = [
        observation("<i>\x1b]8;;x\u202e", "b", output=deep, trace="c"),
        observation("b", "<i>\x1b]8;;x\u202e", output=HITS, trace="c"),
        observation("x", output=[["a", "b"], 3], metadata=[1], trace="d"),
        observation("y", output=HITS, startTime=5, name=None, input=None, trace="e"),
        {"type": "RETRIEVER", "id": "n"},
        [1],
    ]
    path = jsonl(tmp_path / "o.jsonl", records)
    with path.open("a") as file:
        file.write('{"id": "cut", "traceId')
    rows, report = read("langfuse", path)
    assert [(row["query_id"], {name: ids(hits) for name, hits in row["arms"].items()}) for row in rows] == [
        ("c", {"b": ["a", "b"]})
    ]
    assert list(report.skipped) == [
        "no trace, observation, score or item of Langfuse",
        "the record is no object",
        "the line the file ends in mid-line: was the writer stopped? Write this line again, whole.",
        "content missing: the retrieval was logged without its output",
        "no text of the query was logged",
    ]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (traced(observation("dense", output=HITS)), "traces with observations"),
        ({"data": [observation("dense")], "meta": {}}, "observations with parentObservationId"),
    ],
)
def test_auto_says_why(tmp_path, record, why):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(record))
    found = guess(path)
    assert (found.format.name, found.why) == ("langfuse", why)


def test_the_batch_export_of_the_web_app_may_be_csv(tmp_path):
    raw = observation("dense", "", output=json.dumps(HITS), metadata=json.dumps({"query_id": "q-7"}))
    path = tmp_path / "export.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(raw))
        writer.writeheader()
        writer.writerow(raw)
    (row,), _ = read("langfuse", path)
    assert (row["query_id"], ids(row["arms"]["dense"]), guess(path).format.name) == ("q-7", ["a", "b"], "langfuse")


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("2024-01-01 10:00:00.871", "2024-01-01T10:00:00.871Z"),
        ("2024-01-01 10:00:00-05:00", "2024-01-01T10:00:00-05:00"),
        ("2024-01-01 10:00:00Z", "2024-01-01T10:00:00Z"),
        ("2024-01-01T10:00:00.871Z", "2024-01-01T10:00:00.871Z"),
        ("x y", None),
        ("", None),
    ],
)
def test_a_time_keeps_its_zone_and_what_is_none_is_left_out(written: str, time: str | None) -> None:
    assert _iso(written) == time
