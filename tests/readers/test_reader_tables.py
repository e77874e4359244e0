import json
from pathlib import Path
from typing import Any

import pytest
from reader_builders import as_line, write

from ragaudit.errors import InputError
from ragaudit.model.inventory import ChunkKind, Inventory, SourceStatus
from ragaudit.readers.problems import Problems
from ragaudit.readers.tables import read_inventory


def inventory(
    folder: Path, *, sources: list[Any] | None = None, chunks: list[Any] | None = None, index: Any = None
) -> tuple[Inventory, Problems]:
    paths = {
        "sources": None if sources is None else write(folder / "sources.jsonl", *sources),
        "chunks": None if chunks is None else write(folder / "chunks.jsonl", *chunks),
        "index": None if index is None else write(folder / "index.json", index),
    }
    names = {path: path.name for path in paths.values() if path is not None}
    problems = Problems()
    return read_inventory(paths["sources"], paths["chunks"], paths["index"], names, problems), problems


def test_tables_that_were_not_given_are_absent(tmp_path: Path) -> None:
    found, problems = inventory(tmp_path)
    assert (found.sources, found.chunks, found.index) == (None, None, None)
    assert problems.texts() == ()


def test_an_empty_table_is_not_absent(tmp_path: Path) -> None:
    found, _ = inventory(tmp_path, sources=[], chunks=[])
    assert (found.sources, found.chunks) == ({}, {})


def test_rows_are_read_with_integer_ids_as_text_and_unknown_keys_kept(tmp_path: Path) -> None:
    found, problems = inventory(
        tmp_path,
        sources=[{"source_id": 7, "status": "deleted", "superseded_by": 8, "owner": "kim"}],
        chunks=[
            {"chunk_id": 1, "source_id": 7, "parent_id": 9, "aliases": [5], "kind": "parent", "in": {"dense": False}}
        ],
    )
    assert problems.texts() == ()
    source, chunk = found.source("7"), found.chunk("1")
    assert source is not None and chunk is not None
    assert (source.status, source.superseded_by) == (SourceStatus.DELETED, "8")
    assert source.model_extra == {"owner": "kim"}
    assert (chunk.source_id, chunk.parent_id, chunk.aliases, chunk.kind) == ("7", "9", ("5",), ChunkKind.PARENT)
    assert chunk.present_in == {"dense": False}
    assert found.chunk("5") is chunk
    assert found.by_source == {"7": ("1",)}


def test_the_first_of_two_rows_with_one_id_counts_and_nothing_is_lost(tmp_path: Path) -> None:
    rows = [{"chunk_id": "a", "text": "first"}, {"chunk_id": "a", "text": "second"}]
    found, problems = inventory(tmp_path, chunks=rows, index={"complete": True})
    assert found.chunks is not None and found.chunks["a"].text == "first"
    assert problems.texts() == (
        "chunks.jsonl:2: id 'a' stands in the file before; the first row counts. Export each id once.",
    )
    assert found.index is not None and found.index.complete is True


def test_a_row_is_kept_without_the_field_that_cannot_be_read(tmp_path: Path) -> None:
    found, problems = inventory(tmp_path, chunks=[{"chunk_id": "a", "dim": "many", "text": "words", "kind": "leaf"}])
    chunk = found.chunk("a")
    assert chunk is not None
    assert (chunk.dim, chunk.text, chunk.kind) == (None, "words", None)
    assert problems.counts() == {"field_dropped": 2}
    assert problems.texts() == (
        "chunks.jsonl:1: kind: must be 'chunk' or 'parent', not a text. Log it so, or null when it was not observed."
        " The row is used without it.",
        "chunks.jsonl:1: dim: must be a whole number, not a text. Log it so, or null when it was not observed."
        " The row is used without it.",
    )
    assert problems.tally("chunks.jsonl").set_aside == 0


def test_nan_in_a_row_becomes_null_and_is_counted(tmp_path: Path) -> None:
    found, problems = inventory(
        tmp_path, chunks=[{"chunk_id": "a", "norm": float("nan"), "metadata": {"p": float("inf")}}]
    )
    chunk = found.chunk("a")
    assert chunk is not None
    assert (chunk.norm, chunk.metadata) == (None, {"p": None})
    assert problems.counts() == {"not_a_number": 2}


def test_revisions_and_times_that_are_numbers_are_read_as_text(tmp_path: Path) -> None:
    found, problems = inventory(
        tmp_path,
        sources=[{"source_id": "s", "updated_at": 1_700_000_000}],
        chunks=[{"chunk_id": "a", "indexed_at": 1_700_000_000_000, "metadata": {"indexed_at": 1_700_000_000}}],
        index={"revision": 42, "arms": {"dense": {"built_at": 1_700_000_000.5}}},
    )
    source, chunk, index = found.source("s"), found.chunk("a"), found.index
    assert source is not None and chunk is not None and index is not None
    assert source.updated_at == chunk.indexed_at == "2023-11-14T22:13:20+00:00"
    assert chunk.metadata == {"indexed_at": 1_700_000_000}
    assert index.revision == "42"
    assert index.arms["dense"].built_at == "2023-11-14T22:13:20.500000+00:00"
    assert problems.texts() == ()


def test_a_number_that_is_no_time_is_dropped(tmp_path: Path) -> None:
    found, problems = inventory(tmp_path, chunks=[{"chunk_id": "a", "indexed_at": 5}])
    chunk = found.chunk("a")
    assert chunk is not None and chunk.indexed_at is None
    assert problems.texts() == (
        "chunks.jsonl:1: indexed_at: must be a text, not the number 5. Log it so, or null when it was not observed."
        " The row is used without it.",
    )


def test_an_index_that_does_not_say_clearly_that_it_is_complete_is_not(tmp_path: Path) -> None:
    found, problems = inventory(tmp_path, index={"revision": "r", "complete": "mostly"})
    assert found.index is not None and found.index.complete is False
    assert problems.texts() == (
        "index.json:1: complete: must be true or false, not a text. Log it so, or null when it was not observed."
        " It is read as false.",
    )


def test_a_row_with_an_empty_id_is_set_aside(tmp_path: Path) -> None:
    found, problems = inventory(tmp_path, chunks=[{"chunk_id": ""}, {"chunk_id": "a"}])
    assert list(found.chunks or ()) == ["a"]
    assert problems.texts() == ("chunks.jsonl:1: the id is empty. Export the id, as the store holds it.",)


def test_a_table_that_ends_in_mid_line_does_not_speak_of_queries(tmp_path: Path) -> None:
    _, problems = inventory(tmp_path, sources=[{"source_id": "s"}, b'{"source_id": "t", "sta'])
    assert problems.texts() == (
        "sources.jsonl:2: the file ends in mid-line: was the writer stopped? Write this line again, whole.",
    )


def test_a_pretty_printed_table_is_read(tmp_path: Path) -> None:
    rows = [{"chunk_id": "a", "metadata": {"x": [1]}}, {"chunk_id": "b"}]
    found, problems = inventory(tmp_path, chunks=[json.dumps(rows, indent=1).encode()])
    assert list(found.chunks or ()) == ["a", "b"]
    assert problems.texts() == ()


def test_principals_logged_as_numbers_become_text(tmp_path: Path) -> None:
    found, problems = inventory(tmp_path, sources=[{"source_id": "s", "acl": [12, "role:x"]}])
    source = found.source("s")
    assert source is not None and source.acl == ("12", "role:x")
    assert problems.texts() == ()


def test_a_lost_row_makes_the_index_incomplete_since_absence_proves_nothing_then(tmp_path: Path) -> None:
    found, problems = inventory(
        tmp_path,
        chunks=[{"chunk_id": "a"}, b"{broken\n", {"text": "no id"}],
        index={"revision": "r1", "complete": True},
    )
    assert found.chunks is not None and list(found.chunks) == ["a"]
    assert found.index is not None
    assert (found.index.revision, found.index.complete) == ("r1", False)
    assert [problem.place for problem in problems.messages] == ["chunks.jsonl:2", "chunks.jsonl:3"]
    assert problems.messages[1].message == "chunk_id: missing. Log it."


def test_a_table_of_which_nothing_is_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^sources\.jsonl: nothing usable: 2 of 2 rows were set aside; first: line 1:"
    ):
        inventory(tmp_path, sources=[b"a\n", b"b\n"])


def test_index_is_read_pretty_printed_and_its_unknown_keys_kept(tmp_path: Path) -> None:
    value = {"revision": "r1", "arms": {"dense": {"chunks": 5, "shards": 2}}, "complete": False}
    found, problems = inventory(tmp_path, index=b"\xef\xbb\xbf" + json.dumps(value, indent=2).encode())
    assert problems.texts() == ()
    assert found.index is not None
    assert found.index.arms["dense"].chunks == 5
    assert found.index.arms["dense"].model_extra == {"shards": 2}


@pytest.mark.parametrize("content", [b"{", b"[]", b"", b"null"])
def test_an_index_that_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match=r"^index\.json: "):
        inventory(tmp_path, index=content)


def test_crlf_and_invalid_utf8_are_read(tmp_path: Path) -> None:
    line = as_line({"chunk_id": "a", "text": "cafe"}).replace(b"cafe", b"caf\xe9").replace(b"\n", b"\r\n")
    found, problems = inventory(tmp_path, chunks=[line])
    chunk = found.chunk("a")
    assert chunk is not None and chunk.text == "caf\ufffd"
    assert problems.counts() == {"invalid_utf8": 1}
