"""Against a real PostgreSQL with pgvector, started by the tests on a Unix socket."""

import atexit
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from inventory_builders import CORPUS, LENGTHS, VECTORS, needs

from ragaudit.inventories.clients import hushed

pytestmark = [needs("psycopg", "pgvector"), needs("pgserver", "dev")]
SECRET = "s3cr3t-pass"


@pytest.fixture(scope="module")
def server():
    """The address of a server with pgvector; it ends with the tests of this file.

    Not below pytest's folder: root starts the server as another user, whom pytest keeps out of there.
    """
    with TemporaryDirectory(prefix="ragaudit-pg-") as folder, pytest.MonkeyPatch.context() as patch, hushed():
        runtime = Path(folder) / "run"
        runtime.mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        import pgserver

        running = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield running.get_uri()
        running.cleanup()
        atexit.unregister(running._cleanup)  # it would make its lock file again, in the folder that is gone


@pytest.fixture
def sql(server):
    """Runs statements in an empty database."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as db:
        db.execute("DROP SCHEMA public CASCADE")
        db.execute("CREATE SCHEMA public")
        db.execute("CREATE EXTENSION vector")
        yield db


def fill(db, statement, rows):
    with db.cursor() as cursor:
        cursor.executemany(statement, rows)


def own_table(db, key="chunk_id text PRIMARY KEY", index=True):
    db.execute(
        f"CREATE TABLE kb ({key}, source_id text, tenant text, acl text[], content text, embedding_model text, "
        "embedding vector(4), words tsvector)"
    )
    rows = [
        (*row[:2], "acme", row[3], row[2], "bge-m3", None if n == 2 else str(VECTORS[n]), row[2])
        for n, row in enumerate(CORPUS)
    ]
    fill(db, "INSERT INTO kb VALUES (%s, %s, %s, %s, %s, %s, %s, to_tsvector(%s))", rows)
    if index:
        db.execute("CREATE INDEX ON kb USING hnsw (embedding vector_cosine_ops)")


def test_an_own_table_with_its_index_and_a_row_without_a_vector(server, sql, export):
    own_table(sql)
    done = export("pgvector", "--url", server)
    assert (done.code, done.account["rows"], done.account["complete"]) == (0, 3, True)
    assert {name: (row["in"], row.get("norm")) for name, row in done.chunks.items()} == {
        "kb-1#0": ({"dense": True, "bm25": True}, LENGTHS[0]),
        "kb-1#1": ({"dense": True, "bm25": True}, LENGTHS[1]),
        "kb-2#0": ({"dense": False, "bm25": True}, None),
    }
    assert done.index["arms"]["dense"] == {
        "metric": "cosine",
        "ann": "hnsw",
        "score": {"direction": "lower", "formula": "cosine distance"},
        "chunks": 2,
        "models": {"bge-m3": 2},
        "dims": {"4": 2},
        "norm_p5": 3.0,
        "norm_p50": 3.0,
        "norm_p95": 5.0,
    }
    row = done.chunks["kb-1#0"]
    assert (row["source_id"], row["acl"], row["text"]) == ("kb-1", CORPUS[0][3], CORPUS[0][2])
    assert row["metadata"] == {
        "source_id": "kb-1",
        "tenant": "acme",
        "acl": CORPUS[0][3],
        "embedding_model": "bge-m3",
    }


def test_a_table_without_a_key_is_read_by_place(server, sql, export):
    own_table(sql, key="chunk_id text")
    done = export("pgvector", "--url", server)
    assert list(done.chunks) == [row[0] for row in CORPUS]
    assert done.chunks["kb-1#0"]["aliases"] == ["(0,1)"]


def test_without_a_vector_index_the_metric_is_not_guessed(server, sql, export):
    own_table(sql, index=False)
    done = export("pgvector", "--url", server)
    assert "metric" not in done.index["arms"]["dense"]
    assert done.account["remarks"] == [
        "embedding has no vector index: the metric stands in your query, not in the table"
    ]


def test_collections_of_langchain_are_told_apart(server, sql, export):
    sql.execute("CREATE TABLE langchain_pg_collection (uuid uuid PRIMARY KEY, name varchar, cmetadata json)")
    sql.execute(
        "CREATE TABLE langchain_pg_embedding (id varchar PRIMARY KEY, collection_id uuid, embedding vector, "
        "document varchar, cmetadata jsonb)"
    )
    for n, name in enumerate(("kb", "other")):
        uuid = f"00000000-0000-0000-0000-00000000000{n}"
        sql.execute("INSERT INTO langchain_pg_collection VALUES (%s, %s, NULL)", (uuid, name))
        fill(
            sql,
            "INSERT INTO langchain_pg_embedding VALUES (%s, %s, %s, %s, %s)",
            [(f"{name}/{r[0]}", uuid, str(VECTORS[0]), r[2], json.dumps({"source_id": r[1]})) for r in CORPUS],
        )
    refused = export("pgvector", "--url", server)
    assert (refused.code, "holds 2 tables (kb, other)" in refused.err) == (2, True)
    done = export("pgvector", "--url", server, "--collection", "kb")
    assert list(done.chunks) == ["kb/kb-1#0", "kb/kb-1#1", "kb/kb-2#0"]
    assert (done.index["namespace"], done.index["namespaces"]) == ("kb", {"kb": 3})
    assert done.chunks["kb/kb-2#0"]["metadata"] == {"source_id": "kb-2"}


def test_a_table_of_llamaindex(server, sql, export):
    columns = "id bigserial PRIMARY KEY, text varchar, metadata_ json, node_id varchar, embedding vector(4)"
    sql.execute(f"CREATE TABLE data_kb ({columns})")
    node = {"id_": "n-1", "metadata": {"tenant": "acme"}, "relationships": {"1": {"node_id": "kb-1"}}, "text": ""}
    metadata = {"_node_content": json.dumps(node), "_node_type": "TextNode", "ref_doc_id": "kb-1", "tenant": "acme"}
    fill(
        sql,
        "INSERT INTO data_kb (text, metadata_, node_id, embedding) VALUES (%s, %s, %s, %s)",
        [("Reset it.", json.dumps(metadata), "n-1", str(VECTORS[0]))],
    )
    (row,) = export("pgvector", "--url", server).rows("chunks.jsonl")
    assert (row["chunk_id"], row["aliases"], row["source_id"], row["text"]) == ("n-1", ["1"], "kb-1", "Reset it.")
    assert row["metadata"] == {"tenant": "acme"}


def test_a_table_of_haystack(server, sql, export):
    sql.execute(
        "CREATE TABLE haystack_documents (id varchar PRIMARY KEY, embedding vector(4), content text, meta jsonb)"
    )
    values = ("d-1", str(VECTORS[0]), "Reset it.", json.dumps({"source_id": "kb-1", "acl": ["a"]}))
    fill(sql, "INSERT INTO haystack_documents VALUES (%s, %s, %s, %s)", [values])
    (row,) = export("pgvector", "--url", server).rows("chunks.jsonl")
    assert (row["chunk_id"], row["source_id"], row["acl"], row["text"]) == ("d-1", "kb-1", ["a"], "Reset it.")


def test_the_connection_cannot_write(server, sql):
    import psycopg

    from ragaudit.inventories.records import Where
    from ragaudit.inventories.stores.pgvector import STORE

    own_table(sql)
    with (
        STORE.open(Where(server, is_url=True)) as reader,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        reader._connection.execute("DELETE FROM kb")


def test_row_level_security_makes_it_incomplete(server, sql, export):
    own_table(sql)
    sql.execute("DROP ROLE IF EXISTS reader")
    sql.execute(f"CREATE ROLE reader LOGIN PASSWORD '{SECRET}'")
    sql.execute("ALTER TABLE kb ENABLE ROW LEVEL SECURITY")
    sql.execute("CREATE POLICY own ON kb USING (source_id = 'kb-1')")
    sql.execute("GRANT USAGE ON SCHEMA public TO reader")
    sql.execute("GRANT SELECT ON kb TO reader")
    done = export("pgvector", "--url", server.replace("postgres:@", f"reader:{SECRET}@"))
    assert (done.account["rows"], done.account["complete"]) == (2, False)
    assert done.account["why_not_complete"] == ["row level security hides rows of kb from this user"]
    assert SECRET not in done.err + json.dumps(done.account)
    sql.execute("DROP OWNED BY reader")
    sql.execute("DROP ROLE reader")


def test_an_interrupted_export_goes_on_and_sees_what_was_written_meanwhile(server, sql, export, monkeypatch):
    from ragaudit.inventories import export as module
    from ragaudit.inventories.stores.pgvector import _Table

    own_table(sql)
    monkeypatch.setattr(module, "PAGE", 2)
    pages = _Table.pages

    def failing(self, after, size):
        yield next(pages(self, after, size))
        raise KeyboardInterrupt

    monkeypatch.setattr(_Table, "pages", failing)
    stopped = export("pgvector", "--url", server)
    assert (stopped.code, "2 rows are kept" in stopped.err) == (130, True)
    assert sorted(path.name for path in stopped.out.iterdir()) == [".inventory.partial"]
    monkeypatch.setattr(_Table, "pages", pages)
    sql.execute("INSERT INTO kb (chunk_id, content) VALUES ('kb-0#0', 'a row before the place where it goes on')")
    done = export("pgvector", "--url", server)
    assert "Going on after 2 rows." in done.err
    assert (done.account["rows"], done.account["complete"]) == (3, False)
    assert done.account["why_not_complete"] == ["the store held 3 rows at the start and 4 at the end"]
    assert not (done.out / ".inventory.partial").exists()


def test_a_refused_connection_says_so_without_the_password(export, tmp_path):
    url = f"postgresql://reader:{SECRET}@/kb?host={tmp_path}&sslpassword=other-secret"
    done = export("pgvector", "--url", url)
    assert done.code == 3
    assert "failed" in done.err
    assert SECRET not in done.err
    assert "other-secret" not in done.err
