"""The written report as one HTML file, whole or on one page: plots inline, no script, nothing loaded from elsewhere."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import Stage
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report.clean import Html
from ragaudit.report.collect import MAX_ROWS, Collected, collect
from ragaudit.report.figures import in_order, losses
from ragaudit.report.svg.bands import bands_plot
from ragaudit.report.svg.intervals import intervals_plot
from ragaudit.report.svg.journey import journey_plot
from ragaudit.report.svg.losses import losses_plot
from ragaudit.report.svg.quadrants import quadrants_plot
from ragaudit.report.svg.way import way_plot
from ragaudit.report.templating import html_environment, rendered, styled
from ragaudit.report.view import Beside, view

TEMPLATE = "report.html.jinja"
ONE_PAGE = "page.html.jinja"
JOURNEYS = 4
"""Gold ids of one query whose journey is drawn."""


def html(
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
    """The report of one run. Arguments and errors are those of `markdown.markdown`."""
    beside = beside or Beside()
    kept = collect(summary, results, max_rows, beside.traces)
    said = view(summary, kept, causes, stage_notes, with_text=with_text, beside=beside)
    drawn = {"plots": _plots(summary, kept, said, beside)} | styled(templates)
    pages = [page for page in (said["worked"], *said["examples"]) if page is not None]
    for number, (page, result) in enumerate(zip(pages, kept.worked, strict=True)):
        page["journeys"] = _journeys(f"journey-{number}", result)
    return rendered(html_environment, ONE_PAGE if one_page else TEMPLATE, said | drawn, templates)


def _plots(summary: Summary, kept: Collected, said: Mapping[str, Any], beside: Beside) -> dict[str, Any]:
    against, headline = beside.against, [row["name"] for row in said["headline"]]
    before = None if against is None or against.found is None else against.before
    undecided = sum(summary.undetermined.values())
    return {
        "losses": losses_plot("losses", losses(summary), undecided, sum(summary.outcomes.values())),
        "way": way_plot("way", kept.way, kept.n_gold) if kept.n_gold else None,
        "intervals": intervals_plot("intervals", in_order(summary.metrics), summary.metrics),
        "headline": intervals_plot("headline", headline, summary.metrics, before or None),
        "change": None if not before else intervals_plot("change", in_order(before), summary.metrics, before),
        "quadrants": quadrants_plot("quadrants", summary.judge.quadrants)
        if summary.judge is not None and summary.judge.quadrants
        else None,
        "bands": [
            (each.arm, each.model, bands_plot(f"bands-{number}", each))
            for number, each in enumerate(kept.scores.arms())
        ],
    }


def _journeys(name: str, result: QueryResult) -> list[Html]:
    diagnosis = result.diagnosis
    return [
        journey_plot(f"{name}-{number}", diagnosis.query_id, gold, result.k_final)
        for number, gold in enumerate(diagnosis.gold[:JOURNEYS])
        if any(step.list is not None for step in gold.journey)
    ]
