"""Which stages an observation excludes for one gold id: what is left when nothing fired."""

from collections.abc import Sequence

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.registry import fired
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.evidence.sources import named_lexical
from ragaudit.model.diagnosis import STAGES, Stage

SHORT_INPUT = 512
"""Tokens that every common embedding model reads whole: a longer chunk may have been cut where no limit is known."""
CHARS_A_TOKEN = 2
"""At the least, in scripts that are written without spaces: a text shorter than this allows for was not cut."""


def not_excluded(f: GoldFacts, possible: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages among these that no observation excludes."""
    span, out = f.row.span, set()
    if f.written and not may_be_stale(f):
        out.add(Stage.INGESTION)
    if span.extracted is True or span.chunk is True:
        out.add(Stage.PARSE)
    if span.chunk is True:
        out.add(Stage.CHUNK)
    if f.arms and all(map(named_lexical, f.unlogged_arms)) and _vectors_sound(f):
        out.add(Stage.EMBED)
    if _filter_sound(f):
        out.add(Stage.FILTER)
    if f.in_arm_within_k and not f.missed_arms and not f.unlogged_arms:
        out |= {Stage.EMBED, Stage.RETRIEVE}
    return tuple(stage for stage in in_order(possible) if stage not in out)


def may_be_stale(f: GoldFacts) -> bool:
    """What is indexed under the gold's id may be an older text: nobody saw the answer's words, or the source's row."""
    return f.row.source is None and f.row.span.chunk is not True


def _vectors_sound(f: GoldFacts) -> bool:
    """No vector arm missed it; or exact search misses it too, with one model on both sides and the text read whole."""
    if not f.dense_missed:
        return True
    ranked = all(arm.place or (f.probe_rank("exact_rank", arm.name) or 0) > f.reach(arm) for arm in f.dense_missed)
    return f.models_agree is True and ranked and not _may_be_cut(f) and not any(True for _ in fired("index", f))


def _may_be_cut(f: GoldFacts) -> bool:
    """The embedder may have read only the head of the chunk."""
    chunk, limit = f.row.chunk, f.pipeline.embedding.corpus.max_tokens
    if chunk is None:
        return f.identities.inventory.chunks is None
    tokens = chunk.tokens if chunk.tokens is not None else len(chunk.text or "") // CHARS_A_TOKEN
    return tokens > (SHORT_INPUT if limit is None else limit)


def _filter_sound(f: GoldFacts) -> bool:
    if _may_be_crowded(f):
        return False
    if f.filter_cleared:
        return not _may_be_starved(f)
    return f.in_any_arm and f.filter_runs_first and f.trace.filters_applied is not None


def _may_be_starved(f: GoldFacts) -> bool:
    """A filter that may run behind the search left an arm fewer rows than K: more may have matched."""
    if not f.trace.filters_applied or f.filter_runs_first or f.in_any_arm or any(entry.place for entry in f.merged):
        return False
    if not f.trace.arms:
        return True
    sent = dict(clauses(f.trace.filters_applied))
    for arm in f.missed_arms:
        kept = sum(Match.NO not in _met(f, hit.id, sent) for hit in arm.hits)
        if kept < (f.k if arm.matching is None else min(f.k, arm.matching)) and not arm.did_not_run:
            return True
    return False


def _may_be_crowded(f: GoldFacts) -> bool:
    """Rows that the filter should have kept out stand in an arm that misses the gold, or may stand there."""
    sent, expected = dict(clauses(f.trace.filters_applied)), dict(clauses(f.pipeline.filter.expected))
    unsent = {name: want for name, want in expected.items() if sent.get(name) != want}
    if not sent and not unsent:
        return False
    for arm in f.missed_arms:
        above = arm.hits[: arm.place.rank - 1] if arm.place else arm.hits
        for hit in above:
            if Match.NO in _met(f, hit.id, {**sent, **unsent}):
                return True
            if unsent and Match.UNKNOWN in _met(f, hit.id, unsent):
                return True
    return False


def _met(f: GoldFacts, hit_id: str, wanted: dict[str, object]) -> set[Match]:
    """How a hit meets each clause, by what is stored of it and was logged with it."""
    metadata = f.query.access.metadata(hit_id)
    return {match(want, metadata, name) for name, want in wanted.items()}


def in_order(stages: Sequence[Stage] | set[Stage]) -> tuple[Stage, ...]:
    """These stages, in the order of the taxonomy."""
    return tuple(stage for stage in STAGES if stage in stages)
