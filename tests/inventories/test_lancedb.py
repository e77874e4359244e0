import pytest
from inventory_builders import CORPUS, VECTORS, digests, needs

from ragaudit.inventories import export as module
from ragaudit.inventories.clients import hushed

pytestmark = needs("lancedb", "lancedb")


@pytest.fixture
def table(tmp_path):
    with hushed():
        import lancedb

        rows = [
            {"id": row[0], "vector": None if n == 1 else VECTORS[n], "text": row[2], "source_id": row[1], "acl": row[3]}
            for n, row in enumerate(CORPUS)
        ]
        return lancedb.connect(str(tmp_path / "store")).create_table("kb", rows, on_bad_vectors="null")


def test_rows_of_the_version_that_was_there_and_a_row_without_a_vector(table, tmp_path, export):
    done = export("lancedb", tmp_path / "store")
    assert (done.code, done.account["complete"], done.index["revision"]) == (0, True, "version 1")
    assert {name: (row["in"]["dense"], row.get("norm")) for name, row in done.chunks.items()} == {
        "kb-1#0": (True, 3.0),
        "kb-1#1": (False, None),
        "kb-2#0": (True, 1.0),
    }
    row = done.chunks["kb-1#0"]
    assert (row["text"], row["source_id"], row["acl"], row["aliases"]) == (
        CORPUS[0][2],
        "kb-1",
        CORPUS[0][3],
        ["_rowid:0"],
    )
    assert done.index["arms"]["dense"] == {
        "ann": "exact",
        "chunks": 2,
        "dims": {"4": 2},
        "norm_p5": 1.0,
        "norm_p50": 1.0,
        "norm_p95": 3.0,
    }


def test_an_index_tells_metric_and_rows_at_build_and_full_text_is_an_arm(tmp_path, export):
    with hushed():
        import lancedb
        from lancedb.index import FTS, IvfFlat

        rows = [{"id": f"c{n}", "vector": [1.0, float(n % 7)], "text": f"text {n}"} for n in range(300)]
        table = lancedb.connect(str(tmp_path / "store")).create_table("kb", rows)
        table.create_index("vector", config=IvfFlat(distance_type="cosine", num_partitions=2))
        table.create_index("text", config=FTS())
        table.add([{"id": "late", "vector": [1.0, 0.0], "text": None}])
    done = export("lancedb", tmp_path / "store")
    dense = done.index["arms"]["dense"]
    assert (dense["metric"], dense["ann"], dense["rows_at_build"], dense["chunks"]) == ("cosine", "ivf_flat", 300, 301)
    assert (done.index["arms"]["bm25"]["chunks"], done.chunks["late"]["in"]) == (300, {"dense": True, "bm25": False})


def test_an_interrupted_export_goes_on_in_the_same_version(table, tmp_path, export, monkeypatch):
    from ragaudit.inventories.stores.lancedb import _Table

    monkeypatch.setattr(module, "PAGE", 2)
    pages = _Table.pages

    def failing(self, after, size):
        yield next(pages(self, after, size))
        raise KeyboardInterrupt

    monkeypatch.setattr(_Table, "pages", failing)
    assert export("lancedb", tmp_path / "store").code == 130
    monkeypatch.setattr(_Table, "pages", pages)
    done = export("lancedb", tmp_path / "store")
    assert (list(done.chunks), done.account["complete"]) == ([row[0] for row in CORPUS], True)


def test_nothing_in_the_folder_changes_and_none_is_made(table, tmp_path, export):
    before = digests(tmp_path / "store")
    assert export("lancedb", tmp_path / "store").code == 0
    assert digests(tmp_path / "store") == before
    done = export("lancedb", tmp_path / "absent", "--replace")
    assert (done.code, (tmp_path / "absent").exists()) == (3, False)


def test_the_model_of_an_embedding_function_is_read_and_the_function_is_not_run(tmp_path, export):
    """The function is of a library that is not installed here."""
    import json

    with hushed():
        import lancedb
        import pyarrow as pa

        functions = [
            {"name": "none-such", "model": {"name": "m-9"}, "source_column": "text", "vector_column": "vector"}
        ]
        fields = [("id", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 2))]
        schema = pa.schema(fields, metadata={"embedding_functions": json.dumps(functions)})
        data = pa.Table.from_pylist([{"id": "a", "text": "x", "vector": [1.0, 2.0]}], schema=schema)
        lancedb.connect(str(tmp_path / "store")).create_table("kb", data)
    done = export("lancedb", tmp_path / "store")
    assert done.index["arms"]["dense"].get("models") == {"m-9": 1}
