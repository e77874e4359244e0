"""The judged example: no gold in it, real answers, and a hand-made truth that holds against the texts."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragaudit.config import load_settings
from ragaudit.judge.calibrate import read_labels
from ragaudit.model.diagnosis import STAGES
from ragaudit.readers.bundle import locate, open_bundle, read_traces

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
JUDGED = EXAMPLES / "judged"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


TRUTH = rows(JUDGED / "truth.jsonl")
TRACES = {row["query_id"]: row for row in rows(JUDGED / "traces.jsonl")}
CHUNKS = {row["chunk_id"]: row for row in rows(JUDGED / "chunks.jsonl")}
SOURCES = {row["source_id"]: row for row in rows(JUDGED / "sources.jsonl")}
ASKED = {row["query_id"]: row for row in rows(JUDGED / "made_from" / "queries.jsonl")}
by_query = pytest.mark.parametrize("truth", TRUTH, ids=[row["query_id"] for row in TRUTH])


def may_read(name: str, trace: dict[str, Any]) -> bool:
    """May the query's user read this chunk or source, by the source's own ACL?"""
    source_id = CHUNKS[name]["source_id"] if name in CHUNKS else name
    return bool(set(SOURCES[source_id]["acl"]) & set(trace["user_acl"]))


def without_scores(value: Any) -> Any:
    """The same, less the numbers that depend on how a machine adds up floats."""
    if isinstance(value, dict):
        return {key: without_scores(item) for key, item in value.items() if key not in ("score", "rrf")}
    return [without_scores(item) for item in value] if isinstance(value, list) else value


def test_the_bundle_is_read_and_nothing_in_it_is_labelled() -> None:
    paths = locate(JUDGED)
    bundle = open_bundle(paths, load_settings(paths.config, env={}, flags={}))
    traces = list(read_traces(bundle))
    assert len(traces) == 25
    assert not any(trace.gold_labelled or trace.gold for trace in traces)
    labels = {"correct", "supported", "supported_by", "abstained"}
    assert not any(
        labels & row["answer"].keys() or {"gold", "gold_ids", "gold_groups"} & row.keys() for row in TRACES.values()
    )
    assert bundle.settings.judge is not None
    assert bundle.settings.judge.api_base == "http://127.0.0.1:8091/v1"


def test_evidence_is_lost_at_every_stage_and_all_four_quadrants_occur() -> None:
    assert {row["stage"] for row in TRUTH if row["outcome"] == "fail"} == {stage.value for stage in STAGES}
    assert {row["outcome"] for row in TRUTH} == {"pass", "fail", "not_applicable"}
    quadrants = [row["quadrant"] for row in TRUTH]
    assert sum(quadrant == "poor context, faithful (dangerous)" for quadrant in quadrants) == 5
    assert {None, *quadrants} == {
        None,
        "good context, faithful",
        "good context, unfaithful",
        "poor context, faithful (dangerous)",
        "poor context, unfaithful",
    }


def test_some_queries_have_no_reference_and_some_no_answer_in_the_corpus() -> None:
    assert [key for key, row in TRACES.items() if "reference" not in row] == ["j-25", "j-26", "j-28", "j-29", "j-30"]
    assert [key for key, row in TRACES.items() if row.get("answerable") is False] == ["j-25", "j-26"]
    assert {row["slices"]["language"] for row in TRACES.values()} == {"en", "de", "ja"}


@by_query
def test_the_truth_of_a_query_adds_up(truth: dict[str, Any]) -> None:
    claims, said = truth["reference_claims"], truth["answer_claims"]
    recall = round(sum(bool(claim["supported_by"]) for claim in claims) / len(claims), 4) if claims else None
    faithfulness = round(sum(claim["supported"] for claim in said) / len(said), 4) if said else None
    assert (truth["context_recall"], truth["faithfulness"]) == (recall, faithfulness)
    assert truth["abstained"] is not bool(said)
    if recall is None or faithfulness is None:
        assert truth["quadrant"] is None
    else:
        assert truth["quadrant"].startswith("good" if recall >= 0.5 else "poor")
        assert ("unfaithful" in truth["quadrant"]) is (faithfulness < 0.7)
        assert ("dangerous" in truth["quadrant"]) is (recall < 0.5 and faithfulness >= 0.7)
    assert truth["stage"] == truth["acceptable_stages"][0]
    assert truth["outcome"] == truth.get("acceptable_outcomes", [truth["outcome"]])[0]


@by_query
def test_the_truth_of_a_query_speaks_of_its_own_prompt(truth: dict[str, Any]) -> None:
    trace = TRACES[truth["query_id"]]
    assert bool(truth["reference_claims"]) is ("reference" in trace)
    for claim in truth["reference_claims"]:
        assert set(claim["supported_by"]) <= set(trace["prompt_ids"])
        for name in claim.get("found_in", []):
            assert may_read(name, trace) and name not in trace["prompt_ids"]
    if truth["quadrant"] is not None and truth["quadrant"].startswith("poor"):
        assert all(claim["supported_by"] or claim["found_in"] for claim in truth["reference_claims"])


@by_query
def test_the_stage_is_that_of_the_fault_that_was_switched_on(truth: dict[str, Any]) -> None:
    faults = runpy.run_path(str(EXAMPLES / "pipeline" / "faults.py"))["FAULTS"]
    fault = ASKED[truth["query_id"]].get("fault")
    if fault == "cached_answer":
        assert truth["stage"] == "generate"
    elif fault is not None:
        assert truth["stage"] == faults[fault].stage
    else:
        assert truth["stage"] in ("none", "generate")


@by_query
def test_no_user_gets_a_closed_chunk_and_the_contexts_are_short(truth: dict[str, Any]) -> None:
    trace = TRACES[truth["query_id"]]
    packed = trace["final_context_ids"]
    assert len(packed) <= trace["k_final"] == 3
    assert all(may_read(chunk_id, trace) for chunk_id in packed)
    assert all(len(CHUNKS[chunk_id]["text"].split()) <= 90 for chunk_id in packed)
    assert any(len(hits or []) > 3 for hits in trace["arms"].values())


@pytest.mark.parametrize(
    ("query_id", "chunk_id", "fact"),
    [("j-16", "ct-fir#2", "due 21 days after receipt"), ("j-27", "hr-salary-bands#2", "62,000 to 76,000 EUR")],
)
def test_a_fact_stands_in_a_chunk_that_the_user_may_not_read(query_id: str, chunk_id: str, fact: str) -> None:
    (truth,) = [row for row in TRUTH if row["query_id"] == query_id]
    assert truth["closed_to_user"] == [chunk_id]
    assert fact in CHUNKS[chunk_id]["text"]
    assert fact in TRACES[query_id]["reference"]
    assert not may_read(chunk_id, TRACES[query_id])


def test_closed_chunks_stand_in_a_logged_list_where_the_filter_ran_too_late() -> None:
    trace = TRACES["j-16"]
    logged = {hit["id"] for hits in trace["arms"].values() for hit in hits}
    assert "ct-fir#2" in logged and not any(may_read(chunk_id, trace) for chunk_id in logged)


def test_the_labels_say_what_the_truth_says() -> None:
    found = {(label.query_id, label.about): label.said for label in read_labels(JUDGED / "labels.jsonl").labels}
    expected = {
        (row["query_id"], metric): float(row[metric])
        for row in TRUTH
        for metric in ("abstained", "context_recall", "faithfulness")
        if row[metric] is not None
    }
    assert found == expected


def test_it_is_built_again_offline_from_the_recorded_answers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "make_judged.py"), "-o", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert without_scores(rows(tmp_path / "traces.jsonl")) == without_scores(list(TRACES.values()))
    for name in ("sources.jsonl", "labels.jsonl", "index.json", "ragaudit.toml"):
        assert (tmp_path / name).read_bytes() == (JUDGED / name).read_bytes()


def test_an_assembled_model_that_is_not_the_published_file_is_set_aside(tmp_path: Path) -> None:
    program = EXAMPLES / "local_model" / "assemble.py"
    name = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    (tmp_path / name).write_bytes(b"GGUF, but another one")
    done = subprocess.run([sys.executable, str(program), "-o", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not to be used" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name.removesuffix(".gguf") + ".wrong"]


def test_every_package_of_the_model_is_pinned_by_its_hash() -> None:
    for file, n in (("parts.txt", 22), ("requirements.txt", 1)):
        lines = (EXAMPLES / "local_model" / file).read_text(encoding="utf-8").splitlines()
        pins = [line for line in lines if not line.startswith("#")]
        assert len(pins) == len(set(pins)) == n
        assert all("==" in pin and len(pin.rpartition("--hash=sha256:")[2]) == 64 for pin in pins)
