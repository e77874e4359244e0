"""Value by value against trec_eval: through pytrec_eval on random runs, and its own published test output."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from ragaudit.metrics.ranking import QueryRanks, measure_rows

TREC_NAME = {
    "hit@k": "success",
    "recall@k": "recall",
    "precision@k": "P",
    "mrr@k": "recip_rank",
    "ndcg@k": "ndcg_cut",
    "ap@k": "map_cut",
}
OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "trec_eval"


def against(ranking: list[str], qrels: dict[str, int], k: int) -> QueryRanks:
    """Rank by rank, ids of grade 1 or more as gold, each a group of its own."""
    position = {}
    for rank, chunk_id in enumerate(ranking, start=1):
        position.setdefault(chunk_id, rank)
    return QueryRanks(
        ranks=tuple(position.get(chunk_id, 0) for chunk_id in qrels),
        grades=tuple(float(grade) for grade in qrels.values()),
        groups=tuple(range(len(qrels))),
        k=k,
        returned=len(ranking),
    )


def trec(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], k: int) -> dict[str, dict[str, float]]:
    """trec_eval's values under our names. It has no MRR cut at K: a reciprocal rank below 1/K counts 0."""
    measures = {name if name == "recip_rank" else f"{name}.{k}" for name in TREC_NAME.values()}
    results = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    out = {}
    for query_id, values in results.items():
        rank = values["recip_rank"]
        values[f"recip_rank_{k}"] = rank if rank >= 1 / k else 0.0
        out[query_id] = {ours: values[f"{theirs}_{k}"] for ours, theirs in TREC_NAME.items()}
    return out


def random_queries(seed: int, n: int, depth: int):
    """Rankings of random length with 1 to 8 gold ids of grade 0 to 3, of which about half are in the list."""
    rng = np.random.default_rng(seed)
    rankings, qrels = {}, {}
    for i in range(n):
        pool = rng.permutation(depth * 2)
        rankings[f"q{i}"] = [f"c{c}" for c in pool[: rng.integers(1, depth + 1)]]
        gold = rng.choice(depth * 2, size=rng.integers(1, 9), replace=False)
        grades = rng.integers(0, 4, size=len(gold))
        grades[0] = max(1, grades[0])
        qrels[f"q{i}"] = {f"c{c}": int(grade) for c, grade in zip(gold, grades, strict=True)}
    return rankings, qrels


@pytest.mark.parametrize("k", [1, 3, 5, 10, 50])
def test_every_value_equals_trec_eval(k):
    rankings, qrels = random_queries(seed=k, n=300, depth=20)
    ours = measure_rows([against(rankings[query_id], qrels[query_id], k) for query_id in qrels])
    # Scores are -rank, since trec_eval orders by score and breaks ties by id.
    run = {q: {chunk_id: -float(rank) for rank, chunk_id in enumerate(ids)} for q, ids in rankings.items()}
    theirs = trec(run, qrels, k)
    for name in TREC_NAME:
        expected = [theirs[query_id][name] for query_id in qrels]
        np.testing.assert_allclose(ours[name], expected, rtol=0, atol=1e-12, err_msg=name)
    assert 0.05 < np.mean(ours["ndcg@k"]) < 0.95


def test_tied_scores_are_reordered_by_trec_eval_and_not_by_us():
    # Three chunks of one score, returned in the order a, b, c. trec_eval puts the highest id first: c, b, a.
    qrels = {"q": {"a": 1}}
    tied = trec({"q": {"a": 0.5, "b": 0.5, "c": 0.5}}, qrels, k=3)["q"]["mrr@k"]
    ours = measure_rows([against(["a", "b", "c"], qrels["q"], k=3)])["mrr@k"][0]
    assert (tied, ours) == (pytest.approx(1 / 3), 1.0)


def test_a_query_without_relevant_ids_is_zero_in_trec_eval_and_undefined_here():
    qrels = {"q": {"a": 0}}
    assert trec({"q": {"a": 1.0}}, qrels, k=3)["q"]["recall@k"] == 0.0
    assert np.isnan(measure_rows([against(["a"], qrels["q"], k=3)])["recall@k"][0])


def official_values() -> dict[tuple[str, str], float]:
    """(measure, query id) -> value, four decimals, from trec_eval's expected outputs for qrels.test."""
    values = {}
    for file in ("out.test.aq", "out.test.meas_params"):
        for line in (OFFICIAL / file).read_text().splitlines():
            measure, query_id, value = line.split()
            if query_id != "all" and measure.startswith(tuple(TREC_NAME.values())):
                values[measure, query_id] = float(value)
    return values


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason="trec_eval's test files are not beside this checkout")
def test_every_value_that_trec_eval_publishes_for_its_own_test_run():
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (OFFICIAL / "qrels.test").read_text().splitlines():
        query_id, _, chunk_id, grade = line.split()
        qrels[query_id][chunk_id] = int(grade)
    scored = defaultdict(list)
    for line in (OFFICIAL / "results.test").read_text().splitlines():
        query_id, _, chunk_id, _, score, _ = line.split()
        scored[query_id].append((np.float32(score), chunk_id))
    rankings = {query_id: [chunk_id for _, chunk_id in sorted(hits, reverse=True)] for query_id, hits in scored.items()}

    ours_of = {theirs: ours for ours, theirs in TREC_NAME.items()}
    published = official_values()
    for (measure, query_id), expected in published.items():
        name, _, cut = measure.rpartition("_")
        name, k = ("recip_rank", 1_000) if measure == "recip_rank" else (name, int(cut))
        got = measure_rows([against(rankings[query_id], qrels[query_id], k)])[ours_of[name]][0]
        assert round(got, 4) == pytest.approx(expected, abs=1e-9), (measure, query_id)
    # 3 queries: P, recall, ndcg_cut and map_cut at 9 cuts, success at 3, recip_rank, and 6 more cuts from meas_params.
    assert len(published) == 3 * (4 * 9 + 3 + 1 + 6)
