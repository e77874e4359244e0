"""The audit file: everything about one run in one SQLite file, written once and read many times."""

from ragaudit.store.reader import AuditReader, Row
from ragaudit.store.reviews import Reviews
from ragaudit.store.updater import AuditUpdater
from ragaudit.store.writer import AuditWriter

__all__ = ["AuditReader", "AuditUpdater", "AuditWriter", "Reviews", "Row"]
