"""The written report of an open audit, and what it reads beside the results."""

from dataclasses import dataclass
from pathlib import Path

from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.report.before import Against
from ragaudit.report.collect import MAX_ROWS
from ragaudit.report.html import html
from ragaudit.report.markdown import markdown
from ragaudit.report.narrative import Narrative
from ragaudit.report.view import Beside
from ragaudit.store import AuditReader
from ragaudit.store.calibration import read_calibration
from ragaudit.store.texts import ReadableTexts


@dataclass(frozen=True)
class Wanted:
    """How a report is wanted."""

    form: str = "md"
    """"md" or "html"."""
    with_text: bool = False
    one_page: bool = False
    templates: Path | None = None
    max_rows: int = MAX_ROWS


def written(
    reader: AuditReader,
    wanted: Wanted | None = None,
    against: Against | None = None,
    narrative: Narrative | None = None,
) -> str:
    """The report of an open audit."""
    wanted = wanted or Wanted()
    summary = reader.summary()
    beside = Beside(
        traces=reader.trace,
        texts=lambda result: ReadableTexts(reader, summary.run, result),
        calibration=read_calibration(reader.path),
        against=against,
        narrative=narrative,
    )
    return (html if wanted.form == "html" else markdown)(
        summary,
        reader.iter_results(),
        CAUSES,
        STAGE_NOTES,
        with_text=wanted.with_text,
        one_page=wanted.one_page,
        templates=wanted.templates,
        max_rows=wanted.max_rows,
        beside=beside,
    )
