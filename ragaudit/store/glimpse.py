"""The query that a review will open on, read without loading any record: what can be shown while the app starts."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ragaudit.store import schema


class Glimpse(NamedTuple):
    """One query as the lists know it. Text is from outside: clean it before it is shown."""

    query_id: str
    outcome: str
    stage: str
    cause: str | None
    text: str
    is_leak: bool


def glimpse(path: Path, query_id: str | None = None) -> Glimpse | None:
    """The named query, else the one where the last person stopped, else the first that fails; None = there is none.

    Raises:
        AuditFileError: The file is no audit, or is damaged.
    """
    if not path.is_file():
        return None
    with (
        schema.translated(path),
        closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        schema.defend(connection)
        schema.check(connection, path)
        wanted = query_id or _place(connection)
        columns = "SELECT query_id, outcome, stage, causes, query_text, seq < 0 FROM queries "
        found = wanted and connection.execute(columns + "WHERE query_id = ?", (wanted,)).fetchone()
        found = (
            found or connection.execute(columns + "WHERE outcome = 'fail' OR seq < 0 ORDER BY seq LIMIT 1").fetchone()
        )
    if found is None:
        return None
    try:
        causes = json.loads(found[3])
    except ValueError:
        causes = []
    cause = causes[0] if isinstance(causes, list) and causes else None
    return Glimpse(str(found[0]), str(found[1]), str(found[2]), cause and str(cause), str(found[4]), bool(found[5]))


def _place(connection: sqlite3.Connection) -> str | None:
    kept = connection.execute("SELECT value FROM meta WHERE name = 'place'").fetchone()
    try:
        place = json.loads(kept[0]) if kept else {}
    except ValueError:
        return None
    query_id = place.get("query_id") if isinstance(place, dict) else None
    return query_id if isinstance(query_id, str) else None
