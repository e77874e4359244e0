"""The recorded queries of a run, ready to be replayed under one change after another."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragaudit.config import AclSettings
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.experiments.levels import Level, level_of
from ragaudit.experiments.pool import Unreplayable
from ragaudit.experiments.recorded import Recorded, recorded
from ragaudit.experiments.replay import ChunkTable, replay
from ragaudit.metrics.ranking import Floats, Gain, measure_rows
from ragaudit.metrics.stats import mean_interval, seed_for
from ragaudit.model.diagnosis import Diagnosis
from ragaudit.model.experiment import Change, Replay
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import METRICS, Estimate

_OF_ALL_GOLD = ("recall@k", "ap@k")
"""Undefined for a query that needs more gold than K holds."""

LIMIT = 5_000
"""Queries that are replayed, the first of the run; more would make every proposal wait for little."""


_Outcome = tuple[Recorded, tuple[str, ...] | None]
"""A query and what would be delivered for it; None where the lists do not tell."""


@dataclass(frozen=True)
class Effect:
    """What one change does to the recorded queries."""

    kept: tuple[str, ...]
    """Failing queries whose needed gold would all be packed."""
    lost: tuple[str, ...]
    """Queries whose needed gold is all packed now and would not be."""
    leaking: tuple[str, ...]
    """Queries whose context would newly hold a chunk that their user may not read."""
    unknown: dict[str, str]
    """Queries for which the recorded lists cannot tell what the change would do, and why."""
    replay: Replay
    """The counts, and the change of each metric over the queries that are not among the unknown."""
    predicted: dict[str, Change]
    """The run's own means, moved by the queries replayed. The unknown are taken to stay as they are, and the interval
    holds what they could do."""


class Bench:
    """Built once for a run, asked for every candidate change."""

    def __init__(
        self, chunks: ChunkTable, run: Mapping[str, Estimate], *, gain: Gain, seed: int, resamples: int
    ) -> None:
        """`run` holds the run's own estimates: what is predicted is their change, over all queries of the run."""
        self._chunks = chunks
        self._run = run
        self._gain = gain
        self._seed = seed
        self._resamples = resamples
        self.rows: list[Recorded] = []
        self._pipelines: dict[str, Pipeline] = {}
        self._by_id: dict[str, Recorded] = {}
        self._before: dict[str, Floats] | None = None
        self._sound: dict[tuple[str, Level], str | None] = {}

    def add(
        self,
        evidence: QueryEvidence,
        diagnosis: Diagnosis,
        pipeline: Pipeline,
        identities: Identities,
        acl: AclSettings,
    ) -> None:
        """Take in one query, if it has gold that counts and a logged context. `pipeline` is what it ran under."""
        row = recorded(evidence, diagnosis, self._interned(evidence, pipeline), identities, acl)
        if row is not None:
            self._before = None
            self.rows.append(row)
            self._by_id[row.trace.query_id] = row

    @property
    def failing(self) -> int:
        """Recorded queries that fail because their evidence did not reach the context."""
        return sum(row.failing for row in self.rows)

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The configurations that queries ran under, each once."""
        return tuple(self._pipelines.values())

    def row(self, query_id: str) -> Recorded | None:
        """One query, if it is on the bench."""
        return self._by_id.get(query_id)

    def _interned(self, evidence: QueryEvidence, pipeline: Pipeline) -> Pipeline:
        """The configuration at this query's own K, one object for all queries that share it."""
        trace = evidence.trace
        key = f"{trace.k_final} {trace.config}"
        if key not in self._pipelines:
            self._pipelines[key] = pipeline.with_overrides({"k_final": trace.k_final})
        return self._pipelines[key]

    def effect(self, change: Callable[[Pipeline], Pipeline], name: str) -> Effect:
        """Replay every recorded query under a change of one variable. A query that it does not touch stays as it is."""
        changed = {id(was): self._changed(was, change) for was in self._pipelines.values()}
        found = [(row, self._outcome(row, *changed[id(row.pipeline)])) for row in self.rows]
        replayed = [(row, None if isinstance(context, Unreplayable) else context) for row, context in found]
        kept, lost, leaking = [], [], []
        for row, context in replayed:
            if context is None:
                continue
            had, has = row.complete(row.delivered), row.complete(context)
            if row.failing and has and not had:
                kept.append(row.trace.query_id)
            elif had and not has:
                lost.append(row.trace.query_id)
            if row.leaks(context):
                leaking.append(row.trace.query_id)
        unknown = {row.trace.query_id: why.reason for row, why in found if isinstance(why, Unreplayable)}
        on_known, predicted = self._changes(replayed, changed, name) if self.rows else ({}, {})
        counts = Replay(
            queries=len(self.rows) - len(unknown),
            of=len(self.rows),
            keeps=len(kept),
            loses=len(lost),
            unknown=dict(Counter(unknown.values()).most_common()),
            changes=on_known,
        )
        return Effect(tuple(kept), tuple(lost), tuple(leaking), unknown, counts, predicted)

    def _changed(self, was: Pipeline, change: Callable[[Pipeline], Pipeline]) -> tuple[Pipeline, Level | None]:
        now = change(was)
        return now, level_of(was, now)

    def _outcome(self, row: Recorded, now: Pipeline, level: Level | None) -> tuple[str, ...] | Unreplayable:
        if level is None:
            return row.delivered
        if row.is_cut:
            return Unreplayable("the prompt left out part of the context")
        broken = self._broken(row, level)
        if broken is not None:
            return Unreplayable(broken)
        return replay(row.trace, row.pipeline, now, self._chunks, level, row.meets)

    def _broken(self, row: Recorded, level: Level) -> str | None:
        """Why replaying no change from this level on does not give what was logged; None when it does."""
        key = row.trace.query_id, level
        if key not in self._sound:
            found = replay(row.trace, row.pipeline, row.pipeline, self._chunks, level, row.meets)
            said = found.reason if isinstance(found, Unreplayable) else "replaying no change gives another context"
            self._sound[key] = None if found == row.context else said
        return self._sound[key]

    def _changes(
        self, replayed: Sequence[_Outcome], changed: Mapping[int, tuple[Pipeline, Level | None]], name: str
    ) -> tuple[dict[str, Change], dict[str, Change]]:
        """The change of each metric over the queries whose outcome is known, and over the run.

        Over the run, the others are taken to stay as they are, and the interval also holds what they could add or
        take at worst, every metric lying in 0..1 (bounds without an assumption, after Manski 1990).
        """
        if self._before is None:
            self._before = self._measure([(row, row.delivered, row.pipeline) for row in self.rows])
        before = self._before
        after = self._measure(
            [
                (row, row.delivered, row.pipeline) if context is None else (row, context, changed[id(row.pipeline)][0])
                for row, context in replayed
            ]
        )
        on_known, predicted = {}, {}
        for metric in METRICS:
            defined = [n for n, row in enumerate(self.rows) if not (row.is_aggregate and metric in _OF_ALL_GOLD)]
            known = [n for n in defined if replayed[n][1] is not None]
            difference = (after[metric] - before[metric])[known]
            interval = mean_interval(difference, seed=seed_for(self._seed, name, metric), resamples=self._resamples)
            if interval is None:
                continue
            on_known[metric] = _moved(float(before[metric][known].mean()), interval, len(known))
            run = self._run.get(metric)
            if run is None or run.mean is None:
                continue
            share = len(known) / len(defined)
            others = before[metric][[n for n in defined if replayed[n][1] is None]]
            worst, best = float(others.sum()) / len(defined), float((1.0 - others).sum()) / len(defined)
            mean, low, high = (share * value for value in interval)
            predicted[metric] = _moved(run.mean, (mean, low - worst, high + best), run.n)
        return on_known, predicted

    def _measure(self, rows: Sequence[tuple[Recorded, tuple[str, ...], Pipeline]]) -> dict[str, Floats]:
        ranks = [row.ranks(context, now.k_final or row.trace.k_final) for row, context, now in rows]
        return measure_rows(ranks, gain=self._gain)


def _moved(mean: float, interval: tuple[float, float, float], n: int) -> Change:
    """A mean over n values that moves by a difference with this interval. No mean leaves 0..1."""
    to, low, high = (min(1.0, max(0.0, mean + value)) for value in interval)
    return Change.model_validate({"from": mean, "to": to, "low": low, "high": high, "n": n})
