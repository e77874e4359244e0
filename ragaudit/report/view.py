"""What a written report may say of an audit: one view, which the Markdown and the HTML templates both print.

Values are plain and nothing in them is cleaned: the sandbox of each medium cleans where it prints. docs/report.md lists
the names for people who write their own template.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.comparison import SLICED
from ragaudit.model.counting import queries
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.judgement import Calibration
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report import verdict as say
from ragaudit.report.before import Against, change_view
from ragaudit.report.clean import Ours
from ragaudit.report.collect import MAX_LISTED, Collected, TraceOf
from ragaudit.report.figures import bar as bar_of
from ragaudit.report.figures import in_order, k_named, losses, share, without_stage
from ragaudit.report.findings_text import by_weight
from ragaudit.report.judged import cost_sentence, judge_sentences, state_rows
from ragaudit.report.method import agreement_rows, formula_rows, method_sentences
from ragaudit.report.narrative import Narrative
from ragaudit.report.query_page import query_page
from ragaudit.report.view_rows import (
    estimate_row,
    experiment_row,
    failing_row,
    list_rows,
    score_rows,
    slice_row,
    way_rows,
)
from ragaudit.store.texts import ReadableTexts

EXPERIMENTS = 5
BAR = 30


@dataclass(frozen=True)
class Beside:
    """What a report may read beside the summary and the results. What is not given is left out of it."""

    traces: TraceOf | None = None
    """For the scores of arms."""
    texts: Callable[[QueryResult], ReadableTexts] | None = None
    """For chunk texts and answers of worked queries, as far as their users may read them."""
    calibration: Calibration | None = None
    against: Against | None = None
    """The run it is compared with."""
    narrative: Narrative | None = None
    """What a model wrote of its facts."""


def view(
    summary: Summary,
    kept: Collected,
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    *,
    with_text: bool = False,
    beside: Beside | None = None,
) -> dict[str, Any]:
    """Every name that a template may print.

    Args:
        summary: The run.
        kept: What one pass over its queries kept.
        causes: The registered causes.
        stage_notes: What each stage means.
        with_text: Texts too, as far as the query's user may read them; otherwise ids only.
        beside: What else there is.
    """
    beside = beside or Beside()
    texts = beside.texts if with_text else None
    worked = [_worked(result, causes, stage_notes, with_text, texts) for result in kept.worked]
    return (
        _verdict(summary)
        | _losses(summary, kept, stage_notes)
        | {
            "failing": [failing_row(result, with_text) for result in kept.failing],
            "n_failing": queries(kept.n_failing),
            "more_failing": kept.n_failing - len(kept.failing),
            "worked": worked[0] if worked else None,
            "examples": worked[1:],
            "experiments": [experiment_row(each) for each in summary.experiments[:EXPERIMENTS]],
            "more_experiments": max(len(summary.experiments) - EXPERIMENTS, 0),
            "change": None if beside.against is None else change_view(beside.against, summary),
        }
        | _measured(summary, kept)
        | _judged(summary)
        | _notes(summary, kept)
        | {
            "method": method_sentences(summary, beside.calibration),
            "formulas": formula_rows(summary),
            "agreements": agreement_rows(beside.calibration),
            "cost": cost_sentence(summary),
            "narrative": _narrative(beside.narrative),
            "with_text": with_text,
        }
    )


def _verdict(summary: Summary) -> dict[str, Any]:
    run, leaks = summary.run, summary.acl.leaks
    return {
        "run": run.model_dump(mode="json"),
        "total": queries(sum(summary.outcomes.values())),
        "k": k_named(run.k_final),
        "verdict": Ours(say.verdict(summary)),
        "leak": say.leak_sentence(summary),
        "leaks": [leak.model_dump() for leak in leaks[:MAX_LISTED]],
        "more_leaks": max(len(leaks) - MAX_LISTED, 0),
        "outcomes": [(o.value.replace("_", " "), summary.outcomes.get(o.value, 0)) for o in Outcome],
    }


def _narrative(found: Narrative | None) -> dict[str, Any] | None:
    """Sentences with the facts they rest on; none where no sentence is left."""
    if found is None or not found.sentences:
        return None
    return {
        "sentences": [(sentence.text, sentence.facts) for sentence in found.sentences],
        "facts": [(fact.id, fact.text) for fact in found.facts],
        "model": found.model,
        "prompt": found.prompt,
        "dropped": sum(found.dropped.values()),
    }


def _losses(summary: Summary, kept: Collected, stage_notes: Mapping[Stage, str]) -> dict[str, Any]:
    total = sum(summary.outcomes.values())
    most = max(n for _, n in losses(summary))
    return {
        "losses": [
            {
                "stage": stage.label,
                "n": n,
                "share": share(n, total),
                "bar": bar_of(n, most, BAR),
                "note": stage_notes.get(stage, ""),
            }
            for stage, n in losses(summary)
        ],
        "undecided": without_stage(summary),
        "log": kept.log.most_common(),
        "gold": kept.n_gold,
        "funnel": way_rows(kept) if kept.n_gold else [],
    }


def _measured(summary: Summary, kept: Collected) -> dict[str, Any]:
    rows = [estimate_row(name, summary.metrics[name]) for name in in_order(summary.metrics)]
    return {
        "metrics": rows,
        "headline": [row for row in rows if row["name"] in SLICED and row["mean"] != "-"],
        "way": list_rows(summary.at),
        "slices": [slice_row(part) for part in summary.slices],
        "scores": score_rows(kept.scores.arms()),
        "scored_queries": queries(kept.scores.queries),
        "patterns": [pattern.model_dump() for pattern in summary.patterns],
        "canary": [(name, f"{100 * value:.0f}%") for name, value in summary.canary.source_share.items()],
    }


def _judged(summary: Summary) -> dict[str, Any]:
    note = summary.judge
    return {
        "judged": judge_sentences(summary),
        "quadrants": [] if note is None else list(note.quadrants.items()),
        "cuts": [] if note is None else list(note.cuts.items()),
        "states": [] if note is None else state_rows(note),
        "disagreements": [] if note is None else list(note.disagreements[:MAX_LISTED]),
        "more_disagreements": 0 if note is None else max(len(note.disagreements) - MAX_LISTED, 0),
    }


def _notes(summary: Summary, kept: Collected) -> dict[str, Any]:
    return {
        "generation": Ours(say.generation_sentence(summary) or ""),
        "not_retrieval": summary.not_retrieval[:MAX_LISTED],
        "more_not_retrieval": max(len(summary.not_retrieval) - MAX_LISTED, 0),
        "label_issues": kept.label_issues,
        "more_label_issues": kept.n_label_issues - len(kept.label_issues),
        "acl": [Ours(sentence) for sentence in say.acl_sentences(summary)],
        "preflight": [finding.model_dump(mode="json") for finding in by_weight(summary.preflight)],
        "set_aside": summary.set_aside,
        "configuration": json.dumps(summary.run.pipeline, indent=2, sort_keys=True),
    }


def _worked(
    result: QueryResult,
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    with_text: bool,
    texts: Callable[[QueryResult], ReadableTexts] | None,
) -> dict[str, Any]:
    page = query_page(result, causes, stage_notes, texts=None if texts is None else texts(result))
    return page | {
        "text": result.query_text if with_text else "",
        "command": f"ragaudit show RUN.audit {result.diagnosis.query_id}",
    }
