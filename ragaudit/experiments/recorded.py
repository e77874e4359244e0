"""One query of a run as the bench holds it: its lists, its gold, and what counts as delivered."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragaudit.config import AclSettings
from ragaudit.evidence.access import Access
from ragaudit.evidence.filtering import meets_filter
from ragaudit.evidence.identity import Identities, standing
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.experiments.reach import out_of_reach
from ragaudit.metrics.ranking import QueryRanks
from ragaudit.model.diagnosis import Diagnosis, Gap, Outcome, Severity, Stage
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import GoldMode, Trace

_BEFORE_THE_INDEX = (Stage.INGESTION, Stage.PARSE, Stage.CHUNK)


@dataclass(frozen=True)
class Recorded:
    """One query with gold that counts, and a logged context."""

    trace: Trace
    pipeline: Pipeline
    """What it ran under, its own departures included."""
    groups: tuple[tuple[int, float, int], ...]
    """(gold position, grade, group) for the gold that counts."""
    sound: frozenset[int]
    """Positions of the gold whose chunk holds the evidence: packing any other delivers an id and no evidence."""
    packed: Mapping[str, tuple[int, ...]]
    """Id -> positions of the gold that it stands for in the context."""
    hidden: frozenset[str]
    """Listed ids whose text the query's user may not be shown."""
    meets: Mapping[str, bool]
    """Listed id -> does its row meet the filter that was sent, where a filter runs behind the search."""
    context: tuple[str, ...]
    """What was packed."""
    delivered: tuple[str, ...]
    """What the generator read: the rendered prompt's ids where logged, else the context."""
    failing: bool
    """It fails, its evidence was not delivered, and it does not leak: delivering the evidence would mend it."""
    is_aggregate: bool
    """It needs more gold than K holds: its recall is undefined and in no mean."""
    out_of_reach: bool
    """No arm could bring its gold into the pool by fetching more."""
    is_untrained: bool
    """Some gold lost at the embedding is in a language that the corpus model was not trained for."""

    @property
    def is_cut(self) -> bool:
        """The prompt left out part of the context; no list tells which part it would leave out of another."""
        return self.delivered != self.context

    def complete(self, context: tuple[str, ...]) -> bool:
        """Every needed group has its evidence among these ids."""
        found = self._first_ranks(context)
        groups = {group for _, _, group in self.groups}
        return {group for position, _, group in self.groups if position in found and position in self.sound} == groups

    def leaks(self, context: tuple[str, ...]) -> bool:
        """These ids hold something unreadable that was not delivered."""
        return not self.hidden.isdisjoint({*context} - {*self.delivered})

    def ranks(self, context: tuple[str, ...], k: int) -> QueryRanks:
        """Where the gold stands in this context."""
        found = self._first_ranks(context)
        return QueryRanks(
            tuple(found.get(position, 0) for position, _, _ in self.groups),
            tuple(grade for _, grade, _ in self.groups),
            tuple(group for _, _, group in self.groups),
            k,
            len(context),
        )

    def _first_ranks(self, context: tuple[str, ...]) -> dict[int, int]:
        found: dict[int, int] = {}
        for rank, chunk_id in enumerate(context, start=1):
            for position in self.packed.get(chunk_id, ()):
                found.setdefault(position, rank)
        return found


def recorded(
    evidence: QueryEvidence, diagnosis: Diagnosis, pipeline: Pipeline, identities: Identities, acl: AclSettings
) -> Recorded | None:
    """One query for the bench; None when no gold of it counts, or no context was logged."""
    trace = evidence.trace
    counted = _counted(evidence, diagnosis)
    if not counted or trace.final_context_ids is None:
        return None
    ids = {hit.id for hits in trace.lists().values() for hit in hits}
    leaks = diagnosis.severity is Severity.LEAK
    access = Access(trace, identities, acl, pipeline)
    return Recorded(
        trace=trace,
        pipeline=pipeline,
        groups=counted,
        sound=_sound(evidence, diagnosis),
        packed={i: tuple(position for position, _ in ways) for i, ways in standing(trace, identities).packed.items()},
        hidden=frozenset(i for i in ids if not access.may_show(i)),
        meets=_meets(ids, access),
        context=trace.final_context_ids,
        delivered=trace.final_context_ids if trace.prompt_ids is None else trace.prompt_ids,
        failing=diagnosis.outcome is Outcome.FAIL and diagnosis.delivered is False and not leaks,
        is_aggregate=diagnosis.gap is Gap.AGGREGATE_QUERY,
        out_of_reach=out_of_reach(evidence, diagnosis, pipeline),
        is_untrained=_untrained(evidence, diagnosis, pipeline),
    )


def _meets(ids: set[str], access: Access) -> dict[str, bool]:
    if access.pipeline.filter.mode != "post":
        return {}
    found = {i: meets_filter(i, access) for i in ids}
    return {i: kept for i, kept in found.items() if kept is not None}


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


def _sound(evidence: QueryEvidence, diagnosis: Diagnosis) -> frozenset[int]:
    lost = {v.id for v in diagnosis.gold if v.outcome is Outcome.FAIL and v.stage in _BEFORE_THE_INDEX}
    return frozenset(position for position, row in enumerate(evidence.gold) if row.gold.id not in lost)


def _untrained(evidence: QueryEvidence, diagnosis: Diagnosis, pipeline: Pipeline) -> bool:
    trained = pipeline.embedding.corpus.languages
    lost = {v.id for v in diagnosis.gold if v.outcome is Outcome.FAIL and v.stage is Stage.EMBED}
    languages = {row.chunk.language for row in evidence.gold if row.chunk is not None and row.gold.id in lost}
    return bool(trained) and not languages - {None} <= {*(trained or ())}
