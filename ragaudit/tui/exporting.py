"""An export as the dialog asks for it, and its writing, which needs no screen and may run beside one."""

from dataclasses import dataclass
from pathlib import Path

from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.report.export import ExportFormat, Progress, Selection, export, wrote
from ragaudit.store import AuditReader, Reviews
from ragaudit.store.filters import exactly
from ragaudit.store.whole_file import whole_file
from ragaudit.tui.session import Session


@dataclass(frozen=True)
class ExportRequest:
    """What is to be written, as what, and where."""

    path: Path
    form: ExportFormat
    selection: Selection
    with_text: bool = False
    replace: bool = False


class Stopped(Exception):
    """Raised by a `Progress` to end an export that nobody wants any more."""


def selections(session: Session) -> dict[str, tuple[str, Selection, int]]:
    """What can be exported: name -> what a file of it is called after, the selection, how many queries."""
    run = session.summary.run.name
    found = {}
    if (here := session.here) is not None:
        found["query"] = (here, Selection(exactly(here), name=f"query {here}"), 1)
    name = f"filter {session.filter.text}" if session.filter.text else "all queries"
    queue = Selection(session.filter, marks=frozenset(session.marks), name=name)
    found["queue"] = (f"{run}-queue", queue, session.count)
    found["all"] = (run, Selection(), session.reader.count())
    return found


def write(audit: Path, wanted: ExportRequest, progress: Progress) -> str:
    """Write the file over connections of its own, so that any thread may; the sentence that says so.

    Raises:
        RagauditError: The audit cannot be read or the file not be written; what was there before is still there.
    """
    with (
        AuditReader.open(audit) as reader,
        Reviews.open(audit, writable=False) as reviews,
        whole_file(wanted.path, replace=wanted.replace) as out,
    ):
        written = export(
            out,
            reader,
            wanted.form,
            wanted.selection,
            CAUSES,
            STAGE_NOTES,
            reviews=reviews,
            with_text=wanted.with_text,
            progress=progress,
        )
    return wrote(wanted.path, wanted.form, written, with_text=wanted.with_text)
