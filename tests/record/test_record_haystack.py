"""A real Haystack pipeline, recorded by the tracer and audited: hybrid search with a filter, joiner, ranker, prompt."""

import asyncio
import contextlib
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, component, tracing
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.core.errors import PipelineRuntimeError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tracing.tracer import Span
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
    traces,
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


def test_a_run_outside_any_query_is_a_query_of_its_own(rec: Recorder, tmp_path: Path) -> None:
    ask(pipeline(limit=2))
    rec.close()
    (row,) = traces(tmp_path)
    assert row["query_text"] == QUESTION
    status = {"status": "ran", "filter": {"tenant": "acme"}, "returned": 2}
    assert row["arm_status"] == {"bm25": status, "dense": status}
    assert [hit["id"] for hit in row["arms"]["dense"]] == ["refunds#2", "refunds#3"]
    assert [hit["score"] for hit in row["arms"]["dense"]] == [
        pytest.approx(0.505, abs=0.001),
        pytest.approx(0.445, abs=0.001),
    ]
    lists = {name: {hit["id"] for hit in row[name]} for name in ("fused", "rerank_input", "after_rerank")}
    assert lists == dict.fromkeys(lists, {"refunds#2", "refunds#3"} | {hit["id"] for hit in row["arms"]["bm25"]})
    assert row["final_context_ids"] == [hit["id"] for hit in row["after_rerank"]] == row["prompt_ids"]
    assert "final_context_ids" not in row["provenance"]
    assert row["answer"] == {"text": "Fourteen days.", "finish_reason": "stop"}
    assert row["arms"]["dense"][0]["metadata"] == {"tenant": "acme"}


class Existing(tracing.Tracer):
    """The tracer that the application had before."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []

    @contextlib.contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        span = Kept(parent_span)
        self.seen.append((operation_name, span.tags))
        yield span

    def current_span(self) -> Span | None:
        return None


class Kept(Span):
    def __init__(self, parent: Span | None) -> None:
        self.tags: dict[str, Any] = {"parent": type(parent).__name__}

    def set_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value


@pytest.mark.parametrize("content", [False, True])
def test_the_wrapped_tracer_sees_what_it_saw_before(
    content: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing.tracer, "is_content_tracing_enabled", content)
    alone, wrapped = Existing(), Existing()
    rec = Recorder(tmp_path / "traces.jsonl")
    for tracer in (alone, RagAuditTracer(rec, wrap=wrapped)):
        monkeypatch.setattr(tracing.tracer, "actual_tracer", tracer)
        ask(pipeline(limit=2))
    rec.close()
    assert wrapped.seen == alone.seen
    assert len(wrapped.seen) == 7
    assert ("haystack.component.output" in wrapped.seen[-1][1]) is content
    assert len(traces(tmp_path)) == 1


def test_a_component_that_fails_is_recorded_and_the_error_goes_on(rec: Recorder, tmp_path: Path) -> None:
    rag = pipeline()
    with pytest.raises(PipelineRuntimeError):
        rag.run({"bm25": {"query": QUESTION}, "dense": {"query_embedding": [1.0]}, "prompt": {"question": QUESTION}})
    rec.close()
    (row,) = traces(tmp_path)
    assert row["arm_status"]["dense"] == {"status": "errored", "error": "PipelineRuntimeError"}
    assert row["application_error"] == "PipelineRuntimeError"


def test_two_asynchronous_runs_are_two_queries(rec: Recorder, tmp_path: Path) -> None:
    async def both() -> None:
        async def one(question: str) -> None:
            await pipeline().run_async(
                {
                    "bm25": {"query": question},
                    "dense": {"query_embedding": embed(question)},
                    "prompt": {"question": question},
                }
            )

        await asyncio.gather(one("refunds arrive"), one("keys expire"))

    asyncio.run(both())
    rec.close()
    rows = {row["query_text"]: set(row["arms"]) for row in traces(tmp_path)}
    assert rows == {"refunds arrive": {"bm25", "dense"}, "keys expire": {"bm25", "dense"}}


def test_a_run_that_is_read_step_by_step_in_other_contexts_goes_on(rec: Recorder, tmp_path: Path) -> None:
    tracer = tracing.tracer.actual_tracer
    outer = tracer.trace("haystack.pipeline.run", {"haystack.pipeline.input_data": {"a": {"query": QUESTION}}})
    inner = tracer.trace(
        "haystack.component.run", {"haystack.component.name": "a", "haystack.component.type": "XRetriever"}
    )
    copy_context().run(outer.__enter__)
    span = inner.__enter__()
    span.set_content_tag("haystack.component.output", {"documents": []})
    inner.__exit__(None, None, None)
    copy_context().run(outer.__exit__, None, None, None)
    assert rec.stats().errors == {}
