"""The tree of the spans of one trace: who stands above whom. Parents may be missing, or form a circle."""

from collections.abc import Iterable, Iterator, Mapping

from ragaudit.importers.spans.span import Span


class Tree:
    """Parents by span id."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._parents: Mapping[str, str | None] = {span.span_id: span.parent_id for span in spans}

    def above(self, span_id: str) -> Iterator[str]:
        """The ids from the parent up to the root, each once."""
        seen = {span_id}
        parent = self._parents.get(span_id)
        while parent is not None and parent not in seen and parent in self._parents:
            yield parent
            seen.add(parent)
            parent = self._parents[parent]

    def is_root(self, span_id: str) -> bool:
        """Whether nothing stands above it in this trace."""
        return next(self.above(span_id), None) is None

    def nearest(self, span_id: str, among: Mapping[str, object]) -> str | None:
        """The closest of `among` above it."""
        return next((each for each in self.above(span_id) if each in among), None)

    def topmost(self, span_id: str, among: Mapping[str, object]) -> str:
        """The highest of `among` above it, or it itself."""
        found = span_id
        for each in self.above(span_id):
            if each in among:
                found = each
        return found
