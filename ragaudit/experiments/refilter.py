"""The merged list behind a filter that runs after the search, had the filter been given more candidates.

The predicate stays as it was sent. A row is kept only where the inventory shows that it meets every clause.
"""

from collections.abc import Mapping

from ragaudit.experiments.pool import SHORT, Listed, Unreplayable, recomputed_pool, recorded_pool
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import ArmStatus, Ranking, Trace

_NO_STATUS = ArmStatus()
_UNKNOWN = "whether some candidates meet the filter is not known"


def refiltered_pool(trace: Trace, was: Pipeline, now: Pipeline, meets: Mapping[str, bool]) -> Listed | Unreplayable:
    """What the filter leaves of the first `filter.fetch_k` candidates.

    Args:
        trace: The query.
        was: What it was logged under.
        now: The configuration to replay.
        meets: Id -> does the row meet the filter; ids of which that is not known are left out.
    """
    fetch = now.filter.fetch_k
    if fetch is None:
        return Unreplayable("how many candidates the filter was given is not known")
    before = trace.model_copy(update={"after_filter": None, "after_threshold": None})
    if isinstance(trace.after_filter, tuple):
        pool = recorded_pool(before, now)
        if isinstance(pool, Unreplayable):
            return pool
        if fetch > len(pool.ids) and not pool.is_whole:
            return Unreplayable(SHORT)
        given = pool.ids[:fetch]
        kept = tuple(i for i in given if meets.get(i))
        return Unreplayable(_UNKNOWN) if any(i not in meets for i in given) else Listed(kept, is_whole=True)
    if trace.after_filter is None or trace.arms is None:
        return Unreplayable("the list behind the filter is not logged")
    arms: dict[str, Ranking] = {}
    for name, hits in trace.arms.items():
        limit = ((trace.arm_status or {}).get(name) or _NO_STATUS).limit
        if fetch > len(hits) and (limit is None or len(hits) >= limit):
            return Unreplayable(SHORT)
        if any(hit.id not in meets for hit in hits[:fetch]):
            return Unreplayable(_UNKNOWN)
        arms[name] = tuple(hit for hit in hits[:fetch] if meets[hit.id])
    return recomputed_pool(before.model_copy(update={"arms": arms}), was, now)
