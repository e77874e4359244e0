"""How one query stands in CI: passed, failed or skipped, the sentence that says why, and what proves it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ragaudit.compare.bar import Bar, Shortfall, Why
from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.comparison import DELIVERED, GateResult
from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity
from ragaudit.model.result import QueryResult
from ragaudit.report.compare_text import state_label
from ragaudit.report.figures import listed, stages_named
from ragaudit.report.funnel import standing

SHOWN = 5


class Verdict(StrEnum):
    """What a CI viewer shows of a query."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Nothing was held against it, or it cannot be held: neither green nor red."""


@dataclass(frozen=True)
class Case:
    """One query. `kind` is why it failed (`leak`, `newly_failing`, `gate`), else its outcome."""

    verdict: Verdict
    kind: str
    says: str = ""


def case_of(result: QueryResult, bar: Bar) -> Case:
    """How a query stands.

    A leak fails it always. What newly fails, or is counted by a gate that fired, fails it too. Any other failing query
    is skipped: that evidence was lost is a finding, and findings alone fail nothing. So is what has no verdict.
    """
    diagnosis = result.diagnosis
    short = bar.short.get(diagnosis.query_id)
    if diagnosis.severity is Severity.LEAK or (short is not None and short.why is Why.LEAK):
        return Case(Verdict.FAILED, Why.LEAK.value, _leak(diagnosis, short))
    if short is not None:
        return Case(Verdict.FAILED, short.why.value, _short(diagnosis, short))
    if diagnosis.outcome is Outcome.PASS:
        return Case(Verdict.PASSED, diagnosis.outcome.value)
    return Case(Verdict.SKIPPED, diagnosis.outcome.value, _skipped(result, bar))


def details(result: QueryResult, causes: Mapping[str, CauseInfo], *, with_text: bool = False) -> Iterator[str]:
    """The proof, one sentence a line: evidence, what it could be, what to log, causes and what to change."""
    diagnosis = result.diagnosis
    if with_text:
        yield f"query: {result.query_text}"
    yield from diagnosis.evidence
    if diagnosis.could_be:
        yield f"could be {stages_named([stage.value for stage in diagnosis.could_be])}"
    for field in diagnosis.log:
        yield f"to decide it, log {field}"
    for name in diagnosis.causes:
        known = causes.get(name)
        yield name.replace("_", " ") + (f": {known.summary} Change one thing: {known.remedy}" if known else "")


def gate_sentence(gate: GateResult) -> str:
    """`recall@k.min: mean at least 0.8; it is 0.417 (12 queries)`."""
    return f"{gate.gate}: {gate.asks}; it is {gate.says}"


def _leak(diagnosis: Diagnosis, short: Shortfall | None) -> str:
    new = short is not None and short.change is not None and bool(short.change.leaks)
    named = ", ".join(diagnosis.leaks[:SHOWN]) or "see the evidence"
    more = f" and {len(diagnosis.leaks) - SHOWN:,} more" if len(diagnosis.leaks) > SHOWN else ""
    return (
        f"LEAK{', new since the baseline' if new else ''}: the user may not read what stood in the context: "
        f"{named}{more}. Restore the access filter first."
    )


def _short(diagnosis: Diagnosis, short: Shortfall) -> str:
    stands = standing(diagnosis.outcome, diagnosis.stage)
    if short.why is Why.NEWLY_FAILING and short.change is not None:
        return f"{stands}; {state_label(short.change.before)} in the baseline"
    more = f" (and {listed([gate.gate for gate in short.gates[1:]])})" if len(short.gates) > 1 else ""
    return f"{stands}; makes a gate fire: {gate_sentence(short.gates[0])}{more}"


def _skipped(result: QueryResult, bar: Bar) -> str:
    diagnosis = result.diagnosis
    stands = standing(diagnosis.outcome, diagnosis.stage)
    if diagnosis.outcome is Outcome.FAIL:
        return f"{stands}; {_unheld(diagnosis.query_id, bar)}"
    if diagnosis.outcome is Outcome.UNDETERMINED:
        if diagnosis.delivered:
            return f"{stands}: the evidence was {DELIVERED} and nobody judged the answer"
        could_be = stages_named([stage.value for stage in diagnosis.could_be])
        return f"{stands}: could be {could_be}" if could_be else f"{stands}: see what to log"
    why = diagnosis.evidence[0] if diagnosis.evidence else result.undefined.get("recall@k", "").replace("_", " ")
    return f"{stands}: {why}" if why else stands


def _unheld(query_id: str, bar: Bar) -> str:
    if bar.baseline is not None:
        before = bar.before.get(query_id)
        return "not in the baseline" if before is None else f"{state_label(before)} in the baseline"
    if bar.gates:
        return "no gate that fired counts it"
    return "held against nothing: write [gates], or pass --baseline"
