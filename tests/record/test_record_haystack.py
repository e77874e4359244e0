"""A real Haystack pipeline, recorded by the tracer and audited: hybrid search with a filter, joiner, ranker, prompt."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, component, tracing
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
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
    rerank,
    write_inventory,
)

from ragaudit.record import Recorder
from ragaudit.record.haystack import RagAuditTracer


@component
class WordRanker:
    """Knows what is asked, and keeps `top_n` from the end of its list."""

    def __init__(self, top_n: int) -> None:
        self.top_n = top_n

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        by_id = {each.id: each for each in documents}
        return {"documents": [by_id[name] for name, _ in rerank(list(by_id))][-self.top_n :]}


@component
class Echo:
    @component.output_types(replies=list[str], meta=list[dict[str, Any]])
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": ["Fourteen days."], "meta": [{"finish_reason": "stop"}]}


def pipeline(*, missing: tuple[str, ...] = (), dense: bool = True, top_n: int = 20, limit: int = 6) -> Pipeline:
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(id=name, content=text, meta={"tenant": tenant}, embedding=embed(text) if dense else None)
            for name, (tenant, text) in CHUNKS.items()
            if name not in missing
        ]
    )
    template = "{% for d in documents %}{{ d.content }}\n{% endfor %}{{ question }}"
    rag = Pipeline()
    rag.add_component("bm25", InMemoryBM25Retriever(store, top_k=limit))
    rag.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=limit))
    rag.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    rag.add_component("ranker", WordRanker(top_n))
    rag.add_component("prompt", PromptBuilder(template, required_variables="*"))
    rag.add_component("llm", Echo())
    rag.connect("bm25.documents", "joiner.documents")
    rag.connect("dense.documents", "joiner.documents")
    rag.connect("joiner.documents", "ranker.documents")
    rag.connect("ranker.documents", "prompt.documents")
    rag.connect("prompt.prompt", "llm.prompt")
    return rag


def ask(rag: Pipeline, tenant: str = "acme") -> dict[str, Any]:
    filters = {"field": "meta.tenant", "operator": "==", "value": tenant}
    return rag.run(
        {
            "bm25": {"query": QUESTION, "filters": filters},
            "dense": {"query_embedding": embed(QUESTION), "filters": filters},
            "prompt": {"question": QUESTION},
        }
    )


@pytest.fixture
def rec(tmp_path: Path) -> Iterator[Recorder]:
    rec = Recorder(tmp_path / "traces.jsonl", index_revision="kb-1", embedding_model=MODEL, k_final=K)
    tracing.enable_tracing(RagAuditTracer(rec))
    yield rec
    tracing.disable_tracing()


FAULTS: dict[str, tuple[dict[str, Any], str, dict[str, Any], tuple[str, str]]] = {
    "healthy": ({}, "acme", {}, ("pass", "none")),
    "reranker keeps too few": ({"top_n": 2}, "acme", {}, ("fail", "rerank")),
    "filter with other case": ({}, "Acme", {}, ("fail", "filter")),
    "source not ingested": ({"missing": (GOLD,)}, "acme", {"missing": (GOLD,)}, ("fail", "ingestion")),
    "no vectors": ({"dense": False, "limit": 2}, "acme", {"dense": False}, ("fail", "embed")),
}


@pytest.mark.parametrize(("faulty", "tenant", "inventory", "verdict"), FAULTS.values(), ids=FAULTS)
def test_the_audit_of_what_was_recorded_names_the_stage_of_the_fault(
    faulty: dict[str, Any],
    tenant: str,
    inventory: dict[str, Any],
    verdict: tuple[str, str],
    rec: Recorder,
    tmp_path: Path,
) -> None:
    write_inventory(tmp_path, **inventory)
    with rec.query(QUESTION, "q1", user_acl=USER, filters={"tenant": tenant}) as query:
        query.gold(LABEL)
        ask(pipeline(**faulty), tenant)
    rec.close()
    assert rec.stats().errors == {}
    assert audited(tmp_path) == {"q1": verdict}
