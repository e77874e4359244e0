"""Relevance judgements in the layouts of TREC and BEIR: query -> id -> grade."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from ragaudit.errors import InputError
from ragaudit.readers.fields import quoted
from ragaudit.readers.lines import read_lines
from ragaudit.readers.problems import Problems

_QUERY_NAMES = frozenset({"query_id", "qid", "q_id", "query", "queryid", "topic", "topic_id"})
_ITERATIONS = frozenset({"0", "Q0"})
_GRADE_NAMES = frozenset({"grade", "score", "rel", "relevance", "label"})


def read_qrels(path: Path, name: str, problems: Problems) -> Mapping[str, Mapping[str, float]]:
    """Read `query iter id grade` (TREC), or `query id grade` with a header (BEIR) or without one.

    The first line that fits decides how many columns the file has. Columns are split at tabs where that works, so
    that ids may hold spaces, else at white space. Grade 0 is kept: judged, not relevant. A negative grade means "not
    judged" and is left out.
    """
    found: dict[str, dict[str, float]] = {}
    for number, query, key, grade in _judgements(path, name, problems):
        if grade < 0:
            what = "a negative grade means not judged; the line is left out. Nothing to do."
            problems.note("qrels_not_judged", name, number, what)
        elif found.setdefault(query, {}).setdefault(key, grade) != grade:
            what = (
                f"{quoted(query)} {quoted(key)} was graded {found[query][key]:g} before, which counts. Keep one line."
            )
            problems.set_aside("duplicate_judgement", name, number, what)
        problems.done(name, number)
    problems.tally(name).complete = True
    if not found:
        problems.refuse_if_all_lost(name)
        problems.add("qrels_empty", name, "holds no judgement. Write `query id grade`, or leave the file out.")
    return found


def _refuse_swapped(name: str, iterations: set[str], ids: set[str]) -> None:
    """In TREC files the iteration is 0 or Q0 throughout; where that stands in the column of the ids, they changed."""
    named = len(iterations) > 1 or not "".join(iterations).isdigit()
    if ids and ids <= _ITERATIONS and not iterations & _ITERATIONS and named:
        what = f"the third column is {quoted(min(ids))} on every line, and ids stand in the second"
        raise InputError(f"{name}: {what}. Write `query iter id grade`, as `q1 0 doc7 1`.")


def _judgements(path: Path, name: str, problems: Problems) -> Iterator[tuple[int, str, str, float]]:
    columns = 0
    iterations: set[str] = set()
    ids: set[str] = set()
    for number, line in read_lines(path, name, problems):
        text = line.decode("utf-8", errors="replace").rstrip("\r\n")
        parts = [part.strip() for part in text.split("\t")]
        if len(parts) not in (3, 4):
            parts = text.split()
        if not columns and len(parts) in (3, 4):
            columns = len(parts)
            if _grade(parts[-1]) is None and _is_header(parts):
                continue
        grade = _grade(parts[-1]) if parts else None
        if len(parts) != columns:
            what = f"{_not_in_columns(line, len(parts))} Write `query id grade` or `query iter id grade`."
            problems.set_aside("unreadable", name, number, what)
        elif grade is None:
            problems.set_aside("unreadable", name, number, "the last column is no number. Write the grade there.")
        else:
            if columns == 4 and len(ids) <= len(_ITERATIONS):
                iterations.add(parts[1])
                ids.add(parts[2])
            yield number, parts[0], parts[-2], grade
    _refuse_swapped(name, iterations, ids)


def _not_in_columns(line: bytes, n: int) -> str:
    if b"\r" in line.rstrip():
        return "lines end in CR alone: save the file with LF line ends."
    if n == 1 and b"," in line:
        return "has 1 column, cut by commas: put tabs in their place."
    return f"has {n} column{'s' * (n != 1)}."


def _is_header(parts: list[str]) -> bool:
    return parts[0].lower().replace("-", "_") in _QUERY_NAMES or parts[-1].lower() in _GRADE_NAMES


def _grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    return grade if math.isfinite(grade) else None
