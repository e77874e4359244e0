"""A real LlamaIndex query engine, recorded by its handlers and audited: hybrid search, fusion, reranker, filter."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters
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
    write_inventory,
)

from ragaudit.record import Recorder
from ragaudit.record.llamaindex import instrument


class Words(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


class BM25Retriever(BaseRetriever):
    def __init__(self, texts: dict[str, str], limit: int) -> None:
        self._texts = texts
        self._similarity_top_k = limit
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = lexical(query_bundle.query_str, self._texts, self._similarity_top_k)
        return [NodeWithScore(node=node(name), score=score) for name, score in found]


class WordRerank(BaseNodePostprocessor):
    """Knows what is asked, and keeps `top_n` from the end of its list."""

    top_n: int

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        by_id = {each.node.node_id: each for each in nodes}
        return [NodeWithScore(node=by_id[name].node, score=s) for name, s in rerank(list(by_id))][-self.top_n :]


class FirstK(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return nodes[:K]


def node(name: str) -> TextNode:
    return TextNode(
        id_=name, text=text_of(name), metadata={"tenant": CHUNKS[name][0]}, excluded_embed_metadata_keys=["tenant"]
    )


def engine(
    *, tenant: str = "acme", missing: tuple[str, ...] = (), dense: bool = True, top_n: int = 20, limit: int = 6
) -> RetrieverQueryEngine:
    there = [name for name in CHUNKS if name not in missing]
    index = VectorStoreIndex([node(name) for name in there if dense], embed_model=Words(model_name=MODEL))
    filters = MetadataFilters(filters=[ExactMatchFilter(key="tenant", value=tenant)])
    vectors = index.as_retriever(similarity_top_k=limit, filters=filters)
    words = BM25Retriever({name: text_of(name) for name in there if CHUNKS[name][0] == tenant}, limit)
    hybrid = QueryFusionRetriever(
        [vectors, words],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        num_queries=1,
        similarity_top_k=20,
        use_async=False,
    )
    return RetrieverQueryEngine.from_args(
        hybrid, llm=MockLLM(max_tokens=8), node_postprocessors=[WordRerank(top_n=top_n), FirstK()]
    )


@pytest.fixture
def rec(tmp_path: Path) -> Iterator[Recorder]:
    rec = Recorder(tmp_path / "traces.jsonl", index_revision="kb-1", k_final=K, embedding_model=MODEL)
    undo = instrument(rec)
    yield rec
    undo()


FAULTS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "healthy": ({}, {}, ("pass", "none")),
    "reranker keeps too few": ({"top_n": 2}, {}, ("fail", "rerank")),
    "filter with other case": ({"tenant": "Acme"}, {}, ("fail", "filter")),
    "source not ingested": ({"missing": (GOLD,)}, {"missing": (GOLD,)}, ("fail", "ingestion")),
    "no vectors": ({"dense": False, "limit": 2}, {"dense": False}, ("fail", "embed")),
}


@pytest.mark.parametrize(("faulty", "inventory", "verdict"), FAULTS.values(), ids=FAULTS)
def test_the_audit_of_what_was_recorded_names_the_stage_of_the_fault(
    faulty: dict[str, Any], inventory: dict[str, Any], verdict: tuple[str, str], rec: Recorder, tmp_path: Path
) -> None:
    write_inventory(tmp_path, **inventory)
    asked = engine(**faulty)
    with rec.query(QUESTION, "q1", user_acl=USER, filters={"tenant": faulty.get("tenant", "acme")}) as query:
        query.gold(LABEL)
        asked.query(QUESTION)
    rec.close()
    assert rec.stats().errors == {}
    assert audited(tmp_path) == {"q1": verdict}
