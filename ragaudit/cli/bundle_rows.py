"""Writes the rows of an import into the files of a bundle: all of them in place at the end, or none."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ragaudit.errors import ConfigError
from ragaudit.importers.draft import unusable
from ragaudit.importers.formats import Row, Table
from ragaudit.importers.report import ImportReport
from ragaudit.model.json_line import json_line
from ragaudit.readers.fields import Odd, finite
from ragaudit.store.whole_file import whole_file


@dataclass(frozen=True)
class Output:
    """Where an import goes: `x.jsonl` takes the traces alone, a folder takes every file."""

    path: Path
    replace: bool = False
    mapping: Mapping[str, str] | None = None
    """The mapping to keep beside it, None = it is not kept."""
    mapping_path: Path | None = None

    @property
    def is_file(self) -> bool:
        """Whether only traces are written."""
        return self.path.suffix == ".jsonl" and not self.path.is_dir()

    @property
    def bundle(self) -> str:
        """How a command is told to read it."""
        return f"--traces {self.path}" if self.is_file else str(self.path)


def write_rows(rows: Iterable[Row], out: Output, report: ImportReport, progress: Callable[[int], None]) -> None:
    """Write each row to its file and count it; rows that an audit could not read are left out and counted.

    Raises:
        ConfigError: A file is there and may not be replaced, or cannot be written.
        InputError: From the importer. Nothing is left behind then.
    """
    made = _folders(out)
    try:
        with ExitStack() as stack:
            _write(rows, out, report, progress, stack)
            if report.rows and out.mapping is not None and out.mapping_path is not None:
                file = stack.enter_context(whole_file(out.mapping_path, replace=out.replace))
                file.write(json.dumps(dict(out.mapping), indent=2, ensure_ascii=False) + "\n")
    finally:
        for folder in made:
            if not any(folder.iterdir()):
                folder.rmdir()


def _write(
    rows: Iterable[Row], out: Output, report: ImportReport, progress: Callable[[int], None], stack: ExitStack
) -> None:
    files: dict[Table, TextIO] = {}
    queries: set[str] = set()
    for done, (table, row) in enumerate(rows, start=1):
        if table is Table.TRACES:
            if not _counted(row, queries, report):
                continue
        elif out.is_file:
            report.note(f"rows for {table.file}: not written, pass a folder as -o to keep them", "")
            continue
        report.rows[table.value] += 1
        if table not in files:
            path = out.path if out.is_file else out.path / table.file
            files[table] = stack.enter_context(whole_file(path, replace=out.replace))
            files[table].write("query-id\tcorpus-id\tscore\n" if table is Table.QRELS else "")
        files[table].write(_line(table, row, report))
        progress(done)


def _counted(row: Mapping[str, Any], queries: set[str], report: ImportReport) -> bool:
    query = str(row["query_id"])
    if (why := unusable(row)) is not None:
        report.skip(why, query)
        return False
    if query in queries:
        report.skip("a query id that came before: an audit reads the first", query)
        return False
    queries.add(query)
    report.trace(row)
    return True


def _line(table: Table, row: Mapping[str, Any], report: ImportReport) -> str:
    if table is Table.QRELS:
        return f"{row['query_id']}\t{row['id']}\t{row['grade']:g}\n"
    try:
        return json_line(row) + "\n"
    except ValueError:  # NaN or Infinity, which JSON does not have
        odd = Odd()
        line = json_line(finite(dict(row), "", odd)) + "\n"
        for times, what in odd.found.values():
            report.note(what.lstrip("."), str(row.get("query_id", "")), times)
        return line


def _folders(out: Output) -> list[Path]:
    """Make the folder of the output; what was made, the innermost first."""
    folder = out.path.parent if out.is_file else out.path
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be made a folder ({error.strerror}). Choose another -o.") from None
    return missing
