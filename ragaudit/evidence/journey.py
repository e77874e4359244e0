"""Where every gold id of a query stands at each checkpoint: present (rank, score), absent, or unobserved."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragaudit.config import AclSettings
from ragaudit.evidence.acl import Acls
from ragaudit.evidence.gold_span import SpanStates, locate
from ragaudit.evidence.identity import Identities, Standing, Via, hashes, standing
from ragaudit.evidence.logged import Logged, logged_source
from ragaudit.model.diagnosis import Checkpoint, State, Step
from ragaudit.model.inventory import Chunk, Source
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Gold, Ranking, Trace


@dataclass(frozen=True)
class Place:
    """Where a gold id was found in one list: its position from 1, its score there, and under which id."""

    rank: int
    score: float | None
    hit_id: str
    via: Via


@dataclass(frozen=True)
class ListPlaces:
    """One observed list and the place of each gold id in it (None = not in the list)."""

    name: str
    hits: Ranking
    places: tuple[Place | None, ...]


@dataclass(frozen=True)
class GoldRow:
    """One gold label joined with the inventory."""

    gold: Gold
    eligible: bool | None
    chunk: Chunk | None
    source: Source | None
    span: SpanStates


@dataclass(frozen=True)
class QueryEvidence:
    """What one trace shows about its gold. `packed` and `prompted` are None when not logged."""

    trace: Trace
    gold: tuple[GoldRow, ...]
    lists: Mapping[str, ListPlaces]
    packed: tuple[Place | None, ...] | None
    prompted: tuple[Place | None, ...] | None

    @property
    def delivered(self) -> tuple[Place | None, ...] | None:
        """The places in what the generator read: the rendered prompt, else the final context."""
        return self.packed if self.prompted is None else self.prompted


def gather(trace: Trace, identities: Identities, acl: AclSettings) -> QueryEvidence:
    """Join one trace with the inventory and find every gold id in every list."""
    inventory = identities.inventory
    rows = []
    logged = Logged(trace)
    acls = Acls(trace, identities, acl, logged)
    for gold in trace.gold:
        chunk = identities.chunk_of(gold)
        source = inventory.source(gold.source_id or (chunk.source_id if chunk else None) or gold.id)
        span = locate(gold, chunk, source, identities)
        rows.append(GoldRow(gold, acls.eligible(gold), chunk, source, span))
    ids = _with_logged_names(logged, rows, standing(trace, identities))
    lists = {
        name: ListPlaces(name, hits, _in_list(hits, ids.searched, len(rows))) for name, hits in trace.lists().items()
    }
    return QueryEvidence(
        trace,
        tuple(rows),
        lists,
        _in_ids(trace.final_context_ids, ids, len(rows)),
        _in_ids(trace.prompt_ids, ids, len(rows)),
    )


def _with_logged_names(log: Logged, rows: list[GoldRow], ids: Standing) -> Standing:
    """Names that only the log itself reveals: the source of a hit, and a packed text equal to a gold chunk's."""
    trace = log.trace
    more: dict[str, tuple[int, Via]] = {}
    if ids.sources and log.says_more:
        for hits in trace.lists().values():
            for hit in hits:
                position = ids.sources.get(logged_source(hit) or "")
                if position is not None and hit.id not in ids.searched:
                    more[hit.id] = (position, Via.SOURCE)
    logged = {i: content_hash(text) for i, text in (trace.context_texts or {}).items() if i not in ids.packed}
    logged |= {i: digest for i, digest in (trace.context_hashes or {}).items() if i not in ids.packed}
    if logged:
        digests = {digest: n for n, row in enumerate(rows) if row.chunk for digest in hashes(row.chunk)}
        for chunk_id, digest in logged.items():
            if digest in digests:
                more[chunk_id] = (digests[digest], Via.SAME_TEXT)
    if not more:
        return ids
    known = {chunk_id: (way,) for chunk_id, way in more.items()}
    return Standing({**known, **ids.searched}, {**known, **ids.packed}, ids.sources)


def _in_list(hits: Ranking, table: Mapping[str, tuple[tuple[int, Via], ...]], n: int) -> tuple[Place | None, ...]:
    places: list[Place | None] = [None] * n
    for rank, hit in enumerate(hits, start=1):
        for position, via in table.get(hit.id, ()):
            if places[position] is None:
                places[position] = Place(rank, hit.value, hit.id, via)
    return tuple(places)


def _in_ids(ids: tuple[str, ...] | None, names: Standing, n: int) -> tuple[Place | None, ...] | None:
    if ids is None:
        return None
    places: list[Place | None] = [None] * n
    for rank, packed_id in enumerate(ids, start=1):
        for position, via in names.packed.get(packed_id, ()):
            if places[position] is None:
                places[position] = Place(rank, None, packed_id, via)
    return tuple(places)


_CHECKPOINTS = {
    "arm": Checkpoint.RETRIEVED,
    "fused": Checkpoint.FUSED,
    "after_filter": Checkpoint.FILTERED,
    "after_threshold": Checkpoint.FUSED,
    "rerank_input": Checkpoint.RERANKED,
    "after_rerank": Checkpoint.RERANKED,
}


def journey(evidence: QueryEvidence, position: int) -> tuple[Step, ...]:
    """The steps of one gold id, in the order of the pipeline. Every checkpoint appears at least once."""
    row = evidence.gold[position]
    steps = [
        _known(Checkpoint.ELIGIBLE, row.eligible),
        _known(Checkpoint.REGISTERED, row.source.registered if row.source else None),
        _known(Checkpoint.PARSED, _kept(row.span.extracted), _note(row.span.extracted)),
        _known(Checkpoint.CHUNKED, _kept(row.span.chunk), _note(row.span.chunk)),
        _known(Checkpoint.INDEXED, _indexed(row.chunk), _arms(row.chunk)),
    ]
    seen = {checkpoint: False for checkpoint in _CHECKPOINTS.values()}
    listed: list[Step] = []
    for name, found in evidence.lists.items():
        checkpoint = _CHECKPOINTS[name.partition(":")[0]]
        seen[checkpoint] = True
        listed.append(_step(checkpoint, found.places[position], name))
    order = [Checkpoint.RETRIEVED, Checkpoint.FUSED, Checkpoint.FILTERED, Checkpoint.RERANKED]
    for checkpoint in order:
        steps += [step for step in listed if step.checkpoint is checkpoint]
        if not seen[checkpoint]:
            steps.append(Step(checkpoint=checkpoint, state=State.UNOBSERVED))
    for checkpoint, name, places in (
        (Checkpoint.PACKED, "final_context_ids", evidence.packed),
        (Checkpoint.PROMPTED, "prompt_ids", evidence.prompted),
    ):
        unobserved = Step(checkpoint=checkpoint, state=State.UNOBSERVED)
        steps.append(unobserved if places is None else _step(checkpoint, places[position], name))
    answer = evidence.trace.answer
    steps.append(_known(Checkpoint.ANSWERED, None if answer is None else answer.correct))
    return tuple(steps)


def _step(checkpoint: Checkpoint, place: Place | None, name: str) -> Step:
    if place is None:
        return Step(checkpoint=checkpoint, state=State.ABSENT, list=name)
    note = None if place.via is Via.ITSELF else f"as {place.hit_id} ({place.via.value})"
    return Step(checkpoint=checkpoint, state=State.PRESENT, rank=place.rank, score=place.score, list=name, note=note)


def _known(checkpoint: Checkpoint, value: bool | None, note: str | None = None) -> Step:
    if value is None:
        return Step(checkpoint=checkpoint, state=State.UNOBSERVED, note=note)
    return Step(checkpoint=checkpoint, state=State.PRESENT if value else State.ABSENT, note=note)


def _kept(found: object) -> bool | None:
    return None if found is None else found in (True, "normalised")


def _note(found: object) -> str | None:
    return found if isinstance(found, str) else None


def _indexed(chunk: Chunk | None) -> bool | None:
    if chunk is None or chunk.present_in is None:
        return None
    return any(chunk.present_in.values())


def _arms(chunk: Chunk | None) -> str | None:
    held = (chunk.present_in if chunk else None) or {}
    missing = [arm for arm, present in held.items() if not present]
    return f"not in {', '.join(missing)}" if missing and len(missing) < len(held) else None
