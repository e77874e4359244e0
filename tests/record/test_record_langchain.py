"""A real LangChain pipeline, recorded by the callback and audited: hybrid search with a filter, fusion, reranker."""

import asyncio
import json
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
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from record_corpus import (
    CHUNKS,
    GOLD,
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

from ragaudit.record import Recorder
from ragaudit.record.langchain import RagAuditHandler, capture_scores


class Words(Embeddings):
    model = MODEL

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class BM25(BaseRetriever):
    tenant: str
    limit: int = 6

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        mine = {name: text for name, (tenant, text) in CHUNKS.items() if tenant == self.tenant}
        return [document(name) for name, _ in lexical(query, mine, self.limit)]


class Reranker(BaseDocumentCompressor):
    """Prefers short texts, and keeps `top_n`."""

    top_n: int
    avoid: str = ""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        by_id = {each.id: each for each in documents}
        ranked = [by_id[name] for name, _ in rerank(list(by_id)) if name != self.avoid]
        return ranked[: self.top_n]


def document(name: str) -> Document:
    return Document(id=name, page_content=text_of(name), metadata={"tenant": CHUNKS[name][0]})


def pipeline(*, tenant: str = "acme", missing: tuple[str, ...] = (), top_n: int = K, avoid: str = "", limit: int = 6):
    store = InMemoryVectorStore(Words())
    store.add_documents([document(name) for name in CHUNKS if name not in missing])
    dense = store.as_retriever(
        search_kwargs={"k": limit, "filter": lambda d: d.metadata["tenant"] == tenant}
    )
    hybrid = EnsembleRetriever(retrievers=[dense, BM25(tenant=tenant, limit=limit)], weights=[0.5, 0.5])
    reranked = ContextualCompressionRetriever(base_compressor=Reranker(top_n=top_n, avoid=avoid), base_retriever=hybrid)
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\n{question}")
    model = FakeListChatModel(responses=["Fourteen days."])
    context = RunnableLambda(lambda question: "\n\n".join(d.page_content for d in reranked.invoke(question)))
    return {"context": context, "question": RunnableLambda(lambda q: q)} | prompt | model


@pytest.fixture
def scores() -> Iterator[None]:
    undo = capture_scores()
    yield
    undo()


def test_one(tmp_path, scores):
    write_inventory(tmp_path)
    rec = Recorder(tmp_path / "traces.jsonl", index_revision="kb-1", k_final=K)
    handler = RagAuditHandler(rec)
    meta = {"query_id": "q", "user_acl": USER, "gold_ids": [GOLD], "filters": {"tenant": "acme"}}
    for name, kw in {"ok": {}, "rr": {"top_n": 1, "avoid": GOLD}, "filter": {"tenant": "Acme"},"missing":{"missing":(GOLD,)}, "short":{"limit":1}}.items():
        pipeline(**kw).invoke(QUESTION, config={"callbacks": [handler], "metadata": meta | {"query_id": name}|({"filters": {"tenant": "Acme"}} if name=="filter" else {})})
    rec.close()
    print(rec.stats())
    print(audited(tmp_path))
    assert 0
