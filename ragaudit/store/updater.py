"""Puts new results of single queries into a finished audit, and then the summary that goes with them."""

import heapq
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ragaudit.errors import AuditFileError
from ragaudit.model.judgement import Judgement
from ragaudit.model.result import JudgeNote, QueryResult, Summary
from ragaudit.store import schema
from ragaudit.store.codec import pack_judgement, query_columns, unpack_judgement
from ragaudit.store.shared import OnSharedFile, SharedFile

PAGE = 500
"""Rows read at once: between two pages others may write."""

Judged = tuple[QueryResult, Judgement]
Stored = tuple[QueryResult, Judgement | None]


class AuditUpdater(OnSharedFile):
    """A finished audit that gets new results. Close it, or use it as a context manager.

    Several processes may hold one file open, and reviews go on meanwhile. The file counts how many results were
    replaced and for how many of them the summary was made: `Summary.behind` is the difference.
    """

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a finished audit.

        Raises:
            AuditFileError: It is no audit, is damaged, or may not be written.
        """
        return cls(SharedFile.open(path))

    def replace(self, rows: Sequence[Judged], judge: JudgeNote) -> None:
        """Put results and judgements in the place of earlier ones, all or none; traces and reviews stay as they are.

        Args:
            rows: The new results with what the judge said.
            judge: Who said it: kept beside the rows, so that a summary can be made when nobody came to write one.

        Raises:
            AuditFileError: The file cannot be written, was replaced, or does not have one of the queries.
        """
        with self._file.writing() as connection:
            for result, judgement in rows:
                query_id = result.diagnosis.query_id
                found = connection.execute("SELECT seq FROM queries WHERE query_id = ?", (query_id,)).fetchone()
                if found is None:
                    raise AuditFileError(f"{self.path}: has no query {query_id!r}. {schema.AGAIN}")
                seq = found[0]
                connection.execute(
                    "UPDATE queries SET outcome = ?, stage = ?, gap = ?, causes = ?, n_gold = ?, query_text = ? "
                    "WHERE seq = ?",
                    (*query_columns(result), seq),
                )
                connection.execute(
                    "UPDATE results SET result = ? WHERE seq = ?", (result.model_dump_json(exclude_defaults=True), seq)
                )
                connection.execute(
                    "INSERT OR REPLACE INTO judgements VALUES (?, ?)",
                    (seq, pack_judgement(judgement)),
                )
                connection.execute("DELETE FROM causes WHERE seq = ?", (seq,))
                connection.executemany(
                    "INSERT INTO causes VALUES (?, ?)", ((c, seq) for c in dict.fromkeys(result.diagnosis.causes))
                )
            connection.execute(
                "INSERT OR REPLACE INTO meta SELECT ?, ? + coalesce(max(value + 0), 0) FROM meta WHERE name = ?",
                (schema.REPLACED, len(rows), schema.REPLACED),
            )
            text = judge.model_dump_json(exclude_defaults=True)
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (schema.JUDGE, text))

    def judgement(self, query_id: str) -> Judgement | None:
        """What the judge said about a query so far."""
        sql = "SELECT judgement FROM judgements WHERE seq = (SELECT seq FROM queries WHERE query_id = ?)"
        found = self._file.rows(sql, (query_id,))
        with self._checked():
            return unpack_judgement(found[0][0]) if found else None

    def judge(self) -> JudgeNote | None:
        """Who said what was put in place of earlier results; None = nothing was."""
        found = self._file.rows("SELECT value FROM meta WHERE name = ?", (schema.JUDGE,))
        with self._checked():
            return JudgeNote.model_validate_json(found[0][0]) if found else None

    def results(self) -> Iterator[QueryResult]:
        """Every result, leaks first, one in memory at a time."""
        for _, (result, _) in self._pages(-schema.LEAK_OFFSET, schema.LEAK_OFFSET):
            yield result

    def stored(self) -> Iterator[Stored]:
        """Every result with what the judge said of it, in the order of the traces."""
        leaks = self._pages(-schema.LEAK_OFFSET, 0)
        others = self._pages(0, schema.LEAK_OFFSET)
        placed = ((seq + schema.LEAK_OFFSET, row) for seq, row in leaks)
        for _, row in heapq.merge(placed, others, key=lambda pair: pair[0]):
            yield row

    def summary(self) -> Summary:
        """Everything about the run but its queries, as it was last written."""
        found = self._file.rows("SELECT value FROM meta WHERE name = 'summary'")
        if not found:
            raise AuditFileError(f"{self.path}: unfinished. Run the same `ragaudit audit` command: it resumes.")
        with self._checked():
            summary = Summary.model_validate_json(found[0][0])
        return summary.model_copy(update={"behind": self.replaced() - self._count(schema.SUMMED)})

    def replaced(self) -> int:
        """How many results were ever replaced. Equal before and after = nothing was written in between."""
        return self._count(schema.REPLACED)

    def finish(self, summary: Summary, replaced: int) -> bool:
        """Write the summary, unless results were replaced since it was made; whether it was written.

        Args:
            summary: Made from the results as they were when `replaced` was asked for. What a calibration wrote
                meanwhile into the old summary is kept.
            replaced: What `replaced()` said then.
        """
        with self._file.writing() as connection:
            if self.replaced() != replaced:
                return False
            note = self.summary().judge
            if note is not None and summary.judge is not None:
                kept = summary.judge.model_copy(update={"calibration": note.calibration})
                summary = summary.model_copy(update={"judge": kept})
            text = summary.model_copy(update={"behind": 0}).model_dump_json(exclude_defaults=True)
            connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", (("summary", text), (schema.SUMMED, str(replaced)))
            )
        return True

    def _count(self, name: str) -> int:
        found = self._file.rows("SELECT value FROM meta WHERE name = ?", (name,))
        with self._checked():
            return int(found[0][0]) if found else 0

    def _pages(self, after: int, below: int) -> Iterator[tuple[int, Stored]]:
        sql = (
            "SELECT r.seq, r.result, j.judgement FROM results r LEFT JOIN judgements j ON j.seq = r.seq "
            "WHERE r.seq > ? AND r.seq < ? ORDER BY r.seq LIMIT ?"
        )
        while rows := self._file.rows(sql, (after, below, PAGE)):
            for seq, result, judgement in rows:
                with self._checked():
                    row = _read(result, judgement)
                yield seq, row
            after = rows[-1][0]

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, RecursionError) as error:  # pydantic raises ValueError
            said = str(error).splitlines()[0]
            raise AuditFileError(f"{self.path}: damaged ({said}). {schema.AGAIN}") from error


def _read(result: str, judgement: str | None) -> Stored:
    said = None if judgement is None else unpack_judgement(judgement)
    return QueryResult.model_validate_json(result), said
