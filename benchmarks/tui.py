"""The terminal app on large audits: start-up against an empty Textual app, and how long a key takes to its picture.

Start-up is the wall time of a whole process up to the first picture, without a terminal; the two take turns. A key is
timed from its arrival to the next picture. The audits are one query of the example, copied in SQL.
"""

import argparse
import asyncio
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import print_table

EMPTY = """
import sys
from textual.app import App
class Empty(App):
    def on_ready(self):
        self.exit(0)
Empty().run(headless=True, size=(120, 36))
"""
OURS = """
import sys
from pathlib import Path
from ragaudit.tui.app import ReviewApp
from ragaudit.tui.session import Session
class Timed(ReviewApp):
    def post_display_hook(self):
        if self.main_screen is not None and self.main_screen.query("#queue") and self.session.here:
            if self.screen.query_one("#queue").count:
                self.exit(0)
with Session.open(Path(sys.argv[1])) as session:
    sys.exit(Timed(session).run(headless=True, size=(120, 36)) or 0)
"""
KEYS = {
    "n: next query": ("n",) * 20,
    "page down in the queue": ("pagedown",) * 20,
    "1: a verdict, saved": ("1",) * 20,
    "]: next stage": ("right_square_bracket", "left_square_bracket") * 10,
    "G: the last query": ("G", "g") * 5,
    "s: another order": ("s",) * 4,
}


def make(path: Path, n: int) -> None:
    """An audit of `n` queries, of which two in three fail."""
    from tests.tui.builders import inventory, lost_at_pack, passed, write

    rows = [lost_at_pack("a0"), lost_at_pack("a1"), passed("a2")]
    write(path, rows, inventory({"c9": "within 30 days " * 40, "c1": "renewal " * 100, "c4": "old policy " * 80}))
    with sqlite3.connect(path) as connection:
        for table in ("queries", "results", "traces"):
            connection.execute(f"CREATE TEMP TABLE old AS SELECT * FROM {table}")
            connection.execute(f"DELETE FROM {table}")
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            picked = ", ".join(
                "n.value" if name == "seq" else "printf('q%07d', n.value)" if name == "query_id" else f"o.{name}"
                for name in columns
            )
            connection.execute(
                f"WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {n}) "
                f"INSERT INTO {table} SELECT {picked} FROM n JOIN old o ON o.seq = 1 + n.value % 3"
            )
            connection.execute("DROP TABLE old")
        connection.execute("UPDATE results SET result = json_set(result, '$.diagnosis.query_id', printf('q%07d', seq))")


def start_up(path: Path, rounds: int) -> tuple[float, float]:
    """Median wall seconds of (an empty app, ours), taking turns."""
    spent: dict[str, list[float]] = {"empty": [], "ours": []}
    for n in range(rounds + 1):
        for name, code in (("empty", EMPTY), ("ours", OURS)):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code, str(path)], check=True, stdout=subprocess.DEVNULL)
            if n:  # the first round fills the caches
                spent[name].append(time.perf_counter() - start)
    return median(spent["empty"]), median(spent["ours"])


async def keys(path: Path) -> dict[str, list[float]]:
    """Seconds from each key to the next picture."""
    from ragaudit.tui.app import ReviewApp
    from ragaudit.tui.session import Session

    drawn = asyncio.Event()

    class Timed(ReviewApp):
        def post_display_hook(self) -> None:
            drawn.set()

    spent: dict[str, list[float]] = {}
    with Session.open(path, filter_text="is:failing") as session:
        app = Timed(session)
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.pause(0.5)
            app.main_screen.show_pane("queue")  # type: ignore[union-attr]
            await pilot.pause(0.5)
            for name, pressed in KEYS.items():
                for key in pressed:
                    drawn.clear()
                    start = time.perf_counter()
                    app.simulate_key(key)
                    await asyncio.wait_for(drawn.wait(), 30)
                    await asyncio.sleep(0)
                    spent.setdefault(name, []).append(time.perf_counter() - start)
                    await pilot.pause(0.05)
    return spent


def child(path: Path) -> None:
    """Print the key times and the peak memory of this process as JSON."""
    spent = asyncio.run(keys(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"spent": spent, "peak": peak}))


def main(argv: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tui", description=__doc__)
    parser.add_argument("--queries", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child is not None:
        child(arguments.child)
        return
    starts, latencies = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n in arguments.queries:
            path = Path(folder) / f"{n}.audit"
            make(path, n)
            empty, ours = start_up(path, arguments.rounds)
            starts.append((f"{n:,}", f"{empty:.2f}", f"{ours:.2f}", f"{ours / empty:.2f}"))
            said = subprocess.run(
                [sys.executable, "-m", "benchmarks.tui", "--child", str(path)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            found = json.loads(said.stdout.splitlines()[-1])
            for name, spent in found["spent"].items():
                latencies.append((f"{n:,}", name, f"{1000 * median(spent):.0f}", f"{1000 * max(spent):.0f}"))
            latencies.append((f"{n:,}", "peak memory, MiB", f"{found['peak']:.0f}", ""))
    print_table(
        "Start-up to the first failing query, wall seconds, median",
        ("queries", "empty app", "ragaudit", "ratio"),
        starts,
    )
    print_table("From a key to its picture, ms", ("queries", "key", "median", "most"), latencies)
    print("Targets: start-up 1.5 times an empty app at 100,000 queries; a key 50 ms at the median.")


if __name__ == "__main__":
    main()
