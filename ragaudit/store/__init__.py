"""The audit file: everything about one run in one SQLite file, written once and read many times."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragaudit.store.reader import AuditReader, Row
    from ragaudit.store.reviews import Reviews
    from ragaudit.store.updater import AuditUpdater
    from ragaudit.store.writer import AuditWriter

__all__ = ["AuditReader", "AuditUpdater", "AuditWriter", "Reviews", "Row"]

_HOMES = {
    "AuditReader": "reader",
    "AuditUpdater": "updater",
    "AuditWriter": "writer",
    "Reviews": "reviews",
    "Row": "reader",
}


def __getattr__(name: str) -> object:
    """Load what is asked for: a glimpse of a file needs neither records nor writers."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
