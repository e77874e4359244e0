"""A real LangChain pipeline, recorded by the callback and audited: hybrid search with a filter, fusion, reranker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers.contextual_compression import ContextualCompressionRetriever
from langchain_classic.retrievers.ensemble import EnsembleRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
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
    text_of,
    write_inventory,
)
from record_corpus import rerank as by_words

from ragaudit.record import Recorder
from ragaudit.record.langchain import RagAuditHandler, capture_scores


class Words(Embeddings):
    model = MODEL

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class TenantStore(InMemoryVectorStore):
    """As the real stores: a filter is a dictionary, and search and search with scores take it."""

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        wanted = kwargs.get("filter", {})
        return super().similarity_search_with_score(
            query, k=k, filter=lambda d: all(d.metadata.get(name) == value for name, value in wanted.items())
        )

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [d for d, _ in self.similarity_search_with_score(query, k=k, **kwargs)]


class BM25Retriever(BaseRetriever):
    tenant: str
    texts: dict[str, str]
    limit: int
    fails: bool = False

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if self.fails:
            raise ConnectionError(f"no lexical index for {query}")
        return [document(name) for name, _ in lexical(query, self.texts, self.limit)]


class Reranker(BaseDocumentCompressor):
    top_n: int

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        by_id = {each.id: each for each in documents}
        return [by_id[name] for name, _ in by_words(list(by_id))][-self.top_n :]


def document(name: str) -> Document:
    return Document(id=name, page_content=text_of(name), metadata={"tenant": CHUNKS[name][0]})


def pipeline(
    *,
    tenant: str = "acme",
    missing: tuple[str, ...] = (),
    dense: bool = True,
    top_n: int = 20,
    limit: int = 6,
    fails: bool = False,
) -> Runnable[Any, Any]:
    """Hybrid search, RRF, a reranker that keeps `top_n` from the end of its list, a prompt with the first K."""
    there = [name for name in CHUNKS if name not in missing]
    store = TenantStore(Words())
    store.add_documents([document(name) for name in there if dense])
    vectors = store.as_retriever(search_kwargs={"k": limit, "filter": {"tenant": tenant}})
    texts = {name: text_of(name) for name in there if CHUNKS[name][0] == tenant}
    words = BM25Retriever(tenant=tenant, texts=texts, limit=limit, fails=fails)
    hybrid = EnsembleRetriever(retrievers=[vectors, words], weights=[0.5, 0.5], id_key=None)
    best = ContextualCompressionRetriever(base_compressor=Reranker(top_n=top_n), base_retriever=hybrid)
    packed = best | (lambda found: "\n\n".join(d.page_content for d in found[:K]))
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\n{question}")
    model = FakeListChatModel(responses=["Fourteen days."])
    return {"context": packed, "question": RunnableLambda(lambda question: question)} | prompt | model


@pytest.fixture
def scores() -> Iterator[None]:
    undo = capture_scores()
    yield
    undo()


@pytest.fixture
def rec(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "traces.jsonl", index_revision="kb-1", k_final=K)


def asked(rec: Recorder, chain: Runnable[Any, Any], tenant: str = "acme", **more: Any) -> Any:
    metadata = {"query_id": "q1", "user_acl": USER, "gold": LABEL, "filters": {"tenant": tenant}, **more}
    found = chain.invoke(QUESTION, config={"callbacks": [RagAuditHandler(rec)], "metadata": metadata})
    rec.close()
    return found


FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "healthy": ({}, {}, ("pass", "none")),
    "reranker keeps too few": ({"top_n": 2}, {}, ("fail", "rerank")),
    "filter with other case": ({"tenant": "Acme"}, {}, ("fail", "filter")),
    "source not ingested": ({"missing": (GOLD,)}, {"missing": (GOLD,)}, ("fail", "ingestion")),
    "no vectors": ({"dense": False, "limit": 2}, {"dense": False}, ("fail", "embed")),
}


@pytest.mark.parametrize(("faulty", "inventory", "verdict"), FAULTS.values(), ids=FAULTS)
def test_the_audit_of_what_was_recorded_names_the_stage_of_the_fault(
    faulty: dict[str, Any],
    inventory: dict[str, Any],
    verdict: tuple[str, str],
    rec: Recorder,
    tmp_path: Path,
    scores: None,
) -> None:
    write_inventory(tmp_path, **inventory)
    asked(rec, pipeline(**faulty), faulty.get("tenant", "acme"))
    assert rec.stats().errors == {}
    assert audited(tmp_path) == {"q1": verdict}
