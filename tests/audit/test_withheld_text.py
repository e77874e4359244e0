"""What an audit keeps of a chunk that its user may not read: the id, never the text."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragaudit.audit.run import audit
from ragaudit.config import load_settings
from ragaudit.model.diagnosis import Severity
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import locate, open_bundle
from ragaudit.store.reader import AuditReader

SECRET = "The salary band of level seven begins at ninety thousand."
OPEN = "Refunds are possible within 30 days."


def hit(chunk_id: str, text: str) -> dict[str, Any]:
    return {"id": chunk_id, "score": 0.5, "text": text, "metadata": {"summary": text}, "page_content": text}


def audited(folder: Path, user: list[str] | None) -> tuple[str, Trace, Severity]:
    both = [hit("hr#1", SECRET), hit("g", OPEN)]
    trace: dict[str, Any] = {
        "query_id": "q1",
        "query_text": "refunds?",
        "k_final": 3,
        "user_acl": user,
        "arms": {"dense": both},
        "after_filter": {"dense": both},
        "after_threshold": both,
        "rerank_input": both,
        "fused": both,
        "after_rerank": both,
        "final_context_ids": ["hr#1", "g"],
        "context_texts": {"hr#1": SECRET, "g": OPEN},
        "gold_ids": ["g"],
    }
    (folder / "traces.jsonl").write_text(json.dumps(trace) + "\n")
    sources = [{"source_id": "hr", "acl": ["role:hr"]}, {"source_id": "s1", "acl": ["role:all"]}]
    chunks = [{"chunk_id": "hr#1", "source_id": "hr"}, {"chunk_id": "g", "source_id": "s1"}]
    for name, rows in (("sources", sources), ("chunks", chunks)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = folder / "run.audit"
    audit(open_bundle(locate(folder), load_settings(None, env={}, flags={"resamples": 10})), out)
    with AuditReader.open(out) as reader:
        stored, result = reader.trace("q1"), reader.query("q1")
    assert stored is not None
    assert result is not None
    return result.model_dump_json(), stored, result.diagnosis.severity


def test_the_text_is_in_neither_the_result_nor_any_list_of_the_stored_trace(tmp_path: Path) -> None:
    result, stored, severity = audited(tmp_path, ["role:all"])
    assert severity is Severity.LEAK
    assert SECRET not in result
    assert SECRET not in repr(stored)
    assert stored.context_texts == {"g": OPEN}
    texts = {name: [found.text for found in hits] for name, hits in stored.lists().items()}
    names = ("arm:dense", "fused", "after_filter:dense", "after_threshold", "rerank_input", "after_rerank")
    assert texts == {name: [None, OPEN] for name in names}
    assert [found.id for found in stored.lists()["fused"]] == ["hr#1", "g"]


@pytest.mark.parametrize("user", [["role:hr", "role:all"], None])
def test_text_that_the_user_may_read_or_whose_access_is_unknown_is_kept(tmp_path: Path, user: list[str] | None) -> None:
    _, stored, severity = audited(tmp_path, user)
    assert severity is Severity.NORMAL
    assert stored.context_texts == {"hr#1": SECRET, "g": OPEN}
