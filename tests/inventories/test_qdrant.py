import json
import uuid

import pytest
from inventory_builders import CORPUS, VECTORS, digests, needs

from ragaudit.inventories.clients import hushed

pytestmark = needs("qdrant_client", "qdrant")
IDS = [str(uuid.uuid5(uuid.NAMESPACE_URL, row[0])) for row in CORPUS]


@pytest.fixture
def store(tmp_path):
    """A local folder with a hybrid collection: the last row has no sparse vector, the second no dense one."""
    with hushed():
        from qdrant_client import QdrantClient, models

        client = QdrantClient(path=str(tmp_path / "store"))
        client.create_collection(
            "kb",
            vectors_config={"text": models.VectorParams(size=4, distance=models.Distance.DOT)},
            sparse_vectors_config={"words": models.SparseVectorParams()},
        )
        sparse = models.SparseVector(indices=[1, 7], values=[0.5, 0.25])
        vectors = [{"text": VECTORS[0], "words": sparse}, {"words": sparse}, {"text": VECTORS[2]}]
        points = [
            models.PointStruct(
                id=IDS[n],
                vector=vectors[n],
                payload={
                    "page_content": row[2],
                    "metadata": {
                        "chunk_id": row[0],
                        "source_id": row[1],
                        "acl": ",".join(row[3]),
                        "tenant": "acme",
                        "embedding_model": "bge-m3",
                        "index_revision": "r7",
                    },
                },
            )
            for n, row in enumerate(CORPUS)
        ]
        client.upsert("kb", points)
        client.close()
    return tmp_path / "store"


def test_each_vector_is_an_arm_and_a_row_without_it_is_not_in_that_arm(store, export):
    done = export("qdrant", store, "--trusted", "--arm", "text=dense", "--arm", "words=bm25")
    assert (done.code, done.account["complete"]) == (0, True)
    assert {name: row["in"] for name, row in done.chunks.items()} == {
        "kb-1#0": {"dense": True, "bm25": True},
        "kb-1#1": {"dense": False, "bm25": True},
        "kb-2#0": {"dense": True, "bm25": False},
    }
    dense = done.index["arms"]["dense"]
    assert (dense["chunks"], dense["metric"], dense["dims"], dense["models"]) == (2, "dot", {"4": 2}, {"bge-m3": 2})
    assert (dense["norm_p5"], dense["norm_p95"]) == (1.0, 3.0)
    assert done.index["arms"]["bm25"]["chunks"] == 2
    assert done.sources["kb-1"]["chunks_indexed"] == {"bm25": 2, "dense": 1}
    assert done.index["revision"] == "r7"


def test_the_stores_id_is_an_alias_of_the_users(store, export):
    done = export("qdrant", store, "--trusted")
    assert {name: row["aliases"] for name, row in done.chunks.items()} == {
        row[0]: [key] for row, key in zip(CORPUS, IDS, strict=True)
    }


def test_an_acl_of_one_text_is_read_as_a_list_and_that_is_said(store, export):
    done = export("qdrant", store, "--trusted")
    assert done.chunks["kb-1#0"]["acl"] == ["role:support", "role:public"]
    assert [note["what"] for note in done.account["notes"]] == ["ACLs that are one text: read as a list"]


def test_the_folder_is_not_unpickled_unless_it_is_trusted(store, export):
    done = export("qdrant", store)
    assert done.code == 2
    assert "reading a pickle runs what is in it. Pass --trusted" in done.err


def test_nothing_in_the_folder_changes(store, export):
    before = digests(store)
    assert export("qdrant", store, "--trusted").code == 0
    assert digests(store) == before


def test_without_vectors_presence_is_unknown_and_not_asserted(store, export):
    done = export("qdrant", store, "--trusted", "--no-vectors")
    assert not any("in" in row or "norm" in row for row in done.chunks.values())
    assert "dims" not in done.index["arms"]["text"]


def test_a_limit_makes_it_incomplete_unless_it_was_not_reached(store, export):
    done = export("qdrant", store, "--trusted", "--limit", 2)
    assert (done.account["rows"], done.account["why_not_complete"]) == (2, ["--limit 2 ended it"])
    assert export("qdrant", store, "--trusted", "--limit", 3, "--replace").account["complete"] is True


def test_only_leaves_rows_out_and_says_so(store, export):
    done = export("qdrant", store, "--trusted", "--only", "source_id=kb-2")
    assert (list(done.chunks), done.account["why_not_complete"]) == (
        ["kb-2#0"],
        ["--only source_id=kb-2 left rows out"],
    )


@pytest.mark.parametrize("writer", ["langchain", "llamaindex", "haystack"])
def test_what_frameworks_write_is_taken_apart(writer, repository, tmp_path, export):
    """Pages that the three frameworks really wrote to Qdrant."""
    page = repository.parent / "shared" / "formats" / "vectorstores" / f"qdrant_scroll_{writer}.json"
    if not page.is_file():
        pytest.skip("the shared folder with recorded pages is not beside the checkout")
    points = json.loads(page.read_text("utf-8"))["result"]["points"]
    with hushed():
        from qdrant_client import QdrantClient, models

        client = QdrantClient(path=str(tmp_path / "store"))
        client.create_collection("kb", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE))
        client.upsert("kb", [models.PointStruct(id=p["id"], vector=[1, 0], payload=p["payload"]) for p in points])
        client.close()
    done = export("qdrant", tmp_path / "store", "--trusted")
    assert len(done.chunks) == len(points)
    for row in done.chunks.values():
        assert row["chunk_id"].startswith(f"{row['source_id']}#")
        assert row["metadata"]["tenant"] in ("acme", "globex")
        assert len(row["text"]) > 40
        assert row["aliases"][0] in {point["id"] for point in points}
