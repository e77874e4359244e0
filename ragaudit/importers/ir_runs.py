"""Runs: what a retriever returned for each query, in the order that counts, whatever file holds it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ragaudit.importers.cells import id_text
from ragaudit.importers.inputs import objects
from ragaudit.importers.ir_files import PAIRS, Kind, Part, nested
from ragaudit.importers.report import ImportReport
from ragaudit.readers.lines import read_lines
from ragaudit.readers.problems import Problems


class Entry(NamedTuple):
    """One line of a run. MS MARCO has no score; JSON and Parquet have no rank."""

    id: str
    score: float | None
    rank: int | None


@dataclass
class Run:
    """One list for each query. `slices` says where in a file of several runs a query stood."""

    name: str
    file: str
    lists: dict[str, list[Entry]] = field(default_factory=dict)
    slices: dict[str, dict[str, str]] = field(default_factory=dict)
    model: str | None = None

    def add(self, query: str, entry: Entry) -> None:
        """Take one entry in, at the end of the query's list."""
        self.lists.setdefault(query, []).append(entry)


_NAMELESS = ("", "none", "null", "run", "tag", "run_tag", "runid", "run_id", "q0")
"""Tags that say nothing."""


def runs_of(part: Part, report: ImportReport) -> list[Run]:
    """The runs of one file: one for each tag. What names none is named by its file.

    Raises:
        InputError: The file cannot be read.
    """
    stem = part.path.name.removesuffix(".gz").rsplit(".", 1)[0]
    if part.kind is Kind.RUN:
        runs: dict[str, Run] = {}
        for tag, query, entry in _lines(part, report):
            name = stem if tag.lower() in _NAMELESS else tag
            runs.setdefault(name, Run(name, part.path.name)).add(query, entry)
        return list(runs.values())
    run = Run(stem, part.path.name)
    if part.kind is Kind.PREDICTIONS:
        _predictions(nested(part), run, report)
    elif part.path.suffix.lower() in (".parquet", ".pq"):
        for query, key, score in rows_of(part.path, report):
            run.add(query, Entry(key, score, None))
    else:
        _scores(nested(part), run, report)
    return [run]


def rows_of(path: Path, report: ImportReport) -> Iterator[tuple[str, str, float]]:
    """(query, id, number) of a Parquet table of ranx or MTEB."""
    for place, row in objects(path, report):
        query, key = (id_text(next((row[pair[n]] for pair in PAIRS if pair[n] in row), None)) for n in (0, 1))
        score = _number(row.get("score"))
        if query is None or key is None or score is None:
            report.skip("the row has no query, id and score", place)
            continue
        yield query, key, score


def ordered(entries: list[Entry], by: str, report: ImportReport, place: str) -> list[Entry]:
    """The entries best first, each id once.

    By `score` as trec_eval orders: the higher score first, equal ones by id, descending. By `rank` as the file says.
    Where all scores are equal, or there are none, only the rank says anything. What the two disagree on is noted.
    """
    scores, ranks = {each.score for each in entries}, [each.rank for each in entries if each.rank is not None]
    has_ranks = len(ranks) == len(entries) and len(set(ranks)) > 1
    if has_ranks and min(ranks) == 0:
        report.note("ranks count from 0 in the file: read as positions", place)
    if has_ranks and len(set(ranks)) < len(ranks):
        report.note("equal ranks in one list: kept in the order of the file", place)
    by_rank = sorted(entries, key=lambda each: each.rank or 0) if has_ranks else entries
    if scores == {None} or (len(scores) == 1 and has_ranks and len(entries) > 1):
        if scores != {None}:
            report.note("all scores of a list are equal: ordered by its ranks", place)
        return _once(by_rank, report, place)
    if by == "rank" and has_ranks:
        if not _falls(by_rank):
            report.note("score and rank disagree: ordered by rank, as --order says", place)
        return _once(by_rank, report, place)
    by_score = sorted(sorted(entries, key=lambda each: each.id, reverse=True), key=_descending)
    if has_ranks and [each.id for each in by_score] != [each.id for each in by_rank]:
        if _falls(by_rank):
            report.note("equal scores: ordered by id as trec_eval does; --order rank keeps the file's order", place)
        else:
            report.note("score and rank disagree: ordered by score; --order rank takes the rank", place)
    elif not has_ranks and len(scores) < len(entries):
        report.note("equal scores: ordered by id, descending, as trec_eval does", place)
    return _once(by_score, report, place)


def _lines(part: Part, report: ImportReport) -> Iterator[tuple[str, str, Entry]]:
    problems = Problems()
    for number, line in read_lines(part.path, part.path.name, problems):
        cells = line.decode("utf-8", errors="replace").split()
        place = f"{part.path.name}:{number}"
        if part.columns == 3:
            rank = _number(cells[2]) if len(cells) == 3 else None
            if rank is None:
                report.skip("the line is not `query id rank`", place)
                continue
            is_rank = rank.is_integer()
            yield "", cells[0], Entry(cells[1], None, int(rank)) if is_rank else Entry(cells[1], rank, None)
            continue
        score = _number(cells[4]) if len(cells) >= 5 else None
        if score is None:
            report.skip("the line is not `query Q0 id rank score tag`, with a score that is a number", place)
            continue
        claimed = _number(cells[3])
        entry = Entry(cells[2], score, None if claimed is None else int(claimed))
        yield " ".join(cells[5:]), cells[0], entry
    for problem in problems.messages:
        report.note(problem.message, problem.place)


def _scores(value: Mapping[str, Any], run: Run, report: ImportReport, before: str = "") -> None:
    for query, found in value.items():
        if not isinstance(found, Mapping):
            report.skip("what stands under a query is no object of {id: score}", f"{run.file}: {query[:60]}")
            continue
        run.lists.setdefault(before + query, [])
        for key, score in found.items():
            number = _number(score)
            if number is None:
                report.skip("a score that is no number", f"{run.file}: {query[:60]}")
            else:
                run.add(before + query, Entry(str(key), number, None))


def _predictions(value: Mapping[str, Any], run: Run, report: ImportReport) -> None:
    """MTEB: the model, then subset -> split -> query -> id -> score. One split: ids as they are; several: with both."""
    meta = value.get("mteb_model_meta")
    if isinstance(meta, Mapping) and isinstance(meta.get("model_name"), str):
        run.model = run.name = meta["model_name"]
    splits = [
        (str(subset), str(split), queries)
        for subset, found in value.items()
        if subset != "mteb_model_meta" and isinstance(found, Mapping)
        for split, queries in found.items()
        if isinstance(queries, Mapping)
    ]
    if len(splits) > 1:
        report.note("several subsets or splits: query ids are SUBSET/SPLIT/ID, and qrels do not fit them", run.file)
    for subset, split, queries in splits:
        before = f"{subset}/{split}/" if len(splits) > 1 else ""
        _scores(queries, run, report, before)
        run.slices |= {before + query: {"subset": subset, "split": split} for query in queries}


def _once(entries: list[Entry], report: ImportReport, place: str) -> list[Entry]:
    kept: dict[str, Entry] = {}
    for entry in entries:
        kept.setdefault(entry.id, entry)
    if len(kept) < len(entries):
        report.note("an id stands in one list more than once: the first place counts", place)
    return list(kept.values())


def _descending(entry: Entry) -> float:
    return -entry.score if entry.score is not None else math.inf


def _falls(entries: list[Entry]) -> bool:
    scores = [entry.score for entry in entries if entry.score is not None]
    return all(before >= after for before, after in pairwise(scores))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
