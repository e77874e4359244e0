"""The thread behind the queue: what waits, what is dropped, what survives an exit and a fork."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ragaudit.record.files import LineFile
from ragaudit.record.guard import Faults
from ragaudit.record.writer import Writer


def writer(path: Path, encode: Any = str, max_queue: int = 10) -> Writer:
    return Writer(LineFile(path), encode, Faults(), max_queue)


def test_a_full_queue_drops_what_comes_and_counts_it(tmp_path: Path) -> None:
    gate, reached = threading.Event(), threading.Event()

    def slow(row: str) -> str:
        reached.set()
        gate.wait(10)
        return row

    out = writer(tmp_path / "t", slow, max_queue=2)
    assert out.put("a")
    reached.wait(10)
    assert [out.put(row) for row in "bcde"] == [True, True, False, False]
    gate.set()
    assert out.close()
    assert (tmp_path / "t").read_text() == "a\nb\nc\n"
    assert (out.written, out.dropped) == (3, 2)
    assert out.faults.counts() == {"queue: the queue of 2 is full: records are dropped": 2}


def test_flush_waits_until_all_is_in_the_file(tmp_path: Path) -> None:
    out = writer(tmp_path / "t", max_queue=1000)
    for n in range(200):
        out.put(n)
    assert out.flush()
    assert (tmp_path / "t").read_text() == "".join(f"{n}\n" for n in range(200))
    out.close()


def test_flush_gives_up_and_says_so(tmp_path: Path) -> None:
    gate = threading.Event()
    out = writer(tmp_path / "t", lambda row: str(gate.wait(10)))
    out.put("a")
    assert not out.flush(0.01)
    gate.set()
    assert out.close()


def test_a_row_that_cannot_be_encoded_is_dropped_alone(tmp_path: Path) -> None:
    out = writer(tmp_path / "t", lambda row: str(1 // row))
    for row in (1, 0, 1):
        out.put(row)
    out.close()
    assert (tmp_path / "t").read_text() == "1\n1\n"
    assert (out.dropped, out.faults.counts()) == (1, {"row: ZeroDivisionError": 1})


def test_a_file_that_cannot_be_written_is_counted_and_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    out = writer(folder)
    out.put("a")
    out.flush()
    folder.rmdir()
    out.put("b")
    out.close()
    assert folder.read_text() == "b\n"
    assert (out.written, out.dropped) == (1, 1)
    assert out.faults.counts() == {"t: cannot be written (Is a directory)": 1}


def test_rows_after_the_end_are_dropped_and_counted(tmp_path: Path) -> None:
    out = writer(tmp_path / "t")
    out.close()
    assert not out.put("a")
    assert out.faults.counts() == {"queue: closed: records are dropped": 1}


def run(code: str, folder: Path) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True, timeout=60)
    return [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines() if line]


def test_what_is_queued_is_written_at_exit(tmp_path: Path) -> None:
    code = """
from ragaudit.record import Recorder
rec = Recorder("traces.jsonl")
for n in range(300):
    with rec.query("q", n) as q:
        q.arm("dense", ["a"])
"""
    assert [row["query_id"] for row in run(code, tmp_path)] == [str(n) for n in range(300)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_writes_its_own_queries_and_not_those_of_its_parent(tmp_path: Path) -> None:
    code = """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from ragaudit.record import Recorder
rec = Recorder("traces.jsonl")
def ask(name):
    with rec.query("q", name) as q:
        q.arm("dense", ["a"])
for n in range(50):
    ask(f"before-{n}")
child = os.fork()
for n in range(50):
    ask(f"{'parent' if child else 'child'}-{n}")
rec.close()
if child:
    os.waitpid(child, 0)
else:
    os._exit(0)
"""
    names = [row["query_id"] for row in run(code, tmp_path)]
    expected = [f"{who}-{n}" for who in ("before", "parent", "child") for n in range(50)]
    assert sorted(names) == sorted(expected)
