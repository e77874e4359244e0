"""The written report in Markdown, whole or on one page, through a template that a user may replace."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import Stage
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report.collect import MAX_ROWS, collect
from ragaudit.report.templating import markdown_environment, rendered
from ragaudit.report.view import Beside, view

TEMPLATE = "report.md.jinja"
ONE_PAGE = "page.md.jinja"


def markdown(
    summary: Summary,
    results: Iterable[QueryResult],
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    *,
    with_text: bool = False,
    one_page: bool = False,
    templates: Path | None = None,
    max_rows: int = MAX_ROWS,
    beside: Beside | None = None,
) -> str:
    """The report of one run.

    Args:
        summary: The run.
        results: Its queries, leaks first; without those that passed, the funnel of gold holds the others alone. Read
            once, never held together.
        causes: The registered causes.
        stage_notes: What each stage means.
        with_text: Show texts, as far as the query's user may read them; otherwise ids only.
        one_page: The page for a decision in place of everything.
        templates: A folder whose templates are used in place of ours.
        max_rows: How many failing queries the table lists before it counts the rest.
        beside: What else there is to read.

    Raises:
        ConfigError: the folder is missing, or its template does not work.
    """
    traces = None if beside is None else beside.traces
    kept = collect(summary, results, max_rows, traces)
    said = view(summary, kept, causes, stage_notes, with_text=with_text, beside=beside)
    return rendered(markdown_environment, ONE_PAGE if one_page else TEMPLATE, said, templates)
