"""What the replay predicts of a change, against the example pipeline really run with that change.

Each change is predicted from the traces of `examples/demo` alone. Then the pipeline answers all queries again with
that one key changed, and the new run is audited. A query whose own `config` departs from the run's value keeps its
departure on both sides ("run"), or gives it up on both ("all"). What `ragaudit next` proposes and replays is tried
too ("next"): no query keeps a departure there.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import print_table
from ragaudit.audit.batch import Surroundings
from ragaudit.audit.proposals import bench_of
from ragaudit.audit.run import audit
from ragaudit.config import AclSettings, Settings, load_settings
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.evidence.identity import Identities
from ragaudit.experiments.bench import Bench, Effect
from ragaudit.experiments.variants import Setter, with_value
from ragaudit.model.experiment import Basis
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import QueryResult, Summary
from ragaudit.readers.bundle import locate, open_bundle, read_traces
from ragaudit.store import AuditReader

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

Row = tuple[str, ...]
_FLOOR = {"score": "cosine", "direction": "min", "kind": "floor"}
CHANGES: tuple[tuple[str, Any, str], ...] = (
    ("pack.token_budget", 450, "run"),
    ("pack.token_budget", 200, "run"),
    ("pack.token_budget", 1125, "all"),
    ("pack.on_overflow", "stop", "run"),
    ("pack.dedupe_by", "source_id", "run"),
    ("pack.dedupe_by", "chunk", "all"),
    ("pack.max_per_source", 1, "run"),
    ("pack.max_per_source", 2, "run"),
    ("k_final", 2, "run"),
    ("k_final", 10, "run"),
    ("rerank.top_n", 3, "run"),
    ("rerank.top_n", 1, "run"),
    ("rerank.candidates", 6, "run"),
    ("rerank.candidates", 3, "run"),
    ("rerank.model", "", "run"),
    ("rerank.model", "", "all"),
    ("fusion.k", 10, "run"),
    ("fusion.k", 1, "run"),
    ("fusion.weights", {"dense": 2.0, "bm25": 1.0}, "run"),
    ("fusion.weights", {"dense": 0.0, "bm25": 1.0}, "run"),
    ("arms", ["dense"], "run"),
    ("arms", ["bm25"], "run"),
    ("thresholds", [{**_FLOOR, "on": "fused", "value": 0.2}], "run"),
    ("thresholds", [{**_FLOOR, "on": "dense", "value": 0.3}], "run"),
    ("thresholds", [], "all"),
)
"""Key, value, and whether queries that depart from the run's value keep ("run") or give up ("all") their own."""


@dataclass(frozen=True)
class Audited:
    """One audited run."""

    summary: Summary
    results: tuple[QueryResult, ...]

    @property
    def delivered(self) -> set[str]:
        """The queries whose evidence reached the generator."""
        return {r.diagnosis.query_id for r in self.results if r.diagnosis.delivered}

    @property
    def recalls(self) -> dict[str, float]:
        """Query -> its recall, where that is defined."""
        found = {r.diagnosis.query_id: r.metrics["recall@k"] for r in self.results}
        return {query_id: value for query_id, value in found.items() if value is not None}


def audited(folder: Path, settings: Settings, out: Path) -> Audited:
    summary = audit(open_bundle(locate(folder), settings), out)
    with AuditReader.open(out) as reader:
        return Audited(summary, tuple(reader.iter_results()))


def recorded(settings: Settings, run: Audited) -> Bench:
    bundle = open_bundle(locate(EXAMPLES / "demo"), settings)
    around = Surroundings(settings, Identities.of(bundle.inventory), settings.acl or AclSettings(), RunFacts())
    return bench_of(read_traces(bundle), lambda: run.results, around, run.summary.metrics)


def at_run_level(variable: str, run: Pipeline, change: Setter) -> Setter:
    """The change, for queries that have the run's own value of the variable; the others keep theirs."""

    def keeping(pipeline: Pipeline) -> Pipeline:
        return change(pipeline) if _value(pipeline, variable) == _value(run, variable) else pipeline

    return keeping


def _value(pipeline: Pipeline, variable: str) -> Any:
    found: Any = pipeline
    for key in variable.split("."):
        found = getattr(found, key)
    return found


def held(after: Audited, before: Audited, query_ids: set[str]) -> float:
    """Mean recall with these queries as they are now and all others as they were: what was predicted."""
    was, now = before.recalls, after.recalls
    return sum(now.get(each, value) if each in query_ids else value for each, value in was.items()) / len(was)


def row(name: str, effect: Effect, bench: Bench, before: Audited, after: Audited) -> Row:
    predicted = effect.changes["recall@k"]
    on_bench = {recorded.trace.query_id for recorded in bench.rows}
    told = on_bench - set(effect.unknown)
    measured = held(after, before, told)
    kept, lost = (after.delivered - before.delivered) & told, (before.delivered - after.delivered) & told
    whole = after.summary.metrics["recall@k"].mean
    assert whole is not None
    is_inside, is_all_inside = (predicted.low - 1e-9 <= value <= predicted.high + 1e-9 for value in (measured, whole))
    other = sorted((set(effect.kept) ^ kept) | (set(effect.lost) ^ lost))
    return (
        name,
        f"{len(told)}/{len(on_bench)}",
        f"{predicted.after:.4f}",
        f"{predicted.low:.4f}..{predicted.high:.4f}",
        f"{measured:.4f}",
        "yes" if is_inside else "NO",
        f"+{len(effect.kept)} -{len(effect.lost)}",
        f"+{len(kept)} -{len(lost)}",
        " ".join(other) or "-",
        f"{whole:.4f}",
        "yes" if is_all_inside else "no",
    )


HEADER = (
    "change", "replayed", "predicted", "95 %", "measured", "inside", "predicted", "measured", "differ",
    "whole run", "inside",
)  # fmt: skip
CAPTION = """\
replayed: queries whose lists tell what the change does, of those on the bench. predicted, measured: mean recall with
those queries changed and all others as they were; then queries that gain and lose their evidence, and the ones on
which the two differ. whole run: every query really run again, the ones that nobody predicted among them."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__)
    parser.parse_args(argv)
    sys.path.insert(0, str(EXAMPLES))
    from benchmarks.rerun import Example

    example = Example(EXAMPLES)
    settings = load_settings(EXAMPLES / "demo" / "ragaudit.toml", env={}, flags={})
    # Of a run that is only measured, the means are wanted and no interval.
    quick = settings.model_copy(update={"audit": settings.audit.model_copy(update={"resamples": 100})})
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        before = audited(EXAMPLES / "demo", settings, work / "before.audit")
        again = audited(example.run(work / "again"), quick, work / "again.audit")
        assert [r.metrics for r in again.results] == [r.metrics for r in before.results], "the demo is not up to date"
        bench = recorded(settings, before)
        proposed = [
            (e.variable.removeprefix("pipeline."), e.after, "all")
            for e in before.summary.experiments
            if e.basis is Basis.REPLAYED
        ]
        for n, (variable, value, scope) in enumerate((*CHANGES, *proposed)):
            change = with_value(variable, value)
            if scope == "run":
                change = at_run_level(variable, settings.pipeline, change)
            effect = bench.effect(change, f"{variable}={value}")
            changed = quick.model_copy(update={"pipeline": with_value(variable, value)(settings.pipeline)})
            folder = example.run(work / f"run{n}", variable, value, everywhere=scope == "all")
            after = audited(folder, changed, work / f"{n}.audit")
            mark = "next" if n >= len(CHANGES) else scope
            rows.append(row(f"{variable} = {_shown(value)} ({mark})", effect, bench, before, after))
    print_table(
        f"Recall@K of {len(before.results)} queries, predicted from the traces and measured by running again "
        f"(now {before.summary.metrics['recall@k'].mean:.4f}; {bench.excluded} traces cannot be replayed)",
        HEADER,
        rows,
    )
    print(CAPTION)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{arm} {weight:g}" for arm, weight in value.items())
    if isinstance(value, list):
        return " ".join(f"{v['on']}>={v['value']}" if isinstance(v, dict) else str(v) for v in value) or "none"
    return str(value) or "off"


if __name__ == "__main__":
    main()
