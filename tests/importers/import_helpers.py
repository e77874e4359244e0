"""Reads an input as an importer does, in a test: rows by table, and the report."""

from pathlib import Path

from ragaudit.importers.formats import Options
from ragaudit.importers.registry import format_named
from ragaudit.importers.report import ImportReport

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "formats"


def read(name, *paths, **options):
    """(the traces, the report) of an import."""
    rows, report = read_rows(name, *paths, **options)
    return rows.get("traces", []), report


def read_rows(name, *paths, **options):
    """({table: rows}, the report) of an import."""
    report, tables = ImportReport(), {}
    for table, row in format_named(name).rows(paths, Options(**options), report):
        tables.setdefault(table.value, []).append(row)
    return tables, report


def write(path, text):
    """A file of a test."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def ids(hits):
    """The ids of a list of hits."""
    return [hit["id"] for hit in hits]
