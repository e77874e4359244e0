"""An audit for GitHub Actions: annotations for the log, worst first, and a step summary that stays under its limit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from ragaudit.compare.bar import NOTHING, Bar
from ragaudit.model.counting import counted, queries
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report import verdict as say
from ragaudit.report.case import Case, Verdict, case_of, details, gate_sentence
from ragaudit.report.clean import Markdown, code, for_workflow, shortened
from ragaudit.report.figures import LABELS, in_order, interval, losses, number
from ragaudit.report.next_text import change_of, effect
from ragaudit.report.templating import markdown_environment

TEMPLATE = "github.md.jinja"

ANNOTATIONS = 10
"""GitHub shows so many errors, and so many warnings, of one step, and drops the rest without a word."""

SUMMARY_BYTES = 256 << 10
"""A step's summary of more than 1 MiB is not shown at all; several tools may share a step."""

MISSING = 50
"""Queries of the baseline that the run does not have, by name; the rest are counted."""

MESSAGE = 400
NAME = 120
"""Characters of an id or a name."""


@dataclass(frozen=True)
class Listed:
    """One query that a person should look at."""

    result: QueryResult
    case: Case


@dataclass(frozen=True)
class Standings:
    """The queries to look at: those that fail the build, then other failing ones; each the worst first, then cut."""

    rows: tuple[Listed, ...]
    failed: int
    """Queries that fall short, in all."""
    other: int
    """Failing queries that do not, in all."""


def standings(results: Iterable[QueryResult], bar: Bar = NOTHING, *, most: int) -> Standings:
    """Read every query once and keep the worst.

    Args:
        results: The queries of a run, in any order.
        bar: What it was held against.
        most: How many are kept.
    """
    places = {query_id: place for place, query_id in enumerate(bar.short)}
    totals = {Verdict.FAILED: 0, Verdict.SKIPPED: 0}

    def told() -> Iterator[tuple[tuple[Any, ...], Listed]]:
        for result in results:
            case = case_of(result, bar)
            failed = case.verdict is Verdict.FAILED
            if failed or (case.verdict is Verdict.SKIPPED and result.diagnosis.outcome is Outcome.FAIL):
                totals[case.verdict] += 1
                yield (not failed, places.get(result.diagnosis.query_id, -1), *_badness(result)), Listed(result, case)

    rows = nsmallest(most, told(), key=lambda entry: entry[0])
    return Standings(tuple(listed for _, listed in rows), totals[Verdict.FAILED], totals[Verdict.SKIPPED])


def annotations(found: Standings, bar: Bar = NOTHING) -> str:
    """The workflow commands, one a line: errors for what falls short, warnings for what does not and is worth knowing.

    Gates that fired stand before the queries that make them, leaks before everything.
    """
    failed = [row for row in found.rows if row.case.verdict is Verdict.FAILED]
    n_leaks = sum(row.case.kind == "leak" for row in failed)
    errors = [_of_query(row) for row in failed]
    errors[n_leaks:n_leaks] = [(f"Gate {gate.gate}", gate_sentence(gate)) for gate in bar.gates if gate.fired]
    warnings = [("Compared with the baseline", text) for text in (bar.report.warnings if bar.report else ())]
    warnings += [("Gate not measured", f"{name}: pass a baseline") for name in bar.unchecked]
    others = 0
    if not bar.gates and bar.baseline is None:
        warnings += [_of_query(row) for row in found.rows if row.case.verdict is Verdict.SKIPPED]
        others = found.other
    n_errors = found.failed + sum(gate.fired for gate in bar.gates)
    n_warnings = max(len(warnings), others)
    lines = [*_commands("error", errors, n_errors), *_commands("warning", warnings, n_warnings)]
    return "".join(lines)


def step_summary(summary: Summary, found: Standings, bar: Bar = NOTHING, *, with_text: bool = False) -> str:
    """The step summary as Markdown, at most SUMMARY_BYTES long: rows are left out, and counted, until it fits."""
    template = markdown_environment().get_template(TEMPLATE)
    shown = len(found.rows)
    while True:
        text = template.render(_view(summary, found, bar, shown, with_text))
        if len(text.encode("utf-8", "replace")) <= SUMMARY_BYTES or not shown:
            return text
        shown //= 2


def _badness(result: QueryResult) -> tuple[Any, ...]:
    """Least recall first, then least MRR; what is undefined comes after what is known."""
    recall, mrr = result.metrics.get("recall@k"), result.metrics.get("mrr@k")
    return (recall is None, recall or 0.0, mrr is None, mrr or 0.0, result.diagnosis.query_id)


# --- annotations ------------------------------------------------------------------------------------------------------


def _of_query(row: Listed) -> tuple[str, str]:
    proof = next(details(row.result, {}), "")
    said = row.case.says.removesuffix(".")
    return row.result.diagnosis.query_id, f"{said}. {proof}" if proof else said


def _commands(level: str, told: list[tuple[str, str]], total: int) -> Iterator[str]:
    """At most ANNOTATIONS of them; the last one counts what is not shown."""
    shown = told if total <= ANNOTATIONS else told[: ANNOTATIONS - 1]
    for title, message in shown:
        yield f"::{level} title={for_workflow(title, NAME, key=True)}::{for_workflow(message, MESSAGE)}\n"
    if total > len(shown):
        yield f"::{level} title=ragaudit::and {total - len(shown):,} more, in the step summary and the audit file\n"


# --- the step summary -------------------------------------------------------------------------------------------------


def _view(summary: Summary, found: Standings, bar: Bar, shown: int, with_text: bool) -> dict[str, Any]:
    rows = found.rows[:shown]
    short = [row for row in rows if row.case.verdict is Verdict.FAILED]
    other = [row for row in rows if row.case.verdict is Verdict.SKIPPED]
    fired = [gate for gate in bar.gates if gate.fired]
    run = summary.run
    return {
        "run": shortened(run.name, NAME),
        "leak": say.leak_sentence(summary),
        "verdict": Markdown(say.verdict(summary)),
        "held": _held_sentence(bar, found, len(fired)),
        "gates": [*fired, *(gate for gate in bar.gates if not gate.fired)],
        "unchecked": bar.unchecked,
        "warnings": () if bar.report is None else bar.report.warnings,
        "missing": [_name(query_id) for query_id in bar.missing[:MISSING]],
        "more_missing": max(len(bar.missing) - MISSING, 0),
        "short": [_row(row, with_text) for row in short],
        "more_short": found.failed - len(short),
        "other": [_row(row, with_text) for row in other],
        "more_other": found.other - len(other),
        "losses": [(stage.label, n) for stage, n in losses(summary) if n],
        "metrics": [
            (
                LABELS.get(name, shortened(name, NAME)),
                number(summary.metrics[name].mean),
                Markdown(interval(summary.metrics[name])),
                summary.metrics[name].n,
            )
            for name in in_order(summary.metrics)
            if summary.metrics[name].n
        ],
        "next": [f"{change_of(each)}: {effect(each)}" for each in summary.experiments[:1]],
        "total": queries(sum(summary.outcomes.values())),
        "ragaudit": run.ragaudit,
        "fingerprint": _name(run.fingerprint),
    }


def _held_sentence(bar: Bar, found: Standings, fired: int) -> str:
    against = f"the baseline {shortened(bar.baseline, NAME)}" if bar.baseline is not None else ""
    if bar.gates:
        gates = f"{fired} of {counted(len(bar.gates), 'gate')} fired"
        against = f"{gates}, against {against}" if against else gates
    elif against:
        against = f"Held against {against}"
    if not against:
        return "Held against nothing: no [gates] are written and no baseline was given. Findings alone fail no build."
    return f"{against}: {queries(found.failed)} {'falls' if found.failed == 1 else 'fall'} short."


def _row(row: Listed, with_text: bool) -> dict[str, Any]:
    diagnosis = row.result.diagnosis
    return {
        "query_id": _name(diagnosis.query_id),
        "text": row.result.query_text if with_text else "",
        "stage": "-" if diagnosis.stage is Stage.NONE else diagnosis.stage.label,
        "says": row.case.says,
        "evidence": next(details(row.result, {}), ""),
    }


def _name(text: str) -> Markdown:
    return code(shortened(text, NAME))
