"""Rows of a written report as a template prints them: plain values, nothing cleaned; the templates' sandbox cleans."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ragaudit.model.comparison import SLICED
from ragaudit.model.counting import counted
from ragaudit.model.diagnosis import STAGES, Diagnosis, Severity, Stage, State
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import Estimate, QueryResult, SliceResult
from ragaudit.report.clean import Ours
from ragaudit.report.collect import Collected
from ragaudit.report.figures import LABELS, in_order, interval, number, reasons, stages_named
from ragaudit.report.funnel import ranks
from ragaudit.report.next_text import change_of, effect
from ragaudit.report.scores import ArmScores, Band
from ragaudit.report.templating import MAX_IDS

MAX_REASONS = 3


def failing_row(result: QueryResult, with_text: bool) -> dict[str, Any]:
    """One line of the failure table."""
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


def possible(stages: Collection[Stage]) -> str:
    """`Fuse/threshold or Filter/ACL`; all nine are `any stage`."""
    if set(stages) >= set(STAGES):
        return "any stage"
    return stages_named([stage.value for stage in stages])


def experiment_row(experiment: Experiment) -> dict[str, Any]:
    """One proposal."""
    return {
        "lever": experiment.lever,
        "change": change_of(experiment),
        "effect": effect(experiment),
        "why": experiment.why,
        "how": experiment.how,
        "frozen": "; ".join(experiment.frozen),
        "watch": ", ".join(LABELS.get(name, name) for name in experiment.watch),
        "needs": experiment.authorisation or "",
        "departing": experiment.departing,
        "lost_to": experiment.lost_to or "",
    }


def estimate_row(name: str, estimate: Estimate) -> dict[str, Any]:
    """One mean with its interval."""
    return {
        "name": name,
        "label": LABELS.get(name, name),
        "mean": number(estimate.mean),
        "interval": Ours(interval(estimate)),
        "n": estimate.n,
        "undefined": f"{estimate.undefined:,}{_why(estimate.reasons)}" if estimate.undefined else "0",
    }


def slice_row(part: SliceResult) -> dict[str, Any]:
    """One value of one slice, with the metrics that a comparison gives too, as far as they are defined."""
    found = [(stage.label, part.stages.get(stage.value, 0)) for stage in Stage]
    defined = {name: part.metrics[name] for name in SLICED if name in part.metrics}
    return {
        "slice": part.slice,
        "value": part.value,
        "n": part.n,
        "metrics": [estimate_row(name, each) for name, each in defined.items() if each.mean is not None],
        "lost": ", ".join(f"{label} {n:,}" for label, n in found if n) or "none",
    }


def way_rows(kept: Collected) -> list[dict[str, Any]]:
    """The funnel of gold: where each id was seen."""
    return [
        {
            "checkpoint": checkpoint.value,
            "present": counts[State.PRESENT],
            "absent": counts[State.ABSENT],
            "unlogged": counts[State.UNOBSERVED],
        }
        for checkpoint, counts in kept.way.items()
    ]


def score_rows(arms: Sequence[ArmScores]) -> list[dict[str, Any]]:
    """The score bands: gold and the rest of each arm."""
    return [
        {"arm": each.arm, "model": each.model, "what": what, **_band(band)}
        for each in arms
        for what, band in (("gold", each.gold), ("not gold", each.others))
        if band is not None
    ]


def list_rows(at: Mapping[str, Mapping[str, Estimate]]) -> list[dict[str, Any]]:
    """The metrics at each list on the way."""
    return [
        estimate_row(name, found[name]) | {"list": where} for where, found in at.items() for name in in_order(found)
    ]


def _band(band: Band) -> dict[str, Any]:
    return {
        "n": f"{band.n:,}",
        "median": f"{band.median:.4g}",
        "half": f"{band.lower:.4g} to {band.upper:.4g}",
        "most": f"{band.low:.4g} to {band.high:.4g}",
    }


def _stage(diagnosis: Diagnosis) -> str:
    if diagnosis.stage is not Stage.UNDETERMINED:
        return diagnosis.stage.label
    could_be = possible(diagnosis.could_be)
    return f"not decided: {could_be}" if could_be else "not decided"


def _why(counts: Mapping[str, int]) -> str:
    """The most frequent reasons; a judge's failures can be many."""
    if not counts:
        return ""
    first = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_REASONS])
    rest = len(counts) - len(first)
    more = f" and {counted(rest, 'other reason')}" if rest else ""
    return f" ({reasons(first)}{more})"
