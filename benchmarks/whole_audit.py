"""The whole way from a bundle on disk to a finished audit file, per trace."""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from benchmarks import print_table, race
from benchmarks.ingest import write_bundle
from ragaudit.audit.run import audit, check
from ragaudit.config import load_settings
from ragaudit.readers.bundle import Bundle, locate, open_bundle, read_traces


def contenders_of(folder: Path, results: Path) -> dict[str, Callable[[], object]]:
    """What an audit consists of, each step with the ones before it. Every audit writes a file of its own."""
    settings = load_settings(None, env={}, flags={})
    numbers = count()

    def opened() -> Bundle:
        return open_bundle(locate(folder), settings)

    return {
        "read the traces": lambda: sum(1 for _ in read_traces(opened())),
        "check (read, preflight)": lambda: check(opened()),
        "audit (check, read, diagnose, measure, write)": lambda: audit(opened(), results / f"{next(numbers)}.audit"),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole_audit", description=__doc__)
    parser.add_argument("--traces", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args(argv)
    work = Path(tempfile.mkdtemp())
    try:
        size = write_bundle(work, args.traces).stat().st_size
        results = work / "results"
        results.mkdir()
        timings = race(contenders_of(work, results), args.rounds)
        written = max(path.stat().st_size for path in results.glob("*.audit"))
        summary = audit(open_bundle(locate(work), load_settings(None, env={}, flags={})), results / "shown.audit")
    finally:
        shutil.rmtree(work)
    print_table(
        f"A whole audit: {args.traces:,} traces of {size / args.traces:,.0f} bytes in the seed's schema, no inventory",
        ("", "CPU us/trace", "traces/s", "slowest/fastest"),
        [
            (
                step,
                f"{timing.seconds / args.traces * 1e6:,.0f}",
                f"{args.traces / timing.seconds:,.0f}",
                f"{timing.spread:.2f}",
            )
            for step, timing in timings.items()
        ],
    )
    recall = summary.metrics["recall@k"]
    print(
        f"audit file: {written / args.traces:,.0f} bytes a trace; recall@k {recall.mean:.3f} over {recall.n:,} queries"
    )


if __name__ == "__main__":
    main()
