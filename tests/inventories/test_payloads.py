import json
import math
from datetime import UTC, datetime
from uuid import UUID

import pytest

from ragaudit.inventories.payloads import Fields, chunk_row
from ragaudit.inventories.plain import plain
from ragaudit.inventories.records import Held, Record

NODE = {
    "id_": "n-1",
    "metadata": {"file_path": "a.md"},
    "relationships": {"1": {"node_id": "doc-1"}, "4": {"node_id": "p-1"}},
    "text": "Reset it.",
}


def row(payload, column=None, notes=None, with_text=True, own_id=None, **fields):
    def note(what, key):
        (notes if notes is not None else []).append(what)

    record = Record("k1", payload, column, {"dense": Held(4, 1.0)}, own_id=own_id)
    return chunk_row(record, Fields(**fields), note, with_text=with_text)


@pytest.mark.parametrize(
    ("payload", "text", "chunk_id", "source", "parent"),
    [
        ({"page_content": "Reset it.", "metadata": {"source": "a.md"}}, None, "k1", "a.md", None),
        ({"id": "h1", "content": "Reset it.", "meta": {"source_id": "s1"}}, None, "h1", "s1", None),
        ({"_node_content": json.dumps(NODE), "doc_id": "doc-1"}, None, "k1", "doc-1", "p-1"),
        ({"_node_content": json.dumps({**NODE, "text": ""})}, "Reset it.", "k1", "doc-1", "p-1"),
        ({"body": "Reset it.", "url": "/a", "chunk_id": 7}, None, "7", "/a", None),
        ({"source_id": "s1"}, "Reset it.", "k1", "s1", None),
    ],
    ids=["langchain", "haystack", "llamaindex", "llamaindex with its text beside", "own fields", "own column"],
)
def test_each_writers_shape_gives_text_source_and_id(payload, text, chunk_id, source, parent):
    found = row(payload, text)
    assert (found["text"], found["chunk_id"], found["source_id"], found.get("parent_id")) == (
        "Reset it.",
        chunk_id,
        source,
        parent,
    )
    assert not {"page_content", "_node_content", "text"} & set(found.get("metadata", {}))


def test_every_other_id_of_the_row_is_an_alias():
    found = row({"_node_content": json.dumps(NODE), "chunk_id": "mine"}, own_id="col-1")
    assert (found["chunk_id"], found["aliases"]) == ("mine", ["k1", "col-1", "n-1"])


def test_named_fields_win_over_the_usual_places():
    payload = {
        "text": "no",
        "chunk_id": "no",
        "source_id": "no",
        "acl": ["no"],
        "a": {"id": "yes"},
        "t": "T",
        "r": ["x"],
    }
    found = row(payload, id="a.id", source="a.id", text="t", acl="r")
    assert (found["chunk_id"], found["source_id"], found["text"], found["acl"]) == ("yes", "yes", "T", ["x"])


@pytest.mark.parametrize(
    ("stored", "read", "said"),
    [
        (["a", 7], ["a", "7"], []),
        ("a", ["a"], []),
        ("a, b,", ["a", "b"], ["ACLs that are one text: read as a list"]),
        ('["a","b c, d"]', ["a", "b c, d"], ["ACLs that are one text: read as a list"]),
        ("[a, b]", ["[a, b]"], []),
        (
            {"users": ["a"]},
            None,
            ["ACLs that are no list of names: left out. Name the field that is, with --acl-field"],
        ),
    ],
)
def test_an_acl_is_read_as_a_list_of_names(stored, read, said):
    notes = []
    assert row({"acl": stored}, "t", notes).get("acl") == read
    assert notes == said


def test_an_empty_acl_is_kept_and_an_absent_one_stays_absent():
    notes = []
    assert row({"acl": []}, "t")["acl"] == []
    assert row({"acl": ""}, "t")["acl"] == []
    assert "acl" not in row({}, "t", notes, acl="readers")
    assert notes == ["without 'readers': nothing says who may read them"]


def test_without_texts_the_hash_of_the_text_stays():
    with_text, without = row({}, "Reset  it."), row({}, "Reset it.", with_text=False)
    assert "text" not in without
    assert without["content_hash"] == with_text["content_hash"]


def test_only_hashes_of_our_kind_stand_in_for_a_text():
    notes = []
    assert row({"content_hash": "sha256:ab"}, notes=notes)["content_hash"] == "sha256:ab"
    assert "content_hash" not in row({"content_hash": "491e83a7"}, notes=notes)
    assert notes == ["rows without a text: spans cannot be looked for in them"] * 2


def test_a_node_that_is_no_json_is_said_and_read_as_it_stands():
    notes = []
    found = row({"_node_content": "{cut", "doc_id": "d1"}, "Reset it.", notes)
    assert (found["source_id"], notes) == ("d1", ["rows whose _node_content is no JSON: read without it"])


def test_values_of_clients_become_json():
    values = {
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "id": UUID(int=1),
        "nan": math.nan,
        "raw": b"x",
        "half": "a\ud800",
        "set": {1},
        3: None,
    }
    assert plain(values) == {
        "at": "2026-01-02T00:00:00+00:00",
        "id": "00000000-0000-0000-0000-000000000001",
        "nan": None,
        "raw": None,
        "half": "a?",
        "set": [1],
        "3": None,
    }


def test_a_bottomless_value_ends():
    deep = value = {}
    for _ in range(5000):
        deep["x"] = deep = {}
    assert json.dumps(plain(value)).count("x") == 41
