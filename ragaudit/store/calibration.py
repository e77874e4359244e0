"""The calibration of an audit's judge: the one thing that is added to an audit file after it was finished."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import ValidationError

from ragaudit.errors import AuditFileError
from ragaudit.model.judgement import Calibration
from ragaudit.model.result import Summary
from ragaudit.store import schema

WAIT_SECONDS = 5.0
"""How long another process's write is waited for."""


def write_calibration(path: Path, calibration: Calibration, summary: Summary) -> None:
    """Put a calibration into a finished audit, with the summary that names it: both or neither.

    Raises:
        AuditFileError: The file is no audit, is damaged, or cannot be written.
    """
    with _opened(path, "rw") as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        for name, record in (("calibration", calibration), ("summary", summary)):
            text = record.model_dump_json(exclude_defaults=True)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, text))


def read_calibration(path: Path) -> Calibration | None:
    """The calibration of an audit; None = its judge is not calibrated.

    Raises:
        AuditFileError: The file is no audit, or is damaged.
    """
    with _opened(path, "ro") as connection:
        found = connection.execute("SELECT value FROM meta WHERE name = 'calibration'").fetchone()
        try:
            return None if found is None else Calibration.model_validate_json(found[0])
        except ValidationError as error:
            raise AuditFileError(f"{path}: damaged: its calibration is not as written. {schema.AGAIN}") from error


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise AuditFileError(f"{path}: no such file. Write one with `ragaudit audit BUNDLE -o {path.name}`.")
    with schema.translated(path):
        address = f"{path.resolve().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=WAIT_SECONDS)) as connection:
            schema.defend(connection)
            schema.check(connection, path)
            yield connection
