"""Which stages an observation excludes for one gold id: what is left when nothing fired."""

from collections.abc import Sequence

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.model.diagnosis import STAGES, Stage


def not_excluded(f: GoldFacts, possible: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages among these that no observation excludes."""
    span, out = f.row.span, set()
    if f.written:
        out.add(Stage.INGESTION)
    if span.extracted is True or span.chunk is True:
        out.add(Stage.PARSE)
    if span.chunk is True:
        out.add(Stage.CHUNK)
    ranked = all(arm.place or (f.probe_rank("exact_rank", arm.name) or 0) > f.reach(arm) for arm in f.dense_missed)
    if f.arms and embed_excluded(f) and ranked:
        out.add(Stage.EMBED)
    if (f.filter_cleared and not _may_be_starved(f)) or (f.in_any_arm and f.filter_runs_first):
        out.add(Stage.FILTER)
    if f.arms and f.in_arm_within_k and not f.missed_arms:
        out |= {Stage.EMBED, Stage.RETRIEVE}
    return tuple(stage for stage in in_order(possible) if stage not in out)


def _may_be_starved(f: GoldFacts) -> bool:
    """A filter that may run behind the search left an arm fewer rows than K: more may have matched."""
    if not f.trace.filters_applied or f.filter_runs_first or f.in_any_arm or any(entry.place for entry in f.merged):
        return False
    return f.trace.arms is None or any(
        len(arm.hits) < (f.k if arm.matching is None else min(f.k, arm.matching)) and not arm.did_not_run
        for arm in f.missed_arms
    )


def embed_excluded(f: GoldFacts) -> bool:
    """No vector arm missed it, or an exact search misses it too although both sides use one model."""
    if not f.dense_missed:
        return True
    return f.models_agree is True


def in_order(stages: Sequence[Stage] | set[Stage]) -> tuple[Stage, ...]:
    """These stages, in the order of the taxonomy."""
    return tuple(stage for stage in STAGES if stage in stages)
