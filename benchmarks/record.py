"""What recording costs a query: in the application's thread, and with the writer's thread, against logging by hand."""

import argparse
import gc
import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import print_table
from ragaudit.record import Recorder

DEPTH, RERANKED, PACKED, WORDS = 50, 20, 8, 90
Lists = dict[str, list[dict[str, Any]]]


def make_lists(i: int) -> Lists:
    """Two arms of 50, 50 fused, 20 reranked, 8 packed; each chunk has a text of 90 words and metadata."""
    draw = random.Random(i)
    pool = [
        {
            "id": f"chunk-{i}-{j}",
            "score": draw.random(),
            "text": " ".join(f"word{draw.randrange(5000)}" for _ in range(WORDS)),
            "metadata": {"tenant": "acme", "page": j, "language": "en"},
        }
        for j in range(2 * DEPTH)
    ]
    fused = draw.sample(pool, DEPTH)
    return {
        "dense": draw.sample(pool, DEPTH),
        "bm25": draw.sample(pool, DEPTH),
        "fused": fused,
        "reranked": fused[:RERANKED],
        "packed": fused[:PACKED],
    }


def recorded(rec: Recorder, queries: Sequence[Lists]) -> None:
    """As an application calls the recorder."""
    for n, lists in enumerate(queries):
        with rec.query("How long may a device be kept?", f"q{n}", user_acl=["tenant:acme"], filters={}) as q:
            q.arm("dense", lists["dense"], limit=DEPTH)
            q.arm("bm25", lists["bm25"], limit=DEPTH)
            q.fused(lists["fused"])
            q.reranked(lists["reranked"])
            q.context(lists["packed"], prompt="\n\n".join(hit["text"] for hit in lists["packed"]))
            q.answer("Two years.")


def by_hand(path: Path, queries: Sequence[Lists]) -> None:
    """The same row by `json.dumps` and an append, in the application's thread."""
    with path.open("a", encoding="utf-8") as file:
        for n, lists in enumerate(queries):
            row = {
                "query_id": f"q{n}",
                "query_text": "How long may a device be kept?",
                "user_acl": ["tenant:acme"],
                "filters_applied": {},
                "arms": {"dense": lists["dense"], "bm25": lists["bm25"]},
                "fused": lists["fused"],
                "after_rerank": lists["reranked"],
                "final_context_ids": [hit["id"] for hit in lists["packed"]],
                "context_texts": {hit["id"]: hit["text"] for hit in lists["packed"]},
                "answer": {"text": "Two years."},
            }
            file.write(json.dumps(row) + "\n")
            file.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    queries = [make_lists(i) for i in range(options.queries)]
    settings: dict[str, dict[str, Any]] = {
        "Recorder, full texts": {},
        "Recorder, text=hash": {"text": "hash"},
        "Recorder, text=none": {"text": "none"},
        "Recorder, sample=0.01": {"sample": 0.01},
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"

        def recording(setting: dict[str, Any]) -> Callable[[], Recorder]:
            def run() -> Recorder:
                rec = Recorder(path, max_queue=options.queries, **setting)
                recorded(rec, queries)
                return rec

            return run

        contenders: dict[str, Callable[[], Recorder | None]] = {"by hand": lambda: by_hand(path, queries)}
        contenders |= {name: recording(setting) for name, setting in settings.items()}
        spent = _race(contenders, options.rounds, path)
    thread, process = spent["by hand"]
    rows = [
        (name, f"{1e6 * own / len(queries):.0f}", f"{own / thread:.2f} x", f"{all_ / process:.2f} x")
        for name, (own, all_) in spent.items()
    ]
    header = ("", "us a query in the application's thread", "of by hand", "with the writer's thread, of by hand")
    print_table(f"Recording a query of 178 hits with texts ({options.queries} queries, median CPU)", header, rows)


def _race(
    contenders: dict[str, Callable[[], Recorder | None]], rounds: int, path: Path
) -> dict[str, tuple[float, float]]:
    """CPU seconds in this thread, and in the process until all is written: medians."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name in list(contenders) if number % 2 == 0 else reversed(contenders):
            path.unlink(missing_ok=True)
            gc.collect()
            thread, process = time.thread_time(), time.process_time()
            rec = contenders[name]()
            own = time.thread_time() - thread
            if rec is not None:
                rec.close(60)
                assert rec.stats().dropped == 0, rec.stats()
            spent[name].append((own, time.process_time() - process))
    return {name: (median(t for t, _ in times), median(p for _, p in times)) for name, times in spent.items()}


if __name__ == "__main__":
    main()
