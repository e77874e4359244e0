"""A real LlamaIndex query engine, recorded by its handlers and audited: hybrid search, fusion, reranker, filter."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters
from record_corpus import (
    CHUNKS,
    FAULTS,
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


def test_scores_of_an_arm_are_those_before_the_fusion_changed_them_in_place(rec: Recorder, tmp_path: Path) -> None:
    engine(limit=2).query(QUESTION)
    rec.close()
    (row,) = traces(tmp_path)
    assert [(hit["id"], hit["score"]) for hit in row["arms"]["bm25"]] == [("refunds#3", 5.0), ("refunds#2", 3.0)]
    assert [(hit["id"], hit["score"]) for hit in row["fused"]] == [
        ("refunds#2", pytest.approx(1 / 60 + 1 / 61)),
        ("refunds#3", pytest.approx(1 / 60 + 1 / 61)),
    ]


def test_a_call_outside_any_query_is_a_query_of_its_own(rec: Recorder, tmp_path: Path) -> None:
    engine(limit=2).query(QUESTION)
    rec.close()
    (row,) = traces(tmp_path)
    assert row["query_text"] == QUESTION
    assert row["arm_status"] == {
        "dense": {"status": "ran", "filter": {"tenant": "acme"}, "limit": 2, "returned": 2},
        "bm25": {"status": "ran", "limit": 2, "returned": 2},
    }
    assert [hit["id"] for hit in row["rerank_input"]] == ["refunds#2", "refunds#3"]
    assert [hit["id"] for hit in row["after_rerank"]] == ["refunds#2", "refunds#3"]
    assert row["final_context_ids"] == ["refunds#2", "refunds#3"]
    assert row["provenance"]["final_context_ids"] == "derived"
    assert row["answer"]["text"] != ""
    assert row["arms"]["dense"][0]["metadata"] == {"tenant": "acme"}


def test_an_asynchronous_query_records_the_same(tmp_path: Path) -> None:
    found = []
    for name in ("sync", "async"):
        rec = Recorder(tmp_path / name / "traces.jsonl", k_final=K)
        undo = instrument(rec)
        with rec.query(QUESTION, "q1"):
            if name == "sync":
                engine().query(QUESTION)
            else:
                asyncio.run(engine().aquery(QUESTION))
        undo()
        rec.close()
        (row,) = traces(tmp_path / name)
        found.append({key: value for key, value in row.items() if key != "timestamp"})
    assert found[0] == found[1]


def test_a_floor_before_the_reranker_is_a_threshold_and_one_behind_it_is_left_out(
    rec: Recorder, tmp_path: Path
) -> None:
    floor = SimilarityPostprocessor(similarity_cutoff=0.0328)
    asked = engine()
    asked._node_postprocessors = [floor, *asked._node_postprocessors, floor]
    asked.query(QUESTION)
    rec.close()
    (row,) = traces(tmp_path)
    assert [hit["id"] for hit in row["after_threshold"]] == ["refunds#2", "refunds#3"]
    assert [hit["id"] for hit in row["rerank_input"]] == ["refunds#2", "refunds#3"]


class Broken(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise ConnectionError(f"no index for {query_bundle.query_str}")


def test_a_retriever_that_fails_is_recorded_without_the_message_and_the_error_goes_on(
    rec: Recorder, tmp_path: Path
) -> None:
    with pytest.raises(ConnectionError):
        Broken().retrieve(QUESTION)
    rec.close()
    (row,) = traces(tmp_path)
    assert row["arm_status"] == {"Broken": {"status": "errored", "error": "ConnectionError"}}
    assert row["application_error"] == "ConnectionError"


def test_after_the_end_of_instrumentation_nothing_is_recorded(tmp_path: Path) -> None:
    rec = Recorder(tmp_path / "traces.jsonl")
    instrument(rec)()
    engine().retrieve(QueryBundle(QUESTION))
    rec.close()
    assert list(tmp_path.iterdir()) == []
