"""Adds up query results into the summary of a run: estimates, outcomes, stages, slices, access."""

import math
from array import array
from collections import Counter
from collections.abc import Mapping

import numpy as np

from ragaudit.config import AuditSettings
from ragaudit.metrics.stats import estimate, seed_for
from ragaudit.model.diagnosis import STAGES, Outcome, Stage
from ragaudit.model.result import (
    JUDGED,
    METRICS,
    AclNote,
    Estimate,
    Leak,
    QueryResult,
    SliceResult,
)

MAX_VALUES = 50
"""Values of one slice that are shown; the rest are added up as "(other)"."""

MAX_LISTED = 1000
"""Leaks and not-retrieval queries that the summary lists; the queries hold all of them."""

OTHER = "(other)"


class _Column:
    """The values of one metric over the queries, NaN where undefined, and why."""

    def __init__(self) -> None:
        self.values = array("d")
        self.reasons: Counter[str] = Counter()

    def add(self, value: float | None, reason: str | None) -> None:
        self.values.append(math.nan if value is None else value)
        if value is None:
            self.reasons[reason or "not logged"] += 1

    def estimate(self, settings: AuditSettings, *name: str) -> Estimate:
        values = np.frombuffer(self.values, np.float64) if self.values else np.empty(0)
        return estimate(values, self.reasons, seed=seed_for(settings.seed, *name), resamples=settings.resamples)


class _Slice:
    """One value of one slice."""

    def __init__(self) -> None:
        self.n = 0
        self.columns = {metric: _Column() for metric in METRICS}
        self.stages: Counter[str] = Counter()

    def add(self, result: QueryResult) -> None:
        self.n += 1
        for metric, column in self.columns.items():
            column.add(result.metrics.get(metric), result.undefined.get(metric))
        if result.diagnosis.stage in STAGES:
            self.stages[result.diagnosis.stage.value] += 1


class Tally:
    """Counts one result at a time; what it holds grows by a few numbers a query."""

    def __init__(self, settings: AuditSettings) -> None:
        self._settings = settings
        self.n = 0
        self._final = {metric: _Column() for metric in (*METRICS, *JUDGED)}
        self._at: dict[str, dict[str, _Column]] = {}
        self._slices: dict[str, dict[str, _Slice]] = {}
        self.outcomes: Counter[Outcome] = Counter()
        self.stages: Counter[Stage] = Counter()
        self.undetermined: Counter[str] = Counter()
        self.delivered_unjudged = 0
        self._excluded = 0
        self._unknown_acl = 0
        self._without_eligible = 0
        self._leaks: list[Leak] = []
        self._not_retrieval: list[str] = []

    def add(self, result: QueryResult) -> None:
        """Count one query."""
        self.n += 1
        for metric, column in self._final.items():
            column.add(result.metrics.get(metric), result.undefined.get(metric))
        for name, values in result.at.items():
            if name not in self._at:
                self._at[name] = {metric: _Column() for metric in METRICS}
            columns = self._at[name]
            for metric, column in columns.items():
                if metric in values:
                    column.add(values[metric], None)
        for name, value in result.slices.items():
            values_of = self._slices.setdefault(name, {})
            if value not in values_of and len(values_of) >= MAX_VALUES:
                value = OTHER
            if value not in values_of:
                values_of[value] = _Slice()
            values_of[value].add(result)
        self._count(result)

    def _count(self, result: QueryResult) -> None:
        diagnosis = result.diagnosis
        self.outcomes[diagnosis.outcome] += 1
        if diagnosis.stage in STAGES:
            self.stages[diagnosis.stage] += 1
        unjudged = diagnosis.delivered is True and diagnosis.outcome is Outcome.UNDETERMINED
        self.delivered_unjudged += unjudged
        if diagnosis.stage is Stage.UNDETERMINED and not unjudged:
            self.undetermined["|".join(diagnosis.could_be)] += 1
        excluded = [gold for gold in diagnosis.gold if gold.eligible is False]
        self._excluded += len(excluded)
        self._unknown_acl += sum(gold.eligible is None for gold in diagnosis.gold)
        self._without_eligible += bool(diagnosis.gold) and len(excluded) == len(diagnosis.gold)
        for chunk_id in diagnosis.leaks:
            if len(self._leaks) < MAX_LISTED:
                self._leaks.append(Leak(query_id=diagnosis.query_id, chunk_id=chunk_id))
        if diagnosis.stage is Stage.GENERATE and len(self._not_retrieval) < MAX_LISTED:
            self._not_retrieval.append(diagnosis.query_id)

    # --- the results -------------------------------------------------------------------------------------------

    def metrics(self) -> dict[str, Estimate]:
        """Every metric at the real K."""
        return {name: column.estimate(self._settings, "final", name) for name, column in self._final.items()}

    def at(self) -> dict[str, dict[str, Estimate]]:
        """Every id-based metric at each list on the way, over the queries that logged the list."""
        return {
            name: {metric: column.estimate(self._settings, name, metric) for metric, column in columns.items()}
            for name, columns in sorted(self._at.items(), key=lambda item: _place(item[0]))
        }

    def slices(self) -> tuple[SliceResult, ...]:
        """Each value of each slice, the largest first."""
        return tuple(
            SliceResult(
                slice=name,
                value=value,
                n=part.n,
                metrics={m: c.estimate(self._settings, name, value, m) for m, c in part.columns.items()},
                stages=_counts(part.stages),
            )
            for name, values in sorted(self._slices.items())
            for value, part in sorted(values.items(), key=lambda item: (-item[1].n, item[0]))
        )

    def acl(self) -> AclNote:
        """What access rules took out of the denominators, and what came in against them."""
        return AclNote(
            excluded_gold=self._excluded,
            queries_without_eligible_gold=self._without_eligible,
            leaks=tuple(self._leaks),
            unknown=self._unknown_acl,
        )

    def not_retrieval(self) -> tuple[str, ...]:
        """The queries whose evidence was read and whose answer is wrong all the same."""
        return tuple(self._not_retrieval)


def _counts(stages: Mapping[str, int]) -> dict[str, int]:
    return {stage.value: stages[stage.value] for stage in STAGES if stages.get(stage.value)}


_ORDER = ("arm", "fused", "after_filter", "after_threshold", "rerank_input", "after_rerank", "final")


def _place(name: str) -> tuple[int, str]:
    return _ORDER.index(name.partition(":")[0]), name
