"""From a line of traces.jsonl to a record: ragaudit's reader against bare decoders of the same lines."""

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pydantic

from benchmarks import print_table, race
from ragaudit.config import load_settings
from ragaudit.model.trace import Hit
from ragaudit.readers.bundle import locate, open_bundle, read_traces


class SeedLine(msgspec.Struct):
    """The mandatory log with every hit decoded, and nothing checked beyond its types."""

    query_id: str
    query_text: str
    k_final: int
    user_acl: tuple[str, ...]
    index_revision: str
    embedding_model: str
    query_rewrite: str | None
    filters_applied: dict[str, str]
    arms: dict[str, tuple[Hit, ...]]
    fused: tuple[Hit, ...]
    after_rerank: tuple[Hit, ...]
    final_context_ids: tuple[str, ...]
    final_context_chars: int
    gold_ids: tuple[str, ...]
    notes: str


class ModelHit(pydantic.BaseModel):
    """A hit as a pydantic model."""

    id: str
    rank: int
    score: float | None = None
    rrf: float | None = None
    sources: tuple[str, ...] | None = None


class ModelLine(pydantic.BaseModel):
    """The same line as a pydantic model."""

    query_id: str
    query_text: str
    k_final: int
    user_acl: tuple[str, ...]
    index_revision: str
    embedding_model: str
    query_rewrite: str | None
    filters_applied: dict[str, str]
    arms: dict[str, tuple[ModelHit, ...]]
    fused: tuple[ModelHit, ...]
    after_rerank: tuple[ModelHit, ...]
    final_context_ids: tuple[str, ...]
    final_context_chars: int
    gold_ids: tuple[str, ...]
    notes: str


def make_line(i: int, rng: np.random.Generator, depth: int = 50, k: int = 8) -> dict[str, object]:
    """One query in the seed's schema: two arms of 50, 50 fused, 20 reranked, 8 packed, 1 to 3 gold ids.

    Most gold stands high in the lists; some is in one arm only, is lost on the way, or is nowhere.
    """
    pool = [f"chunk-{i}-{j}" for j in range(2 * depth)]
    noise = rng.normal(0, depth / 4, (2, len(pool)))
    orders = [np.argsort(np.arange(len(pool)) + noise[arm])[:depth] for arm in range(2)]
    fused_score: dict[str, float] = {}
    for order in orders:
        for rank, j in enumerate(order, start=1):
            fused_score[pool[j]] = fused_score.get(pool[j], 0.0) + 1 / (60 + rank)
    fused = sorted(fused_score, key=fused_score.__getitem__, reverse=True)[:depth]
    reranked = [fused[j] for j in np.argsort(np.arange(20) + rng.normal(0, 3, 20))]
    gold = {pool[int(len(pool) * 1.1 * u**3)] if u < 0.96 else f"lost-{i}" for u in rng.random(rng.integers(1, 4))}
    in_arm = [{pool[j] for j in order} for order in orders]
    return {
        "query_id": f"q-{i}",
        "query_text": "How long may a device be kept after the contract has ended, and who signs for it?",
        "user_acl": ["tenant:acme", "role:support"],
        "index_revision": "idx-2026-10-01T12:00Z",
        "embedding_model": "bge-m3",
        "k_final": k,
        "query_rewrite": None,
        "filters_applied": {"tenant": "acme"},
        "arms": {
            name: [{"id": pool[j], "rank": r, "score": round(top / (r + 9), 6)} for r, j in enumerate(order, start=1)]
            for name, order, top in (("dense", orders[0], 7.1), ("bm25", orders[1], 124.0))
        },
        "fused": [
            {
                "id": c,
                "rank": r,
                "rrf": round(fused_score[c], 6),
                "sources": [name for name, ids in zip(("dense", "bm25"), in_arm, strict=True) if c in ids],
            }
            for r, c in enumerate(fused, start=1)
        ],
        "after_rerank": [{"id": c, "rank": r, "score": round(0.99 / r, 6)} for r, c in enumerate(reranked, start=1)],
        "final_context_ids": reranked[:k],
        "final_context_chars": 6120,
        "gold_ids": sorted(gold),
        "notes": "",
    }


def write_bundle(folder: Path, n: int, seed: int = 0) -> Path:
    """Write traces.jsonl with n lines, the only file that a bundle must have."""
    rng = np.random.default_rng(seed)
    path = folder / "traces.jsonl"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(make_line(i, rng)) + "\n" for i in range(n))
    return path


def contenders_of(folder: Path, path: Path) -> dict[str, Callable[[], int]]:
    """Each reads the whole file line by line, keeps nothing, and returns how many lines it read."""
    typed = msgspec.json.Decoder(SeedLine).decode
    settings = load_settings(None, env={}, flags={})

    def by(decode: Callable[[bytes], object]) -> Callable[[], int]:
        def read() -> int:
            with path.open("rb", buffering=1 << 18) as lines:
                return sum(decode(line) is not None for line in lines)

        return read

    return {
        "msgspec, typed": by(typed),
        "ragaudit.readers": lambda: sum(1 for _ in read_traces(open_bundle(locate(folder), settings))),
        "json.loads, unchecked": by(json.loads),
        "pydantic models": by(ModelLine.model_validate_json),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    parser.add_argument("--lines", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_bundle(folder, args.lines)
        size = path.stat().st_size / args.lines
        contenders = contenders_of(folder, path)
        for read in contenders.values():
            assert read() == args.lines, "every contender reads every line"
        timings = race(contenders, args.rounds)
    floor = timings["msgspec, typed"].seconds
    print_table(
        f"Reading traces.jsonl: {args.lines:,} lines of {size:,.0f} bytes, 178 hits each",
        ("", "CPU us/line", "lines/s", "x msgspec", "slowest/fastest"),
        [
            (
                contender,
                f"{timing.seconds / args.lines * 1e6:.1f}",
                f"{args.lines / timing.seconds:,.0f}",
                f"{timing.seconds / floor:.2f}",
                f"{timing.spread:.2f}",
            )
            for contender, timing in timings.items()
        ],
    )


if __name__ == "__main__":
    main()
