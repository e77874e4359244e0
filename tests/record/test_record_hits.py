"""The shapes of hits that libraries return, and what is made of each."""

import uuid
from types import SimpleNamespace as Shape
from typing import Any

import numpy as np
import pytest

from ragaudit.model.texts import content_hash
from ragaudit.record.hits import hits_of
from ragaudit.record.plain import UnusableError, plain

NODE_JSON = '{"id_": "n1", "text": "Refunds.", "metadata": {}}'
UUID = uuid.UUID("00000000-0000-0000-0000-000000000007")
HASHED = "text-" + content_hash("Refunds.").removeprefix("sha256:")[:16]

META = {"metadata": {"t": "x"}}

SHAPES: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "ids": (["a", 7, UUID], [{"id": "a"}, {"id": "7"}, {"id": str(UUID)}]),
    "pairs": ([("a", 0.5), ["b", np.float32(0.25)]], [{"id": "a", "score": 0.5}, {"id": "b", "score": 0.25}]),
    "id, score, text": ([("a", 1, "Refunds.")], [{"id": "a", "score": 1.0, "text": "Refunds."}]),
    "an odd score": ([("a", float("nan")), ("b", None)], [{"id": "a"}, {"id": "b"}]),
    "dictionaries": (
        [{"chunk_id": "0012", "text": "Refunds.", "similarity": 0.5, "source_id": 3, "metadata": {"n": 1}}],
        [{"id": "0012", "score": 0.5, "text": "Refunds.", "source_id": "3", "metadata": {"n": 1}}],
    ),
    "no id but a text": ([{"text": "Refunds."}], [{"id": HASHED, "text": "Refunds."}]),
    "LangChain Document": (
        [Shape(id=None, page_content="Refunds.", metadata={"chunk_id": "a", "relevance_score": 0.5, "source": "r.md"})],
        [
            {
                "id": "a",
                "score": 0.5,
                "text": "Refunds.",
                "source_id": "r.md",
                "metadata": {"chunk_id": "a", "relevance_score": 0.5, "source": "r.md"},
            }
        ],
    ),
    "LangChain Document with score": (
        [(Shape(id="a", page_content="Refunds.", metadata={}), 0.5)],
        [{"id": "a", "score": 0.5, "text": "Refunds."}],
    ),
    "LlamaIndex NodeWithScore": (
        [Shape(score=0.5, node=Shape(id_="a", node_id="a", text="Refunds.", metadata={"t": "x"}, ref_doc_id="d"))],
        [{"id": "a", "score": 0.5, "text": "Refunds.", "source_id": "d", "metadata": {"t": "x"}}],
    ),
    "Haystack Document": (
        [Shape(id="a", content="Refunds.", meta={"source_id": "d"}, score=0.5)],
        [{"id": "a", "score": 0.5, "text": "Refunds.", "source_id": "d", "metadata": {"source_id": "d"}}],
    ),
    "Qdrant points": (
        Shape(points=[Shape(id=7, score=0.5, payload={"text": "Refunds.", "tenant": "acme"})]),
        [{"id": "7", "score": 0.5, "text": "Refunds.", "metadata": {"tenant": "acme"}}],
    ),
    "Qdrant written by Haystack": (
        [Shape(id=UUID, score=0.5, payload={"id": "a", "content": "Refunds.", "meta": {"tenant": "acme"}})],
        [{"id": "a", "score": 0.5, "text": "Refunds.", "metadata": {"tenant": "acme"}}],
    ),
    "Qdrant written by LangChain": (
        [Shape(id=UUID, score=0.5, payload={"page_content": "Refunds.", "metadata": {"tenant": "acme"}})],
        [{"id": str(UUID), "score": 0.5, "text": "Refunds.", "metadata": {"tenant": "acme"}}],
    ),
    "Qdrant written by LlamaIndex": (
        [Shape(id=UUID, score=0.5, payload={"_node_content": NODE_JSON, "_node_type": "TextNode", "ref_doc_id": "d"})],
        [{"id": "n1", "score": 0.5, "text": "Refunds.", "source_id": "d", "metadata": {"ref_doc_id": "d"}}],
    ),
    "Chroma": (
        {
            "ids": [["a", "b"]],
            "distances": [[0.1, 0.2]],
            "documents": [["Refunds.", None]],
            "metadatas": [[{"tenant": "acme"}, None]],
            "embeddings": None,
        },
        [{"id": "a", "score": 0.1, "text": "Refunds.", "metadata": {"tenant": "acme"}}, {"id": "b", "score": 0.2}],
    ),
    "Pinecone": ({"matches": [{"id": "a", "score": 0.5, **META}]}, [{"id": "a", "score": 0.5, **META}]),
    "Elasticsearch": (
        {
            "hits": {
                "total": {"value": 1},
                "hits": [{"_id": "a", "_score": 2.5, "_source": {"text": "Refunds.", "t": 1}}],
            }
        },
        [{"id": "a", "score": 2.5, "text": "Refunds.", "metadata": {"t": 1}}],
    ),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("given", "rows"), SHAPES.values(), ids=SHAPES)
def test_a_shape_is_read_with_rank_id_score_text_and_metadata(given: Any, rows: list[dict[str, Any]]) -> None:
    expected = [{"id": row["id"], "rank": rank, **row} for rank, row in enumerate(rows, start=1)]
    assert hits_of(given) == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("abc", "a text is no list of hits"),
        (7, "is no list of hits"),
        ((name for name in "ab"), "is no list of hits"),  # reading it would take it away from the application
        ({"a": 1}, "an object without a list of hits"),
        ([{"score": 1.0}], "a hit without id and text"),
        ([True], "an id that is neither text, integer nor UUID"),
        ([("a", 1, "t", 2)], "a hit of more than id, score and text"),
        ({"ids": [["a"], ["b"]]}, "the results of several queries: record each with its own"),
    ],
)
def test_what_is_no_list_of_hits_is_refused_whole(given: Any, problem: str) -> None:
    with pytest.raises(UnusableError, match=problem):
        hits_of(given)


def test_vectors_and_unknown_objects_are_left_out_of_metadata() -> None:
    found = plain(
        {"vector": [0.1] * 768, "object": object(), "n": np.int64(3), "list": [1, object()], "nan": float("nan")}
    )
    assert found == {"n": 3, "list": [1]}
