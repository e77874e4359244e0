"""A large file of spans through `ragaudit import`: MB/s, and the peak of memory against that of a small file.

The file is what a Collector's file exporter writes: one request a line, the spans of many queries between one another.
`--mb 2048` makes one of 2 GB; twice that must be free where temporary files go.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import print_table

OPEN_AT_ONCE = 50
"""Queries whose spans stand between one another."""
SPANS_A_LINE = 32
SMALL_MB = 16

_CHILD = """
import resource, sys, time
from ragaudit.cli.main import execute
start, cpu = time.perf_counter(), time.process_time()
code = execute(["import", "spans", sys.argv[1], "-o", sys.argv[2], "--quiet", "--json"])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(code, time.perf_counter() - start, time.process_time() - cpu, peak, file=sys.stderr)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.import_spans", description=__doc__)
    parser.add_argument("--mb", type=int, default=256, help="size of the large file (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows: list[list[str]] = []
    peaks: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        for megabytes in (SMALL_MB, options.mb):
            path = Path(folder) / "spans.jsonl"
            size = _write(path, megabytes * 1024 * 1024)
            traces, wall, cpu, peak = _imported(path, Path(folder) / "traces.jsonl")
            peaks.append(peak)
            mb = size / 1024 / 1024
            rows.append([f"{mb:,.0f} MB", f"{traces:,}", f"{mb / wall:.0f}", f"{mb / cpu:.0f}", f"{peak / 1024:,.0f}"])
    header = ["file", "queries", "MB/s (clock)", "MB/s (CPU)", "peak, MB"]
    print_table("Import of OTLP spans, one query's spans spread over lines", header, rows)
    print(f"\npeak of the large file over that of the small one: {peaks[1] / peaks[0]:.2f}")


def _imported(path: Path, out: Path) -> tuple[int, float, float, int]:
    """(queries, seconds by the clock, CPU seconds, peak in kB) of an import in a process of its own."""
    command = [sys.executable, "-c", _CHILD, str(path), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, wall, cpu, peak = done.stderr.split()[-4:]
    if code != "0":
        raise SystemExit(done.stderr)
    out.unlink()
    return json.loads(done.stdout)["rows"]["traces"], float(wall), float(cpu), int(peak)


def _write(path: Path, target: int) -> int:
    """Write lines until the file is as large as asked; return its size."""
    source = random.Random(7)
    waiting: list[Iterator[dict[str, Any]]] = []
    size, number = 0, 0
    with path.open("wb") as file:
        while size < target or waiting:
            batch: list[dict[str, Any]] = []
            while len(batch) < SPANS_A_LINE and (waiting or size < target):
                while len(waiting) < OPEN_AT_ONCE and size < target:
                    waiting.append(iter(_trace(number, source)))
                    number += 1
                place = source.randrange(len(waiting))
                span = next(waiting[place], None)
                if span is None:
                    waiting.pop(place)
                    if size >= target and not waiting:
                        break
                else:
                    batch.append(span)
            if batch:
                request = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": batch}]}]}
                line = json.dumps(request).encode() + b"\n"
                file.write(line)
                size += len(line)
    return size


def _trace(number: int, source: random.Random) -> list[dict[str, Any]]:
    """The spans of one hybrid query with a reranker, children before the root as an exporter writes them."""
    trace_id, start = f"{number:032x}", 1_795_993_174_000_000_000 + number * 1_000_000_000
    question = f"question number {number} about {source.randrange(10**9)}"
    chunks = [(f"doc-{source.randrange(10**6)}#0", f"text {source.random()} " + "word " * 80) for _ in range(12)]

    def span(name: str, kind: str, at: int, **attributes: Any) -> dict[str, Any]:
        named = {"openinference.span.kind": kind, "input.value": question, **attributes}
        return {
            "traceId": trace_id,
            "spanId": f"{at + 1:016x}",
            "parentSpanId": f"{1:016x}" if at else "",
            "name": name,
            "startTimeUnixNano": str(start + at * 1000),
            "endTimeUnixNano": str(start + (at * 1000 + 900 if at else 10_000)),
            "attributes": [{"key": key, "value": {"stringValue": str(value)}} for key, value in named.items()],
        }

    def listed(prefix: str, found: Sequence[tuple[str, str]]) -> dict[str, Any]:
        return {
            f"{prefix}.{n}.document.{name}": value
            for n, (chunk_id, text) in enumerate(found)
            for name, value in (("id", chunk_id), ("content", text), ("metadata", '{"tenant": "acme"}'))
        }

    reranked = listed("reranker.input_documents", chunks) | listed("reranker.output_documents", chunks[:4])
    messages = {"llm.input_messages.0.message.content": "\n".join(text for _, text in chunks[:4])}
    return [
        span("dense", "RETRIEVER", 1, **listed("retrieval.documents", chunks[:8])),
        span("bm25", "RETRIEVER", 2, **listed("retrieval.documents", chunks[4:])),
        span("rerank", "RERANKER", 3, **reranked),
        span("llm", "LLM", 4, **messages, **{"llm.output_messages.0.message.content": "An answer."}),
        span("http call", "TOOL", 5, **{"http.url": "https://example.org/", "http.status_code": 200}),
        span("rag", "CHAIN", 0, **{"output.value": "An answer.", "session.id": f"s-{number % 100}"}),
    ]


if __name__ == "__main__":
    main()
