"""One query as a template prints it: plain values, nothing cleaned, texts only where they were asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import Basis, Diagnosis, GoldDiagnosis, Severity, Stage
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import QueryResult
from ragaudit.model.review import Review
from ragaudit.report.figures import LABELS, in_order, number, stages_named
from ragaudit.report.funnel import funnel, standing, unlogged
from ragaudit.report.next_text import proposal
from ragaudit.report.review_text import review_facts
from ragaudit.store.texts import ReadableTexts

MAX_TEXT = 8_000
"""Characters of one text; the rest is counted."""

MAX_TEXTS = 50
"""Chunks of one query whose text is printed."""


def query_page(
    result: QueryResult,
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    *,
    experiments: Sequence[Experiment] = (),
    review: Review | None = None,
    texts: ReadableTexts | None = None,
) -> dict[str, Any]:
    """Everything about one query.

    Args:
        result: The query.
        causes: The registered causes.
        stage_notes: What each stage means.
        experiments: Those that answer it, best first.
        review: What a person said.
        texts: Where texts come from; None = no text of the query or of a chunk.
    """
    diagnosis = result.diagnosis
    decided = diagnosis.stage not in (Stage.NONE, Stage.UNDETERMINED)
    return {
        "query_id": diagnosis.query_id,
        "text": _cut(result.query_text) if texts is not None else "",
        "standing": standing(diagnosis.outcome, diagnosis.stage),
        "outcome": diagnosis.outcome.value,
        "leak": diagnosis.severity is Severity.LEAK,
        "leaks": list(diagnosis.leaks),
        "about": _about(result),
        "secondary": [stage.label for stage in diagnosis.secondary],
        "stage_note": f"{diagnosis.stage.label}: {stage_notes.get(diagnosis.stage, '')}" if decided else "",
        "evidence": list(diagnosis.evidence),
        "gold": [_gold(gold) for gold in diagnosis.gold],
        "could_be": stages_named([stage.value for stage in diagnosis.could_be]),
        "log": list(diagnosis.log),
        "causes": named_causes(diagnosis, causes),
        "next": [proposal(experiment) for experiment in experiments],
        "context": None if diagnosis.final_context_ids is None else list(diagnosis.final_context_ids),
        "metrics": [
            (LABELS.get(name, name), number(result.metrics[name]))
            for name in in_order(result.metrics)
            if result.metrics[name] is not None
        ],
        "review": None if review is None else _review(review, diagnosis),
        "texts": [] if texts is None else chunk_texts(diagnosis, texts),
        "answer": None if texts is None else answer_text(texts),
    }


def named_causes(diagnosis: Diagnosis, causes: Mapping[str, CauseInfo]) -> list[dict[str, str]]:
    """The causes of a query that are registered, with what each means and the one thing to change."""
    return [
        {"name": name.replace("_", " "), "summary": causes[name].summary, "remedy": causes[name].remedy}
        for name in diagnosis.causes
        if name in causes
    ]


def chunk_texts(diagnosis: Diagnosis, texts: ReadableTexts) -> list[dict[str, Any]]:
    """Gold and packed chunks, each with its text as far as the query's user may read it, else why not and its hash."""
    golds = dict.fromkeys(gold.id for gold in diagnosis.gold)
    rows = []
    for chunk_id in list(golds | dict.fromkeys(diagnosis.final_context_ids or ()))[:MAX_TEXTS]:
        shown = texts.chunk(chunk_id)
        rows.append(
            {
                "id": chunk_id,
                "gold": chunk_id in golds,
                "text": None if shown.text is None else _cut(shown.text),
                "why": shown.why,
                "hash": shown.hash,
            }
        )
    return rows


def answer_text(texts: ReadableTexts) -> str | None:
    """The answer as logged; None where a leak stood in the prompt: it may repeat what its user may not read."""
    answer = texts.trace.answer
    return None if not texts.shows_answer or answer is None or answer.text is None else _cut(answer.text)


def _about(result: QueryResult) -> list[str]:
    diagnosis = result.diagnosis
    gold = "no gold" if not diagnosis.gold else "gold by label"
    if diagnosis.basis is Basis.JUDGE:
        gold = "gold found by the judge"
    said = [f"K = {result.k_final}", gold]
    if diagnosis.delivered is not None:
        said.append(f"evidence {'' if diagnosis.delivered else 'not '}in the prompt")
    if diagnosis.gap is not None:
        said.append(f"beside the stage: {diagnosis.gap.value.replace('_', ' ')}")
    return said


def _gold(gold: GoldDiagnosis) -> dict[str, Any]:
    return {
        "id": gold.id,
        "standing": standing(gold.outcome, gold.stage),
        "grade": f"{gold.grade:g}",
        "readable": gold.eligible is not False,
        "journey": " ".join(funnel(gold.journey)),
        "unlogged": ", ".join(unlogged(gold.journey)),
        "notes": [f"{step.checkpoint.value}: {step.note}" for step in gold.journey if step.note],
    }


def _review(review: Review, diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "verdict": "" if review.verdict is None else review.verdict.value.replace("_", " "),
        "facts": review_facts(review, diagnosis),
        "at": f"{review.at:%Y-%m-%d %H:%M} UTC",
    }


def _cut(text: str) -> str:
    rest = len(text) - MAX_TEXT
    return text if rest <= 0 else f"{text[:MAX_TEXT]}\n({rest:,} more characters)"
