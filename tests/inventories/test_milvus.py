import time

import pytest
from inventory_builders import CORPUS, VECTORS, digests, needs

from ragaudit.inventories import export as module
from ragaudit.inventories.clients import hushed

pytestmark = [needs("pymilvus", "milvus"), needs("milvus_lite", "milvus")]


@pytest.fixture
def store(tmp_path):
    """A file of milvus-lite with one collection."""
    with hushed():
        from pymilvus import MilvusClient

        client = MilvusClient(str(tmp_path / "store.db"))
        client.create_collection("kb", dimension=4, id_type="string", max_length=64, metric_type="COSINE")
        rows = [
            {"id": row[0], "vector": VECTORS[n], "text": row[2], "source_id": row[1], "acl": row[3]}
            for n, row in enumerate(CORPUS)
        ]
        client.insert("kb", rows)
        client.flush("kb")
        client.close()
    return tmp_path / "store.db"


def test_rows_of_a_collection_with_dynamic_fields(store, export):
    done = export("milvus", store)
    assert (done.code, done.account["rows"], done.account["complete"]) == (0, 3, True)
    row = done.chunks["kb-1#0"]
    assert (row["text"], row["source_id"], row["acl"], row["norm"]) == (CORPUS[0][2], "kb-1", CORPUS[0][3], 3.0)
    assert row["metadata"] == {"source_id": "kb-1", "acl": CORPUS[0][3]}
    dense = done.index["arms"]["dense"]
    assert (dense["metric"], dense["ann"], dense["chunks"], dense["dims"]) == ("cosine", "autoindex", 3, {"4": 3})
    assert dense["score"] == {"direction": "higher", "formula": "cosine similarity"}


def test_an_interrupted_export_goes_on_after_the_last_key(store, export, monkeypatch):
    from ragaudit.inventories.stores.milvus import _Milvus

    monkeypatch.setattr(module, "PAGE", 2)
    pages = _Milvus.pages

    def failing(self, after, size):
        found = pages(self, after, size)
        yield next(found)
        found.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(_Milvus, "pages", failing)
    assert export("milvus", store).code == 130
    monkeypatch.setattr(_Milvus, "pages", pages)
    done = export("milvus", store)
    assert "Going on after 2 rows." in done.err
    assert (list(done.chunks), done.account["complete"]) == ([row[0] for row in CORPUS], True)
    assert done.account["remarks"] == [
        "the export was interrupted: a row that was replaced by another meanwhile would not be seen"
    ]


def settled(store):
    """The file once milvus-lite, which goes on after its client was closed, has built the index."""
    for _ in range(600):
        if any(store.rglob("*.idx")):
            return store
        time.sleep(0.05)
    raise AssertionError("milvus-lite built no index")


def test_nothing_in_the_file_changes(store, export):
    before = digests(settled(store))
    assert export("milvus", store).code == 0
    assert digests(store) == before


def test_without_vectors_only_the_other_fields_are_fetched(store, export):
    done = export("milvus", store, "--no-vectors")
    assert done.chunks["kb-2#0"]["text"] == CORPUS[2][2]
    assert not any("norm" in row or "in" in row for row in done.chunks.values())
