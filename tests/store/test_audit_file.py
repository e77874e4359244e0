import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from ragaudit.errors import AuditFileError, ConfigError, InputError
from ragaudit.model.diagnosis import Diagnosis, GoldDiagnosis, Outcome, Severity, Stage
from ragaudit.model.inventory import Chunk, Inventory, Source
from ragaudit.model.result import AclNote, Canary, Estimate, QueryResult, RunInfo, Summary
from ragaudit.model.trace import Hit, Trace
from ragaudit.store import AuditReader, AuditWriter, schema


def row(query_id="q1", outcome=Outcome.FAIL, stage=Stage.RERANK, **fields):
    diagnosis = Diagnosis(
        query_id=query_id, outcome=outcome, stage=stage, gold=(GoldDiagnosis(id="c9", outcome=outcome),), **fields
    )
    result = QueryResult(diagnosis=diagnosis, query_text="refund?", k_final=8, metrics={"hit@k": 0.0, "mrr@k": None})
    return result, Trace(query_id=query_id, query_text="refund?", k_final=8, fused=(Hit("c9", score=0.5),))


def summary(**fields):
    run = RunInfo(name="demo", traces=2, k_final=8, fingerprint="b2:1", pipeline={}, inputs={}, ragaudit="0.1.0")
    given = {
        "run": run,
        "preflight": (),
        "metrics": {"mrr@k": Estimate(mean=None, low=None, high=None, n=0, undefined=2, reasons={"unlabelled": 2})},
        "at": {},
        "slices": (),
        "outcomes": {"fail": 2},
        "stages": {"rerank": 2},
        "undetermined": {},
        "delivered_unjudged": 0,
        "patterns": (),
        "acl": AclNote(),
        "not_retrieval": (),
        "canary": Canary(),
    }
    return Summary(**(given | fields))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run.audit"


def write(out, rows=None, key="k1", inventory=None):
    with AuditWriter(out, key=key) as writer:
        writer.add([row()] if rows is None else rows)
        if inventory is not None:
            writer.add_inventory(inventory)
        writer.finish(summary())
    return out


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read_back(out):
    first, second = row("q1", causes=("top_n_cut",), evidence=("c9: rank 14",)), row("q2", Outcome.PASS, Stage.NONE)
    write(out, [first, second])
    with AuditReader.open(out) as reader:
        assert reader.summary() == summary()
        assert reader.query("q1") == first[0]
        assert reader.trace("q2") == second[1]
        assert reader.query("q3") is None
        assert reader.trace("q3") is None
        assert list(reader.iter_results()) == [first[0], second[0]]


def test_a_finished_audit_is_one_file_without_write_ahead_log(out):
    write(out)
    assert names(out.parent) == ["run.audit"]
    assert out.read_bytes()[18:20] == b"\x01\x01"


def test_inventory_is_found_by_id_and_alias_with_texts_and_unknown_keys(out):
    chunk = Chunk.model_validate(
        {
            "chunk_id": "c1",
            "source_id": "s1",
            "text": "30 days",
            "acl": [],
            "aliases": ["7"],
            "in": {"dense": True},
            "x": 1,
        }
    )
    source = Source(source_id="s1", text="Refunds: 30 days", extracted_text="Refunds:", acl=("all",), pages=3)
    write(out, inventory=Inventory.of({"s1": source}, {"c1": chunk}, None))
    with AuditReader.open(out) as reader:
        assert reader.chunk("c1") == chunk
        assert reader.chunk("7") == chunk
        assert reader.source("s1") == source
        assert reader.chunk("c2") is None
        assert reader.source("c1") is None


def test_an_interrupted_audit_resumes_where_it_stopped(out):
    with AuditWriter(out, key="k1") as writer:
        writer.add([row("q1")])
    assert names(out.parent) == ["run.audit.partial"]
    with AuditWriter(out, key="k1") as writer:
        assert writer.resumed
        assert writer.done_ids() == {"q1"}
        assert [r.diagnosis.query_id for r in writer.stored()] == ["q1"]
        writer.add([row("q2")])
        writer.finish(summary())
    with AuditReader.open(out) as reader:
        assert [r.query_id for r in reader.page()] == ["q1", "q2"]


def test_a_resumed_audit_counts_its_rows_in_the_order_of_the_traces_leaks_among_them(out):
    rows = [row(f"q{n}", severity=Severity.LEAK if n in (2, 5) else Severity.NORMAL) for n in range(1, 7)]
    with AuditWriter(out, key="k1") as writer:
        writer.add(rows)
    with AuditWriter(out, key="k1") as writer:
        assert list(writer.stored()) == [result for result, _ in rows]


def test_a_file_that_may_grow_no_further_is_not_called_damaged(out):
    """SQLite calls a limit of a file's size (`ulimit -f`) a disk I/O error."""
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of a file")
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with AuditWriter(out, key="k1") as writer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, was[1]))
        try:
            with pytest.raises(AuditFileError) as refused:
                for n in range(2_000):
                    writer.add([row(f"q{n}", evidence=("x" * 5_000,))])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, was)
            signal.signal(signal.SIGXFSZ, ignored)
    assert str(refused.value) == (
        f"{out}.partial: cannot be written (disk I/O error). Check the disk, a quota, and limits of a file's size "
        "(ulimit -f); then run the same command: it resumes."
    )
    with AuditWriter(out, key="k1") as writer:
        assert writer.resumed


def test_an_inventory_that_an_interrupted_audit_stored_is_kept(out):
    inventory = Inventory.of(None, {"c1": Chunk(chunk_id="c1", text="30 days")}, None)
    with AuditWriter(out, key="k1") as writer:
        writer.add_inventory(inventory)
    write(out, inventory=inventory)
    with AuditReader.open(out) as reader:
        assert reader.chunk("c1") == Chunk(chunk_id="c1", text="30 days")


def left(out, what):
    """Something that stands in the place of the unfinished file; its bytes."""
    partial = out.with_name("run.audit.partial")
    if what in ("another run", "another version"):
        with AuditWriter(out, key="k0") as writer:
            writer.add([row("q1")])
    elif what == "another run without rows":
        with AuditWriter(out, key="k0"):
            pass
    else:
        partial.write_bytes(b"not a database at all, but long enough" * 40 if what == "garbage" else b"")
    if what == "another version":
        set_pragma(partial, "user_version", 99)
    return partial.read_bytes()


@pytest.mark.parametrize("what", ["another run", "another version", "garbage"])
def test_what_an_interrupted_audit_of_another_run_did_is_put_by_and_can_be_taken_up_again(out, what):
    before = left(out, what)
    with AuditWriter(out, key="k1") as writer:
        assert writer.put_by == out.with_name("run.audit.partial.1")
        assert writer.done_ids() == set()
        assert writer.put_by.read_bytes() == before
        writer.add([row("q2")])
    assert names(out.parent) == ["run.audit.partial", "run.audit.partial.1"]
    with AuditWriter(out, key="k2") as writer:
        assert writer.put_by == out.with_name("run.audit.partial.2")
        writer.finish(summary())
    if what == "another run":
        out.with_name("run.audit.partial.1").rename(out.with_name("run.audit.partial"))
        with AuditWriter(out, key="k0") as writer:
            assert (writer.done_ids(), writer.put_by) == ({"q1"}, None)


@pytest.mark.parametrize("what", ["another run without rows", "nothing"])
def test_an_unfinished_file_that_holds_nothing_is_replaced(out, what):
    left(out, what)
    out.with_name("run.audit.partial-journal").write_bytes(b"stale")
    with AuditWriter(out, key="k1") as writer:
        assert (writer.resumed, writer.put_by) == (False, None)
        assert writer.done_ids() == set()
        writer.add([row("q2")])
        writer.finish(summary())
    with AuditReader.open(out) as reader:
        assert [r.query_id for r in reader.page()] == ["q2"]


def test_a_crash_while_writing_leaves_the_old_audit_untouched(out):
    before = write(out, [row("old")]).read_bytes()
    with pytest.raises(KeyboardInterrupt), AuditWriter(out, key="k2") as writer:
        writer.add([row("new")])
        raise KeyboardInterrupt
    assert out.read_bytes() == before
    assert names(out.parent) == ["run.audit", "run.audit.partial"]


def test_a_process_killed_within_a_batch_loses_that_batch_only(out, tmp_path):
    with AuditWriter(out, key="k1") as writer:
        writer.add([row("q1")])
        writer._connection.execute("PRAGMA cache_spill = 1")
        writer._connection.execute("BEGIN")
        writer._connection.execute("DELETE FROM queries")
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        for path in tmp_path.glob("run.audit.partial*"):
            shutil.copy(path, crashed)
        writer._connection.execute("ROLLBACK")
    with AuditWriter(crashed / "run.audit", key="k1") as writer:
        assert writer.done_ids() == {"q1"}


def test_two_audits_of_one_file_at_a_time_are_refused(out):
    with AuditWriter(out, key="k1") as first:
        with (
            pytest.raises(AuditFileError, match=r"run\.audit\.partial: another process is writing it"),
            AuditWriter(out, key="k2"),
        ):
            pass
        first.add([row("q1")])
        first.finish(summary())
    with AuditReader.open(out) as reader:
        assert reader.summary() == summary()


def test_a_repeated_query_id_names_the_query_and_stores_nothing(out):
    with AuditWriter(out, key="k1") as writer:
        writer.add([row("q1")])
        with pytest.raises(InputError, match='query id "q3": two traces have it'):
            writer.add([row("q2"), row("q3"), row("q3")])
        with pytest.raises(InputError, match='query id "q1"'):
            writer.add([row("q2"), row("q1")])
        assert writer.done_ids() == {"q1"}


def test_a_file_that_is_no_audit_is_never_overwritten(out):
    out.write_text("my thesis")
    with pytest.raises(ConfigError, match="exists and is not an audit file"):
        write(out)
    assert out.read_text() == "my thesis"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ConfigError, match="its folder does not exist"):
        write(tmp_path / "absent" / "run.audit")


def test_an_audit_of_another_version_may_be_replaced(out):
    write(out, [row("old")])
    set_pragma(out, "user_version", 99)
    write(out, [row("new")])
    with AuditReader.open(out) as reader:
        assert reader.query("new") is not None


def change(path, script):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def set_pragma(path, name, value):
    change(path, f"PRAGMA {name} = {value}")


@pytest.mark.parametrize(
    ("pragma", "value", "message"),
    [
        ("user_version", schema.SCHEMA_VERSION + 1, "a newer ragaudit wrote it .* Upgrade ragaudit"),
        ("user_version", 0, "an older ragaudit wrote it .* Run `ragaudit audit BUNDLE` again"),
        ("application_id", 7, "not an audit file"),
    ],
)
def test_other_versions_and_other_databases_are_refused(out, pragma, value, message):
    set_pragma(write(out), pragma, value)
    with pytest.raises(AuditFileError, match=message):
        AuditReader.open(out)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"", "not an audit file"), (b"plain text, no database" * 90, "not an audit file")],
)
def test_missing_empty_and_foreign_files_are_refused(out, content, message):
    if content is not None:
        out.write_bytes(content)
    with pytest.raises(AuditFileError, match=message):
        AuditReader.open(out)


def test_an_unfinished_audit_says_how_to_finish(out):
    with AuditWriter(out, key="k1") as writer:
        writer.add([row("q1")])
    with (
        AuditReader.open(out.with_name("run.audit.partial")) as reader,
        pytest.raises(AuditFileError, match=r"unfinished.*resumes"),
    ):
        reader.summary()


@pytest.mark.parametrize(
    "tampering",
    [
        "DROP TABLE causes",
        "ALTER TABLE queries RENAME TO other; CREATE VIEW queries AS SELECT * FROM other",
        "CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END",
    ],
)
def test_a_schema_that_is_not_ours_is_refused(out, tampering):
    change(write(out), tampering)
    with pytest.raises(AuditFileError, match="damaged"):
        AuditReader.open(out)


@pytest.mark.parametrize(
    ("tampering", "call"),
    [
        ("UPDATE results SET result = '{'", lambda reader: reader.query("q1")),
        ("UPDATE results SET result = x'ff'", lambda reader: list(reader.iter_results())),
        ("UPDATE traces SET trace = x'00'", lambda reader: reader.trace("q1")),
        ("UPDATE traces SET trace = 'text'", lambda reader: reader.trace("q1")),
        ("UPDATE queries SET outcome = 'marvellous'", lambda reader: reader.page()),
        ("UPDATE queries SET causes = '{'", lambda reader: reader.page()),
        ("UPDATE queries SET query_text = CAST(x'ff' AS TEXT)", lambda reader: reader.page()),
        ("UPDATE meta SET value = '[]' WHERE name = 'summary'", lambda reader: reader.summary()),
        ("UPDATE chunks SET record = '[' ", lambda reader: reader.chunk("c1")),
        ("UPDATE chunks SET record = '[1]' ", lambda reader: reader.chunk("c1")),
        ("UPDATE chunks SET text = x'ff'", lambda reader: reader.chunk("c1")),
    ],
)
def test_rows_that_make_no_sense_are_an_error_with_the_file_name(out, tampering, call):
    write(out, inventory=Inventory.of(None, {"c1": Chunk(chunk_id="c1", text="30 days")}, None))
    change(out, tampering)
    with AuditReader.open(out) as reader, pytest.raises(AuditFileError, match=r"run\.audit: damaged"):
        call(reader)


def test_a_file_cut_short_or_overwritten_in_the_middle_is_an_error(out):
    write(out, [row(f"q{n}") for n in range(300)])
    whole = out.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:4096] + b"\xff" * (len(whole) - 4096)):
        out.write_bytes(damaged)
        with pytest.raises(AuditFileError, match="damaged"), AuditReader.open(out) as reader:
            reader.page()
            list(reader.iter_results())
            reader.summary()


def test_reading_does_not_change_the_file(out):
    before = write(out).read_bytes()
    with AuditReader.open(out) as reader:
        reader.page()
        with pytest.raises(sqlite3.OperationalError):
            reader._connection.execute("DELETE FROM queries")
    assert out.read_bytes() == before


def test_a_path_with_url_characters_opens(tmp_path):
    with AuditReader.open(write(tmp_path / "a?b#c%20d.audit")) as reader:
        assert reader.summary() == summary()


def test_leaks_keep_their_severity(out):
    write(out, [row("q1"), row("q2", severity=Severity.LEAK, leaks=("c7",))])
    with AuditReader.open(out) as reader:
        assert [(r.query_id, r.severity) for r in reader.page()] == [("q2", Severity.LEAK), ("q1", Severity.NORMAL)]
