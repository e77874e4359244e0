"""Every sample beside the repository reads without a problem. Skipped where the samples are not."""

import json
from pathlib import Path
from typing import Any

import pytest
from reader_builders import as_line, bundle_of, read

from ragaudit.model.pipeline import Pipeline
from ragaudit.readers.bundle import check_consistency, read_traces

SHARED = Path(__file__).resolve().parents[3] / "shared"
INCIDENTS = SHARED / "incidents" / "incidents.jsonl"
NATIVE = SHARED / "formats" / "native" / "traces.jsonl"


def incidents() -> list[Any]:
    if not INCIDENTS.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="../shared/incidents is not here"))]
    lines = INCIDENTS.read_text().splitlines()
    return [pytest.param(found, id=found["incident_id"]) for found in map(json.loads, lines)]


@pytest.mark.parametrize("incident", incidents())
def test_every_incident_reads_without_a_problem(tmp_path: Path, incident: dict[str, Any]) -> None:
    parts = incident["bundle"]
    files = {
        f"{table}_jsonl": b"".join(map(as_line, parts[table])) for table in ("sources", "chunks") if parts.get(table)
    }
    if parts.get("index"):
        files["index_json"] = as_line(parts["index"])
    bundle = bundle_of(tmp_path, parts["trace"], **files)
    (trace,) = read_traces(bundle)
    check_consistency(bundle)
    assert bundle.problems.texts() == ()
    assert [hit.id for hit in (trace.fused or ())] == [hit["id"] for hit in parts["trace"]["fused"] or ()]
    assert {gold.id for gold in trace.gold} >= set(parts["trace"]["gold_ids"])
    assert trace.model_extra == {}
    assert len(bundle.inventory.chunks or ()) == len(parts.get("chunks") or ())
    said = Pipeline.model_validate(parts.get("pipeline") or {})
    assert said.k_final in (None, trace.k_final)


@pytest.mark.skipif(not NATIVE.exists(), reason="../shared/formats is not here")
def test_the_native_sample_reads_without_a_problem(tmp_path: Path) -> None:
    lines = NATIVE.read_bytes().splitlines(keepends=True)
    traces, bundle = read(tmp_path, *lines)
    assert bundle.problems.texts() == ()
    assert len(traces) == len(lines)
    assert [trace.query_id for trace in traces] == [json.loads(line)["query_id"] for line in lines]
