"""The terminal app on large audits: start-up against an empty Textual app, and how long a key takes to its picture.

Start-up is the wall time from the start of the process until a terminal was sent the text in question; the two take
turns. The first failing query is there before the app is: see tui/first_look.py. A key is timed from its arrival to the
next picture. The audits are three queries, copied in SQL.
"""

import argparse
import asyncio
import fcntl
import json
import os
import pty
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import print_table

EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("first picture")
Empty().run()
"""
OURS = [sys.executable, "-m", "ragaudit.cli.main", "review"]
QUERY, WHOLE = "refund window?", "Diagnosis"
"""What stands on the screen with the first failing query, and with all panes."""

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


def seen_after(command: Sequence[str], *texts: str) -> list[float]:
    """Wall seconds until each text has reached a terminal of 120 by 36 cells, in their order."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True)
    os.close(theirs)
    shown, seen = "", []
    for text in texts:
        while text not in shown:
            shown += os.read(ours, 65_536).decode("utf-8", "replace")
        seen.append(time.perf_counter() - start)
    process.kill()
    process.wait()
    os.close(ours)
    return seen


def start_up(path: Path, rounds: int) -> tuple[float, float, float]:
    """Median wall seconds to (an empty app's picture, our first failing query, all of our panes), taking turns."""
    spent: list[tuple[float, float, float]] = []
    for n in range(rounds + 1):
        (empty,) = seen_after([sys.executable, "-c", EMPTY], "first picture")
        query, whole = seen_after([*OURS, str(path)], QUERY, WHOLE)
        if n:  # the first round fills the caches
            spent.append((empty, query, whole))
    empties, queries, wholes = zip(*spent, strict=True)
    return median(empties), median(queries), median(wholes)


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
            empty, query, whole = start_up(path, arguments.rounds)
            ratios = f"{query / empty:.2f}", f"{whole / empty:.2f}"
            starts.append((f"{n:,}", f"{empty:.2f}", f"{query:.2f}", f"{whole:.2f}", *ratios))
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
        "Start-up in a terminal, wall seconds, median",
        ("queries", "empty app", "first query", "all panes", "query/empty", "panes/empty"),
        starts,
    )
    print_table("From a key to its picture, ms", ("queries", "key", "median", "most"), latencies)
    print(
        "Targets at 100,000 queries: the first failing query within 1.5 times an empty app; a key 50 ms at the median."
    )


if __name__ == "__main__":
    main()
