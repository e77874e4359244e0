"""The recorded queries of a run, ready to be replayed under one change after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragaudit.config import AclSettings
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.experiments.levels import Level, level_of
from ragaudit.experiments.recorded import Recorded, recorded
from ragaudit.experiments.replay import ChunkTable, Unreplayable, replay
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
    """The run's own means, moved by the queries replayed; the unknown taken to stay as they are."""


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
        after: list[tuple[str, ...] | Unreplayable] = []
        for row in self.rows:
            now, level = changed[id(row.pipeline)]
            after.append(row.context if level is None else self._replayed(row, now, level))
        known = [(row, found) for row, found in zip(self.rows, after, strict=True) if isinstance(found, tuple)]
        kept, lost = [], []
        for row, context in known:
            has = row.complete(context)
            if row.failing and has and not row.complete(row.context):
                kept.append(row.trace.query_id)
            elif not has and row.complete(row.context):
                lost.append(row.trace.query_id)
        unknown = {
            row.trace.query_id: found.reason
            for row, found in zip(self.rows, after, strict=True)
            if isinstance(found, Unreplayable)
        }
        reasons: dict[str, int] = {}
        for reason in unknown.values():
            reasons[reason] = reasons.get(reason, 0) + 1
        on_known, predicted = self._changes(known, changed, name)
        counts = Replay(
            queries=len(known),
            of=len(self.rows),
            keeps=len(kept),
            loses=len(lost),
            unknown=reasons,
            changes=on_known,
        )
        leaking = tuple(row.trace.query_id for row, context in known if row.leaks(context))
        return Effect(tuple(kept), tuple(lost), leaking, unknown, counts, predicted)

    def _changed(self, was: Pipeline, change: Callable[[Pipeline], Pipeline]) -> tuple[Pipeline, Level | None]:
        now = change(was)
        return now, level_of(was, now)

    def _replayed(self, row: Recorded, now: Pipeline, level: Level) -> tuple[str, ...] | Unreplayable:
        if row.is_cut:
            return Unreplayable("the prompt left out part of the context")
        broken = self._broken(row, level)
        if broken is not None:
            return Unreplayable(broken)
        return replay(row.trace, row.pipeline, now, self._chunks, level)

    def _broken(self, row: Recorded, level: Level) -> str | None:
        """Why replaying no change from this level on does not give what was logged; None when it does."""
        key = row.trace.query_id, level
        if key not in self._sound:
            found = replay(row.trace, row.pipeline, row.pipeline, self._chunks, level)
            said = found.reason if isinstance(found, Unreplayable) else "replaying no change gives another context"
            self._sound[key] = None if found == row.context else said
        return self._sound[key]

    def _changes(
        self,
        known: Sequence[tuple[Recorded, tuple[str, ...]]],
        changed: Mapping[int, tuple[Pipeline, Level | None]],
        name: str,
    ) -> tuple[dict[str, Change], dict[str, Change]]:
        """The change of each metric over the replayed queries, and over the run."""
        if not known:
            return {}, {}
        before = self._measure([(row, row.context, row.pipeline) for row, _ in known])
        after = self._measure([(row, context, changed[id(row.pipeline)][0]) for row, context in known])
        with_recall = [place for place, (row, _) in enumerate(known) if not row.is_aggregate]
        recalls = sum(not row.is_aggregate for row in self.rows)
        on_known, predicted = {}, {}
        for metric in METRICS:
            defined, of = (with_recall, recalls) if metric in _OF_ALL_GOLD else (list(range(len(known))), len(self.rows))
            was, difference = before[metric][defined], (after[metric] - before[metric])[defined]
            interval = mean_interval(difference, seed=seed_for(self._seed, name, metric), resamples=self._resamples)
            if interval is None:
                continue
            n = len(difference)
            on_known[metric] = _moved(float(was.mean()), interval, 1.0, n)
            run = self._run.get(metric)
            if run is not None and run.mean is not None:
                predicted[metric] = _moved(run.mean, interval, n / of, run.n)
        return on_known, predicted

    def _measure(self, rows: Sequence[tuple[Recorded, tuple[str, ...], Pipeline]]) -> dict[str, Floats]:
        ranks = [row.ranks(context, now.k_final or row.trace.k_final) for row, context, now in rows]
        return measure_rows(ranks, gain=self._gain)


def _moved(mean: float, interval: tuple[float, float, float], share: float, n: int) -> Change:
    """A mean over n values, a share of which moves by a difference with this interval."""
    to, low, high = (mean + share * value for value in interval)
    return Change.model_validate({"from": mean, "to": to, "low": low, "high": high, "n": n})
