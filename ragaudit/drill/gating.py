"""Would a gate have caught it? The gates of the healthy run, held against the run that a fault struck."""

from collections.abc import Sequence

from ragaudit.compare.gates import rules
from ragaudit.compare.gating import hold
from ragaudit.model.comparison import Baseline, FrozenQuery
from ragaudit.model.result import QueryResult

GATES = {"recall@k": {"max_drop": 0.0}, "leaks": 0, "outcomes": {"fail": 0}}
"""What the healthy queries hold by being healthy: no recall lost, no leak, no failure."""

_RULES = rules(GATES, "the healthy run")
_RESAMPLES = 100
"""The gates look at means; their intervals are not used."""


def gates_fired(healthy: Sequence[QueryResult], struck: Sequence[QueryResult]) -> tuple[str, ...]:
    """The names of the gates that fire on the struck run, in the order of GATES."""
    found = hold(_frozen("struck", struck), _RULES, _frozen("healthy", healthy))
    return tuple(gate.gate for gate in found.fired)


def _frozen(name: str, results: Sequence[QueryResult]) -> Baseline:
    """The run as a baseline. Labels and users are the same on both sides by construction, so neither is digested."""
    queries = tuple(
        FrozenQuery(
            query_id=result.diagnosis.query_id,
            outcome=result.diagnosis.outcome,
            stage=result.diagnosis.stage,
            delivered=result.diagnosis.delivered,
            k=result.k_final,
            gold="",
            access="",
            metrics={metric: value for metric, value in result.metrics.items() if value is not None},
            leaks=result.diagnosis.leaks,
        )
        for result in results
    )
    return Baseline(
        name=name,
        run=name,
        fingerprint="",
        ragaudit="",
        pipeline={},
        k_final=None,
        gold_version="",
        resamples=_RESAMPLES,
        queries=queries,
    )
