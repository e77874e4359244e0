"""Which stages an observation excludes for one gold id: what is left when nothing fired."""

from collections.abc import Sequence

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.registry import fired
from ragaudit.evidence.sources import named_lexical
from ragaudit.model.diagnosis import STAGES, Stage

SHORT_INPUT = 128
"""Tokens that even the small embedding models read whole (paraphrase-multilingual-MiniLM: 128, all-MiniLM-L6: 256): a
longer chunk may have been cut where no limit is known."""
CHARS_A_TOKEN = 2
"""Few enough for words of letters; a character of a script without spaces counts as a token."""
_WITHOUT_SPACES = 0x0E00
"""Thai and every script after it in Unicode: Khmer, kana, Han, Hangul."""


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
    """The embedder may have read only the head of the chunk: it is longer than what is known to be read, or unseen."""
    chunk, limit = f.row.chunk, f.pipeline.embedding.corpus.max_tokens or SHORT_INPUT
    if chunk is None:
        return f.identities.inventory.chunks is None
    if chunk.answer_token_offset is not None:
        return chunk.answer_token_offset >= limit
    if chunk.tokens is None and chunk.text is None:
        return True
    return (_tokens(chunk.text or "") if chunk.tokens is None else chunk.tokens) > limit


def _tokens(text: str) -> int:
    """At most so many tokens, roughly."""
    dense = sum(ord(char) >= _WITHOUT_SPACES for char in text)
    return dense + (len(text) - dense) // CHARS_A_TOKEN


def _filter_sound(f: GoldFacts) -> bool:
    emptied = any(not arm.hits and not arm.did_not_run for arm in f.missed_arms) and bool(f.trace.filters_applied)
    if emptied or _may_be_crowded(f) or any(s.matching == 0 for s in (f.trace.arm_status or {}).values()):
        return False
    if f.filter.cleared:
        return not _may_be_starved(f)
    return f.in_any_arm and f.filter_runs_first and f.trace.filters_applied is not None


def _may_be_starved(f: GoldFacts) -> bool:
    """A filter that may run behind the search left an arm fewer rows than K: more may have matched."""
    if not f.trace.filters_applied or f.filter_runs_first or f.in_any_arm or any(entry.place for entry in f.merged):
        return False
    if not f.trace.arms:
        return True
    for arm in f.missed_arms:
        kept = sum(not f.query.outside_filter.get(hit.id, False) for hit in arm.hits)
        if kept < (f.k if arm.matching is None else min(f.k, arm.matching)) and not arm.did_not_run:
            return True
    return False


def _may_be_crowded(f: GoldFacts) -> bool:
    """Rows that the filter should have kept out stand above the gold in an arm, or may stand there."""
    outside = f.query.outside_filter
    above = (hit for arm in f.missed_arms for hit in (arm.hits[: arm.place.rank - 1] if arm.place else arm.hits))
    return bool(outside) and any(hit.id in outside for hit in above)


def in_order(stages: Sequence[Stage] | set[Stage]) -> tuple[Stage, ...]:
    """These stages, in the order of the taxonomy."""
    return tuple(stage for stage in STAGES if stage in stages)
