"""The one orchestration: a bundle is watched once, diagnosed in batches, and written to one audit file."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ragaudit import __version__
from ragaudit.audit.measure import FINAL, measure_batch, undefined_reasons
from ragaudit.audit.tally import Tally
from ragaudit.config import AclSettings, Settings, fingerprint
from ragaudit.diagnosis.patterns import patterns
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.diagnosis.procedure import diagnose
from ragaudit.errors import InputError
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence, gather
from ragaudit.evidence.sources import lexical_only
from ragaudit.evidence.withheld import without_unreadable_text
from ragaudit.model.diagnosis import STAGES, Diagnosis, Outcome
from ragaudit.model.result import METRICS, Finding, Level, QueryResult, RunInfo, Summary
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import Bundle, check_consistency, read_traces
from ragaudit.store.writer import AuditWriter

BATCH = 2_000
"""Traces held at once: enough for the kernels to be cheap, little enough for memory to stay flat."""

Progress = Callable[[int], None]
"""Told how many traces are done."""


def _silent(done: int) -> None:
    """No progress wanted."""


def check(bundle: Bundle, *, limit: int | None = None, progress: Progress = _silent) -> tuple[Finding, ...]:
    """Preflight alone: what is missing or wrong in the run, what that makes undecidable, and how to log it.

    Raises:
        InputError: No trace can be used, or traces and qrels do not belong together.
    """
    return _watch(bundle, Identities.of(bundle.inventory), limit, progress)[1]


def audit(bundle: Bundle, out: Path, *, limit: int | None = None, progress: Progress = _silent) -> Summary:
    """Audit a bundle and write the audit file. An interrupted audit goes on where it stopped.

    Args:
        bundle: The open bundle.
        out: Where the audit file goes.
        limit: Audit only the first traces.
        progress: Told after each batch how many traces are done.

    Raises:
        InputError: No trace can be used, the gold is of another run, or preflight blocks.
        AuditFileError: The audit file cannot be written.
    """
    identities = Identities.of(bundle.inventory)
    preflight, findings = _watch(bundle, identities, limit, _silent)
    blocked = next((finding for finding in findings if finding.severity is Level.BLOCK), None)
    if blocked is not None:
        raise InputError(f"{bundle.name}: {blocked.message}. {blocked.fix}")
    settings = bundle.settings
    acl = settings.acl or AclSettings()
    print_of_run = fingerprint(settings.pipeline, preflight.k_final, settings.acl)
    tally = Tally(settings.audit)
    with AuditWriter(out, key=_key(bundle, print_of_run, limit)) as writer:
        writer.add_inventory(bundle.inventory)
        done = writer.done_ids()
        for result in writer.stored():
            tally.add(result)
        progress(tally.n)
        for batch in _batches(trace for trace in read_traces(bundle, limit=limit) if trace.query_id not in done):
            results = _diagnose_batch(batch, settings, identities, acl, preflight)
            shown = [without_unreadable_text(trace, bundle.inventory, acl) for trace in batch]
            writer.add(list(zip(results, shown, strict=True)))
            for result in results:
                tally.add(result)
            progress(tally.n)
        summary = _summary(bundle, tally, preflight, findings, print_of_run)
        writer.finish(summary)
    return summary


def _watch(
    bundle: Bundle, identities: Identities, limit: int | None, progress: Progress
) -> tuple[Preflight, tuple[Finding, ...]]:
    preflight = Preflight(identities, bundle.settings)
    for trace in read_traces(bundle, limit=limit):
        preflight.watch(trace)
        if preflight.n % BATCH == 0:
            progress(preflight.n)
    check_consistency(bundle)
    progress(preflight.n)
    set_aside = sum(entry.set_aside for entry in bundle.inputs().values())
    return preflight, preflight.findings(set_aside)


def _batches(traces: Iterable[Trace]) -> Iterator[list[Trace]]:
    stream = iter(traces)
    while batch := list(islice(stream, BATCH)):
        yield batch


def _diagnose_batch(
    batch: list[Trace], settings: Settings, identities: Identities, acl: AclSettings, preflight: Preflight
) -> list[QueryResult]:
    run = preflight.facts()
    judged: list[tuple[QueryEvidence, Diagnosis]] = []
    for trace in batch:
        pipeline = settings.pipeline.with_overrides(trace.config)
        evidence = gather(trace, identities, acl)
        judged.append((evidence, diagnose(evidence, pipeline, identities, acl, run, scope=settings.audit.scope)))
    measured = measure_batch(judged, gain=settings.audit.gain)
    return [
        QueryResult(
            diagnosis=diagnosis,
            query_text=evidence.trace.query_text,
            k_final=evidence.trace.k_final,
            metrics=dict.fromkeys(METRICS, None) | values.get(FINAL, {}),
            undefined=undefined_reasons(evidence, diagnosis, values),
            at=values,
            slices=_slices(evidence.trace, diagnosis, settings),
        )
        for (evidence, diagnosis), values in zip(judged, measured, strict=True)
    ]


def _slices(trace: Trace, diagnosis: Diagnosis, settings: Settings) -> dict[str, str]:
    """The seed's three slices, then the log's own."""
    empty = trace.final_context_ids == () or (bool(trace.arms) and not any((trace.arms or {}).values()))
    found = {
        "zero_result": "yes" if empty else "no",
        "acl_excluded_gold": "yes" if any(g.outcome is Outcome.NOT_APPLICABLE for g in diagnosis.gold) else "no",
    }
    share = lexical_only(trace)
    if share is not None:
        found["lexical_only_top_k"] = share
    for name, value in (trace.slices or {}).items():
        if value is not None and (settings.slices is None or name in settings.slices):
            found[name] = str(value)
    return found


def _key(bundle: Bundle, print_of_run: str, limit: int | None) -> str:
    parts: list[Any] = [__version__, print_of_run, bundle.settings.model_dump_json(exclude={"origin"}), limit]
    return repr([*parts, *sorted(bundle.digests.items())])


def _summary(
    bundle: Bundle, tally: Tally, preflight: Preflight, findings: tuple[Finding, ...], print_of_run: str
) -> Summary:
    settings = bundle.settings
    metrics, at = tally.metrics(), tally.at()
    return Summary(
        run=RunInfo(
            name=bundle.name,
            traces=tally.n,
            k_final=preflight.k_final,
            fingerprint=print_of_run,
            pipeline=settings.pipeline.model_dump(mode="json", by_alias=True, exclude_unset=True),
            inputs=bundle.inputs(),
            ragaudit=__version__,
            scope=settings.audit.scope,
            acl_rule=(settings.acl or AclSettings()).rule,
            seed=settings.audit.seed,
            resamples=settings.audit.resamples,
            gain=settings.audit.gain,
        ),
        preflight=findings,
        metrics=metrics,
        at=at,
        slices=tally.slices(),
        outcomes={outcome.value: tally.outcomes[outcome] for outcome in Outcome},
        stages={stage.value: tally.stages[stage] for stage in STAGES},
        undetermined=dict(tally.undetermined),
        delivered_unjudged=tally.delivered_unjudged,
        patterns=patterns(metrics, at, tally.stages),
        acl=tally.acl(),
        not_retrieval=tally.not_retrieval(),
        canary=preflight.canary(),
        set_aside=bundle.problems.texts(),
    )
