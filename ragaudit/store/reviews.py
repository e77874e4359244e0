"""What people say about the queries of an audit, kept in the audit file itself: one patch a row, and their fold."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from uuid import uuid4

from pydantic import ValidationError

from ragaudit.errors import AuditFileError
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.review import Patch, Place, Review
from ragaudit.store import schema
from ragaudit.store.codec import to_json
from ragaudit.store.shared import WAIT_SECONDS, OnSharedFile, SharedFile

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class Reviews(OnSharedFile):
    """The reviews of one audit file. Close it, or use it as a context manager.

    Every call that changes something is one transaction, on the disk when the call returns. Several terminals may
    hold one file open: patches of one are folded with those of the others, and `undo` takes back only an action of
    this one.
    """

    def __init__(self, file: SharedFile, clock: Clock = _now) -> None:
        """Use `open`."""
        super().__init__(file)
        self._clock = clock
        self._actions: list[str] = []

    @classmethod
    def open(cls, path: Path, clock: Clock = _now, *, writable: bool = True) -> Self:
        """Open the reviews of a finished audit for reading and writing, or for reading alone.

        Raises:
            AuditFileError: It is no audit, is damaged, or may not be written.
        """
        return cls(SharedFile.open(path, writable=writable), clock)

    def apply(self, query_ids: Iterable[str], patch: Patch) -> int:
        """Do one thing to these queries, as one action, and return how many of them the audit has."""
        action, at = uuid4().hex, self._clock().isoformat()
        text = patch.model_dump_json(exclude_defaults=True)
        done = 0
        with self._file.writing() as connection:
            for query_id in dict.fromkeys(query_ids):
                found = connection.execute(
                    "INSERT INTO patches (action, query_id, at, about_outcome, about_stage, patch) "
                    "SELECT ?, query_id, ?, outcome, stage, ? FROM queries WHERE query_id = ?",
                    (action, at, text, query_id),
                )
                if found.rowcount:
                    self._fold(connection, query_id)
                    done += 1
        if done:
            self._actions.append(action)
        return done

    def undo(self) -> tuple[str, ...]:
        """Take back the last action of this terminal and return the queries that it was about; () = nothing to undo."""
        while self._actions:
            action = self._actions[-1]
            with self._file.writing() as connection:
                ids = [
                    query_id
                    for (query_id,) in connection.execute("SELECT query_id FROM patches WHERE action = ?", (action,))
                ]
                connection.execute("DELETE FROM patches WHERE action = ?", (action,))
                for query_id in ids:
                    self._fold(connection, query_id)
            self._actions.pop()
            if ids:
                return tuple(ids)
        return ()

    @property
    def undoable(self) -> int:
        """Actions of this terminal that can be taken back."""
        return len(self._actions)

    def of(self, query_id: str) -> Review | None:
        """What was said about one query; None = nothing."""
        found = self._file.rows("SELECT review FROM reviews WHERE query_id = ?", (query_id,))
        with self._checked():
            return Review.model_validate_json(found[0][0]) if found else None

    def every(self) -> Iterator[tuple[Review, Outcome, Stage]]:
        """All reviews of this audit's queries, by query id, each with what the diagnosis says now."""
        sql = "SELECT v.review, q.outcome, q.stage FROM reviews v JOIN queries q USING (query_id) ORDER BY query_id"
        for text, outcome, stage in self._file.rows(sql):
            with self._checked():
                found = Review.model_validate_json(text), Outcome(outcome), Stage(stage)
            yield found

    def count(self) -> int:
        """Queries of this audit with a verdict."""
        sql = "SELECT count(*) FROM reviews v JOIN queries q USING (query_id) WHERE v.verdict IS NOT NULL"
        return int(self._file.rows(sql)[0][0])

    def tags(self) -> list[tuple[str, int]]:
        """Tags in use with the number of their queries, most frequent first."""
        sql = "SELECT t.value, count(*) AS n FROM reviews v, json_each(v.tags) t GROUP BY t.value ORDER BY n DESC, 1"
        return [(str(tag), int(n)) for tag, n in self._file.rows(sql)]

    def place(self) -> Place:
        """Where the last person stopped."""
        found = self._file.rows("SELECT value FROM meta WHERE name = 'place'")
        try:
            return Place.model_validate_json(found[0][0]) if found else Place()
        except ValidationError:
            return Place()  # of another version: not worth an error

    def keep_place(self, place: Place) -> None:
        """Remember where to go on."""
        with self._file.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO meta VALUES ('place', ?)", (place.model_dump_json(exclude_defaults=True),)
            )

    def version(self) -> int:
        """A number that changes when another process has written to the file."""
        return int(self._file.rows("PRAGMA data_version")[0][0])

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise AuditFileError(f"{self.path}: damaged: a review is not as written. {schema.AGAIN}") from error

    def _fold(self, connection: sqlite3.Connection, query_id: str) -> None:
        """Write the row of `reviews` anew from the patches of a query."""
        rows = connection.execute(
            "SELECT at, about_outcome, about_stage, patch FROM patches WHERE query_id = ? ORDER BY n", (query_id,)
        ).fetchall()
        review = folded(query_id, rows)
        if review is None or review.is_empty:
            connection.execute("DELETE FROM reviews WHERE query_id = ?", (query_id,))
            return
        verdict = None if review.verdict is None else review.verdict.value
        connection.execute(
            "INSERT OR REPLACE INTO reviews VALUES (?, ?, ?, ?)",
            (query_id, verdict, to_json(review.tags), review.model_dump_json(exclude_defaults=True)),
        )


def folded(query_id: str, rows: Sequence[tuple[str, str, str, str]]) -> Review | None:
    """The review that patches add up to. A row: when, outcome and stage of the diagnosis then, the patch as JSON."""
    review = None
    for at, outcome, stage, text in rows:
        patch = Patch.model_validate_json(text)
        said = {name: getattr(patch, name) for name in ("verdict", "tags", "note", "stage", "gold")}
        said = {name: value for name, value in said.items() if value is not None} | dict.fromkeys(patch.clear)
        if patch.more_tags:
            said["tags"] = tuple(dict.fromkeys([*(review.tags if review else ()), *patch.more_tags]))
        about: dict[str, object] = {"at": datetime.fromisoformat(at)}
        if review is None or patch.verdict is not None:  # a note on a later audit does not renew the verdict
            about |= {"about_outcome": Outcome(outcome), "about_stage": Stage(stage)}
        start = review.model_dump() if review else {"query_id": query_id}
        review = Review.model_validate(start | about | said)
    return review


def carry_over(old: Path, new: sqlite3.Connection) -> None:
    """Copy what people did from an older audit of the same name: a second audit must not cost them their reviews.

    Args:
        old: The audit file that is about to be replaced; nothing happens when it is no audit of this version.
        new: The open database that replaces it.
    """
    if not old.is_file():
        return
    try:
        source = sqlite3.connect(f"{old.resolve().as_uri()}?mode=ro", uri=True, timeout=WAIT_SECONDS)
    except sqlite3.Error:
        return
    try:
        schema.defend(source)
        schema.check(source, old)
        for table, columns in (("patches", 7), ("reviews", 4)):
            rows = source.execute(f"SELECT * FROM {table}").fetchall()
            new.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * columns)})", rows)
        place = source.execute("SELECT name, value FROM meta WHERE name = 'place'").fetchall()
        new.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", place)
    except (sqlite3.Error, AuditFileError):
        return
    finally:
        source.close()
