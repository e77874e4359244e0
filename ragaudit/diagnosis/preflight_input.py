"""Preflight findings about the input itself: rows left out, and what was repaired so that a row could be used."""

from collections.abc import Iterable, Mapping

from ragaudit.diagnosis.preflight_rules import noted
from ragaudit.model.counting import counted, queries
from ragaudit.model.result import Finding, Level
from ragaudit.readers.problems import Problems

WHERE = "`ragaudit check BUNDLE` names file, line and field."

_LEFT_OUT = frozenset({"unreadable", "cut", "not_json", "missing_field", "line_too_long", "damaged_gzip"})
"""Kinds of problems that cost the row; so does every kind that starts with `duplicate`."""

_REPAIRS: Mapping[str, tuple[Level, str, str, str]] = {
    "invalid_utf8": (
        Level.WARN,
        "line",
        "held bytes that are not UTF-8, read as U+FFFD",
        "Write the file as UTF-8.",
    ),
    "lone_surrogate": (
        Level.WARN,
        "line",
        "held half of a surrogate pair, read as U+FFFD",
        "Write whole characters.",
    ),
    "not_a_number": (
        Level.WARN,
        "value",
        "not finite (NaN, Infinity), read as null",
        "Log a finite number, or null.",
    ),
    "rank_not_integer": (
        Level.INFO,
        "rank",
        "not a whole number, read as null; the position in the list is used",
        "Log ranks as whole numbers from 1.",
    ),
    "field_dropped": (
        Level.WARN,
        "field",
        "could not be read and left out; the rows are used without",
        "Write each field as docs/data.md says.",
    ),
    "field_misnamed": (
        Level.WARN,
        "name",
        "of a field that is close to one ragaudit reads, and is not read",
        "Rename it, or leave it if it is your own.",
    ),
    "qrels_empty": (
        Level.WARN,
        "file",
        "of qrels without a judgement",
        "Write `query id grade` lines, or leave the file out.",
    ),
    "gold_outside_groups": (
        Level.WARN,
        "query",
        "with gold in no group of gold_groups, which is left out",
        "Add it to a group.",
    ),
    "gold_differs_from_qrels": (
        Level.WARN,
        "query",
        "with other gold in the trace than in the qrels; the trace counts",
        "Write null, not [], where nobody labelled, or drop one of the two.",
    ),
    "qrels_without_trace": (
        Level.WARN,
        "query id",
        "of the qrels in no trace",
        "Give the qrels of this run, or the traces that are missing.",
    ),
    "qrels_not_judged": (
        Level.INFO,
        "line",
        "of the qrels with a negative grade (not judged), left out",
        "Nothing to do if that is what it means.",
    ),
}
"""Kind of problem -> weight, what is counted, what happened to it, what to do."""


def input_findings(problems: Problems) -> Iterable[Finding]:
    """One finding for rows that were lost, one for repeated rows, and one for each kind of repair, with counts."""
    tallies = problems.tallies.values()
    lost = sum(tally.lost for tally in tallies)
    repeated = sum(tally.set_aside for tally in tallies) - lost
    if lost:
        message = f"{counted(lost, 'row')} left out that could not be read"
        yield noted("rows_set_aside", Level.WARN, message, f"Correct them: {WHERE}")
    if repeated:
        message = f"{counted(repeated, 'row')} left out that came before under the same id: the first counts"
        yield noted("rows_repeated", Level.WARN, message, f"Write each of them once: {WHERE}")
    for kind, n in problems.counts().items():
        if kind in _REPAIRS:
            level, noun, happened, fix = _REPAIRS[kind]
            how_many = queries(n) if noun == "query" else counted(n, noun)
            yield noted(kind, level, f"{how_many} {happened}", fix)
        elif kind not in _LEFT_OUT and not kind.startswith("duplicate"):
            message = f"{counted(n, 'remark')} on the input: {kind.replace('_', ' ')}"
            yield noted(kind, Level.INFO, message, f"See what it says: {WHERE}")
