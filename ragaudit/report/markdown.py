"""The written report: what a template may print of an audit, and the sandbox that prints it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, TemplateError

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.errors import ConfigError
from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity, Stage
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import Estimate, QueryResult, Summary
from ragaudit.report import verdict as say
from ragaudit.report.clean import Markdown
from ragaudit.report.example import worst_stage, worth
from ragaudit.report.figures import (
    LABELS,
    bar,
    in_order,
    interval,
    losses,
    number,
    queries,
    reasons,
    share,
    stages_named,
    without_stage,
)
from ragaudit.report.findings_text import by_weight
from ragaudit.report.funnel import ranks
from ragaudit.report.judged import judge_sentences, state_rows
from ragaudit.report.next_text import change_of, effect
from ragaudit.report.query_page import query_page
from ragaudit.report.templating import MAX_IDS, OWN, markdown_environment

TEMPLATE = "report.md.jinja"
MAX_ROWS = 200
MAX_LISTED = 50
EXPERIMENTS = 5
BAR = 30


def markdown(
    summary: Summary,
    results: Iterable[QueryResult],
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    *,
    with_text: bool = False,
    templates: Path | None = None,
    max_rows: int = MAX_ROWS,
) -> str:
    """The report of one run.

    Args:
        summary: The run.
        results: Its queries, leaks first; those that passed may be left out. Read once, never held together.
        causes: The registered causes.
        stage_notes: What each stage means.
        with_text: Show the query texts; otherwise ids only.
        templates: A folder whose `report.md.jinja` is used in place of ours.
        max_rows: How many failing queries the table lists before it counts the rest.

    Raises:
        ConfigError: the folder is missing, or its template does not work.
    """
    if templates is not None and not templates.is_dir():
        raise ConfigError(f"{templates}: no such folder. Pass the folder that holds {TEMPLATE}.")
    view = _view(summary, _collect(summary, results, max_rows), causes, stage_notes, with_text)
    loaders: list[BaseLoader] = [OWN] if templates is None else [FileSystemLoader(templates), OWN]
    try:
        return markdown_environment(ChoiceLoader(loaders)).get_template(TEMPLATE).render(view)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        if templates is None:
            raise
        line = getattr(error, "lineno", None)
        place = templates / (getattr(error, "name", None) or TEMPLATE)
        raise ConfigError(f"{place}{f':{line}' if line else ''}: {error}. Correct the template.") from error


@dataclass
class _Collected:
    """What one pass over the results keeps."""

    failing: list[QueryResult] = field(default_factory=list)
    n_failing: int = 0
    log: Counter[str] = field(default_factory=Counter)
    label_issues: list[str] = field(default_factory=list)
    worked: QueryResult | None = None


def _collect(summary: Summary, results: Iterable[QueryResult], max_rows: int) -> _Collected:
    kept = _Collected()
    worst, most = worst_stage(summary), -1
    for result in results:
        diagnosis = result.diagnosis
        kept.log.update(dict.fromkeys(diagnosis.log, 1))
        if diagnosis.outcome is Outcome.LABEL_ISSUE:
            kept.label_issues.append(diagnosis.query_id)
        if diagnosis.outcome is not Outcome.FAIL:
            continue
        kept.n_failing += 1
        if len(kept.failing) < max_rows:
            kept.failing.append(result)
        if worth(result, worst) > most:
            most, kept.worked = worth(result, worst), result
    return kept


def _view(
    summary: Summary,
    kept: _Collected,
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    with_text: bool,
) -> dict[str, Any]:
    """What the template sees: plain values. docs/cli.md lists the names for people who write their own."""
    total = sum(summary.outcomes.values())
    most = max(n for _, n in losses(summary))
    run = summary.run
    return {
        "run": run.model_dump(mode="json"),
        "total": queries(total),
        "k": "K varies from query to query" if run.k_final is None else f"K = {run.k_final}",
        "verdict": Markdown(say.verdict(summary)),
        "leak": say.leak_sentence(summary),
        "leaks": [leak.model_dump() for leak in summary.acl.leaks[:MAX_LISTED]],
        "more_leaks": max(len(summary.acl.leaks) - MAX_LISTED, 0),
        "outcomes": [(o.value.replace("_", " "), summary.outcomes.get(o.value, 0)) for o in Outcome],
        "losses": [
            {
                "stage": stage.label,
                "n": n,
                "share": share(n, total),
                "bar": bar(n, most, BAR),
                "note": stage_notes.get(stage, ""),
            }
            for stage, n in losses(summary)
        ],
        "undecided": without_stage(summary),
        "log": kept.log.most_common(),
        "failing": [_failing_row(result, with_text) for result in kept.failing],
        "n_failing": queries(kept.n_failing),
        "more_failing": kept.n_failing - len(kept.failing),
        "worked": None if kept.worked is None else _worked(kept.worked, causes, with_text),
        "experiments": [_experiment_row(each) for each in summary.experiments[:EXPERIMENTS]],
        "more_experiments": max(len(summary.experiments) - EXPERIMENTS, 0),
        "metrics": [_estimate_row(name, summary.metrics[name]) for name in in_order(summary.metrics)],
        "judged": judge_sentences(summary),
        "quadrants": [] if summary.judge is None else list(summary.judge.quadrants.items()),
        "states": [] if summary.judge is None else state_rows(summary.judge),
        "disagreements": [] if summary.judge is None else list(summary.judge.disagreements[:MAX_LISTED]),
        "way": [
            _estimate_row(name, found[name]) | {"list": where}
            for where, found in summary.at.items()
            for name in in_order(found)
        ],
        "slices": [
            {
                "slice": row.slice,
                "value": row.value,
                "n": row.n,
                "metrics": [_estimate_row(name, row.metrics[name]) for name in in_order(row.metrics)],
                "lost": _lost(row.stages),
            }
            for row in summary.slices
        ],
        "preflight": [finding.model_dump(mode="json") for finding in by_weight(summary.preflight)],
        "patterns": [pattern.model_dump() for pattern in summary.patterns],
        "canary": [(name, f"{100 * value:.0f}%") for name, value in summary.canary.source_share.items()],
        "generation": Markdown(say.generation_sentence(summary) or ""),
        "not_retrieval": summary.not_retrieval[:MAX_LISTED],
        "more_not_retrieval": max(len(summary.not_retrieval) - MAX_LISTED, 0),
        "label_issues": kept.label_issues[:MAX_LISTED],
        "more_label_issues": max(len(kept.label_issues) - MAX_LISTED, 0),
        "acl": [Markdown(sentence) for sentence in say.acl_sentences(summary)],
        "set_aside": summary.set_aside,
        "configuration": _configuration(summary),
    }


def _failing_row(result: QueryResult, with_text: bool) -> dict[str, Any]:
    diagnosis = result.diagnosis
    hit = result.metrics.get("hit@k")
    return {
        "query_id": diagnosis.query_id,
        "text": result.query_text if with_text else "",
        "leak": diagnosis.severity is Severity.LEAK,
        "stage": _stage(diagnosis),
        "causes": [name.replace("_", " ") for name in diagnosis.causes],
        "gold": [gold.id for gold in diagnosis.gold],
        "context": diagnosis.final_context_ids,
        "hit": "-" if hit is None else "yes" if hit else "no",
        "ranks": [(gold.id, " ".join(ranks(gold.journey)) or "not logged") for gold in diagnosis.gold[:MAX_IDS]],
    }


def _stage(diagnosis: Diagnosis) -> str:
    if diagnosis.stage is not Stage.UNDETERMINED:
        return diagnosis.stage.label
    could_be = stages_named([stage.value for stage in diagnosis.could_be])
    return f"not decided: {could_be}" if could_be else "not decided"


def _worked(result: QueryResult, causes: Mapping[str, CauseInfo], with_text: bool) -> dict[str, Any]:
    page = query_page(result, causes, {})
    return page | {
        "text": result.query_text if with_text else "",
        "command": f"ragaudit show RUN.audit {result.diagnosis.query_id}",
    }


def _experiment_row(experiment: Experiment) -> dict[str, Any]:
    return {
        "lever": experiment.lever,
        "change": change_of(experiment),
        "effect": effect(experiment),
        "why": experiment.why,
        "frozen": "; ".join(experiment.frozen),
        "watch": ", ".join(LABELS.get(name, name) for name in experiment.watch),
        "needs": experiment.authorisation or "",
        "departing": experiment.departing,
        "lost_to": experiment.lost_to or "",
    }


def _estimate_row(name: str, estimate: Estimate) -> dict[str, Any]:
    why = f" ({reasons(estimate.reasons)})" if estimate.reasons else ""
    return {
        "name": name,
        "label": LABELS.get(name, name),
        "mean": number(estimate.mean),
        "interval": Markdown(interval(estimate)),
        "n": estimate.n,
        "undefined": f"{estimate.undefined:,}{why}" if estimate.undefined else "0",
    }


def _lost(stages: Mapping[str, int]) -> str:
    found = [(stage.label, stages.get(stage.value, 0)) for stage in Stage]
    return ", ".join(f"{label} {n:,}" for label, n in found if n) or "none"


def _configuration(summary: Summary) -> Markdown:
    """The configuration as JSON. Its lines hold quotes and brackets, so that none of them can end a code fence."""
    return Markdown(json.dumps(summary.run.pipeline, indent=2, sort_keys=True))
