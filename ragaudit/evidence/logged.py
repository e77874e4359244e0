"""What one log says of the ids in its lists: their hits, and the sources that those were logged with."""

from collections.abc import Mapping
from functools import cached_property

from ragaudit.model.trace import Hit, Trace


class Logged:
    """The lists of one trace by id; each table is built when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def says_more(self) -> bool:
        """Some hit was logged with metadata or its source: most logs hold ids and scores only."""
        return any(
            hit.metadata is not None or hit.source_id is not None
            for hits in self.trace.lists().values()
            for hit in hits
        )

    @cached_property
    def hits(self) -> Mapping[str, tuple[Hit, ...]]:
        """Id -> its hits, list after list."""
        found: dict[str, list[Hit]] = {}
        for hits in self.trace.lists().values():
            for hit in hits:
                found.setdefault(hit.id, []).append(hit)
        return {chunk_id: tuple(hits) for chunk_id, hits in found.items()}

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """Id -> the source that its first hit which names one was logged with."""
        found: dict[str, str] = {}
        for hits in self.trace.lists().values() if self.says_more else ():
            for hit in hits:
                source_id = logged_source(hit)
                if source_id is not None:
                    found.setdefault(hit.id, source_id)
        return found

    @cached_property
    def by_source(self) -> Mapping[str, tuple[str, ...]]:
        """Source id -> the ids that were logged with it."""
        found: dict[str, list[str]] = {}
        for chunk_id, source_id in self.sources.items():
            found.setdefault(source_id, []).append(chunk_id)
        return {source_id: tuple(ids) for source_id, ids in found.items()}

    @cached_property
    def listed_as(self) -> Mapping[str, tuple[str, ...]]:
        """Id -> the ids of lists that `id_map` gives it for."""
        found: dict[str, list[str]] = {}
        for listed, target in (self.trace.id_map or {}).items():
            found.setdefault(target, []).append(listed)
        return {target: tuple(ids) for target, ids in found.items()}


def logged_source(hit: Hit) -> str | None:
    """The source that a hit was logged with, as its own field or in its metadata."""
    if hit.source_id is None and hit.metadata is None:
        return None
    named = (hit.metadata or {}).get("source_id") if hit.source_id is None else hit.source_id
    return str(named) if isinstance(named, (str, int)) and not isinstance(named, bool) else None
