"""A pipeline in plain Python, recorded by hand and audited: the same verdicts in every text mode."""

from pathlib import Path
from typing import Any

import pytest
from record_corpus import (
    CHUNKS,
    GOLD,
    LABEL,
    MODEL,
    QUESTION,
    USER,
    K,
    audited,
    embed,
    lexical,
    rerank,
    text_of,
    traces,
    write_inventory,
)

from ragaudit.record import Recorder, current


def hits(scored: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [
        {"id": name, "score": score, "text": text_of(name), "metadata": {"tenant": CHUNKS[name][0]}}
        for name, score in scored
    ]


def search_dense(tenant: str, limit: int) -> list[tuple[str, float]]:
    asked = embed(QUESTION)
    scored = [
        (name, sum(a * b for a, b in zip(asked, embed(text), strict=True)))
        for name, (owner, text) in CHUNKS.items()
        if owner == tenant
    ]
    found = sorted(scored, key=lambda pair: -pair[1])[:limit]
    query = current()
    assert query is not None
    query.arm("dense", hits(found), limit=limit, filter={"tenant": tenant})
    return found


def fuse(*lists: list[tuple[str, float]]) -> list[tuple[str, float]]:
    scores: dict[str, float] = {}
    for found in lists:
        for rank, (name, _) in enumerate(found, start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (60 + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])


def ask(rec: Recorder, *, tenant: str = "acme", top_n: int = 20, limit: int = 6, cut: int = 10_000) -> None:
    with rec.query(QUESTION, "q1", user_acl=USER, filters={"tenant": tenant}) as q:
        dense = search_dense(tenant, limit)
        mine = {name: text for name, (owner, text) in CHUNKS.items() if owner == tenant}
        words = lexical(QUESTION, mine, limit)
        q.arm("bm25", hits(words), limit=limit, filter={"tenant": tenant})
        fused = fuse(dense, words)
        q.fused(hits(fused))
        q.rerank_input(hits(fused))
        best = rerank([name for name, _ in fused])[-top_n:]
        q.reranked(hits(best))
        packed = best[:K]
        context = "\n".join(text_of(name) for name, _ in reversed(packed))
        q.context(hits(packed), prompt=f"{QUESTION}\n{context}"[:cut])
        q.answer("Fourteen days.")
        q.gold(LABEL)
    rec.close()


FAULTS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "healthy": ({}, ("pass", "none")),
    "reranker keeps too few": ({"top_n": 2}, ("fail", "rerank")),
    "filter with other case": ({"tenant": "Acme"}, ("fail", "filter")),
    "prompt cut off": ({"cut": 160}, ("fail", "rerank")),
}


@pytest.mark.parametrize("mode", ["full", "hash", "none"])
@pytest.mark.parametrize(("faulty", "verdict"), FAULTS.values(), ids=FAULTS)
def test_the_audit_of_what_was_recorded_names_the_stage_of_the_fault(
    mode: str, faulty: dict[str, Any], verdict: tuple[str, str], tmp_path: Path
) -> None:
    write_inventory(tmp_path)
    rec = Recorder(tmp_path / "traces.jsonl", index_revision="kb-1", embedding_model=MODEL, k_final=K, text=mode)
    ask(rec, **faulty)
    assert rec.stats().errors == {}
    assert audited(tmp_path) == {"q1": verdict}
    assert (text_of("refunds#2") in (tmp_path / "traces.jsonl").read_text()) is (
        mode == "full" and "Acme" not in faulty.values()
    )
    assert traces(tmp_path)[0]["gold"] == [
        {"id": GOLD, "source_id": "card"} | ({"span": LABEL[0]["span"]} if mode == "full" else {})
    ]
