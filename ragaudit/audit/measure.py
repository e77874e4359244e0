"""From a batch of traces with evidence to metric values at every list, and why a value is undefined."""

import math
from collections.abc import Sequence

from ragaudit.evidence.journey import Place, QueryEvidence
from ragaudit.metrics.ranking import Gain, QueryRanks, measure_rows
from ragaudit.model.diagnosis import Basis, Diagnosis, Gap, Outcome
from ragaudit.model.result import JUDGED, METRICS
from ragaudit.model.trace import GoldMode, Trace

FINAL = "final"
"""The list that reached the generator: the rendered prompt's ids when they were logged, else the final context."""

_OF_ALL_GOLD = ("recall@k", "ap@k")
"""Undefined for a query that needs more gold than K holds: no ranking could reach 1."""

_OUT = (Outcome.LABEL_ISSUE, Outcome.NOT_APPLICABLE)

Values = dict[str, dict[str, float]]
"""List -> metric -> value, defined values only."""


def measure_batch(batch: Sequence[tuple[QueryEvidence, Diagnosis]], *, gain: Gain) -> list[Values]:
    """Measure every observed list of every query of a batch, each list in one pass of the kernels."""
    values: list[Values] = [{} for _ in batch]
    rows: dict[str, tuple[list[int], list[QueryRanks]]] = {}
    for number, (evidence, diagnosis) in enumerate(batch):
        counted = _counted(evidence, diagnosis)
        if not counted:
            continue
        groups = _groups(evidence.trace, counted)
        for name, places, length in _lists(evidence):
            numbers, ranks = rows.setdefault(name, ([], []))
            numbers.append(number)
            ranks.append(_ranks(evidence, places, length, groups))
    aggregates = {n for n, (_, diagnosis) in enumerate(batch) if diagnosis.gap is Gap.AGGREGATE_QUERY}
    for name, (numbers, ranks) in rows.items():
        measured = measure_rows(ranks, gain=gain)
        for metric in METRICS:
            for number, value in zip(numbers, measured[metric].tolist(), strict=True):
                if not math.isnan(value) and not (metric in _OF_ALL_GOLD and number in aggregates):
                    values[number].setdefault(name, {})[metric] = value
    return values


def undefined_reasons(evidence: QueryEvidence, diagnosis: Diagnosis, values: Values) -> dict[str, str]:
    """Why each metric that has no value at the final list has none."""
    reason = _why_undefined(evidence, diagnosis)
    found = {metric: reason for metric in METRICS if metric not in values.get(FINAL, {})}
    return {**found, **dict.fromkeys(JUDGED, "judge off")}


def _why_undefined(evidence: QueryEvidence, diagnosis: Diagnosis) -> str:
    if diagnosis.gap is Gap.AGGREGATE_QUERY:
        return "aggregate_query"
    if not evidence.gold or diagnosis.basis is Basis.JUDGE:
        return "unanswerable" if evidence.trace.answerable is False else "unlabelled"
    if any(verdict.outcome is Outcome.NOT_APPLICABLE for verdict in diagnosis.gold):
        return "no_eligible_gold"
    if diagnosis.gold and all(verdict.outcome is Outcome.LABEL_ISSUE for verdict in diagnosis.gold):
        return "label_issue"
    if not diagnosis.gold:
        return "no_relevant_gold"
    return "context_not_logged"


def _counted(evidence: QueryEvidence, diagnosis: Diagnosis) -> frozenset[int]:
    """Positions of the gold that counts: relevant, readable by the user, rightly labelled."""
    if diagnosis.basis is Basis.JUDGE:
        return frozenset()  # proxy gold names the stage; id-based metrics are for labels
    out = {verdict.id for verdict in diagnosis.gold if verdict.outcome in _OUT}
    return frozenset(
        position
        for position, row in enumerate(evidence.gold)
        if row.gold.grade >= 1 and row.eligible is not False and row.gold.id not in out
    )


def _groups(trace: Trace, counted: frozenset[int]) -> tuple[tuple[int, int], ...]:
    """(gold position, group) pairs. An id of several groups appears once for each."""
    if trace.gold_groups:
        position_of = {trace.gold[position].id: position for position in counted}
        return tuple(
            (position_of[gold_id], number)
            for number, group in enumerate(trace.gold_groups)
            for gold_id in dict.fromkeys(group)
            if gold_id in position_of
        )
    if trace.gold_mode is GoldMode.ANY:
        return tuple((position, 0) for position in sorted(counted))
    return tuple((position, position) for position in sorted(counted))


def _lists(evidence: QueryEvidence) -> list[tuple[str, tuple[Place | None, ...], int]]:
    found = [(name, listed.places, len(listed.hits)) for name, listed in evidence.lists.items()]
    final = evidence.trace.prompt_ids if evidence.prompted is not None else evidence.trace.final_context_ids
    if evidence.delivered is not None and final is not None:
        found.append((FINAL, evidence.delivered, len(final)))
    return found


def _ranks(
    evidence: QueryEvidence,
    places: tuple[Place | None, ...],
    length: int,
    groups: tuple[tuple[int, int], ...],
) -> QueryRanks:
    found = [places[position] for position, _ in groups]
    return QueryRanks(
        tuple(place.rank if place else 0 for place in found),
        tuple(evidence.gold[position].gold.grade for position, _ in groups),
        tuple(group for _, group in groups),
        evidence.trace.k_final,
        length,
    )
