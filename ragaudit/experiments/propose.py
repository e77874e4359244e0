"""Ranks what could be changed next: one variable each, by the failing queries it would recover over the run."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ragaudit.experiments.bench import Bench, Effect
from ragaudit.experiments.levers import LEVERS, is_retrieval, lever_for
from ragaudit.experiments.variants import Variant, variants
from ragaudit.model.diagnosis import STAGES, Outcome, Stage
from ragaudit.model.experiment import Basis, Experiment, Lever
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import Estimate, QueryResult

MAX_QUERIES = 200
"""Query ids that one experiment lists."""


@dataclass(frozen=True)
class Addressed:
    """The failing queries that a lever answers, by the cause that was found."""

    lever: Lever
    queries: tuple[str, ...]
    first: tuple[str, ...]
    """Those of them for which it is the lever to try first."""
    causes: tuple[tuple[str, int], ...]
    stage: Stage


def propose(
    results: Iterable[QueryResult],
    bench: Bench,
    pipeline: Pipeline,
    *,
    tried: Collection[tuple[str, str]] = (),
    recall: Estimate | None = None,
) -> tuple[Experiment, ...]:
    """The experiments worth running, best first.

    Args:
        results: The run's results; passes may be among them.
        bench: The recorded queries, for what can be replayed.
        pipeline: The run's configuration.
        tried: (variable, value as text) pairs that the journal knows as tried and refuted.
        recall: The run's recall, for the ceiling of what needs a run.
    """
    found = []
    for addressed in _addressed(results):
        best = _best_replay(addressed, bench, pipeline, tried)
        if best is not None:
            found.append(best)
        elif addressed.first and (f"pipeline.{addressed.lever.variable}", "") not in tried:
            found.append(_needs_a_run(addressed, recall))
    by_name = {lever.name: lever for lever in LEVERS}
    ranked = sorted(
        found, key=lambda e: (not is_retrieval(by_name[e.lever]), -_gain(e), by_name[e.lever].order, e.lever)
    )
    return tuple(_explained(experiment, ranked[0]) for experiment in ranked)


def _addressed(results: Iterable[QueryResult]) -> list[Addressed]:
    """Levers with the failing queries they answer. A query that needs a run counts for the first of its levers only."""
    first: dict[str, list[str]] = {}
    all_of: dict[str, list[str]] = {}
    causes: dict[str, Counter[str]] = {}
    stages: dict[str, Counter[Stage]] = {}
    for result in results:
        diagnosis = result.diagnosis
        if diagnosis.outcome is not Outcome.FAIL or diagnosis.stage not in STAGES or not diagnosis.causes:
            continue
        for place, lever in enumerate(lever_for(diagnosis.causes[0])):
            if place == 0:
                first.setdefault(lever.name, []).append(diagnosis.query_id)
            all_of.setdefault(lever.name, []).append(diagnosis.query_id)
            causes.setdefault(lever.name, Counter())[diagnosis.causes[0]] += 1
            stages.setdefault(lever.name, Counter())[diagnosis.stage] += 1
    return [
        Addressed(
            lever,
            tuple(all_of[lever.name]),
            tuple(first.get(lever.name, ())),
            tuple(causes[lever.name].most_common()),
            stages[lever.name].most_common(1)[0][0],
        )
        for lever in LEVERS
        if lever.name in all_of
    ]


def _best_replay(
    addressed: Addressed, bench: Bench, pipeline: Pipeline, tried: Collection[tuple[str, str]]
) -> Experiment | None:
    """The value of this lever's variable that recovers most; None when the lists cannot tell or none recovers any."""
    best: tuple[int, Variant, Effect] | None = None
    if addressed.lever.name in _NOT_REPLAYED:
        return None
    for variant in variants(addressed.lever.variable, pipeline):
        if (variant.variable, "" if variant.after is None else str(variant.after)) in tried:
            continue
        effect = bench.effect(variant.change, f"{variant.variable}={variant.after}")
        net = len(effect.kept) - len(effect.lost)
        if effect.kept and net > 0 and (best is None or net > best[0]):
            best = net, variant, effect
    if best is None:
        return None
    _, variant, effect = best
    return _experiment(
        addressed,
        variable=variant.variable,
        before=variant.before,
        after=variant.after,
        basis=Basis.REPLAYED,
        queries=effect.kept[:MAX_QUERIES],
        keeps=len(effect.kept),
        loses=len(effect.lost),
        lost=effect.lost[:MAX_QUERIES],
        of=bench.failing,
        predicted={metric: change for metric, change in effect.changes.items() if metric in _SHOWN},
        excluded=bench.excluded + len(effect.unknown),
    )


_NOT_REPLAYED = ("rerank_on",)
"""Levers that share a variable with one that can be replayed, and would need scores that nobody recorded."""

_SHOWN = ("hit@k", "recall@k", "precision@k", "mrr@k", "ndcg@k")


def _needs_a_run(addressed: Addressed, recall: Estimate | None) -> Experiment:
    ceiling = None
    if recall is not None and recall.mean is not None and is_retrieval(addressed.lever):
        ceiling = min(1.0, recall.mean + len(addressed.first) / recall.n)
    return _experiment(
        addressed,
        variable=f"pipeline.{addressed.lever.variable}",
        before=None,
        after=None,
        basis=Basis.NEEDS_A_RUN,
        queries=addressed.first[:MAX_QUERIES],
        of=len(addressed.first),
        ceiling=ceiling,
    )


def _experiment(addressed: Addressed, *, before: Any, after: Any, **more: Any) -> Experiment:
    lever = addressed.lever
    named = ", ".join(f"{cause.replace('_', ' ')} {n}" for cause, n in addressed.causes[:3])
    fields = {
        "lever": lever.name,
        "from": before,
        "to": after,
        "why": f"{counted(len(addressed.queries))}: {named}. {lever.summary}",
        "stage": addressed.stage,
        "frozen": lever.frozen,
        "how": "; ".join(f"{stack}: {text}" for stack, text in lever.how.items()),
        "watch": lever.watch,
        "authorisation": lever.authorisation,
    }
    return Experiment.model_validate({**fields, **more})


def counted(n: int) -> str:
    """`1 failing query`, `7 failing queries`."""
    return f"{n} failing quer{'y' if n == 1 else 'ies'}"


def _gain(experiment: Experiment) -> int:
    """Failing queries recovered: net of what is lost where that is known, else all that the lever answers."""
    if experiment.keeps is not None:
        return experiment.keeps - (experiment.loses or 0)
    return experiment.of


def _explained(experiment: Experiment, first: Experiment) -> Experiment:
    if experiment is first:
        return experiment
    mine, best = _gain(experiment), _gain(first)
    if first.stage is not Stage.GENERATE and experiment.stage is Stage.GENERATE:
        return experiment.model_copy(update={"lost_to": "not retrieval: that comes first"})
    why = (
        f"recovers {mine}, {first.lever} recovers {best}" if mine < best else f"as many as {first.lever}, a later lever"
    )
    return experiment.model_copy(update={"lost_to": why})
