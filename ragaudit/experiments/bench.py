"""The recorded queries of a run, ready to be replayed under one change after another."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragaudit.evidence.identity import Identities, standing
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.experiments.replay import ChunkTable, Unreplayable, replay
from ragaudit.metrics.ranking import Floats, Gain, QueryRanks, measure_rows
from ragaudit.metrics.stats import mean_interval, seed_for
from ragaudit.model.diagnosis import Diagnosis, Gap, Outcome, Stage
from ragaudit.model.experiment import Change
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import METRICS, Estimate
from ragaudit.model.trace import GoldMode, Trace

_OF_ALL_GOLD = ("recall@k", "ap@k")
"""Undefined for a query that needs more gold than K holds."""

LIMIT = 5_000
"""Queries that are replayed, in the order of the run; more would make every proposal wait for little."""


@dataclass(frozen=True)
class Recorded:
    """One query whose logged context the replay reproduces."""

    trace: Trace
    pipeline: Pipeline
    groups: tuple[tuple[int, float, int], ...]
    """(gold position, grade, group) for the gold that counts."""
    sound: frozenset[int]
    """Positions of the gold whose chunk holds the evidence: packing any other delivers an id and no evidence."""
    packed: dict[str, tuple[int, ...]]
    """Id -> positions of the gold that it stands for in the context."""
    context: tuple[str, ...]
    failing: bool
    is_aggregate: bool
    """It needs more gold than K holds: its recall is undefined and in no mean."""


@dataclass(frozen=True)
class Effect:
    """What one change does to the recorded queries."""

    kept: tuple[str, ...]
    """Failing queries whose needed gold would all be packed."""
    lost: tuple[str, ...]
    """Queries whose needed gold is all packed now and would not be."""
    unknown: tuple[str, ...]
    """Queries for which the recorded lists cannot tell what the change would do; they stay as they are."""
    changes: dict[str, Change]
    replayed: int
    unreplayable: dict[str, int]
    """Why, counted."""


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
        self.excluded = 0
        self._pipelines: dict[str, Pipeline] = {}

    def add(self, evidence: QueryEvidence, diagnosis: Diagnosis, pipeline: Pipeline, identities: Identities) -> None:
        """Take in one query with eligible gold, if replaying no change reproduces its context."""
        trace = evidence.trace
        counted = _counted(evidence, diagnosis)
        if not counted or trace.final_context_ids is None:
            return
        pipeline = self._interned(trace, pipeline)
        is_cut = trace.prompt_ids not in (None, trace.final_context_ids)  # what the prompt leaves out, no list tells
        if is_cut or replay(trace, pipeline, self._chunks) != trace.final_context_ids:
            self.excluded += 1
            return
        names = standing(trace, identities).packed
        self.rows.append(
            Recorded(
                trace=trace,
                pipeline=pipeline,
                groups=counted,
                sound=_sound(evidence, diagnosis),
                packed={i: tuple(position for position, _ in ways) for i, ways in names.items()},
                context=trace.final_context_ids,
                failing=diagnosis.delivered is False,
                is_aggregate=diagnosis.gap is Gap.AGGREGATE_QUERY,
            )
        )

    @property
    def failing(self) -> int:
        """Recorded queries whose evidence did not reach the context."""
        return sum(row.failing for row in self.rows)

    def _interned(self, trace: Trace, pipeline: Pipeline) -> Pipeline:
        """The configuration at this query's own K, one object for all queries that share it."""
        key = f"{trace.k_final} {trace.config}"
        if key not in self._pipelines:
            self._pipelines[key] = pipeline.with_overrides({"k_final": trace.k_final})
        return self._pipelines[key]

    def effect(self, change: Callable[[Pipeline], Pipeline], name: str) -> Effect:
        """Replay every recorded query under a change of one variable."""
        after: list[tuple[str, ...]] = []
        reasons: dict[str, int] = {}
        unknown: list[str] = []
        changed = {id(pipeline): change(pipeline) for pipeline in self._pipelines.values()}
        for row in self.rows:
            found = replay(row.trace, changed[id(row.pipeline)], self._chunks)
            if isinstance(found, Unreplayable):
                reasons[found.reason] = reasons.get(found.reason, 0) + 1
                unknown.append(row.trace.query_id)
                found = row.context
            after.append(found)
        kept, lost = [], []
        for row, context in zip(self.rows, after, strict=True):
            had, has = _complete(row, row.context), _complete(row, context)
            if has and not had:
                kept.append(row.trace.query_id)
            elif had and not has:
                lost.append(row.trace.query_id)
        return Effect(
            tuple(kept),
            tuple(lost),
            tuple(unknown),
            self._changes(after, changed, name),
            len(self.rows) - len(unknown),
            reasons,
        )

    def _changes(
        self, after: Sequence[tuple[str, ...]], changed: Mapping[int, Pipeline], name: str
    ) -> dict[str, Change]:
        if not self.rows:
            return {}
        before_values = self._measure([row.context for row in self.rows], {})
        after_values = self._measure(after, changed)
        found = {}
        defined = [n for n, row in enumerate(self.rows) if not row.is_aggregate]
        for metric in METRICS:
            difference = after_values[metric] - before_values[metric]
            if metric in _OF_ALL_GOLD:
                difference = difference[defined]
            interval = mean_interval(difference, seed=seed_for(self._seed, name, metric), resamples=self._resamples)
            whole = self._run.get(metric)
            if interval is None or whole is None or whole.mean is None:
                continue
            # Queries that are not on the bench stay as they are: their part of the run's mean does not move.
            part = min(1.0, len(difference) / whole.n)
            mean, low, high = (whole.mean + part * value for value in interval)
            found[metric] = Change.model_validate({"from": whole.mean, "to": mean, "low": low, "high": high})
        return found

    def _measure(self, contexts: Iterable[tuple[str, ...]], changed: Mapping[int, Pipeline]) -> dict[str, Floats]:
        ranks = [
            _ranks(row, context, changed.get(id(row.pipeline), row.pipeline).k_final or row.trace.k_final)
            for row, context in zip(self.rows, contexts, strict=True)
        ]
        return measure_rows(ranks, gain=self._gain)


def _counted(evidence: QueryEvidence, diagnosis: Diagnosis) -> tuple[tuple[int, float, int], ...]:
    out = {v.id for v in diagnosis.gold if v.outcome in (Outcome.LABEL_ISSUE, Outcome.NOT_APPLICABLE)}
    rows = [
        (position, row.gold)
        for position, row in enumerate(evidence.gold)
        if row.gold.grade >= 1 and row.eligible is not False and row.gold.id not in out
    ]
    trace = evidence.trace
    if trace.gold_groups:
        by_id = {gold.id: (position, gold.grade) for position, gold in rows}
        return tuple(
            (*by_id[gold_id], number)
            for number, group in enumerate(trace.gold_groups)
            for gold_id in dict.fromkeys(group)
            if gold_id in by_id
        )
    any_mode = trace.gold_mode is GoldMode.ANY
    return tuple((position, gold.grade, 0 if any_mode else position) for position, gold in rows)


_BEFORE_THE_INDEX = (Stage.INGESTION, Stage.PARSE, Stage.CHUNK)


def _sound(evidence: QueryEvidence, diagnosis: Diagnosis) -> frozenset[int]:
    lost = {v.id for v in diagnosis.gold if v.outcome is Outcome.FAIL and v.stage in _BEFORE_THE_INDEX}
    return frozenset(position for position, row in enumerate(evidence.gold) if row.gold.id not in lost)


def _first_ranks(row: Recorded, context: tuple[str, ...]) -> dict[int, int]:
    found: dict[int, int] = {}
    for rank, chunk_id in enumerate(context, start=1):
        for position in row.packed.get(chunk_id, ()):
            found.setdefault(position, rank)
    return found


def _complete(row: Recorded, context: tuple[str, ...]) -> bool:
    """Every needed group has its evidence in the context."""
    found = _first_ranks(row, context)
    groups = {group for _, _, group in row.groups}
    return {group for position, _, group in row.groups if position in found and position in row.sound} == groups


def _ranks(row: Recorded, context: tuple[str, ...], k: int) -> QueryRanks:
    found = _first_ranks(row, context)
    return QueryRanks(
        tuple(found.get(position, 0) for position, _, _ in row.groups),
        tuple(grade for _, grade, _ in row.groups),
        tuple(group for _, _, group in row.groups),
        k,
        len(context),
    )
