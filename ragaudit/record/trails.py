"""Runs and spans as frameworks report them, sorted into journeys: each outermost run is one."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any

from ragaudit.record.guard import Faults
from ragaudit.record.query import current
from ragaudit.record.steps import Journey, Step

MAX_OPEN = 1_000
"""Outermost runs that may be open at once; of those that never end, the oldest are forgotten."""


class Trails:
    """The journeys that are under way. Safe for several threads."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._tops: dict[Hashable, Hashable] = {}
        self._open: OrderedDict[Hashable, Journey] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, key: Hashable, parent: Hashable | None, fields: Mapping[str, Any] | None = None) -> Journey:
        """A run begins: the journey it belongs to, which is a new one when nothing is known above it."""
        with self._lock:
            top = self._tops.get(parent) if parent is not None else None
            if top is not None:
                self._tops[key] = top
                self._open[top].parents[key] = parent
                return self._open[top]
            self._tops[key] = key
            journey = self._open[key] = Journey(current(), fields=dict(fields or {}), parents={key: None})
            if len(self._open) > MAX_OPEN:
                self._forget(next(iter(self._open)))
                self._faults.add("open runs", f"more than {MAX_OPEN} never ended: the oldest are forgotten")
            return journey

    def end(self, key: Hashable, error: BaseException | None = None) -> Journey | None:
        """A run ends: the finished journey when it was the outermost one, else None."""
        with self._lock:
            if key not in self._open:
                return None
            journey = self._forget(key)
        journey.failed = type(error).__name__ if error is not None else None
        return journey

    def of(self, key: Hashable | None) -> Journey | None:
        """The journey that a run belongs to."""
        with self._lock:
            top = self._tops.get(key) if key is not None else None
            return None if top is None else self._open.get(top)

    def step(self, key: Hashable) -> Step | None:
        """The step of a run."""
        journey = self.of(key)
        return None if journey is None else next((step for step in journey.steps if step.key == key), None)

    def _forget(self, key: Hashable) -> Journey:
        journey = self._open.pop(key)
        for member in journey.parents:
            self._tops.pop(member, None)
        return journey
