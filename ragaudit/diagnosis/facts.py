"""Everything that is known about one gold id of one query, asked for by name: what the causes look at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from ragaudit.diagnosis.filter_facts import FilterFacts
from ragaudit.diagnosis.query_facts import QueryFacts
from ragaudit.evidence.journey import GoldRow, Place
from ragaudit.evidence.sources import named_lexical, named_vector
from ragaudit.model.inventory import ChunkKind, Index, IndexArm
from ragaudit.model.pipeline import Search
from ragaudit.model.trace import ArmState, ArmStatus, Probe, Ranking

_NO_INDEX = Index()


@dataclass(frozen=True)
class ArmFacts:
    """One arm of one query, and where it has the gold."""

    name: str
    hits: Ranking
    place: Place | None
    status: ArmStatus | None
    index: IndexArm | None
    search: Search
    lexical: bool
    """It matches words, by its configuration or its name; other arms count as vector arms."""

    @property
    def known_vector(self) -> bool:
        """Its name, its index or its search says that it compares vectors."""
        if self.lexical:
            return False
        index, search = self.index, self.search
        told = index is not None and (index.models or index.dims or index.metric or index.ann)
        return bool(told or search.ef_search or search.nprobe or search.lists) or named_vector(self.name)

    def holds(self, k: int) -> bool:
        """The gold is within the first k of this arm."""
        return self.place is not None and self.place.rank <= k

    @property
    def matching(self) -> int | None:
        """How many rows satisfy the filter, as far as the arm said."""
        return self.status.matching if self.status is not None else None

    @property
    def did_not_run(self) -> bool:
        """The arm was off or failed: that it returned few rows says nothing about filter or index."""
        return self.status is not None and self.status.status in (ArmState.OFF, ArmState.ERRORED)

    @property
    def constant_score(self) -> float | None:
        """The one score that all hits share, when there are three or more of them; None otherwise."""
        if len(self.hits) < 3 or self.hits[0].value is None or self.hits[0].value != self.hits[-1].value:
            return None
        return self.hits[0].value if len({hit.value for hit in self.hits}) == 1 else None

    @property
    def declared_direction(self) -> str | None:
        """`higher` or `lower`: which scores of this arm are better, as the index says; None when it does not."""
        score = self.index.score if self.index else None
        return score.direction if score else None

    @property
    def lower_is_better(self) -> bool:
        """The arm's score is declared to be a distance."""
        return self.declared_direction == "lower"


@dataclass(frozen=True)
class Listed:
    """One merged list after the arms, and where it has the gold."""

    name: str
    hits: Ranking | None
    """None for the final context, which is logged as ids only."""
    ids: tuple[str, ...]
    place: Place | None


class GoldFacts:
    """One gold id of one query with all that bears on it. Nothing here decides; it only answers."""

    def __init__(self, query: QueryFacts, position: int) -> None:
        self.query = query
        self.position = position
        self.evidence = query.evidence
        self.trace = query.trace
        self.pipeline = query.pipeline
        self.identities = query.identities
        self.acl = query.acl
        self.run = query.run
        self.foreign = query.foreign

    @property
    def row(self) -> GoldRow:
        """The label joined with the inventory."""
        return self.evidence.gold[self.position]

    @property
    def id(self) -> str:
        """The gold id."""
        return self.row.gold.id

    @property
    def k(self) -> int:
        """The application's K."""
        return self.trace.k_final

    @property
    def index(self) -> Index:
        """The index revision; empty when not given."""
        return self.identities.inventory.index or _NO_INDEX

    # --- lists -------------------------------------------------------------------------------------------------

    @cached_property
    def arms(self) -> tuple[ArmFacts, ...]:
        """The arms that logged a list."""
        found = []
        for name, hits in (self.trace.arms or {}).items():
            places = self.evidence.lists[f"arm:{name}"].places
            found.append(
                ArmFacts(
                    name,
                    hits,
                    places[self.position],
                    (self.trace.arm_status or {}).get(name),
                    self.index.arms.get(name),
                    self.pipeline.search.get(name) or Search(),
                    self._is_lexical(name),
                )
            )
        return tuple(found)

    def _is_lexical(self, name: str) -> bool:
        search, index = self.pipeline.search.get(name), self.index.arms.get(name)
        if search is not None and (search.operator is not None or search.tokenizer is not None):
            return True
        if index is not None and (index.models or index.dims or index.metric or index.ann):
            return False
        return named_lexical(name)

    @cached_property
    def missed_arms(self) -> tuple[ArmFacts, ...]:
        """The arms that do not have the gold within K."""
        return tuple(arm for arm in self.arms if not arm.holds(self.k))

    @cached_property
    def dense_missed(self) -> tuple[ArmFacts, ...]:
        """The vector arms that do not have the gold within K."""
        return tuple(arm for arm in self.missed_arms if not arm.lexical)

    def reach(self, arm: ArmFacts) -> int:
        """How deep within K this arm could have shown the gold: no deeper than the rows it returned."""
        return min(self.k, len(arm.hits)) if arm.hits else self.k

    @property
    def unlogged_arms(self) -> tuple[str, ...]:
        """Configured arms of which the trace shows nothing: they may have found the gold."""
        return self.query.unlogged_arms

    @property
    def fused_cut(self) -> int:
        """How many of the fused list go on: what the reranker was given, else K."""
        given = self.trace.rerank_input
        if given is not None:
            return max(self.k, len(given))
        reranked = self.trace.after_rerank is not None
        return max(self.k, self.pipeline.rerank.candidates or 0) if reranked else self.k

    @cached_property
    def in_arm_within_k(self) -> bool:
        """At least one arm has the gold within K."""
        return any(arm.holds(self.k) for arm in self.arms)

    @cached_property
    def in_any_arm(self) -> bool:
        """At least one arm has the gold at any rank."""
        return any(arm.place is not None for arm in self.arms)

    @cached_property
    def merged(self) -> tuple[Listed, ...]:
        """The observed lists after the arms, in order; last the context, or the prompt where only that was logged."""
        found = []
        for name in ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank"):
            listed = self.evidence.lists.get(name)
            if listed is not None:
                ids = tuple(hit.id for hit in listed.hits)
                found.append(Listed(name, listed.hits, ids, listed.places[self.position]))
        if self.evidence.packed is not None:
            ids = self.trace.final_context_ids or ()
            found.append(Listed("final_context_ids", None, ids, self.evidence.packed[self.position]))
        elif self.evidence.prompted is not None:
            ids = self.trace.prompt_ids or ()
            found.append(Listed("prompt_ids", None, ids, self.evidence.prompted[self.position]))
        return tuple(found)

    @cached_property
    def _by_name(self) -> Mapping[str, Listed]:
        return {entry.name: entry for entry in self.merged}

    def listed(self, name: str) -> Listed | None:
        """One merged list by name, None when it was not logged."""
        return self._by_name.get(name)

    @cached_property
    def seen(self) -> bool:
        """The gold stands in some list of this query, or stood in the former turn's context: it can be served."""
        return self.in_any_arm or self.delivered_before or any(entry.place for entry in self.merged)

    @property
    def delivered_before(self) -> bool:
        """The gold was in the context of the former turn of this conversation."""
        talk = self.trace.conversation
        return talk is not None and self.id in (talk.previous_context_ids or ())

    @property
    def packed(self) -> Place | None:
        """The gold's place in the final context."""
        return None if self.evidence.packed is None else self.evidence.packed[self.position]

    @property
    def read_at(self) -> Place | None:
        """The gold's place in the final context, or in the prompt where only that was logged."""
        places = self.evidence.packed if self.evidence.packed is not None else self.evidence.prompted
        return None if places is None else places[self.position]

    @property
    def delivered(self) -> bool | None:
        """Did the gold reach what the generator read? None when neither prompt nor context was logged."""
        places = self.evidence.delivered
        return None if places is None else places[self.position] is not None

    @property
    def held_by_dense_only(self) -> bool:
        """Only vector arms have the gold: a floor that lost it read a vector score."""
        return self.in_any_arm and not any(arm.lexical for arm in self.arms if arm.place)

    @property
    def best_rank(self) -> int | None:
        """The best rank of the gold in any arm."""
        return min((arm.place.rank for arm in self.arms if arm.place), default=None)

    # --- probes ------------------------------------------------------------------------------------------------

    def probes(self, name: str, arm: str | None = None) -> Iterator[Probe]:
        """The probes of this name on this gold id, and on this arm when one is asked for."""
        for probe in self.trace.probes:
            mine = probe.gold_id in (None, self.id) or (
                self.row.chunk is not None and probe.gold_id == self.row.chunk.chunk_id
            )
            if probe.probe == name and mine and (arm is None or probe.arm in (None, arm)):
                yield probe

    def probe_rank(self, name: str, arm: str | None = None) -> int | None:
        """The rank that a probe found; None when it was not run or found nothing (see `probe_missed`)."""
        for probe in self.probes(name, arm):
            if isinstance(probe.value, (int, float)) and not isinstance(probe.value, bool) and probe.value >= 1:
                return int(probe.value)
        return None

    def probe_missed(self, name: str, arm: str | None = None) -> bool:
        """The probe was run and did not find the gold."""
        return any(probe.value is None for probe in self.probes(name, arm))

    def probe_says(self, name: str) -> bool | None:
        """The yes or no of a probe; None when it was not run."""
        return next((p.value for p in self.probes(name) if isinstance(p.value, bool)), None)

    # --- index -------------------------------------------------------------------------------------------------

    @cached_property
    def in_index(self) -> Mapping[str, bool]:
        """Arm -> is the gold in that arm's index, for the arms where it is known. A parent stands for its children."""
        chunk = self.row.chunk
        if chunk is None:
            return {}
        if chunk.kind is ChunkKind.PARENT or chunk.chunk_id in self.identities.children:
            children = (self.identities.inventory.chunk(i) for i in self.identities.children.get(chunk.chunk_id, ()))
            held: dict[str, bool] = {}
            for child in children:
                for arm, present in ((child.present_in if child else None) or {}).items():
                    held[arm] = held.get(arm, False) or present
            return held
        return chunk.present_in or {}

    @cached_property
    def written(self) -> bool | None:
        """Is the gold in at least one arm's index? None when nothing says so."""
        if self.probe_says("fetch_by_id") is not None:
            return self.probe_says("fetch_by_id")
        if self.seen or any(self.in_index.values()):
            return True
        return False if self.in_index else None

    @property
    def query_model(self) -> str | None:
        """The model that embedded the query."""
        return self.trace.embedding_model or self.pipeline.embedding.query.model

    @property
    def models_agree(self) -> bool | None:
        """Do query side and corpus side use one model? None when one of the sides is not known."""
        corpus = self.pipeline.embedding.corpus.model
        stamp = self.row.chunk.embedding_model if self.row.chunk else None
        known = [model for model in (corpus, stamp) if model is not None]
        if self.query_model is None or not known:
            return None
        return any(same_model(self.query_model, model) for model in known)

    @property
    def untrained_language(self) -> str:
        """What to add when the text is in a language that the corpus model was not trained for; empty otherwise."""
        trained, language = (
            self.pipeline.embedding.corpus.languages,
            self.row.chunk.language if self.row.chunk else None,
        )
        if not trained or language is None or language in trained:
            return ""
        return f"; the text is {language}, the model is trained for {', '.join(trained)}"

    # --- filter ------------------------------------------------------------------------------------------------

    @cached_property
    def filter(self) -> FilterFacts:
        """How the gold meets the filters that were sent."""
        of_arms = [arm.status.filter for arm in self.arms if arm.status is not None and not arm.holds(self.k)]
        return FilterFacts(self.query.access, self.row, of_arms, self.probe_says("filter_passes"))

    @property
    def filter_runs_first(self) -> bool:
        """The filter is configured to run before or during the search: it drops nothing later."""
        return self.pipeline.filter.mode in ("pre", "scan")

    # --- fusion ---------------------------------------------------------------------------------------------------

    @cached_property
    def recomputed_rank(self) -> int | None:
        """The gold's worst rank in the recomputed list under any order of ties; None when unknown or absent."""
        if self.query.recomputed is None:
            return None
        items = {self.query.canonical(arm.place.hit_id) for arm in self.arms if arm.place} | {self.id}
        ranks = [found[1] for found in map(self.query.recomputed.ranks, items) if found]
        return min(ranks, default=None)


def same_model(a: str, b: str) -> bool:
    """One model under two spellings: provider prefixes, case and a `:latest` tag aside."""
    return _bare(a) == _bare(b)


def _bare(model: str) -> str:
    return model.casefold().removesuffix(":latest").rsplit("/", 1)[-1].replace("_", "-")


def moment(text: str | None) -> datetime | None:
    """An ISO 8601 date or time as an instant (UTC when it names no zone); None when absent or not one."""
    if text is None:
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
