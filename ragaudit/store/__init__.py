"""The audit file: everything about one run in one SQLite file, written once and read many times."""

from ragaudit.store.reader import AuditReader, Row
from ragaudit.store.reviews import Reviews
from ragaudit.store.writer import AuditWriter

__all__ = ["AuditReader", "AuditWriter", "Reviews", "Row"]
