"""The demo as it is, or as a bundle that logs less of it or logs it in another order."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragaudit.config import load_settings
from ragaudit.drill.outcome import DrillReport, FaultResult, Misnamed
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.readers.bundle import Bundle, locate, open_bundle

Row = dict[str, Any]
TABLES = ("sources.jsonl", "chunks.jsonl", "index.json", "ragaudit.toml")


def opened(folder: Path, **flags: object) -> Bundle:
    paths = locate(folder)
    return open_bundle(paths, load_settings(paths.config, env={}, flags=flags))


def rewritten(
    repository: Path, folder: Path, *, tables: tuple[str, ...] = TABLES, edit: Callable[[Row], Row] = dict
) -> Path:
    demo = repository / "examples" / "demo"
    for name in tables:
        shutil.copy(demo / name, folder / name)
    rows = map(json.loads, (demo / "traces.jsonl").read_text("utf-8").splitlines())
    (folder / "traces.jsonl").write_text("".join(json.dumps(edit(row)) + "\n" for row in rows), "utf-8")
    return folder


def without(*fields: str) -> Callable[[Row], Row]:
    return lambda row: {name: value for name, value in row.items() if name not in fields}


MISNAMED = Misnamed(
    query_id="q\x1b[31m-1",
    outcome=Outcome.FAIL,
    stage=Stage.EMBED,
    causes=("ann_miss",),
    evidence="g: exact rank 1 in dense, and the index missed it",
)


def report(*results: FaultResult) -> DrillReport:
    return DrillReport(name="support-kb", traces=9, healthy=2, seed=0, recall=1.0, results=results)


def result(**fields: Any) -> FaultResult:
    shown = {"fault": "poor_rank", "stage": Stage.RETRIEVE, "summary": "Too far apart.", "applied": 2, "named": 2}
    return FaultResult(**{**shown, **fields})
