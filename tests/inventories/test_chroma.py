import json

import pytest
from inventory_builders import CORPUS, VECTORS, digests, needs

from ragaudit.inventories.clients import hushed

pytestmark = needs("chromadb", "chroma")


@pytest.fixture
def kb(tmp_path):
    """A folder with one collection; gives a function that opens a client on it."""
    with hushed():
        import chromadb
        from chromadb.config import Settings

    def client():
        return chromadb.PersistentClient(str(tmp_path / "store"), settings=Settings(anonymized_telemetry=False))

    with hushed():
        opened = client()
        collection = opened.create_collection(
            "helpdesk",
            embedding_function=None,
            metadata={"embedding_model": "bge-m3"},
            configuration={"hnsw": {"space": "cosine"}},
        )
        collection.add(
            ids=[row[0] for row in CORPUS],
            embeddings=VECTORS,
            documents=[row[2] for row in CORPUS],
            metadatas=[{"source_id": row[1], "acl": row[3], "tenant": "acme"} for row in CORPUS],
        )
        opened.close()
    return client, tmp_path / "store"


def test_rows_arms_models_and_metric_of_a_collection(kb, export):
    done = export("chroma", kb[1])
    assert (done.code, done.account["rows"], done.account["complete"]) == (0, 3, True)
    row = done.chunks["kb-1#0"]
    assert row == {
        "chunk_id": "kb-1#0",
        "source_id": "kb-1",
        "text": "Reset your password in Settings.",
        "content_hash": row["content_hash"],
        "metadata": {"source_id": "kb-1", "acl": ["role:support", "role:public"], "tenant": "acme"},
        "acl": ["role:support", "role:public"],
        "embedding_model": "bge-m3",
        "dim": 4,
        "norm": 3.0,
        "in": {"dense": True},
    }
    assert done.index["arms"] == {
        "dense": {
            "chunks": 3,
            "metric": "cosine",
            "ann": "hnsw",
            "score": {"direction": "lower", "formula": "1 - cosine similarity"},
            "models": {"bge-m3": 3},
            "dims": {"4": 3},
            "norm_p5": 1.0,
            "norm_p50": 3.0,
            "norm_p95": 5.0,
        }
    }
    assert done.sources["kb-1"] == {"source_id": "kb-1", "chunks_indexed": {"dense": 2}, "chunked_chars": 62}
    assert done.index["metadata_types"] == {"acl": "list", "source_id": "str", "tenant": "str"}


def test_nothing_in_the_folder_changes(kb, export):
    before = digests(kb[1])
    assert export("chroma", kb[1]).code == 0
    assert digests(kb[1]) == before


def test_a_folder_that_holds_no_store_is_not_made_one(tmp_path, export):
    done = export("chroma", tmp_path)
    assert done.code == 3
    assert "no chroma.sqlite3 in it" in done.err
    assert not (tmp_path / "chroma.sqlite3").exists()


def test_several_collections_must_be_told_apart(kb, export):
    with hushed():
        client = kb[0]()
        client.create_collection("other", embedding_function=None)
        client.close()
    done = export("chroma", kb[1])
    assert done.code == 2
    assert "holds 2 collections (helpdesk, other). Name one with --collection." in done.err
    assert export("chroma", kb[1], "--collection", "helpdesk").account["rows"] == 3


def test_what_frameworks_write_is_taken_apart(repository, kb, export):
    """Pages that LangChain and LlamaIndex really wrote to Chroma."""
    folder = repository.parent / "shared" / "formats" / "vectorstores"
    if not folder.is_dir():
        pytest.skip("the shared folder with recorded pages is not beside the checkout")
    for name in ("langchain", "llamaindex"):
        page = json.loads((folder / f"chroma_get_{name}.json").read_text("utf-8"))
        with hushed():
            client = kb[0]()
            collection = client.create_collection(name, embedding_function=None)
            collection.add(
                ids=page["ids"],
                embeddings=[[1.0, 0.0]] * len(page["ids"]),
                documents=page["documents"],
                metadatas=page["metadatas"],
            )
            client.close()
        done = export("chroma", kb[1], "--collection", name, "--replace")
        row = done.chunks["kb-001#0"]
        assert (row["source_id"], row["aliases"]) == ("kb-001", [page["ids"][0]])
        assert row["text"].startswith("To reset your password open Settings")
        assert not any(key.startswith("_node") for key in row["metadata"])
