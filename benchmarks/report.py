"""Written reports of large audits: what ten times the queries cost, in time and in memory.

Each report is written by a process of its own, whose peak memory is asked for at its end. The audits are 300 queries of
`benchmarks.ingest` (178 hits each), copied in SQL. Only ratios are worth quoting.
"""

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import print_table

FORMS = ("md", "html", "html, one page", "json")


def make(path: Path, n: int) -> None:
    """An audit of `n` queries."""
    from benchmarks.ingest import write_bundle
    from ragaudit.audit.run import audit
    from ragaudit.config import load_settings
    from ragaudit.readers.bundle import locate, open_bundle

    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder), 300)
        audit(open_bundle(locate(Path(folder)), load_settings(None, env={}, flags={})), path)
    with sqlite3.connect(path) as connection:
        few = connection.execute("SELECT count(*) FROM queries").fetchone()[0]
        for table in ("queries", "results", "traces"):
            connection.execute(
                f"CREATE TEMP TABLE old AS SELECT *, row_number() OVER (ORDER BY seq) - 1 AS place FROM {table}"
            )
            connection.execute(f"DELETE FROM {table}")
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            picked = ", ".join(
                "n.value" if name == "seq" else "printf('q%07d', n.value)" if name == "query_id" else f"o.{name}"
                for name in columns
            )
            connection.execute(
                f"WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {n}) "
                f"INSERT INTO {table} SELECT {picked} FROM n JOIN old o ON o.place = n.value % {few}"
            )
            connection.execute("DROP TABLE old")
        connection.execute("UPDATE results SET result = json_set(result, '$.diagnosis.query_id', printf('q%07d', seq))")
        summary = json.loads(connection.execute("SELECT value FROM meta WHERE name = 'summary'").fetchone()[0])
        for name in ("outcomes", "stages"):
            summary[name] = {key: count * n // few for key, count in summary[name].items()}
        connection.execute("UPDATE meta SET value = ? WHERE name = 'summary'", (json.dumps(summary),))


def child(path: Path, form: str, out: Path) -> None:
    """Write one report; print CPU seconds, peak memory in MiB and the bytes written as JSON."""
    from ragaudit.cli.main import execute

    start = time.process_time()
    options = ["--format", form.partition(",")[0], *(["--one-page"] if "one page" in form else [])]
    code = execute(["report", str(path), *options, "-q", "-o", str(out)])
    assert code == 0, "the report was written"
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": spent, "peak": peak, "bytes": out.stat().st_size}))


def apart(*arguments: str) -> str:
    """What this module prints as a process of its own. A child's peak starts at its parent's, which so stays small."""
    command = [sys.executable, "-m", "benchmarks.report", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measured(path: Path, form: str, out: Path) -> dict[str, float]:
    """What one report took."""
    found: dict[str, float] = json.loads(apart("--child", str(path), form, str(out)).splitlines()[-1])
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--queries", type=int, nargs=2, default=[10_000, 100_000], metavar=("FEW", "MANY"))
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.make is not None:
        make(Path(arguments.make[0]), int(arguments.make[1]))
        return
    if arguments.child is not None:
        path, form, out = arguments.child
        child(Path(path), form, Path(out))
        return
    few, many = arguments.queries
    found: dict[tuple[int, str], dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in (few, many):
            path = Path(folder) / f"{n}.audit"
            apart("--make", str(path), str(n))
            for form in FORMS:
                found[n, form] = measured(path, form, Path(folder) / "report")
            path.unlink()
    rows = []
    for form in FORMS:
        less, more = found[few, form], found[many, form]
        rows.append(
            (
                form,
                f"{1e6 * less['seconds'] / few:,.0f}",
                f"{1e6 * more['seconds'] / many:,.0f}",
                f"{less['peak']:.0f}",
                f"{more['peak']:.0f}",
                f"{more['peak'] / less['peak']:.2f}",
                f"{more['bytes'] / less['bytes']:.2f}",
            )
        )
    print_table(
        f"Reports of {few:,} and of {many:,} queries",
        ("", "us/query", "us/query", "peak MiB", "peak MiB", "x memory", "x bytes"),
        rows,
    )


if __name__ == "__main__":
    main()
