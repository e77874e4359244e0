"""A real LangChain pipeline, recorded by the callback and audited: hybrid search with a filter, fusion, reranker."""

import asyncio
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
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever
from record_corpus import (
    CHUNKS,
    FAULTS,
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
    traces,
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

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return self.similarity_search_with_score(query, k=k, **kwargs)

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.similarity_search(query, k=k, **kwargs)


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


def test_lists_scores_limits_and_filters_are_those_of_the_run(rec: Recorder, tmp_path: Path, scores: None) -> None:
    asked(rec, pipeline(limit=2), session_id=4)
    (row,) = traces(tmp_path)
    assert {arm: [(hit["id"], hit.get("score")) for hit in hits] for arm, hits in row["arms"].items()} == {
        "dense": [("refunds#2", pytest.approx(0.505, abs=0.001)), ("refunds#3", pytest.approx(0.445, abs=0.001))],
        "bm25": [("refunds#3", None), ("refunds#2", None)],
    }
    assert row["arm_status"] == {
        "dense": {"status": "ran", "filter": {"tenant": "acme"}, "limit": 2, "returned": 2},
        "bm25": {"status": "ran", "returned": 2},
    }
    ids = {name: [hit["id"] for hit in row[name]] for name in ("fused", "rerank_input", "after_rerank")}
    assert ids == {name: ["refunds#2", "refunds#3"] for name in ids}
    assert (row["query_text"], row["session_id"], row["embedding_model"]) == (QUESTION, "4", MODEL)
    assert row["final_context_ids"] == ["refunds#2", "refunds#3"]
    assert row["prompt_ids"] == row["final_context_ids"]
    assert row["provenance"] == dict.fromkeys(("final_context_ids", "prompt_ids", "context_texts"), "derived")
    assert row["answer"] == {"text": "Fourteen days."}


def test_without_score_capture_callbacks_have_no_score_limit_and_filter(rec: Recorder, tmp_path: Path) -> None:
    asked(rec, pipeline(limit=2))
    (row,) = traces(tmp_path)
    assert row["arms"]["dense"][0].keys() == {"id", "rank", "text", "metadata"}
    assert row["arm_status"]["dense"] == {"status": "ran", "returned": 2}


def test_score_capture_leaves_the_documents_as_they_are_and_can_be_undone() -> None:
    store = TenantStore(Words())
    store.add_documents([document(name) for name in CHUNKS])
    retriever = store.as_retriever(search_kwargs={"k": 2})
    before, method = retriever.invoke(QUESTION), VectorStoreRetriever._get_relevant_documents
    undo = capture_scores()
    assert retriever.invoke(QUESTION) == before
    assert asyncio.run(retriever.ainvoke(QUESTION)) == before
    undo()
    assert VectorStoreRetriever._get_relevant_documents is method


class NoScores(VectorStore):
    """A store that cannot tell scores, or fails to."""

    fails: bool = False

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> "NoScores":
        return cls()

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [document(GOLD)]


class Failing(NoScores):
    def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("takes no filter")


@pytest.mark.parametrize("store", [NoScores(), Failing()], ids=["without", "failing"])
def test_a_store_without_scores_is_asked_as_before(
    store: VectorStore, rec: Recorder, tmp_path: Path, scores: None
) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 3})
    config: Any = {"callbacks": [RagAuditHandler(rec)]}
    assert retriever.invoke(QUESTION, config=config) == [document(GOLD)]
    assert asyncio.run(retriever.ainvoke(QUESTION, config=config)) == [document(GOLD)]
    rec.close()
    for row in traces(tmp_path):
        assert row["arm_status"] == {"dense": {"status": "ran", "filter": {}, "limit": 3, "returned": 1}}


def test_an_asynchronous_run_records_the_same(tmp_path: Path, scores: None) -> None:
    found = []
    for name in ("sync", "async"):
        rec = Recorder(tmp_path / name / "traces.jsonl", k_final=K)
        config: Any = {"callbacks": [RagAuditHandler(rec)], "metadata": {"query_id": "q1"}}
        chain = pipeline()
        if name == "sync":
            chain.invoke(QUESTION, config=config)
        else:
            asyncio.run(chain.ainvoke(QUESTION, config=config))
        rec.close()
        (row,) = traces(tmp_path / name)
        found.append({key: value for key, value in row.items() if key != "timestamp"})
    assert found[0] == found[1]
    assert list(found[0]["arms"]) == ["dense", "bm25"]


def test_an_arm_that_fails_is_recorded_without_the_message_and_the_error_goes_on(rec: Recorder, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        asked(rec, pipeline(fails=True))
    rec.close()
    (row,) = traces(tmp_path)
    assert row["arm_status"]["bm25"] == {"status": "errored", "error": "ConnectionError"}
    assert row["application_error"] == "ConnectionError"
    assert list(row["arms"]) == ["dense"]
    assert "no lexical index" not in (tmp_path / "traces.jsonl").read_text()


def test_runs_inside_a_query_of_the_recorder_fill_that_one(rec: Recorder, tmp_path: Path) -> None:
    store = TenantStore(Words())
    store.add_documents([document(name) for name in CHUNKS])
    config: Any = {"callbacks": [RagAuditHandler(rec)]}
    with rec.query(QUESTION, "q1", user_acl=USER) as q:
        q.arm("bm25", [(GOLD, 1.0, text_of(GOLD))])
        found = store.as_retriever(search_kwargs={"k": 4}).invoke(QUESTION, config=config)
        packed = found[:2]
        text = "\n".join([text_of(GOLD), *(d.page_content for d in reversed(packed))])
        FakeListChatModel(responses=["So."]).invoke(f"Use {text}", config=config)
    rec.close()
    (row,) = traces(tmp_path)
    assert row["query_id"] == "q1"
    assert [hit["id"] for hit in row["arms"]["dense"]] == [d.id for d in found]
    assert row["final_context_ids"] == [GOLD, packed[1].id, packed[0].id]
    assert row["answer"] == {"text": "So."}


def test_a_chain_that_searches_nothing_is_no_query(rec: Recorder, tmp_path: Path) -> None:
    model = FakeListChatModel(responses=["Hello."])
    (ChatPromptTemplate.from_template("{question}") | model).invoke(
        {"question": "hi"}, config={"callbacks": [RagAuditHandler(rec)]}
    )
    rec.close()
    assert list(tmp_path.iterdir()) == []


def test_the_user_s_word_on_a_stage_goes_before_the_name(rec: Recorder, tmp_path: Path) -> None:
    handler = RagAuditHandler(
        rec, stages={"ContextualCompressionRetriever": "after_threshold", "BM25Retriever": "arm:words"}
    )
    pipeline().invoke(QUESTION, config={"callbacks": [handler]})
    rec.close()
    (row,) = traces(tmp_path)
    assert list(row["arms"]) == ["dense", "words"]
    assert "after_threshold" in row
    assert "after_rerank" not in row


def test_a_streamed_answer_is_recorded_when_it_has_ended(rec: Recorder, tmp_path: Path) -> None:
    tokens = pipeline().stream(QUESTION, config={"callbacks": [RagAuditHandler(rec)]})
    assert "".join(str(token.content) for token in tokens) == "Fourteen days."
    rec.close()
    (row,) = traces(tmp_path)
    assert row["answer"] == {"text": "Fourteen days."}
    assert row["final_context_ids"][0] == GOLD


def test_runs_inside_a_query_that_is_not_sampled_are_not_recorded(tmp_path: Path) -> None:
    rec = Recorder(tmp_path / "traces.jsonl", sample=0.0)
    for_all = Recorder(tmp_path / "all.jsonl")
    with rec.query(QUESTION):
        pipeline().invoke(QUESTION, config={"callbacks": [RagAuditHandler(for_all)]})
    for_all.close()
    assert list(tmp_path.iterdir()) == []
