"""One small knowledge base for the real pipelines: chunks, vectors without a model, a lexical search, and its audit."""

import json
import re
import zlib
from pathlib import Path
from typing import Any

from ragaudit.audit.run import audit
from ragaudit.config import load_settings
from ragaudit.readers.bundle import locate, open_bundle
from ragaudit.store.reader import AuditReader

QUESTION = "How long do refunds take to arrive?"
GOLD = "card#1"
USER = ["tenant:acme"]
SPAN = "within fourteen days"
LABEL = [{"id": GOLD, "source_id": "card", "span": SPAN}]
K = 3
MODEL = "words-96"

FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "healthy": ({}, {}, ("pass", "none")),
    "reranker keeps too few": ({"top_n": 2}, {}, ("fail", "rerank")),
    "filter with other case": ({"tenant": "Acme"}, {}, ("fail", "filter")),
    "source not ingested": ({"missing": (GOLD,)}, {"missing": (GOLD,)}, ("fail", "ingestion")),
    "no vectors": ({"dense": False, "limit": 2}, {"dense": False}, ("fail", "embed")),
}
"""What is switched on in the pipeline and in the inventory, and the verdict."""

CHUNKS = {
    "card#1": ("acme", "Refunds arrive on the card within fourteen days after the return was accepted."),
    "refunds#2": ("acme", "Refunds for gift cards take the form of a voucher and arrive by mail."),
    "refunds#3": ("acme", "How to ask for refunds: open the order and choose return, which does not take long."),
    "keys#1": ("acme", "API keys expire after ninety days and are rotated by an administrator."),
    "keys#2": ("acme", "A lost key is revoked in the console under security settings."),
    "login#1": ("acme", "Login works with a passkey or with a password and a code."),
    "login#2": ("acme", "How long a session lasts is set by the workspace owner."),
    "ship#1": ("acme", "Parcels take two days inside the country and a week abroad."),
    "other#1": ("globex", "Refunds at this company take a month to arrive and need a form."),
    "other#2": ("globex", "Vacation days are granted by the team lead."),
}


def embed(text: str) -> list[float]:
    """A bag of hashed words, of length one."""
    vector = [0.0] * 96
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % 96] += 1.0
    length = sum(value * value for value in vector) ** 0.5 or 1.0
    return [value / length for value in vector]


def lexical(question: str, texts: dict[str, str], limit: int) -> list[tuple[str, float]]:
    """Ids by how many words of the question a text holds, best first; those without any are left out."""
    asked = set(re.findall(r"\w+", question.lower()))
    scored = [(name, float(len(asked & set(re.findall(r"\w+", text.lower()))))) for name, text in texts.items()]
    return sorted((pair for pair in scored if pair[1]), key=lambda pair: -pair[1])[:limit]


def rerank(ids: list[str]) -> list[tuple[str, float]]:
    """A reranker that knows what is asked: by how many of three words a text holds, best first."""
    wanted = {"refunds", "arrive", "days"}
    scored = [(name, float(len(wanted & set(text_of(name).lower().split())))) for name in ids]
    return sorted(scored, key=lambda pair: -pair[1])


def text_of(chunk_id: str) -> str:
    return CHUNKS[chunk_id][1]


def write_inventory(folder: Path, *, missing: tuple[str, ...] = (), dense: bool = True) -> None:
    """The files of a bundle beside the traces, as an export of the stores would give them.

    Chunks that are missing are in no store; without `dense` the vectors of all chunks are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chunks: list[dict[str, Any]] = [
        {
            "chunk_id": name,
            "source_id": name.partition("#")[0],
            "text": text,
            "metadata": {"tenant": tenant},
            "acl": [f"tenant:{tenant}"],
            "embedding_model": MODEL,
            "in": {"dense": dense, "bm25": True},
        }
        for name, (tenant, text) in CHUNKS.items()
        if name not in missing
    ]
    sources = {
        row["source_id"]: {"source_id": row["source_id"], "status": "ok", "registered": True, "acl": row["acl"]}
        for row in chunks
    }
    for source_id, source in sources.items():
        source["extracted_text"] = "\n".join(row["text"] for row in chunks if row["source_id"] == source_id)
    for file, rows in (("chunks.jsonl", chunks), ("sources.jsonl", list(sources.values()))):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    in_dense = len(chunks) if dense else 0
    arms = {"dense": {"chunks": in_dense, "models": {MODEL: in_dense}}, "bm25": {"chunks": len(chunks)}}
    (folder / "index.json").write_text(json.dumps({"revision": "kb-1", "arms": arms, "complete": True}))
    (folder / "ragaudit.toml").write_text(
        f'[pipeline]\narms = ["dense", "bm25"]\nk_final = {K}\nthresholds = []\n'
        f'[pipeline.embedding.query]\nmodel = "{MODEL}"\n[pipeline.embedding.corpus]\nmodel = "{MODEL}"\n'
        '[pipeline.filter]\nmode = "pre"\nexpected = {tenant = "acme"}\n'
        '[pipeline.fusion]\nmethod = "rrf"\nk = 60\n[acl]\nrule = "any"\n[audit]\nscope = "retrieval"\n'
    )


def traces(folder: Path) -> list[dict[str, Any]]:
    """The rows that were recorded."""
    return [json.loads(line) for line in (folder / "traces.jsonl").read_text("utf-8").splitlines()]


def audited(folder: Path) -> dict[str, tuple[str, str]]:
    """Query -> (outcome, stage), by the audit of the folder as it is."""
    out = folder / "run.audit"
    flags = {"resamples": 10}
    audit(open_bundle(locate(folder), load_settings(folder / "ragaudit.toml", env={}, flags=flags)), out)
    with AuditReader.open(out) as reader:
        found = [reader.query(row["query_id"]) for row in traces(folder)]
    verdicts = [each.diagnosis for each in found if each is not None]
    return {verdict.query_id: (verdict.outcome.value, verdict.stage.value) for verdict in verdicts}
