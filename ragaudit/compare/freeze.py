"""From an audit file to a frozen run: what must be equal to compare, and what each query came to."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from ragaudit.errors import AuditFileError
from ragaudit.model.comparison import Baseline, FrozenAcl, FrozenJudge, FrozenQuery
from ragaudit.model.result import Estimate, QueryResult, Summary
from ragaudit.model.trace import Trace
from ragaudit.model.variables import flat
from ragaudit.store import AuditReader

JUDGE_OFF = "judge off"
EVERY = 200
"""Queries between two reports of progress."""

DECIMALS = 10
"""Of every value that is frozen: the last bits of a float differ between machines, and would fill a diff. A paired
comparison looks at one fewer (`metrics.paired.DECIMALS`), so that no tie is broken by this."""

Progress = Callable[[int], None]
"""Told how much is done."""


def silent(done: int) -> None:
    """No progress wanted."""


def freeze(reader: AuditReader, name: str | None = None, *, progress: Progress = silent) -> Baseline:
    """Everything of a run that a comparison needs, without any text.

    Args:
        reader: The open audit.
        name: What the baseline is called; default: the run's name.
        progress: Told now and then how many queries are read. What it raises ends the reading.

    Raises:
        AuditFileError: Judging goes on, or was cut off.
    """
    summary = reader.summary()
    if summary.behind:
        raise AuditFileError(
            f"{reader.path}: its figures are older than its queries: judging goes on, or was cut off. "
            f"Run `ragaudit judge run {reader.path.name}`, or open it with `ragaudit review`."
        )
    run = summary.run
    queries = sorted(_read(reader, progress), key=lambda query: query.query_id)
    return Baseline.model_validate(
        {
            "name": name or run.name,
            "run": run.name,
            "fingerprint": run.fingerprint,
            "ragaudit": run.ragaudit,
            "pipeline": run.pipeline,
            "k_final": run.k_final,
            "acl": FrozenAcl(rule=run.acl_rule, everyone=tuple(sorted(run.acl_everyone))),
            "gold_version": gold_version(queries),
            "judge": _judge(summary),
            "scope": run.scope,
            "gain": run.gain,
            "seed": run.seed,
            "resamples": run.resamples,
            "inputs": {file: entry.sha256 for file, entry in run.inputs.items()},
            "outcomes": summary.outcomes,
            "stages": summary.stages,
            "metrics": {metric: _rounded(estimate) for metric, estimate in summary.metrics.items() if estimate.n},
            "queries": queries,
        }
    )


def gold_version(queries: Iterable[FrozenQuery]) -> str:
    """Names the labels of a run: query ids with their gold ids, grades and mode."""
    return _digest(sorted((query.query_id, query.gold) for query in queries))


def gold_digest(trace: Trace) -> str:
    """Names the labels of one query: gold ids with grades, which of them are needed, which are doubted."""
    return _digest(
        {
            "gold": sorted((gold.id, gold.grade, bool(gold.suspect)) for gold in trace.gold),
            "groups": sorted(sorted(group) for group in trace.gold_groups or ()),
            "mode": trace.gold_mode.value,
            "labelled": trace.gold_labelled,
            "answerable": trace.answerable,
        }
    )


def _read(reader: AuditReader, progress: Progress) -> Iterator[FrozenQuery]:
    for n, result in enumerate(reader.iter_results(), 1):
        yield _frozen(result, reader)
        if n % EVERY == 0:
            progress(n)


def _frozen(result: QueryResult, reader: AuditReader) -> FrozenQuery:
    diagnosis = result.diagnosis
    trace = reader.trace(diagnosis.query_id)
    if trace is None:
        raise AuditFileError(f"{reader.path}: damaged: a result has no trace. Run `ragaudit audit BUNDLE` again.")
    barred = sorted(gold.id for gold in diagnosis.gold if gold.eligible is False)
    return FrozenQuery(
        query_id=diagnosis.query_id,
        outcome=diagnosis.outcome,
        stage=diagnosis.stage,
        delivered=diagnosis.delivered,
        k=result.k_final,
        gold=gold_digest(trace),
        access=_digest([None if trace.user_acl is None else sorted(trace.user_acl), barred]),
        metrics={metric: round(value, DECIMALS) for metric, value in result.metrics.items() if value is not None},
        undefined={metric: why for metric, why in result.undefined.items() if why != JUDGE_OFF},
        leaks=diagnosis.leaks,
        slices=result.slices,
        config=_departures(trace.config),
    )


def _rounded(estimate: Estimate) -> Estimate:
    figures = {name: getattr(estimate, name) for name in ("mean", "low", "high")}
    return estimate.model_copy(
        update={name: value if value is None else round(value, DECIMALS) for name, value in figures.items()}
    )


def _departures(config: Mapping[str, Any] | None) -> dict[str, Any]:
    return flat(json.loads(json.dumps(config or {}, default=str)))


def _judge(summary: Summary) -> FrozenJudge | None:
    note = summary.judge
    return None if note is None else FrozenJudge(model=note.model, mode=note.mode, prompts=note.prompts)


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "b2:" + blake2b(text.encode("ascii"), digest_size=6).hexdigest()
