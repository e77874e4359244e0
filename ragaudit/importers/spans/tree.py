"""The tree of the spans of one trace: who stands above whom. Parents may be missing, or form a circle."""

from collections.abc import Iterable, Iterator, Mapping

from ragaudit.importers.spans.span import Span


class Tree:
    """Parents by span id."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._parents: Mapping[str, str | None] = {span.span_id: span.parent_id for span in spans}
        self._depths: dict[str, int] = {}

    def above(self, span_id: str) -> Iterator[str]:
        """The ids from the parent up to the root, each once."""
        seen = {span_id}
        parent = self._parents.get(span_id)
        while parent is not None and parent not in seen and parent in self._parents:
            yield parent
            seen.add(parent)
            parent = self._parents[parent]

    def depth(self, span_id: str) -> int:
        """How many stand above it; in a circle, where the count was begun."""
        climbed = [span_id]
        for each in self.above(span_id):
            if each in self._depths:
                break
            climbed.append(each)
        parent = self._parents.get(climbed[-1])
        depth = self._depths.get(parent, -1) if parent is not None else -1
        for each in reversed(climbed):
            depth += 1
            self._depths.setdefault(each, depth)
        return self._depths[span_id]

    def is_root(self, span_id: str) -> bool:
        """Whether nothing stands above it in this trace."""
        return next(self.above(span_id), None) is None

    def nearest(self, span_id: str, among: Mapping[str, object]) -> str | None:
        """The closest of `among` above it."""
        return next((each for each in self.above(span_id) if each in among), None)

    def below(self, among: Mapping[str, object]) -> set[str]:
        """The ids that stand below one of `among`. Each step up is taken once, however long the chains are."""
        known: dict[str, bool] = {}
        for span_id in self._parents:
            climbed: list[str] = [span_id]
            found = False
            for each in self.above(span_id):
                if each in among or each in known:
                    found = each in among or known[each]
                    break
                climbed.append(each)
            for each in climbed:
                known[each] = found
        return {span_id for span_id, is_below in known.items() if is_below}

    def topmost(self, span_id: str, among: Mapping[str, object]) -> str:
        """The highest of `among` above it, or it itself."""
        found = span_id
        for each in self.above(span_id):
            if each in among:
                found = each
        return found
