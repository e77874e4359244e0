"""An audit as JUnit XML, which CI servers show: a case for each gate and each query, written row by row.

There is no standard; the shape is the one that CI servers read, as the schema in the tests says. `time` is always 0:
readers expect it, and a query has no duration of its own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TextIO

from ragaudit.compare.bar import NOTHING, Bar
from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import Outcome
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report.case import Case, Verdict, case_of, details, gate_sentence
from ragaudit.report.clean import for_xml

MESSAGE = 400
"""Characters of a message; the text below it is cut at ten times as many."""

EMPTY = "(empty)"
NAMED = 20
"""Queries that the case of a gate names."""


def write(
    out: TextIO,
    summary: Summary,
    results: Callable[[], Iterable[QueryResult]],
    causes: Mapping[str, CauseInfo],
    bar: Bar = NOTHING,
    *,
    with_text: bool = False,
) -> None:
    """Write the document.

    Args:
        out: Where to.
        summary: The run.
        results: Gives its queries; called twice, since the counts come before the cases. None of them is kept.
        causes: The registered causes.
        bar: What the run was held against.
        with_text: Show the query texts; otherwise ids only.
    """
    gates = _gate_counts(bar)
    queries = Counter(case_of(result, bar).verdict.value for result in results())
    queries["errors"] = len(bar.missing)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f"<testsuites {_attributes(name='ragaudit', **_counts(gates + queries))}>\n")
    if gates:
        out.write(f"<testsuite {_attributes(name='gates', **_counts(gates))}>\n")
        out.writelines(_gates(summary, bar))
        out.write("</testsuite>\n")
    out.write(f"<testsuite {_attributes(name='queries', **_counts(queries))}>\n")
    out.writelines((*_properties(_about(summary, bar)), "\n"))
    for result in results():
        out.writelines(_query(summary, result, case_of(result, bar), causes, with_text))
    out.writelines(_missing(summary, bar))
    out.write("</testsuite>\n</testsuites>\n")


def _gate_counts(bar: Bar) -> Counter[str]:
    found = Counter((Verdict.FAILED if gate.fired else Verdict.PASSED).value for gate in bar.gates)
    if bar.unchecked:
        found[Verdict.SKIPPED.value] = len(bar.unchecked)
    return found


def _counts(found: Counter[str]) -> dict[str, object]:
    return {
        "tests": found.total(),
        "failures": found[Verdict.FAILED.value],
        "errors": found["errors"],
        "skipped": found[Verdict.SKIPPED.value],
        "time": 0,
    }


def _gates(summary: Summary, bar: Bar) -> Iterator[str]:
    for gate in bar.gates:
        named = [f"queries: {', '.join(gate.queries[:NAMED])}"] if gate.queries else []
        if len(gate.queries) > NAMED:
            named.append(f"and {len(gate.queries) - NAMED:,} more")
        body = _told("failure", gate_sentence(gate), named, kind="gate") if gate.fired else ""
        yield _case(f"{summary.run.name}.gates", gate.gate, body)
    for name in bar.unchecked:
        body = _told("skipped", "is measured against a baseline: pass --baseline")
        yield _case(f"{summary.run.name}.gates", name, body)


def _query(
    summary: Summary, result: QueryResult, case: Case, causes: Mapping[str, CauseInfo], with_text: bool
) -> Iterator[str]:
    proof = list(details(result, causes, with_text=with_text))
    body = "".join(_properties(_stands(result)))
    if case.verdict is Verdict.FAILED:
        body += _told("failure", case.says, proof, kind=case.kind)
    elif case.verdict is Verdict.SKIPPED:
        body += _told("skipped", case.says) + _output(proof)
    elif with_text:
        body += _output(proof)
    yield _case(summary.run.name, result.diagnosis.query_id, body)


def _missing(summary: Summary, bar: Bar) -> Iterator[str]:
    for query_id in bar.missing:
        says = "in the baseline and not in this run: audit the same queries, or freeze a new baseline"
        yield _case(summary.run.name, query_id, _told("error", says, kind="missing"))


def _about(summary: Summary, bar: Bar) -> dict[str, object]:
    run = summary.run
    return {
        "ragaudit": run.ragaudit,
        "configuration": run.fingerprint,
        "k_final": "varies" if run.k_final is None else run.k_final,
        "judge": "off" if run.judge is None else run.judge.get("model", "on"),
        "baseline": bar.baseline or "none",
        "gates": len(bar.gates) + len(bar.unchecked),
    }


def _stands(result: QueryResult) -> dict[str, object]:
    diagnosis = result.diagnosis
    if diagnosis.outcome is Outcome.PASS and not diagnosis.leaks:
        return {}
    named: dict[str, object] = {"outcome": diagnosis.outcome.value, "stage": diagnosis.stage.value}
    if diagnosis.causes:
        named["causes"] = ", ".join(diagnosis.causes)
    return named | {f"slice.{name}": value for name, value in result.slices.items()}


# --- elements ---------------------------------------------------------------------------------------------------------


def _case(group: str, name: str, body: str) -> str:
    start = f"<testcase {_attributes(classname=group, name=name, time=0)}"
    return f"{start}>{body}</testcase>\n" if body else f"{start}/>\n"


def _told(tag: str, message: str, lines: Iterable[str] = (), kind: str | None = None) -> str:
    kinds = "" if kind is None else f" {_attributes(type=kind)}"
    start = f'<{tag} message="{for_xml(message, MESSAGE)}"{kinds}'
    text = _text(lines)
    return f"{start}>{text}</{tag}>" if text else f"{start}/>"


def _output(lines: Iterable[str]) -> str:
    text = _text(lines)
    return f"<system-out>{text}</system-out>" if text else ""


def _text(lines: Iterable[str]) -> str:
    return "\n".join(for_xml(line, 10 * MESSAGE) for line in lines)


def _properties(named: Mapping[str, object]) -> Iterator[str]:
    if named:
        yield "<properties>"
        yield from (f"<property {_attributes(name=name, value=value)}/>" for name, value in named.items())
        yield "</properties>"


def _attributes(**named: object) -> str:
    return " ".join(f'{name}="{for_xml(value) or EMPTY}"' for name, value in named.items())
