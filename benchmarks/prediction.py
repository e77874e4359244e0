"""What the replay predicts of a change, against the example pipeline really run with that change.

Each change is predicted from the traces of `examples/demo` alone. Then the pipeline answers all queries again with
that one key changed, and the new run is audited. A change is tried of the run's value ("run": queries that depart from
it keep their own), or of every query's ("all"). What `ragaudit next` proposes and replays is tried too ("next").
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
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
from ragaudit.experiments.levers import lever
from ragaudit.experiments.propose import REPLAYED_SHARE
from ragaudit.experiments.variants import Variant, value_of, variants, with_value
from ragaudit.model.experiment import Basis, Change, Experiment
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
"""Key, value, and whether queries that depart from the run's value keep their own ("run") or not ("all")."""


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


def tried(run: Pipeline) -> Iterator[tuple[str, Variant]]:
    """The changes of the list above, with what they touch."""
    for variable, value, scope in CHANGES:
        now = value_of(run, variable)

        def touches(pipeline: Pipeline, variable: str = variable, now: Any = now, scope: str = scope) -> bool:
            return scope == "all" or value_of(pipeline, variable) == now

        yield scope, Variant(f"pipeline.{variable}", now, value, touches, with_value(variable, value))


def proposed(experiments: Sequence[Experiment], run: Pipeline, bench: Bench) -> Iterator[tuple[str, Variant]]:
    """What was proposed and replayed."""
    for each in experiments:
        if each.basis is Basis.REPLAYED:
            wanted = each.variable, each.before, each.after
            found = variants(lever(each.lever).variable, run, bench.pipelines)
            yield "next", next(one for one in found if (one.variable, one.before, one.after) == wanted)


def laid_over(variant: Variant, settings: dict[str, Any]) -> dict[str, Any]:
    """The tables that a change gives a query of this configuration; none when it does not touch it."""
    was = Pipeline.model_validate(settings)
    now = variant.change(was)
    if was == now:
        return {}
    before, after = (each.model_dump(mode="json", exclude_unset=True) for each in (was, now))
    return {name: table for name, table in after.items() if table != before.get(name)}


def over_queries(run: Audited, query_ids: set[str]) -> float:
    """Mean recall over these queries, of those where it is defined."""
    found = [value for query_id, value in run.recalls.items() if query_id in query_ids]
    return sum(found) / len(found)


def row(name: str, effect: Effect, bench: Bench, before: Audited, after: Audited) -> Row:
    told = {each.trace.query_id for each in bench.rows} - set(effect.unknown)
    kept, lost = (after.delivered - before.delivered) & told, (before.delivered - after.delivered) & told
    other = sorted((set(effect.kept) ^ (kept & failing(before))) | (set(effect.lost) ^ lost))
    whole = after.summary.metrics["recall@k"].mean
    assert whole is not None
    is_told = effect.replay.share >= REPLAYED_SHARE
    return (
        name,
        f"{effect.replay.queries}/{effect.replay.of}",
        *compared(effect.replay.changes["recall@k"], over_queries(after, told)),
        f"+{len(effect.kept)} -{len(effect.lost)}",
        " ".join(other) or "-",
        *(compared(effect.predicted["recall@k"], whole) if is_told else ("needs a run", "", f"{whole:.4f}", "")),
    )


def failing(run: Audited) -> set[str]:
    """The queries that fail without a leak: what a change may recover."""
    return {r.diagnosis.query_id for r in run.results if r.diagnosis.outcome == "fail" and not r.diagnosis.leaks}


def compared(predicted: Change, measured: float) -> tuple[str, str, str, str]:
    is_inside = predicted.low - 1e-9 <= measured <= predicted.high + 1e-9
    interval = f"{predicted.low:.4f}..{predicted.high:.4f}"
    return f"{predicted.after:.4f}", interval, f"{measured:.4f}", "yes" if is_inside else "NO"


HEADER = (
    "change", "replayed", "predicted", "95 %", "measured", "inside", "queries", "differ",
    "whole run", "95 %", "measured", "inside",
)  # fmt: skip
CAPTION = f"""\
replayed: queries whose lists tell what the change does, of those with gold and a context. predicted, measured: mean
recall over these queries; then the ones that gain and lose their evidence by the replay, and those on which the re-run
differs (q-042: with less beside it its answer comes out right, and the audit takes the evidence as read). whole run:
every query, those that nobody could replay among them; no number under {REPLAYED_SHARE:.0%} replayed."""


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
        changes = (*tried(settings.pipeline), *proposed(before.summary.experiments, settings.pipeline, bench))
        for n, (scope, variant) in enumerate(changes):
            variable = variant.variable.removeprefix("pipeline.")
            effect = bench.effect(variant.change, f"{variant.variable}={variant.after}")
            folder = example.run(work / f"run{n}", partial(laid_over, variant))
            changed = quick.model_copy(update={"pipeline": variant.change(settings.pipeline)})
            after = audited(folder, changed, work / f"{n}.audit")
            rows.append(row(f"{variable} = {_shown(variant.after)} ({scope})", effect, bench, before, after))
    print_table(
        f"Recall@K of {len(before.results)} queries, predicted from the traces and measured by running again "
        f"(now {before.summary.metrics['recall@k'].mean:.4f})",
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
