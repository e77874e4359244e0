"""Writes what the person who reviews an audit wants to send: a written diagnosis, the queries as rows, their labels."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.errors import ConfigError
from ragaudit.model.counting import queries
from ragaudit.model.diagnosis import Stage
from ragaudit.model.experiment import Experiment
from ragaudit.model.json_line import json_line
from ragaudit.model.result import QueryResult, Summary
from ragaudit.model.review import Review
from ragaudit.report import verdict as say
from ragaudit.report.as_json import query_row
from ragaudit.report.labels import GOLD_WRONG, NOT_WRITABLE, doubted, grades, label_row, qrels_lines
from ragaudit.report.query_page import answer_text, chunk_texts, query_page
from ragaudit.store import AuditReader, Reviews
from ragaudit.store.filters import EVERYTHING, Filter, noted
from ragaudit.store.texts import ReadableTexts

OPEN = 20
"""Up to this many queries an HTML file shows unfolded."""

Progress = Callable[[int], None]
"""Told how many queries are written. What it raises ends the export, and nothing is left behind."""


class ExportFormat(StrEnum):
    """As what queries are written."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSONL = "jsonl"
    QRELS = "qrels"
    LABELS = "labels"

    @property
    def suffix(self) -> str:
        """With which a file name ends."""
        return _SUFFIXES[self][0]

    @property
    def what(self) -> str:
        """In a few words."""
        return _WHAT[self]


_SUFFIXES: dict[ExportFormat, tuple[str, ...]] = {
    ExportFormat.LABELS: (".labels.jsonl",),
    ExportFormat.MARKDOWN: (".md", ".markdown"),
    ExportFormat.HTML: (".html", ".htm"),
    ExportFormat.JSONL: (".jsonl",),
    ExportFormat.QRELS: (".qrels", ".tsv"),
}
_WHAT = {
    ExportFormat.MARKDOWN: "the written diagnosis",
    ExportFormat.HTML: "the same, one file for a browser",
    ExportFormat.JSONL: "a row a query, for programs",
    ExportFormat.QRELS: "the gold as you corrected it (TREC)",
    ExportFormat.LABELS: "a row for each query you reviewed",
}


def format_of(name: str) -> ExportFormat:
    """The format that a file name ends in.

    Raises:
        ConfigError: Its end names none.
    """
    for form, ends in _SUFFIXES.items():
        if name.lower().endswith(ends):
            return form
    known = ", ".join(ends[0] for ends in _SUFFIXES.values())
    raise ConfigError(f"{name}: its end names no format. End it in one of {known}, or pass --as.")


def file_name(about: str, form: ExportFormat) -> str:
    """A name to offer: letters, digits, `.`, `-` and `_` of a query's id or of a run's name, with the format's end."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", about).strip(".-")[:60]
    return f"{plain or 'export'}{form.suffix}"


@dataclass(frozen=True)
class Selection:
    """Which queries are written, leaks first, then in the order of the traces."""

    where: Filter = EVERYTHING
    marks: Collection[str] = ()
    name: str = "all queries"
    """As the written diagnosis calls them."""


@dataclass
class Written:
    """What an export holds, and what it leaves out with the reason."""

    queries: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def export(
    out: TextIO,
    reader: AuditReader,
    form: ExportFormat,
    selection: Selection,
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    *,
    reviews: Reviews | None = None,
    with_text: bool = False,
    progress: Progress | None = None,
) -> Written:
    """Write the selection, one query in memory at a time.

    Args:
        out: Where to.
        reader: The audit.
        form: As what.
        selection: Which queries.
        causes: The registered causes.
        stage_notes: What each stage means.
        reviews: What people said; None = nothing.
        with_text: Texts of query, chunks and answer too, as far as the query's user may read them.
        progress: Called after each query.
    """
    job = _Job(reader, reader.summary(), selection, causes, stage_notes, reviews, with_text, progress)
    if form in (ExportFormat.MARKDOWN, ExportFormat.HTML):
        job.render(out, form)
    else:
        lines = {
            ExportFormat.JSONL: job.rows,
            ExportFormat.QRELS: job.qrels,
            ExportFormat.LABELS: job.labels,
        }[form]
        for line in lines():
            out.write(line + "\n")
    return job.written


@dataclass
class _Job:
    """One export under way."""

    reader: AuditReader
    summary: Summary
    selection: Selection
    causes: Mapping[str, CauseInfo]
    stage_notes: Mapping[Stage, str]
    reviews: Reviews | None
    with_text: bool
    progress: Progress | None
    written: Written = field(default_factory=Written)

    def render(self, out: TextIO, form: ExportFormat) -> None:
        """Through the template, which takes the queries one by one."""
        from ragaudit.report.templating import html_environment, markdown_environment, styled

        environment = html_environment() if form is ExportFormat.HTML else markdown_environment()
        n = self.reader.count(self.selection.where, marks=self.selection.marks)
        template = environment.get_template(f"export.{'html' if form is ExportFormat.HTML else 'md'}.jinja")
        for piece in template.generate(
            run=self.summary.run.name,
            fingerprint=self.summary.run.fingerprint,
            ragaudit=self.summary.run.ragaudit,
            selection=self.selection.name,
            n=n,
            verdict=say.verdict(self.summary),
            leak=say.leak_sentence(self.summary),
            with_text=self.with_text,
            unfolded=n <= OPEN,
            queries=self.pages(),
            **(styled() if form is ExportFormat.HTML else {}),
        ):
            out.write(piece)

    def pages(self) -> Iterator[dict[str, Any]]:
        """The queries as the templates print them."""
        answers = self._experiments()
        for result in self._results(self.selection.where):
            query_id = result.diagnosis.query_id
            self.written.queries += 1
            yield query_page(
                result,
                self.causes,
                self.stage_notes,
                experiments=answers.get(query_id, ())[:1],
                review=self._review(query_id),
                texts=self._texts(result),
            )

    def rows(self) -> Iterator[str]:
        """The rows of the JSON report, each with its review."""
        for result in self._results(self.selection.where):
            review = self._review(result.diagnosis.query_id)
            row = query_row(result, with_text=self.with_text)
            row["review"] = None if review is None else label_row(review, result.diagnosis)
            if (texts := self._texts(result)) is not None:
                row["texts"] = chunk_texts(result.diagnosis, texts)
                row["answer_text"] = answer_text(texts)
            self.written.queries += 1
            yield json_line(row)

    def labels(self) -> Iterator[str]:
        """What people said, a row a query."""
        for result in self._results(noted(self.selection.where)):
            review = self._review(result.diagnosis.query_id)
            if review is None:
                continue  # taken back meanwhile
            row = label_row(review, result.diagnosis)
            self.written.queries += 1
            yield json_line(row | {"query_text": result.query_text} if self.with_text else row)

    def qrels(self) -> Iterator[str]:
        """Gold ids with their grades."""
        for result in self._results(self.selection.where):
            diagnosis = result.diagnosis
            review = self._review(diagnosis.query_id)
            if doubted(review):
                self.written.left_out[GOLD_WRONG] += 1
                continue
            graded = grades(diagnosis, self.reader.trace(diagnosis.query_id), review)
            lines = list(qrels_lines(diagnosis.query_id, graded or {}))
            self.written.left_out.update(NOT_WRITABLE for line in lines if line is None)
            written = [line for line in lines if line is not None]
            self.written.queries += bool(written)
            yield from written

    def _results(self, where: Filter) -> Iterator[QueryResult]:
        for n, result in enumerate(self.reader.iter_results(where, marks=self.selection.marks), 1):
            yield result
            if self.progress is not None:
                self.progress(n)

    def _review(self, query_id: str) -> Review | None:
        return None if self.reviews is None else self.reviews.of(query_id)

    def _texts(self, result: QueryResult) -> ReadableTexts | None:
        return ReadableTexts(self.reader, self.summary.run, result) if self.with_text else None

    def _experiments(self) -> dict[str, list[Experiment]]:
        """Query -> the experiments that answer it, best first."""
        found: dict[str, list[Experiment]] = {}
        for experiment in self.summary.experiments:
            for query_id in experiment.queries:
                found.setdefault(query_id, []).append(experiment)
        return found


def wrote(path: Path, form: ExportFormat, written: Written, *, with_text: bool) -> str:
    """The sentence that says what an export wrote and what is not in it."""
    texts = " with texts" if with_text and form is not ExportFormat.QRELS else ""
    left_out = "".join(f"; {n:,} left out: {reason}" for reason, n in written.left_out.items())
    return f"wrote {path}: {queries(written.queries)} as {form.value}{texts}{left_out}"
