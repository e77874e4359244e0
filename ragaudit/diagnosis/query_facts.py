"""What one query and its run show, shared by all gold ids of the query: fusion recomputed, arms, ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ragaudit.config import AclSettings
from ragaudit.evidence.access import Access
from ragaudit.evidence.fusion import Recomputed, best_of, contributing, recompute, rrf_constant, takes_best
from ragaudit.evidence.id_forms import form_of
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.evidence.leaks import Foreign, foreign_hits
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import ArmState, ArmStatus, Ranking

LOOKED_AT = 20
"""Hits of an arm whose ids show how its ids look."""


@dataclass(frozen=True)
class RunFacts:
    """What only the whole run shows. Filled by the preflight pass."""

    stamps: Mapping[str, int] = field(default_factory=dict)
    """Embedding model -> chunks stamped with it, over the chunk table."""


def _returned_nothing(status: ArmStatus) -> bool:
    """The arm had no list to log: it was off, failed, or says itself that it returned nothing."""
    return status.status in (ArmState.OFF, ArmState.ERRORED) or status.returned == 0


class QueryFacts:
    """One query with all that bears on it, shared by its gold ids: what is expensive is worked out once."""

    def __init__(
        self,
        evidence: QueryEvidence,
        pipeline: Pipeline,
        identities: Identities,
        acl: AclSettings,
        run: RunFacts,
    ) -> None:
        self.evidence = evidence
        self.trace = evidence.trace
        self.pipeline = pipeline
        self.identities = identities
        self.acl = acl
        self.run = run

    @cached_property
    def access(self) -> Access:
        """What the query's user may read."""
        return Access(self.trace, self.identities, self.acl, self.pipeline)

    @cached_property
    def foreign(self) -> tuple[Foreign, ...]:
        """What reached the context against the rules."""
        return foreign_hits(self.access)

    def canonical(self, hit_id: str) -> str:
        """The one id for all names of this hit."""
        return self.identities.canonical(hit_id, self.trace)

    @cached_property
    def unlogged_arms(self) -> tuple[str, ...]:
        """Arms that are configured, or that fused hits are said to come from, and of which nothing else was logged."""
        known = {
            *(self.trace.arms or {}),
            *(n for n, s in (self.trace.arm_status or {}).items() if _returned_nothing(s)),
        }
        named = (source for hit in self.trace.fused or () for source in hit.sources or ())
        return tuple(arm for arm in dict.fromkeys((*(self.pipeline.arms or ()), *named)) if arm not in known)

    @cached_property
    def fusion_inputs(self) -> Mapping[str, Ranking]:
        """What fusion worked on: each arm's list after its own filter and floor, where those are logged."""
        lists = {}
        for name, hits in (self.trace.arms or {}).items():
            for step in ("after_filter", "after_threshold"):
                later = self.evidence.lists.get(f"{step}:{name}")
                hits = later.hits if later is not None else hits
            lists[name] = hits
        return lists

    @cached_property
    def arm_ranks(self) -> Mapping[str, Mapping[str, int]]:
        """Id in the gold's id space -> arm -> its best rank there."""
        found: dict[str, dict[str, int]] = {}
        for name, hits in (self.trace.arms or {}).items():
            for rank, hit in enumerate(hits, start=1):
                found.setdefault(self.canonical(hit.id), {}).setdefault(name, rank)
        return found

    @cached_property
    def arm_forms(self) -> Mapping[str, frozenset[str]]:
        """Arm -> how the ids of its first hits look."""
        return {
            name: frozenset(form_of(self.canonical(hit.id)) for hit in hits[:LOOKED_AT])
            for name, hits in (self.trace.arms or {}).items()
        }

    @cached_property
    def outside_filter(self) -> Mapping[str, bool]:
        """Hits of the arms that violate the filter, sent or expected (True), or may violate what was not sent (False).

        Hits that are not among these are known, or not claimed by anything, to stand inside it.
        """
        sent, expected = dict(clauses(self.trace.filters_applied)), dict(clauses(self.pipeline.filter.expected))
        unsent = {name: want for name, want in expected.items() if sent.get(name) != want}
        wanted = {**sent, **unsent} if unsent or self.access.knows_fields else {}
        found: dict[str, bool] = {}
        for hit in (hit for hits in (self.trace.arms or {}).values() for hit in hits) if wanted else ():
            metadata = self.access.metadata(hit.id)
            met = {name: match(want, metadata, name) for name, want in wanted.items()} if metadata else {}
            if Match.NO in met.values():
                found[hit.id] = True
            elif any(met.get(name, Match.UNKNOWN) is Match.UNKNOWN for name in unsent):
                found.setdefault(hit.id, False)
        return found

    @cached_property
    def renames(self) -> bool:
        """At least one hit of the arms goes by another id than the gold's id space has for it."""
        if not self.trace.id_map and not self.identities.inventory.by_alias:
            return False
        return any(self.canonical(hit.id) != hit.id for hits in self.fusion_inputs.values() for hit in hits)

    @cached_property
    def rrf_k(self) -> float | None:
        """The constant of reciprocal rank fusion, when that is how the lists were fused."""
        if self.trace.fused is None or not self.fusion_inputs:
            return None
        return rrf_constant(self.fusion_inputs, self.trace.fused, self.pipeline.fusion)

    @cached_property
    def recomputed(self) -> Recomputed | None:
        """The fused order that the arms give under the configured method, None when it cannot be recomputed."""
        if self.trace.fused is None or self.unlogged_arms:
            return None
        if takes_best(self.pipeline.fusion):
            return best_of(self.fusion_inputs, self.canonical)
        if self.rrf_k is None:
            return None
        return recompute(self.fusion_inputs, self.pipeline.fusion, self.rrf_k, self.canonical)

    @cached_property
    def silent_arms(self) -> tuple[str, ...]:
        """Arms that returned hits and left no mark on the logged fused scores."""
        fused = self.trace.fused
        if not fused or self.rrf_k is None or len(self.fusion_inputs) < 2:
            return ()
        used = contributing(self.fusion_inputs, fused, self.rrf_k)
        return tuple(arm for arm, hits in self.fusion_inputs.items() if hits and arm not in used)
