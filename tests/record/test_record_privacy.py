"""What is written in each mode, and what the user's hook is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragaudit.model.texts import content_hash
from ragaudit.record import Recorder

SECRETS = ("Ann Lee", "Refunds for Ann Lee", "14 days for Ann Lee", "rewritten for Ann Lee", "summary of Ann Lee")


def recorded(path: Path, **settings: Any) -> tuple[dict[str, Any], Recorder]:
    rec = Recorder(path, **settings)
    hit = ("c1", 0.5, "Refunds for Ann Lee")
    with rec.query("Ann Lee?", "q1", filters={"tenant": "acme"}, conversation={"previous_query": "Ann Lee"}) as q:
        row = {"id": "c1", "text": hit[2], "metadata": {"tenant": "acme", "summary": "summary of Ann Lee"}}
        q.arm("dense", [row], query_text="rewritten for Ann Lee", error="Ann Lee")
        q.fused([hit])
        q.context([hit], prompt="Use: Refunds for Ann Lee")
        q.answer("14 days for Ann Lee", finish_reason="stop")
        q.gold([{"id": "c1", "span": "Ann Lee"}], reference="14 days for Ann Lee")
        q.set(query_rewrite=["Ann Lee"], notes="Ann Lee")
    rec.close()
    return json.loads(path.read_text()), rec


@pytest.mark.parametrize("mode", ["hash", "none"])
def test_without_texts_ids_ranks_filters_and_the_fields_that_they_name_stay(mode: str, tmp_path: Path) -> None:
    row, rec = recorded(tmp_path / "t.jsonl", text=mode)
    row.pop("timestamp")
    hashes = row.pop("context_hashes", None)
    assert row == {
        "query_id": "q1",
        "query_text": "",
        "filters_applied": {"tenant": "acme"},
        "arms": {"dense": [{"id": "c1", "rank": 1, "metadata": {"tenant": "acme"}}]},
        "arm_status": {"dense": {"status": "ran", "returned": 1}},
        "fused": [{"id": "c1", "rank": 1, "score": 0.5}],
        "final_context_ids": ["c1"],
        "final_context_chars": 19,
        "prompt_ids": ["c1"],
        "answer": {"finish_reason": "stop"},
        "gold": [{"id": "c1"}],
        "k_final": 1,
        "provenance": {"k_final": "derived", "prompt_ids": "derived"},
    }
    assert hashes == ({"c1": content_hash("Refunds for Ann Lee")} if mode == "hash" else None)
    assert rec.stats().errors == {}


def test_the_hook_is_given_every_text(tmp_path: Path) -> None:
    recorded(tmp_path / "t.jsonl", redact=lambda text: text.replace("Ann Lee", "NAME"))
    raw = (tmp_path / "t.jsonl").read_text()
    assert "Ann" not in raw
    row = json.loads(raw)
    assert row["query_text"] == "NAME?"
    assert row["arms"]["dense"][0]["metadata"] == {"tenant": "acme", "summary": "summary of NAME"}
    assert row["context_texts"] == {"c1": "Refunds for NAME"}
    assert row["query_rewrite"] == ["NAME"]


def fails(text: str) -> str:
    raise ValueError(text)


@pytest.mark.parametrize(
    ("hook", "problem"),
    [(fails, "redact: ValueError"), (lambda text: None, None), (lambda text: 7, "redact: the hook returned no text")],
    ids=["fails", "removes", "returns a number"],
)
def test_a_text_that_the_hook_gives_no_text_for_is_left_out(hook: Any, problem: str | None, tmp_path: Path) -> None:
    row, rec = recorded(tmp_path / "t.jsonl", redact=hook)
    assert "Ann" not in json.dumps(row)
    assert (row["query_text"], row["prompt_ids"]) == ("", ["c1"])
    assert list(rec.stats().errors) == ([problem] if problem else [])
