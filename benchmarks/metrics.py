"""From retrieved ids and gold to per-query values: ragaudit's kernels against pytrec_eval and ranx."""

import argparse
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytrec_eval

from benchmarks import print_table, race
from ragaudit.metrics.ranking import QueryRanks, measure_rows

BATCH = 2_048
"""Queries at once. Batches of 8,192 cost twice as much when 100,000 traces are held in memory: so many new tuples at
a time make the garbage collector walk all of them again."""

COMMON = {
    "hit@k": "success",
    "recall@k": "recall",
    "precision@k": "P",
    "mrr@k": "recip_rank",
    "ndcg@k": "ndcg_cut",
    "ap@k": "map_cut",
}
"""Our metric -> trec_eval's. ragaudit computes precision@returned besides."""


@dataclass(frozen=True)
class Query:
    """What a harness holds in memory: ids best first, and graded gold."""

    query_id: str
    retrieved: list[str]
    gold: dict[str, int]


def make_queries(n: int, depth: int, seed: int = 0) -> list[Query]:
    """Lists of `depth` ids; 1 to 5 gold ids, three of four in the list; 30 % of the queries graded 1 to 3."""
    rng = np.random.default_rng(seed)
    queries = []
    for i in range(n):
        n_gold = int(rng.integers(1, 6))
        positions = np.unique((depth * 1.33 * rng.random(n_gold) ** 2.5).astype(int))
        grades = rng.integers(1, 4, len(positions)) if rng.random() < 0.3 else np.ones(len(positions), int)
        ids = [f"doc-{i}-{j}" for j in range(depth)]
        # Gold ids are strings of their own, as they are when read from another file.
        gold = {f"doc-{i}-{p}": int(g) for p, g in zip(positions, grades, strict=True)}
        queries.append(Query(f"q{i}", ids, gold))
    return queries


def ours(queries: Sequence[Query], k: int, depth: int) -> dict[str, np.ndarray]:
    """Encode the gold of each query against the first `depth` ids, and measure, batch by batch."""
    parts = []
    for start in range(0, len(queries), BATCH):
        rows = []
        for query in queries[start : start + BATCH]:
            ids = query.retrieved[:depth]
            ranks = tuple([ids.index(gold_id) + 1 if gold_id in ids else 0 for gold_id in query.gold])
            grades = tuple(query.gold.values())
            rows.append(QueryRanks(ranks, grades, tuple(range(len(ranks))), k, len(query.retrieved)))
        parts.append(measure_rows(rows))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def with_pytrec_eval(queries: Sequence[Query], k: int, depth: int) -> dict[str, np.ndarray]:
    """The same through pytrec_eval, with -rank as the score."""
    scores = [-float(rank) for rank in range(1, depth + 1)]
    run = {query.query_id: dict(zip(query.retrieved, scores, strict=False)) for query in queries}
    measures = {name if name == "recip_rank" else f"{name}.{k}" for name in COMMON.values()}
    evaluator = pytrec_eval.RelevanceEvaluator({query.query_id: query.gold for query in queries}, measures)
    results = evaluator.evaluate(run)
    keys = {ours: theirs if theirs == "recip_rank" else f"{theirs}_{k}" for ours, theirs in COMMON.items()}
    values = {ours: np.array([results[query.query_id][key] for query in queries]) for ours, key in keys.items()}
    values["mrr@k"][values["mrr@k"] < 1 / k] = 0.0
    return values


def with_ranx(queries: Sequence[Query], k: int, depth: int) -> dict[str, np.ndarray]:
    """The same through ranx."""
    import ranx

    names = {
        "hit@k": f"hit_rate@{k}",
        "recall@k": f"recall@{k}",
        "precision@k": f"precision@{k}",
        "mrr@k": f"mrr@{k}",
        "ndcg@k": f"ndcg@{k}",
        "ap@k": f"map@{k}",
    }
    qrels = ranx.Qrels({query.query_id: query.gold for query in queries})
    run = ranx.Run({q.query_id: {c: float(depth - r) for r, c in enumerate(q.retrieved[:depth])} for q in queries})
    results = ranx.evaluate(qrels, run, list(names.values()), return_mean=False)
    order = {query_id: i for i, query_id in enumerate(run.keys())}
    take = [order[query.query_id] for query in queries]
    return {ours: np.asarray(results[theirs])[take] for ours, theirs in names.items()}


def has_ranx() -> bool:
    return importlib.util.find_spec("ranx") is not None


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--depth", type=int, default=100, help="ids retrieved for each query")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args(argv)
    n, depth, k = args.queries, args.depth, args.k
    queries = make_queries(n, depth)
    contenders: dict[str, Callable[[], dict[str, np.ndarray]]] = {
        "ragaudit, first K": lambda: ours(queries, k, k),
        f"ragaudit, all {depth}": lambda: ours(queries, k, depth),
        "pytrec_eval, first K": lambda: with_pytrec_eval(queries, k, k),
        f"pytrec_eval, all {depth}": lambda: with_pytrec_eval(queries, k, depth),
    }
    if has_ranx():
        with_ranx(queries[:100], k, depth)  # compiles
        contenders |= {
            "ranx, first K": lambda: with_ranx(queries, k, k),
            f"ranx, all {depth}": lambda: with_ranx(queries, k, depth),
        }
    timings = race(contenders, args.rounds)
    reference = ours(queries, k, k)
    rows: list[tuple[str, ...]] = []
    for name, run in contenders.items():
        values = run()
        seconds, own = timings[name].seconds, timings[f"ragaudit,{name.partition(',')[2]}"].seconds
        difference = max(float(np.abs(values[metric] - reference[metric]).max()) for metric in COMMON)
        spread = f"{timings[name].spread:.2f}"
        rows.append(
            (name, f"{seconds:.3f}", f"{n / seconds:,.0f}", f"{seconds / own:.1f}", f"{difference:.1e}", spread)
        )
    if not has_ranx():
        rows.append(("ranx: not installed", *[""] * 5))
    print_table(
        f"Ranking metrics @{k} from lists of ids: {n:,} queries, {depth} ids each, about 3 gold, 30 % graded",
        ("", "CPU s", "queries/s", "x ragaudit of that depth", "max |diff|", "slowest/fastest"),
        rows,
    )


if __name__ == "__main__":
    main()
