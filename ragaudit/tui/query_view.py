"""One query as the panes need it: the result, the lists it went through, the texts its user may read, the review."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ragaudit.model.diagnosis import Checkpoint, Diagnosis, GoldDiagnosis, State
from ragaudit.model.experiment import Experiment
from ragaudit.model.judgement import Judgement
from ragaudit.model.result import QueryResult
from ragaudit.model.review import Review
from ragaudit.model.trace import Gold, Hit, Trace
from ragaudit.store.texts import ReadableTexts

PACKED = "packed"
PROMPT = "prompt"
CHECKPOINT_LISTS = {PACKED: Checkpoint.PACKED, PROMPT: Checkpoint.PROMPTED}


@dataclass(frozen=True)
class QueryView:
    """Everything about one query of an audit."""

    result: QueryResult
    texts: ReadableTexts
    judgement: Judgement | None = None
    review: Review | None = None
    experiments: Sequence[Experiment] = field(default=())
    """Those that answer this query, best first."""

    @property
    def query_id(self) -> str:
        """The query's id."""
        return self.diagnosis.query_id

    @property
    def diagnosis(self) -> Diagnosis:
        """What the audit concluded."""
        return self.result.diagnosis

    @property
    def trace(self) -> Trace:
        """The trace as stored: without texts that the user may not read."""
        return self.texts.trace

    @cached_property
    def lists(self) -> Mapping[str, tuple[Hit, ...]]:
        """Every observed list by name, in order, the packed context and the prompt last."""
        found = dict(self.trace.lists())
        scores = {hit.id: hit for hits in found.values() for hit in hits}
        for name, ids in ((PACKED, self.diagnosis.final_context_ids), (PROMPT, self.trace.prompt_ids)):
            if ids is not None:
                found[name] = tuple(
                    Hit(i, source_id=scores[i].source_id, text=scores[i].text) if i in scores else Hit(i) for i in ids
                )
        return found

    @cached_property
    def gold_ids(self) -> tuple[str, ...]:
        """Gold ids in the order of the diagnosis."""
        return tuple(gold.id for gold in self.diagnosis.gold)

    def gold(self, gold_id: str) -> GoldDiagnosis | None:
        """What was concluded about one gold id."""
        return next((gold for gold in self.diagnosis.gold if gold.id == gold_id), None)

    def label(self, gold_id: str) -> Gold | None:
        """The label of one gold id, with its span."""
        return next((gold for gold in self.trace.gold if gold.id == gold_id), None)

    def place(self, gold_id: str, list_name: str) -> tuple[State, int | None]:
        """Where a gold id stands in a list: as the journey says, which follows maps and parents; else by its id."""
        gold = self.gold(gold_id)
        for step in gold.journey if gold is not None else ():
            if step.list == list_name or CHECKPOINT_LISTS.get(list_name) is step.checkpoint:
                return step.state, step.rank
        hits = self.lists.get(list_name)
        if hits is None:
            return State.UNOBSERVED, None
        rank = next((n for n, hit in enumerate(hits, 1) if hit.id == gold_id), None)
        return (State.ABSENT if rank is None else State.PRESENT), rank

    def lost_in(self, gold_id: str | None) -> str | None:
        """The first list that no longer holds a gold id that an earlier one held, else the first without it."""
        names = list(self.lists)
        if gold_id is None or not names:
            return names[-1] if names else None
        here = {name: self.place(gold_id, name)[0] is State.PRESENT for name in names}
        seen = False
        for name in names:
            arm = name.startswith("arm:")
            if seen and not here[name] and not arm:
                return name
            seen = seen or here[name]
        return names[-1] if seen else names[0]

    def primary_gold(self) -> str | None:
        """The gold id to look at first: one that was lost at the query's stage, else the first."""
        diagnosis = self.diagnosis
        lost = [gold.id for gold in diagnosis.gold if gold.stage is diagnosis.stage and gold.eligible is not False]
        return next(iter([*lost, *self.gold_ids]), None)
