"""Answers of the real clients of Chroma and Qdrant, handed to the recorder as they are."""

import chromadb
from chromadb.config import Settings
from qdrant_client import QdrantClient, models
from record_corpus import CHUNKS, QUESTION, embed, text_of

from ragaudit.record.filters import filter_of
from ragaudit.record.hits import hits_of

BEST = ["refunds#2", "refunds#3", "card#1"]


def test_the_answer_of_a_chroma_query_is_a_list_of_hits() -> None:
    client = chromadb.EphemeralClient(settings=Settings(anonymized_telemetry=False))
    collection = client.get_or_create_collection("articles", metadata={"hnsw:space": "cosine"})
    collection.add(
        ids=list(CHUNKS),
        embeddings=[embed(text) for _, text in CHUNKS.values()],
        documents=[text for _, text in CHUNKS.values()],
        metadatas=[{"tenant": tenant} for tenant, _ in CHUNKS.values()],
    )
    hits = hits_of(collection.query(query_embeddings=[embed(QUESTION)], n_results=3, where={"tenant": "acme"}))
    assert [hit["id"] for hit in hits] == BEST
    assert [hit["text"] for hit in hits] == [text_of(name) for name in BEST]
    assert [hit["metadata"] for hit in hits] == [{"tenant": "acme"}] * 3
    assert sorted(hit["score"] for hit in hits) == [hit["score"] for hit in hits]  # distances: the least is best


def test_the_points_and_the_filter_of_a_qdrant_query_are_read() -> None:
    client = QdrantClient(":memory:")
    client.create_collection("kb", models.VectorParams(size=96, distance=models.Distance.COSINE))
    points = [
        models.PointStruct(id=n, vector=embed(text), payload={"chunk_id": name, "text": text, "tenant": tenant})
        for n, (name, (tenant, text)) in enumerate(CHUNKS.items())
    ]
    client.upsert("kb", points)
    only = models.Filter(must=[models.FieldCondition(key="tenant", match=models.MatchValue(value="acme"))])
    found = client.query_points("kb", query=embed(QUESTION), query_filter=only, limit=3)
    for given in (found, found.points):
        hits = hits_of(given)
        assert [hit["id"] for hit in hits] == BEST  # Qdrant's own ids are numbers: the application's is in the payload
        assert [hit["text"] for hit in hits] == [text_of(name) for name in BEST]
        assert [hit["score"] for hit in hits] == [point.score for point in found.points]
    assert filter_of(only) == {"tenant": "acme"}
    assert filter_of(models.Filter(must_not=only.must)) is None
    client.close()
