import json

import pytest

from ragaudit.cli.main import execute


def node(node_id, text, source, **more):
    inner = {
        "id_": node_id,
        "text": text,
        "metadata": {"tenant": "acme"},
        "relationships": {"1": {"node_id": source}, **more},
    }
    return {"__type__": "1", "__data__": inner}


@pytest.fixture
def folder(tmp_path):
    store = tmp_path / "storage"
    store.mkdir()
    data = {
        "n-1": node("n-1", "Reset it.", "kb-1", **{"4": {"node_id": "p-1"}}),
        "n-2": node("n-2", "Never embedded.", "kb-1"),
        "p-1": node("p-1", "Reset it. Never embedded.", "kb-1", **{"5": [{"node_id": "n-1"}]}),
    }
    (store / "docstore.json").write_text(json.dumps({"docstore/data": data}))
    vectors = {"embedding_dict": {"n-1": [3.0, 4.0], "ghost": [1.0, 0.0]}}
    (store / "default__vector_store.json").write_text(json.dumps(vectors))
    return store


def test_a_node_that_has_no_vector_stands_in_no_index(folder, export):
    done = export("llamaindex", folder)
    assert (done.code, done.account["complete"]) == (0, True)
    assert {name: row["in"] for name, row in done.chunks.items()} == {
        "n-1": {"dense": True},
        "n-2": {"dense": False},
        "p-1": {"dense": False},
    }
    assert done.chunks["n-1"] | {"content_hash": ""} == {
        "chunk_id": "n-1",
        "source_id": "kb-1",
        "parent_id": "p-1",
        "text": "Reset it.",
        "content_hash": "",
        "metadata": {"tenant": "acme"},
        "dim": 2,
        "norm": 5.0,
        "in": {"dense": True},
    }
    assert done.chunks["p-1"]["kind"] == "parent"
    assert done.sources["kb-1"]["chunks_indexed"] == {"dense": 1}
    assert done.account["remarks"] == ["1 vectors have no node in docstore.json: they can be found and not be read"]


def test_vectors_in_another_store_leave_presence_open(folder, export):
    (folder / "default__vector_store.json").unlink()
    done = export("llamaindex", folder)
    assert not any("in" in row for row in done.chunks.values())
    assert done.account["why_not_complete"][0].startswith(
        "no default__vector_store.json: the vectors are in a store of their own"
    )


def test_a_vector_store_of_another_library_is_named(folder, export):
    (folder / "default__vector_store.json").write_bytes(b"IxF2\x00\x01")
    done = export("llamaindex", folder)
    assert done.code == 3
    assert "is no JSON. A vector store of another library stands there" in done.err


def test_the_folder_that_the_library_persisted(repository, export):
    folder = repository.parent / "shared" / "formats" / "llamaindex" / "storage"
    if not folder.is_dir():
        pytest.skip("the shared folder with a persisted index is not beside the checkout")
    done = export("llamaindex", folder)
    assert (done.account["rows"], done.account["sources"], done.account["complete"]) == (12, 8, True)
    assert done.index["arms"]["dense"]["dims"] == {"64": 12}
    assert done.chunks["kb-004#0"]["metadata"]["tenant"] == "globex"
    assert done.index["revision"] == "idx-2026-11-01T12:00Z"


def test_a_folder_that_cannot_go_on_in_the_middle_starts_again(folder, export, monkeypatch):
    from ragaudit.cli.commands import inventory

    def full(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inventory, "_write", full)
        assert export("llamaindex", folder).code == 130
    done = export("llamaindex", folder)
    assert "llamaindex cannot go on in the middle: starting again." in done.err
    assert (done.account["rows"], done.account["complete"]) == (3, True)


def test_an_audit_with_the_inventory_names_the_node_that_was_never_written(folder, export, tmp_path, capsys):
    """Without the inventory the same trace leaves the stage open."""

    def stage_of(bundle):
        trace = {
            "query_id": "q1",
            "query_text": "what is never embedded?",
            "k_final": 1,
            "arms": {"dense": [{"id": "n-1", "rank": 1, "score": 0.7}]},
            "final_context_ids": ["n-1"],
            "gold_ids": ["n-2"],
        }
        bundle.mkdir(exist_ok=True)
        (bundle / "traces.jsonl").write_text(json.dumps(trace) + "\n")
        capsys.readouterr()
        assert (
            execute(["audit", str(bundle), "-o", str(tmp_path / f"{bundle.name}.audit"), "--judge", "off", "--json"])
            == 0
        )
        (query,) = json.loads(capsys.readouterr().out)["queries"]
        return query["outcome"], query["stage"], query["causes"]

    assert stage_of(tmp_path / "bare")[1] == "undetermined"
    export("llamaindex", folder)
    assert stage_of(export.out) == ("fail", "ingestion", ["chunk_not_written"])
