"""Ranks what could be changed next: one variable each, by the failing queries it would recover over the run.

Three rules keep the ranking honest. A lever is asked only about queries whose pipeline has the part that it changes.
A change that could be replayed on nearly all queries has a number; any other has what it answers, which is a ceiling,
so a number wins a tie. And a query that a replayed lever recovers counts for no lever that nobody has tried.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.experiments.bench import Bench, Effect
from ragaudit.experiments.events import proposes
from ragaudit.experiments.levers import LEVERS, admits, is_retrieval, lever, lever_for
from ragaudit.experiments.parts import answers
from ragaudit.experiments.variants import Variant, certain, variants
from ragaudit.model.comparison import means
from ragaudit.model.counting import counted
from ragaudit.model.diagnosis import STAGES, Outcome, Severity, Stage
from ragaudit.model.experiment import Basis, Experiment, Lever
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import Estimate, QueryResult

REPLAYED_SHARE = 0.8
"""The share of the queries that must be replayed before a number is given for the run.

Queries drop out of a replay where a change brings candidates that nobody scored, which is where it has its effect:
those that stay are no sample of the run. Over a fifth missing, the result of a trial is no longer trusted (Sackett et
al. 1997, "5 and 20"); up to it, the missing can move no mean by more than 0.2.
"""

MAX_QUERIES = 200
"""Query ids that one experiment lists."""

_NOT_REPLAYED = ("rerank_on", "arm_restored", "lexical_arm")
"""Levers that share a variable with one that can be replayed, and would need scores or rows that nobody recorded."""

_SHOWN = ("hit@k", "recall@k", "precision@k", "mrr@k", "ndcg@k")


@dataclass(frozen=True)
class _Failing:
    """One failing query, and the levers that answer its cause in its pipeline, the first to try in front."""

    query_id: str
    cause: str
    stage: Stage
    leaks: bool
    missing_recall: float
    """What its recall falls short of 1; 0 where it is undefined."""
    levers: tuple[str, ...]


@dataclass
class _Asked:
    """A lever with the failing queries that it answers, and what replaying it gave."""

    lever: Lever
    queries: list[_Failing] = field(default_factory=list)
    tries: list[tuple[Variant, Effect]] = field(default_factory=list)
    credited: list[_Failing] = field(default_factory=list)
    """Queries for which it is the lever to try, and no replayed lever recovers them."""

    @property
    def best(self) -> tuple[Variant, Effect] | None:
        """The try that recovers most, of equal ones most of its own queries; none that loses as much, or leaks."""
        own = {query.query_id for query in self.queries}
        gaining = [each for each in self.tries if _net(each[1]) > 0 and not each[1].leaking]
        return max(
            gaining,
            key=lambda each: (_is_told(each[1]), _net(each[1]), len(own.intersection(each[1].kept))),
            default=None,
        )

    @property
    def recovers(self) -> frozenset[str]:
        """The queries that it is known to recover."""
        best = self.best
        return frozenset(best[1].kept) if best is not None and _is_told(best[1]) else frozenset()

    def fails(self, query_id: str) -> bool:
        """Every value was replayed for this query, and none recovers it."""
        return bool(self.tries) and not any(
            query_id in effect.unknown or query_id in effect.kept for _, effect in self.tries
        )


def propose(
    results: Iterable[QueryResult],
    bench: Bench,
    pipeline: Pipeline,
    *,
    refuted: Collection[tuple[str, str]] = (),
    recall: Estimate | None = None,
) -> tuple[Experiment, ...]:
    """The experiments worth running, best first.

    Args:
        results: The results to mend; passes may be among them.
        bench: The recorded queries of the whole run: a change is judged by what it does to all of them.
        pipeline: The run's configuration.
        refuted: (variable, value as text) pairs that the journal knows as tried and refuted.
        recall: The run's recall, for the ceiling of what needs a run.
    """
    run = _with_k(pipeline, bench)
    failing = [query for result in results if (query := _failing(result, bench, run)) is not None]
    asked = {known.name: _Asked(known) for known in LEVERS}
    for query in failing:
        for name in query.levers:
            asked[name].queries.append(query)
    for each in asked.values():
        if each.queries and each.lever.name not in _NOT_REPLAYED:
            each.tries = _tries(each.lever, bench, run, refuted)
    for query in failing:
        _credit(query, asked)
    found: list[Experiment] = []
    for each in asked.values():
        best = each.best
        if best is not None and (_is_told(best[1]) or each.credited):
            found.append(_replayed(each, *best, bench, recall))
        elif each.credited:
            untried = _untried(each, bench, run, recall)
            if not is_refuted(untried, refuted):
                found.append(untried)
    leaking = {
        each.lever.name
        for each in asked.values()
        if each.lever.moves == "leaks" and any(query.leaks for query in each.credited)
    }
    ranked = sorted(found, key=lambda e: _rank(e, leaking))
    return tuple(_explained(experiment, ranked, leaking) for experiment in ranked)


def is_refuted(experiment: Experiment, refuted: Collection[tuple[str, str]]) -> bool:
    """The journal has this variable, by its own name or a wildcard's, at this value; or nothing is said of a value."""
    return any(proposes(experiment, variable, value) for variable, value in refuted)


# --- which levers, for which queries ------------------------------------------------------------------------------


def _failing(result: QueryResult, bench: Bench, run: Pipeline) -> _Failing | None:
    diagnosis = result.diagnosis
    if diagnosis.outcome is not Outcome.FAIL or diagnosis.stage not in STAGES or not diagnosis.causes:
        return None
    cause = diagnosis.causes[0]
    row = bench.row(diagnosis.query_id)
    own = run if row is None else row.pipeline
    names = tuple(known.name for known in lever_for(cause) if answers(known, cause, own, row))
    leaks = diagnosis.severity is Severity.LEAK
    recall = result.metrics.get("recall@k")
    return _Failing(diagnosis.query_id, cause, diagnosis.stage, leaks, 0.0 if recall is None else 1.0 - recall, names)


def _tries(
    known: Lever, bench: Bench, run: Pipeline, refuted: Collection[tuple[str, str]]
) -> list[tuple[Variant, Effect]]:
    return [
        (variant, bench.effect(variant.change, f"{variant.variable}={variant.after}"))
        for variant in variants(known.variable, run, bench.pipelines)
        if admits(known, variant.after)
        and not any(means(variant.variable, name) and _as_text(variant.after) == value for name, value in refuted)
    ]


def _credit(query: _Failing, asked: dict[str, _Asked]) -> None:
    """Give the query to the first lever that may mend it, unless a replayed one does."""
    levers = [asked[name] for name in query.levers]
    if any(query.query_id in each.recovers for each in levers):
        return
    first = next((each for each in levers if not each.fails(query.query_id)), None)
    if first is not None:
        first.credited.append(query)


def _with_k(pipeline: Pipeline, bench: Bench) -> Pipeline:
    """The run's configuration with the K that all its queries share, where it does not say so itself."""
    ks = {each.k_final for each in bench.pipelines}
    return pipeline if pipeline.k_final is not None or len(ks) != 1 else pipeline.with_overrides({"k_final": ks.pop()})


# --- one experiment -----------------------------------------------------------------------------------------------


def _replayed(asked: _Asked, variant: Variant, effect: Effect, bench: Bench, recall: Estimate | None) -> Experiment:
    common: dict[str, Any] = {
        "variable": variant.variable,
        "before": variant.before,
        "after": variant.after,
        "departing": _departing(variant, bench),
        "replay": effect.replay.model_copy(
            update={"changes": {name: effect.replay.changes[name] for name in _SHOWN if name in effect.replay.changes}}
        ),
    }
    if not _is_told(effect):
        return _needs_a_run(asked, recall, **common)
    return _experiment(
        asked,
        **common,
        basis=Basis.REPLAYED,
        queries=effect.kept[:MAX_QUERIES],
        keeps=len(effect.kept),
        loses=len(effect.lost),
        lost=effect.lost[:MAX_QUERIES],
        of=bench.failing,
        predicted={name: effect.predicted[name] for name in _SHOWN if name in effect.predicted},
    )


def _untried(asked: _Asked, bench: Bench, run: Pipeline, recall: Estimate | None) -> Experiment:
    """A lever that nothing was replayed of. Where one value alone is in question for all its queries, it is named."""
    rows = [bench.row(query.query_id) for query in asked.credited]
    held = [run if row is None else row.pipeline for row in rows]
    for variant in certain(asked.lever.variable, run, held):
        if admits(asked.lever, variant.after):
            return _needs_a_run(
                asked,
                recall,
                variable=variant.variable,
                before=variant.before,
                after=variant.after,
                departing=_departing(variant, bench),
            )
    return _needs_a_run(asked, recall, variable=f"pipeline.{asked.lever.variable}", before=None, after=None)


def _needs_a_run(asked: _Asked, recall: Estimate | None, **more: Any) -> Experiment:
    missing = sum(query.missing_recall for query in asked.credited)
    ceiling = None
    if recall is not None and recall.mean is not None and missing:
        ceiling = min(1.0, recall.mean + missing / recall.n)
    queries = tuple(query.query_id for query in asked.credited)
    return _experiment(
        asked, **more, basis=Basis.NEEDS_A_RUN, queries=queries[:MAX_QUERIES], of=len(queries), ceiling=ceiling
    )


def _experiment(asked: _Asked, *, before: Any, after: Any, **more: Any) -> Experiment:
    known = asked.lever
    causes = Counter(query.cause for query in asked.queries)
    named = ", ".join(f"{cause.replace('_', ' ')} {n}" for cause, n in causes.most_common(3))
    fields = {
        "lever": known.name,
        "from": before,
        "to": after,
        "why": f"{counted(len(asked.queries), 'failing query', 'failing queries')}: {named}. {known.summary}",
        "stage": Counter(query.stage for query in asked.queries).most_common(1)[0][0],
        "frozen": known.frozen,
        "how": "; ".join(f"{stack}: {text}" for stack, text in known.how.items()),
        "watch": known.watch,
        "authorisation": known.authorisation,
    }
    return Experiment.model_validate({**fields, **more})


def _departing(variant: Variant, bench: Bench) -> tuple[str, ...]:
    if not variant.is_departure:
        return ()
    return tuple(row.trace.query_id for row in bench.rows if variant.touches(row.pipeline))[:MAX_QUERIES]


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)


# --- the order ----------------------------------------------------------------------------------------------------


def _net(effect: Effect) -> int:
    return len(effect.kept) - len(effect.lost)


def _is_told(effect: Effect) -> bool:
    """Enough queries were replayed to speak of the run."""
    return effect.replay.share >= REPLAYED_SHARE


def _gain(experiment: Experiment) -> int:
    """Failing queries recovered: net of what is lost where that is known, else all that the lever answers."""
    if experiment.keeps is not None:
        return experiment.keeps - (experiment.loses or 0)
    return experiment.of


def _rank(experiment: Experiment, leaking: Collection[str]) -> tuple[bool, bool, int, bool, int]:
    """What closes a leak, then retrieval before generation, then the gain; a number before a ceiling; the earlier."""
    known = lever(experiment.lever)
    needs_a_run = experiment.basis is Basis.NEEDS_A_RUN
    return known.name not in leaking, not is_retrieval(known), -_gain(experiment), needs_a_run, known.order


def _explained(experiment: Experiment, ranked: Sequence[Experiment], leaking: Collection[str]) -> Experiment:
    """Says why it comes after the first; the first of its kind, whether it is a leak's or not retrieval's."""
    kind = _rank(experiment, leaking)[:2]
    leader = next(each for each in ranked if _rank(each, leaking)[:2] == kind)
    if experiment is ranked[0]:
        return experiment
    if experiment is not leader:
        why = _why_later(experiment, leader)
    elif ranked[0].lever in leaking:
        why = f"{ranked[0].lever} closes a leak: that comes first"
    else:
        why = "not retrieval: that comes first"
    return experiment.model_copy(update={"lost_to": why})


def _why_later(experiment: Experiment, first: Experiment) -> str:
    mine, best = _gain(experiment), _gain(first)
    ceiling = " at most" if experiment.basis is Basis.NEEDS_A_RUN else ""
    if mine < best:
        return f"recovers {mine}{ceiling}, {first.lever} {best}{' at most' * (first.basis is Basis.NEEDS_A_RUN)}"
    if ceiling and first.basis is Basis.REPLAYED:
        return f"as many as {first.lever} at most, and that one was replayed"
    return f"as many as {first.lever}, a later lever"
