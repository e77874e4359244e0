"""Plans and comparisons by hand: the reranker keeps 16 instead of 8, and Recall rises by 0.05."""

from ragaudit.experiments.events import Planned
from ragaudit.model.comparison import Comparison, Difference, MetricChange, Paired, QueryChange, Side, Verdict
from ragaudit.model.diagnosis import Stage
from ragaudit.model.experiment import Basis, Experiment

PREDICTED = {"recall@k": {"from": 0.8, "to": 0.84, "low": 0.81, "high": 0.87}}
TOP_N = "pipeline.rerank.top_n"


def experiment(*, variable=TOP_N, before=8, after=16, why="More of the pool is kept.", predicted=None):
    return Experiment.model_validate(
        {
            "lever": "rerank_top_n",
            "variable": variable,
            "from": before,
            "to": after,
            "why": why,
            "stage": Stage.RERANK,
            "basis": Basis.REPLAYED,
            "predicted": PREDICTED if predicted is None else predicted,
        }
    )


def planned(**fields):
    given = {
        "id": "abc123",
        "at": "2026-10-01T12:00:00+00:00",
        "run": "base",
        "fingerprint": "b2:base",
        "lever": "rerank_top_n",
        "variable": TOP_N,
        "from": 8,
        "to": 16,
        "predicted": PREDICTED,
    }
    return Planned.model_validate(given | fields)


def change(metric="recall@k", *, difference=0.05, low=0.01, high=0.09, verdict=Verdict.BETTER):
    paired = Paired(n=40, before=0.8, after=0.8 + difference, difference=difference, low=low, high=high, p=0.001)
    return MetricChange(metric=metric, paired=paired, p_holm=0.007, verdict=verdict)


def comparison(*, variable=TOP_N, to=16, changes=None, leaking=(), allowed=None):
    side = {"fingerprint": "b2:x", "ragaudit": "0.1.0", "queries": 40, "k_final": 8, "leaking": 0}
    variables = [] if variable is None else [Difference(name=variable, before=8, after=to)]
    if allowed is not None:
        variables.append(Difference(name=allowed, before=60, after=30, allowed=True))
    return Comparison(
        base=Side(name="base", **side),
        candidate=Side(name="cand", **side),
        pairs=40,
        variables=tuple(variables),
        metrics=(change(),) if changes is None else changes,
        newly_leaking=tuple(QueryChange(query_id=q, before="pass", after="filter", leaks=("c1",)) for q in leaking),
    )
