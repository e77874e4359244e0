"""An audit that was made with the judge off, its bundle, and a judge to go on with."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ragaudit.audit.judging import Judge
from ragaudit.audit.reopen import Audited, reopen
from ragaudit.audit.run import audit
from ragaudit.cli.judging import judge_of
from ragaudit.cli.streams import Streams
from ragaudit.config import load_settings
from ragaudit.readers.bundle import Bundle, locate, open_bundle
from ragaudit.store import AuditReader
from tests.cli.judged_bundle import judged_bundle, trace, use

__all__ = ["judged_bundle", "trace", "use"]

ROWS = ("queries", "results", "judgements", "traces", "causes", "chunks", "aliases", "sources", "patches", "reviews")


def open_folder(folder: Path) -> Bundle:
    paths = locate(folder)
    return open_bundle(paths, load_settings(paths.config, env={}, flags={"resamples": 50}))


@contextmanager
def a_judge(bundle: Bundle, tape: str = "new") -> Iterator[Judge]:
    judge = judge_of(Streams(), bundle, "auto", tape)
    assert judge is not None
    with judge.tape:
        yield judge


def audited_without_judge(folder: Path, out: Path, *, limit: int | None = None) -> Path:
    audit(open_folder(folder), out, limit=limit)
    return out


def audited_at_once(folder: Path, out: Path, tape: str = "new") -> Path:
    bundle = open_folder(folder)
    with a_judge(bundle, tape) as judge:
        audit(bundle, out, judge=judge)
    return out


def reopened(path: Path, folder: Path) -> Audited:
    with AuditReader.open(path) as reader:
        return reopen(path, reader.summary(), open_folder(folder))


def contents(path: Path) -> dict[str, Any]:
    """All that an audit file holds, but for how it came to hold it."""
    with closing(sqlite3.connect(path)) as connection:
        found: dict[str, Any] = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in ROWS}
        summary = connection.execute("SELECT value FROM meta WHERE name = 'summary'").fetchone()[0]
    return found | {"summary": json.loads(summary)}
