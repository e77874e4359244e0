"""What users said becomes a slice of the audit, on the demo."""

import json
import shutil

from ragaudit.audit.run import audit
from ragaudit.config import load_settings
from ragaudit.readers.bundle import locate, open_bundle
from ragaudit.store import AuditReader
from tests.conftest import ROOT


def test_feedback_of_a_bundle_is_a_slice_of_its_audit(tmp_path):
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "examples" / "demo", folder)
    lines = (folder / "traces.jsonl").read_text().splitlines()[:3]
    traces = [json.loads(line) | {"session_id": f"s{n}"} for n, line in enumerate(lines)]
    (folder / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    events = [
        {"session_id": "s0", "rating": -1},
        {"session_id": "s1", "rating": "up"},
        {"session_id": "s9", "rating": 1},
    ]
    (folder / "feedback.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    paths = locate(folder)
    out = tmp_path / "run.audit"
    summary = audit(open_bundle(paths, load_settings(paths.config, env={}, flags={})), out)
    assert {part.value: part.n for part in summary.slices if part.slice == "feedback"} == {"negative": 1, "positive": 1}
    with AuditReader.open(out) as reader:
        said = {found.diagnosis.query_id: found.slices.get("feedback") for found in reader.iter_results()}
    assert said == {traces[0]["query_id"]: "negative", traces[1]["query_id"]: "positive", traces[2]["query_id"]: None}
