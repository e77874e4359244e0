import gzip
import json

import pytest

MANIFEST = {
    "format": "ragaudit.inventory/1",
    "collection": "kb",
    "index_revision": "r7",
    "embedding_model": "bge-m3",
    "metric": "cosine",
    "complete": True,
    "row_count": 2,
}
ROWS = [
    {"chunk_id": "c1", "source_id": "s1", "text": "one", "acl": ["a"], "tenant": "acme", "store_id": "77"},
    {"chunk_id": "c2", "source_id": "s2", "text": "two", "deleted": True, "metadata": {"lang": "en"}},
]


@pytest.fixture
def write(tmp_path):
    def write(*rows, name="inventory.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def test_the_manifest_tells_what_the_file_is(write, export):
    done = export("file", write({"_manifest": MANIFEST}, *ROWS))
    assert (done.code, done.account["collection"], done.account["complete"]) == (0, "kb", True)
    assert (done.index["revision"], done.index["arms"]["dense"]["metric"]) == ("r7", "cosine")
    assert done.index["arms"]["dense"]["models"] == {"bge-m3": 1}
    assert (done.chunks["c1"]["aliases"], done.chunks["c1"]["metadata"]["tenant"]) == (["77"], "acme")
    assert (done.chunks["c2"]["in"], done.chunks["c2"]["metadata"]["lang"]) == ({"dense": False}, "en")


def test_a_file_that_does_not_say_is_not_called_complete(write, export):
    path = write(*ROWS)
    done = export("file", path)
    assert (done.account["complete"], "complete" in done.index) == (None, False)
    assert export("file", path, "--complete", "yes", "--replace").index["complete"] is True


def test_a_file_that_says_it_is_not_whole_cannot_be_called_so(write, export):
    done = export("file", write({"_manifest": {**MANIFEST, "complete": False}}, *ROWS), "--complete", "yes")
    assert (done.index["complete"], done.account["why_not_complete"]) == (False, ["the file says that it is not"])


def test_rows_that_are_missing_make_it_incomplete(write, export):
    done = export("file", write({"_manifest": {**MANIFEST, "row_count": 5}}, *ROWS))
    assert (done.index["complete"], done.account["why_not_complete"]) == (False, ["2 of 5 rows could be read"])


def test_lines_that_are_no_json_make_it_incomplete(write, export):
    path = write({"_manifest": MANIFEST}, *ROWS)
    path.write_text(path.read_text() + "{cut\n")
    assert export("file", path).account["why_not_complete"] == ["1 lines could not be read"]


def test_fields_of_your_own_are_named(write, export):
    path = write({"nr": 12, "doc": {"name": "s1"}, "passage_text": "one", "readers": "a,b", "mandant": "acme"})
    done = export(
        "file", path, "--id-field", "nr", "--source-field", "doc.name", "--text-field", "passage_text",
        "--acl-field", "readers", "--namespace-field", "mandant",
    )  # fmt: skip
    row = done.chunks["12"]
    assert (row["source_id"], row["text"], row["acl"], row["namespace"]) == ("s1", "one", ["a", "b"], "acme")


def test_a_row_without_an_id_is_refused_with_its_fields(write, export):
    done = export("file", write({"key": "c1", "text": "one"}))
    assert (done.code, "inventory.jsonl:1: no id (it has key, text). Name its field with --id-field." in done.err) == (
        3,
        True,
    )


def test_parquet(tmp_path, export):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        arrow.Table.from_pylist([{**ROWS[0], "deleted": False}, ROWS[1]]), tmp_path / "inventory.parquet"
    )
    done = export("file", tmp_path / "inventory.parquet")
    assert (done.account["rows"], done.chunks["c1"]["acl"], done.chunks["c2"]["in"]) == (2, ["a"], {"dense": False})


def test_the_shared_samples_are_read_alike(repository, export):
    folder = repository.parent / "shared" / "formats" / "inventory"
    if not folder.is_dir():
        pytest.skip("the shared folder with sample inventories is not beside the checkout")
    first = export("file", folder / "inventory.jsonl")
    rows = first.chunks
    second = export("file", folder / "inventory.parquet", "--replace")
    assert (len(rows), first.account["complete"], second.account["complete"]) == (12, True, None)
    assert {name: row["content_hash"] for name, row in rows.items()} == {
        name: row["content_hash"] for name, row in second.chunks.items()
    }


def test_a_truncated_gzip_is_not_complete_whatever_its_manifest_says(tmp_path, export):
    rows = [
        {"_manifest": MANIFEST},
        *({"chunk_id": f"c{n}-{n * 7919 % 10_007}", "text": f"text {n * n}"} for n in range(60_000)),
    ]
    whole = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    path = tmp_path / "inventory.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    done = export("file", path)
    assert 0 < len(done.chunks) < 60_000
    assert done.account["complete"] is False and done.account["why_not_complete"]
