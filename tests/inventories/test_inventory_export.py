"""What holds for every store: ids, duplicates, going on, and what is written when. Files stand for the stores."""

import json

import pytest

from ragaudit.cli.main import execute
from ragaudit.inventories import export as module
from ragaudit.inventories.registry import MODULES, store_named
from ragaudit.readers.bundle import BundlePaths
from ragaudit.readers.problems import Problems
from ragaudit.readers.tables import read_inventory


@pytest.fixture
def write(tmp_path):
    def write(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def stored(key, own, text, **more):
    return {"store_id": key, "chunk_id": own, "text": text, "source_id": "s", **more}


def test_rows_with_the_same_id_and_text_are_one_chunk_with_all_store_ids(write, export):
    done = export("file", write(stored("1", "c1", "one"), stored("2", "c1", "one"), stored("3", "c2", "two")))
    assert {name: row["aliases"] for name, row in done.chunks.items()} == {"c1": ["1", "2"], "c2": ["3"]}
    assert (done.account["rows"], done.account["chunks"]) == (3, 2)
    assert done.account["remarks"] == ["1 rows hold the same text under the same id as another: one chunk each"]


def test_a_chunk_is_in_an_arm_when_one_of_its_rows_is(write, export):
    done = export("file", write(stored("1", "c1", "one", deleted=True), stored("2", "c1", "one")))
    assert done.chunks["c1"]["in"] == {"dense": True}


def test_an_id_that_is_not_unique_is_not_believed(write, export):
    """A `chunk_id` that counts within its document names many chunks."""
    done = export("file", write(stored("1", "0", "one"), stored("2", "0", "two"), stored("3", "1", "three")))
    assert list(done.chunks) == ["1", "2", "3"]
    assert done.account["remarks"] == ["3 rows are called by the store's id, for 'chunk_id' is not unique"]


def test_an_id_field_that_you_named_is_kept_where_it_can_be(write, export):
    done = export("file", write({"nr": "0", "text": "one"}, {"nr": "1", "text": "two"}), "--id-field", "nr")
    assert list(done.chunks) == ["0", "1"]


def test_rows_that_come_twice_count_once_and_are_said(write, export):
    done = export("file", write(stored("1", "c1", "one"), stored("1", "c1", "one")))
    assert [note["what"] for note in done.account["notes"]] == [module.REPEATED]
    assert len(done.chunks) == 1


def test_the_files_are_what_an_audit_reads(write, export, tmp_path):
    rows = [stored("1", "c1", "one", source_id="s1", acl=["a"]), stored("2", "c2", "two", source_id="s1")]
    done = export("file", write(*rows), "--complete", "yes")
    problems = Problems()
    paths = BundlePaths(tmp_path, done.out / "sources.jsonl", done.out / "chunks.jsonl", done.out / "index.json")
    inventory = read_inventory(paths.sources, paths.chunks, paths.index, paths.names(), problems)
    assert problems.messages == []
    assert inventory.chunk("2").chunk_id == "c2"
    assert (inventory.index.complete, inventory.index.arms["dense"].chunks) == (True, 2)
    assert inventory.source("s1").chunks_indexed == {"dense": 2}


def test_mixed_types_of_a_metadata_field_are_shown(write, export):
    done = export("file", write(stored("1", "c1", "one", year=2026), stored("2", "c2", "two", year="2026")))
    assert done.index["metadata_types"]["year"] == "int|str"
    assert "metadata of more than one type: year" in done.account["remarks"]


def interrupted(monkeypatch, export, path, *more):
    """An export that stops after its first page of two rows."""
    from ragaudit.inventories.stores.file import _File

    monkeypatch.setattr(module, "PAGE", 2)
    pages = _File.pages

    def failing(self, after, size):
        yield next(pages(self, after, size))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_File, "pages", failing)
        return export("file", path, *more)


def three(write):
    return write(*(stored(str(n), f"c{n}", f"text {n}") for n in range(3)))


def test_an_interrupted_export_keeps_its_rows_and_goes_on_to_the_same_files(write, export, monkeypatch):
    path = three(write)
    whole = export("file", path)
    expected = {p.name: p.read_text() for p in whole.out.iterdir()}
    for each in whole.out.iterdir():
        each.unlink()
    stopped = interrupted(monkeypatch, export, path)
    assert (stopped.code, [p.name for p in stopped.out.iterdir()]) == (130, [".inventory.partial"])
    assert "2 rows are kept in" in stopped.err
    done = export("file", path)
    assert (done.code, "Going on after 2 rows." in done.err) == (0, True)
    assert sorted(p.name for p in done.out.iterdir()) == ["chunks.jsonl", "index.json", "sources.jsonl"]
    for name in ("chunks.jsonl", "sources.jsonl"):
        assert (done.out / name).read_text() == expected[name]


def test_an_interrupted_export_of_which_nothing_was_wanted_yet_goes_on_too(write, export, monkeypatch):
    path = three(write)
    assert interrupted(monkeypatch, export, path, "--only", "source_id=none").code == 130
    done = export("file", path, "--only", "source_id=none")
    assert ("Going on after 0 rows." in done.err, done.chunks) == (True, {})


def test_a_file_that_changed_meanwhile_is_not_complete(write, export, monkeypatch):
    path = three(write)
    interrupted(monkeypatch, export, path)
    with path.open("a") as file:
        file.write(json.dumps(stored("9", "c9", "late")) + "\n")
    done = export("file", path, "--complete", "yes")
    assert done.account["why_not_complete"] == ["the store was written to during the export"]


def test_an_unfinished_export_of_something_else_is_not_mixed_in(write, export, monkeypatch):
    path = three(write)
    interrupted(monkeypatch, export, path)
    refused = export("file", path, "--no-text")
    assert (refused.code, "an unfinished export of something else (file " in refused.err) == (2, True)
    done = export("file", path, "--no-text", "--restart")
    assert (done.code, len(done.chunks), any("text" in row for row in done.chunks.values())) == (0, 3, False)


def test_files_that_are_there_are_not_written_over_and_that_is_said_first(write, export):
    path = three(write)
    export("file", path)
    refused = export("file", path)
    assert (refused.code, "sources.jsonl: exists. Pass --replace" in refused.err) == (2, True)
    assert not (refused.out / ".inventory.partial").exists()


def test_a_damaged_unfinished_export_is_named(write, export):
    export.out.mkdir()
    (export.out / ".inventory.partial").write_bytes(b"not a database" * 100)
    path = three(write)
    done = export("file", path)
    assert (done.code, "the unfinished export is damaged" in done.err) == (3, True)
    assert export("file", path, "--restart").code == 0


def test_hostile_names_cannot_steer_the_terminal(write, export, capsys):
    path = write(stored("1\x1b[2J", "c\u202e1", "one", **{"f\x1b]0;x\x07": 1}))
    assert execute(["inventory", "file", str(path), "-o", str(export.out)]) == 0
    said = capsys.readouterr()
    assert not {"\x1b", "\u202e", "\x07"} & set(said.out + said.err)


def test_the_account_for_people(write, export, capsys):
    path = write(stored("1", "c1", "one", acl=["a"], embedding_model="m"), {"store_id": "2", "chunk_id": "c2"})
    assert execute(["inventory", "file", str(path), "-o", str(export.out)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  rows       2 of 1 sources",
        "  dense      2 rows; models m",
        "  complete   not known",
        "           - nothing says whether this is the whole index: pass --complete yes",
        "             if it is",
        "  noted      1 x rows without a text: spans cannot be looked for in them (first:",
        "             2)",
        "             1 chunks name no source: name the field with --source-field",
        "",
        "  With this an audit can decide:",
        "    no   ingestion  absence proves nothing: not complete",
        "    no   parse      needs the source texts: add text and extracted_text to",
        "                    sources.jsonl",
        "    no   chunk      1 chunks have no text: give the span's words in gold.span_in",
        "    no   embed      not known: metric, vector lengths",
        "    no   filter     1 chunks have no ACL: name its field with --acl-field",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["file"], "Say where the store is: PATH, --url, or RAGAUDIT_STORE_URL."),
        (["qdrant", "https://host:6333"], "Pass an address as --url or in RAGAUDIT_STORE_URL"),
        (["file", "x", "--url", "http://host"], "Pass PATH or --url, not both."),
        (["weaviate", "x"], "Invalid value for 'STORE'"),
        (["file", "x", "--only", "tenant"], "write NAME=VALUE"),
        (["pgvector", "x"], "pass the connection as --url"),
        (["elasticsearch", "x"], "pass the address as --url"),
    ],
)
def test_usage_errors_exit_with_2(arguments, said, export):
    if arguments[0] == "pgvector":
        pytest.importorskip("psycopg")
    done = export(*arguments)
    assert (done.code, said in " ".join(done.err.split())) == (2, True)


@pytest.mark.parametrize("store", ["chroma", "qdrant", "pgvector", "lancedb", "milvus"])
def test_a_client_that_is_not_installed_is_named_with_its_extra(store, export, monkeypatch, tmp_path):
    def absent(name):
        raise ImportError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("ragaudit.inventories.clients.import_module", absent)
    (tmp_path / "meta.json").write_text("{}")
    (tmp_path / "chroma.sqlite3").write_text("")
    place = ["--url", "postgresql://host/db"] if store == "pgvector" else [str(tmp_path), "--trusted"]
    done = export(store, *place)
    assert (done.code, f"Run: pip install 'ragaudit[{store}]'." in done.err) == (2, True)


def test_every_store_has_its_section_in_the_manual(repository):
    manual = (repository / "docs" / "inventory.md").read_text("utf-8")
    assert [name for name in MODULES if f"ragaudit inventory {name} " not in manual] == ["opensearch"]
    assert "(or `opensearch`)" in manual


@pytest.mark.parametrize("name", MODULES)
def test_every_store_of_the_list_can_be_opened(name):
    assert store_named(name).open
