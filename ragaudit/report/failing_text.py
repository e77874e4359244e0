"""The failing queries, one line each: which stage lost the evidence, and the first sentence of the proof."""

from collections.abc import Iterable, Iterator
from itertools import islice

from ragaudit.model.diagnosis import Outcome, Severity
from ragaudit.model.result import QueryResult
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, cells, heading, pad

SHOWN = 20
"""Failing queries that an audit lists at its end; the report and the audit file have all of them."""


def failing_text(results: Iterable[QueryResult], failing: int, width: int = WIDTH, shown: int | None = SHOWN) -> str:
    """A table of the failing queries in file order, leaks first; empty when none fails.

    Args:
        results: The results, passes may be among them.
        failing: How many fail in all, for the count of those that are not shown.
        width: Columns.
        shown: Lines at most; None = all.
    """
    found = (result for result in results if result.diagnosis.outcome is Outcome.FAIL)
    lines = list(_lines(islice(found, shown), width))
    if not lines:
        return ""
    more = failing - len(lines)
    tail = [f"  and {more:,} more: `ragaudit report`"] if more > 0 else []
    return "\n".join([heading("Failing queries", width), *lines, *tail]) + "\n"


def _lines(results: Iterable[QueryResult], width: int) -> Iterator[str]:
    for result in results:
        diagnosis = result.diagnosis
        mark = "!" if diagnosis.severity is Severity.LEAK else "X"
        name = pad(for_terminal(diagnosis.query_id), 12)
        start = f"{mark} {name} {pad(diagnosis.stage.label, 14)} "
        proof = for_terminal(diagnosis.evidence[0]) if diagnosis.evidence else ""
        yield (start + pad(proof, max(width - cells(start), 8))).rstrip()
