"""An audit as JSON: the shape that `ragaudit audit --json` and `report --format json` promise, written row by row."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from ragaudit.model.diagnosis import STAGES, GoldDiagnosis, Outcome, Step
from ragaudit.model.result import JUDGED, METRICS, SCHEMA, QueryResult, Summary


def document(summary: Summary, results: Iterable[QueryResult], *, with_text: bool = False) -> dict[str, Any]:
    """The whole document in memory, for small runs and tests; `write` gives the same without holding it."""
    rows = [query_row(result, with_text=with_text) for result in results]
    return {name: rows if name == "queries" else value for name, value in _parts(summary)}


def write(out: TextIO, summary: Summary, results: Iterable[QueryResult], *, with_text: bool = False) -> None:
    """Write the document: one line a part, one line a query, so that it can be streamed, compared and searched."""
    start = "{"
    for name, value in _parts(summary):
        out.write(f"{start}\n{json.dumps(name)}: ")
        start = ","
        if name != "queries":
            out.write(_line(value))
            continue
        mark = "["
        for result in results:
            out.write(f"{mark}\n{_line(query_row(result, with_text=with_text))}")
            mark = ","
        out.write("[]" if mark == "[" else "\n]")
    out.write("\n}\n")


def query_row(result: QueryResult, *, with_text: bool = False) -> dict[str, Any]:
    """One query, flat. `stage` is always a string: one of the nine, "none" or "undetermined"."""
    diagnosis = result.diagnosis
    row: dict[str, Any] = {"query_id": diagnosis.query_id}
    if with_text:
        row["query_text"] = result.query_text
    names = [*METRICS, *JUDGED, *(name for name in result.metrics if name not in (*METRICS, *JUDGED))]
    return row | {
        "outcome": diagnosis.outcome.value,
        "stage": diagnosis.stage.value,
        "secondary": [stage.value for stage in diagnosis.secondary],
        "causes": list(diagnosis.causes),
        "gap": None if diagnosis.gap is None else diagnosis.gap.value,
        "could_be": [stage.value for stage in diagnosis.could_be],
        "log": list(diagnosis.log),
        "basis": diagnosis.basis.value,
        "severity": diagnosis.severity.value,
        "evidence": list(diagnosis.evidence),
        "metrics": {name: result.metrics.get(name) for name in names},
        "undefined": result.undefined,
        "at": result.at,
        "gold": [_gold_row(gold) for gold in diagnosis.gold],
        "final_context_ids": None if diagnosis.final_context_ids is None else list(diagnosis.final_context_ids),
        "quadrant": result.quadrant,
        "delivered": diagnosis.delivered,
        "k_final": result.k_final,
        "slices": result.slices,
        "leaks": list(diagnosis.leaks),
    }


def _gold_row(gold: GoldDiagnosis) -> dict[str, Any]:
    return {
        "id": gold.id,
        "grade": gold.grade,
        "eligible": gold.eligible,
        "outcome": gold.outcome.value,
        "stage": gold.stage.value,
        "causes": list(gold.causes),
        "evidence": list(gold.evidence),
        "could_be": [stage.value for stage in gold.could_be],
        "log": list(gold.log),
        "gap": None if gold.gap is None else gold.gap.value,
        "journey": [_step_row(step) for step in gold.journey],
    }


def _step_row(step: Step) -> dict[str, Any]:
    """A step without its nulls. By hand: a run of a million queries has twenty million steps."""
    row: dict[str, Any] = {"checkpoint": step.checkpoint.value, "state": step.state.value}
    given = (("rank", step.rank), ("score", step.score), ("list", step.list), ("note", step.note))
    return row | {name: value for name, value in given if value is not None}


def _parts(summary: Summary) -> Iterator[tuple[str, Any]]:
    """The top level in order. `queries` is a place to fill."""
    plain = summary.model_dump(mode="json")
    yield "schema", SCHEMA
    yield "run", _run(summary)
    yield "preflight", plain["preflight"]
    yield "metrics", plain["metrics"]
    yield "at", plain["at"]
    yield "slices", plain["slices"]
    yield "outcomes", {outcome.value: summary.outcomes.get(outcome.value, 0) for outcome in Outcome}
    yield "stages", {stage.value: summary.stages.get(stage.value, 0) for stage in STAGES}
    yield "patterns", plain["patterns"]
    yield "acl", plain["acl"]
    yield "not_retrieval", plain["not_retrieval"]
    yield "queries", []
    yield "experiments", [e.model_dump(mode="json", by_alias=True) for e in summary.experiments]
    yield "canary", plain["canary"]
    yield "cost", plain["cost"]
    yield "undetermined", summary.undetermined
    yield "delivered_unjudged", summary.delivered_unjudged
    yield "judge", None if summary.judge is None else summary.judge.model_dump(mode="json")
    yield "set_aside", plain["set_aside"]


def _run(summary: Summary) -> dict[str, Any]:
    run = summary.run.model_dump(mode="json")
    files = summary.run.inputs
    return run | {
        "inputs": {name: f"sha256:{file.sha256.removeprefix('sha256:')}" for name, file in files.items()},
        "rows": {name: {"read": file.rows, "set_aside": file.set_aside} for name, file in files.items()},
    }


def _line(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "), allow_nan=False)
