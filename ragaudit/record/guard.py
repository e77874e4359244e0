"""The promise that recording never breaks the application: what goes wrong is counted, said once, swallowed here."""

import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ragaudit.record.plain import UnusableError

LOG = logging.getLogger("ragaudit.record")
F = TypeVar("F", bound=Callable[..., Any])


class Faults:
    """What went wrong, by place and kind. Each is logged once, without values: a message may hold the user's text."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.RLock()

    def add(self, place: str, problem: str, *, error: BaseException | None = None) -> None:
        """Count a problem; log it when it is the first of its kind. The traceback goes to the level DEBUG."""
        name = f"{place}: {problem}"
        with self._lock:
            self._counts[name] += 1
            is_first = self._counts[name] == 1
        if is_first:
            LOG.warning("%s. The application goes on; further cases are only counted.", name)
            LOG.debug("%s", name, exc_info=error)

    def renew(self) -> None:
        """A new lock, in a forked process: the old one may have been held by a thread that is not here."""
        self._lock = threading.RLock()

    def counts(self) -> dict[str, int]:
        """Problem -> how often."""
        with self._lock:
            return dict(self._counts)


def shielded(faults: Faults, place: str, call: Callable[[], Any], otherwise: Any = None) -> Any:
    """What `call` returns, or `otherwise` when it fails.

    The one broad catch outside the command line: whatever a hook, a strange object or a full disk does while a query is
    recorded, the query itself must be answered.
    """
    try:
        return call()
    except Exception as error:  # noqa: BLE001
        faults.add(place, str(error) if isinstance(error, UnusableError) else type(error).__name__, error=error)
        return otherwise


def guarded(method: F) -> F:
    """A method that never raises; its object holds the `faults`. It returns None when it fails."""

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return shielded(self.faults, method.__name__, lambda: method(self, *args, **kwargs))

    return cast(F, wrapper)
