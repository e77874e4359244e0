import sqlite3
from contextlib import closing

import pytest

from ragaudit.errors import AuditFileError
from ragaudit.model.judgement import Calibration
from ragaudit.model.result import AclNote, Canary, RunInfo, Summary
from ragaudit.store import AuditReader, AuditWriter
from ragaudit.store.calibration import read_calibration, write_calibration

FOUND = Calibration(model="m", labels="labels.jsonl", labels_sha256="sha256:0", n_labels=3, annotators=1)


def summary(name="demo"):
    run = RunInfo(name=name, traces=0, k_final=8, fingerprint="b2:1", pipeline={}, inputs={}, ragaudit="0.1.0")
    empty = {name: () for name in ("preflight", "slices", "patterns", "not_retrieval")}
    counts = {name: {} for name in ("metrics", "at", "outcomes", "stages", "undetermined")}
    return Summary(run=run, delivered_unjudged=0, acl=AclNote(), canary=Canary(), **empty, **counts)


@pytest.fixture
def audit(tmp_path):
    path = tmp_path / "run.audit"
    with AuditWriter(path, key="k") as writer:
        writer.finish(summary())
    return path


def test_a_calibration_is_kept_with_the_summary_that_names_it(audit):
    assert read_calibration(audit) is None
    write_calibration(audit, FOUND, summary("calibrated"))
    write_calibration(audit, FOUND.model_copy(update={"n_labels": 4}), summary("calibrated twice"))
    assert read_calibration(audit).n_labels == 4
    with AuditReader.open(audit) as reader:
        assert reader.summary().run.name == "calibrated twice"
    assert [path.name for path in audit.parent.iterdir()] == ["run.audit"]


def test_a_file_that_is_no_audit_is_neither_read_nor_changed(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(AuditFileError, match="not an audit file"):
        write_calibration(other, FOUND, summary())
    with pytest.raises(AuditFileError, match="no such file"):
        read_calibration(tmp_path / "none.audit")
    assert other.read_text() == "mine"


def test_a_tampered_calibration_is_damage_not_a_traceback(audit):
    with closing(sqlite3.connect(audit)) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('calibration', '{\"labels\": 1}')")
    with pytest.raises(AuditFileError, match="damaged: its calibration is not as written"):
        read_calibration(audit)


def test_a_file_that_another_process_writes_is_left_alone(audit, monkeypatch):
    monkeypatch.setattr("ragaudit.store.calibration.WAIT_SECONDS", 0.01)
    with closing(sqlite3.connect(audit, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(AuditFileError, match="another process is writing it"):
            write_calibration(audit, FOUND, summary())
        other.execute("ROLLBACK")
    assert read_calibration(audit) is None
