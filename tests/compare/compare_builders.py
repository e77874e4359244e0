"""Frozen runs by hand: every query of it with the values a test names."""

from ragaudit.model.comparison import Baseline, FrozenJudge, FrozenQuery
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.result import Estimate

PIPELINE = {"rerank": {"top_n": 8, "model": "r1"}, "fusion": {"method": "rrf", "k": 60}, "k_final": 8}
JUDGE = FrozenJudge(model="m1", mode="two_calls", prompts={"claims": 1, "matrix": 2})


def query(query_id="q1", *, recall=1.0, stage=None, outcome=None, **fields):
    if outcome is None:
        outcome = Outcome.PASS if stage is None else Outcome.FAIL
    given = {
        "query_id": query_id,
        "outcome": outcome,
        "stage": stage or Stage.NONE,
        "k": 8,
        "gold": "b2:gold",
        "access": "b2:access",
        "metrics": {} if recall is None else {"recall@k": recall},
    }
    return FrozenQuery(**(given | fields))


def numbered(values, **fields):
    return [query(f"q{n:02}", recall=value, **fields) for n, value in enumerate(values, start=1)]


def run(queries=None, *, pipeline=PIPELINE, name="base", **fields):
    queries = numbered([1.0] * 4) if queries is None else queries
    values = [q.metrics["recall@k"] for q in queries if "recall@k" in q.metrics]
    metrics = {}
    if values:
        mean = sum(values) / len(values)
        metrics["recall@k"] = Estimate(
            mean=mean, low=mean - 0.1, high=mean + 0.1, n=len(values), undefined=len(queries) - len(values)
        )
    given = {
        "name": name,
        "run": name,
        "fingerprint": f"b2:{name}",
        "ragaudit": "0.1.0",
        "pipeline": pipeline,
        "k_final": 8,
        "gold_version": "b2:version",
        "metrics": metrics,
        "resamples": 2000,
        "queries": queries,
    }
    return Baseline.model_validate(given | fields)


def changed(**tables):
    """The pipeline with some keys of its tables set."""
    over = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    merged = {key: PIPELINE.get(key, {}) | value for key, value in tables.items() if isinstance(value, dict)}
    return PIPELINE | over | merged
