"""One healthy query with what a fault needs to know about it, and what a fault makes of it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ragaudit.config import AclSettings
from ragaudit.diagnosis.facts import ArmFacts, GoldFacts
from ragaudit.diagnosis.query_facts import QueryFacts, RunFacts
from ragaudit.evidence.access import Access
from ragaudit.evidence.identity import Identities, Via, standing
from ragaudit.evidence.journey import gather
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.experiments.replay import ChunkTable
from ragaudit.model.diagnosis import Diagnosis, Outcome
from ragaudit.model.inventory import Chunk, Index, Inventory, Source, SourceStatus
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import GoldMode, Trace


@dataclass(frozen=True)
class Store:
    """The run's inventory with its look-up tables, shared by all cases."""

    identities: Identities
    acl: AclSettings
    run: RunFacts
    table: ChunkTable
    chunk_ids: tuple[str, ...]

    @classmethod
    def of(cls, identities: Identities, acl: AclSettings, run: RunFacts) -> "Store":
        """With the tables that packing and fillers need, built once."""
        inventory = identities.inventory
        return cls(identities, acl, run, ChunkTable.of(inventory), tuple(inventory.chunks or {}))

    @property
    def inventory(self) -> Inventory:
        """Sources, chunks, index."""
        return self.identities.inventory


@dataclass(frozen=True)
class Broken:
    """What a faulty system would have logged for one query. A row that is None is gone from its table."""

    trace: Trace
    pipeline: Pipeline
    sources: Mapping[str, Source | None] = field(default_factory=dict)
    chunks: Mapping[str, Chunk | None] = field(default_factory=dict)
    index: Index | None = None
    """The index revision where the fault changes it; None = as it was."""
    hidden: frozenset[str] = frozenset()
    """Tables that were not logged: "sources", "chunks", "index"."""


class Case:
    """A query whose evidence was delivered. `victims` are the gold ids that a fault must lose for it to fail."""

    def __init__(self, trace: Trace, pipeline: Pipeline, store: Store, victims: frozenset[str], seed: str) -> None:
        self.trace = trace
        self.pipeline = pipeline
        self.store = store
        self.victims = victims
        self.seed = seed

    def became(self, trace: Trace) -> "Case":
        """The same case with another trace: a query that is posed so that a fault can bite."""
        return Case(trace, self.pipeline, self.store, self.victims, self.seed)

    @property
    def rng(self) -> random.Random:
        """A generator that depends on the seed, the query and the fault only."""
        return random.Random(f"{self.seed}/{self.trace.query_id}")

    @cached_property
    def gold(self) -> tuple[GoldFacts, ...]:
        """The victims with all that is known about them."""
        evidence = gather(self.trace, self.store.identities, self.store.acl)
        query = QueryFacts(evidence, self.pipeline, self.store.identities, self.store.acl, self.store.run)
        positions = [n for n, row in enumerate(evidence.gold) if row.gold.id in self.victims]
        return tuple(GoldFacts(query, position) for position in positions)

    @cached_property
    def access(self) -> Access:
        """What the query's user may read."""
        return Access(self.trace, self.store.identities, self.store.acl, self.pipeline)

    @property
    def arms(self) -> tuple[ArmFacts, ...]:
        """The arms that logged a list; `place` is that of the first victim."""
        return self.gold[0].arms

    @cached_property
    def names(self) -> frozenset[str]:
        """Every id that stands for a victim in a list."""
        return self._names(packed=False)

    @cached_property
    def packed_names(self) -> frozenset[str]:
        """Every id that stands for a victim in the context."""
        return self._names(packed=True)

    def _names(self, *, packed: bool) -> frozenset[str]:
        standing_ids = standing(self.trace, self.store.identities)
        positions = {n for n, gold in enumerate(self.trace.gold) if gold.id in self.victims}
        table = standing_ids.packed if packed else standing_ids.searched
        named = {i for i, ways in table.items() if any(position in positions for position, _ in ways)}
        return frozenset(named | {i for i, position in standing_ids.sources.items() if position in positions})

    @cached_property
    def has_twins(self) -> bool:
        """A chunk of the same text stands for a victim in the context: changing the victim's text loses nothing."""
        ways = standing(self.trace, self.store.identities).packed
        packed = self.trace.prompt_ids or self.trace.final_context_ids or ()
        return any(via is Via.SAME_TEXT and i not in self.victims for i in packed for _, via in ways.get(i, ()))

    def delivered(self, trace: Trace) -> bool:
        """Does this trace's prompt, else its context, still hold a victim?"""
        read = trace.prompt_ids if trace.prompt_ids is not None else trace.final_context_ids
        return not self.packed_names.isdisjoint(read or ())

    def before_too(self, trace: Trace) -> Trace:
        """The former turn did not have the gold either: the fault is older than the conversation."""
        talk = trace.conversation
        if talk is None or self.packed_names.isdisjoint(talk.previous_context_ids or ()):
            return trace
        kept = tuple(i for i in talk.previous_context_ids or () if i not in self.packed_names)
        return trace.model_copy(update={"conversation": talk.model_copy(update={"previous_context_ids": kept})})

    def matches(self, chunk: Chunk) -> bool:
        """May the user read this chunk, and does it satisfy the filter that was sent?"""
        if self.access.may_read(chunk.chunk_id) is False:
            return False
        return all(
            match(want, chunk.metadata, name) in (Match.YES, Match.UNKNOWN)
            for name, want in clauses(self.trace.filters_applied)
        )

    def fillers(self, arm: str, n: int, taken: frozenset[str]) -> tuple[str, ...]:
        """Rows that the arm could have returned next: live, readable, matching, and in no list yet."""
        ids = self.store.chunk_ids
        start = self.rng.randrange(len(ids)) if ids else 0
        found: list[str] = []
        for chunk_id in (*ids[start:], *ids[:start]):
            if len(found) == n:
                break
            if chunk_id not in taken and self._live(chunk_id, arm):
                found.append(chunk_id)
        return tuple(found)

    def _live(self, chunk_id: str, arm: str) -> bool:
        chunk = self.store.inventory.chunk(chunk_id)
        source = self.store.inventory.source(chunk.source_id if chunk else None)
        if chunk is None or (chunk.present_in is not None and not chunk.present_in.get(arm)):
            return False
        if source is not None and (source.superseded_by or source.status in (SourceStatus.DELETED,)):
            return False
        if source is not None and source.in_source_of_truth is False:
            return False
        return self.matches(chunk)


def victims_of(trace: Trace, diagnosis: Diagnosis) -> frozenset[str]:
    """The gold ids of the first needed group, all of them delivered; empty when the group is not whole.

    Losing one whole group fails the query, whatever the mode.
    """
    passed = {verdict.id for verdict in diagnosis.gold if verdict.outcome is Outcome.PASS}
    counted = {v.id for v in diagnosis.gold if v.outcome not in (Outcome.NOT_APPLICABLE, Outcome.LABEL_ISSUE)}
    ids = [gold.id for gold in trace.gold if gold.id in counted]
    if trace.gold_groups:
        groups = [[i for i in group if i in counted] for group in trace.gold_groups]
    elif trace.gold_mode is GoldMode.ANY:
        groups = [ids]
    else:
        groups = [[i] for i in ids]
    first = next((group for group in groups if group), [])
    return frozenset(first) if passed.issuperset(first) else frozenset()
