"""The one orchestration: a bundle is watched once, diagnosed in batches, and written to one audit file."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ragaudit import __version__
from ragaudit.audit.batch import Surroundings, diagnose_batch
from ragaudit.audit.judge_tally import JudgeTally
from ragaudit.audit.judging import Judge
from ragaudit.audit.proposals import experiments_of
from ragaudit.audit.summing import figures
from ragaudit.audit.tally import Tally
from ragaudit.config import AclSettings, fingerprint
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.errors import InputError
from ragaudit.evidence.candidates import searchable
from ragaudit.evidence.feedback import UserFeedback
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.withheld import without_unreadable_text
from ragaudit.model.inventory import Inventory
from ragaudit.model.result import Finding, Level, RunInfo, Summary
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import Bundle, check_consistency, read_traces
from ragaudit.store.writer import AuditWriter

BATCH = 2_000
"""Traces held at once: enough for the kernels to be cheap, little enough for memory to stay flat."""

JUDGED_BATCH = 200
"""Traces judged at once: an interruption then loses little, and every reply is on the tape anyway."""

Progress = Callable[[int], None]
"""Told how many traces are done."""


def _silent(done: int) -> None:
    """No progress wanted."""


def _unsaid(note: str) -> None:
    """Nobody listens."""


def check(bundle: Bundle, *, limit: int | None = None, progress: Progress = _silent) -> tuple[Finding, ...]:
    """Preflight alone: what is missing or wrong in the run, what that makes undecidable, and how to log it.

    Raises:
        InputError: No trace can be used, or traces and qrels do not belong together.
    """
    return _watch(bundle, Identities.of(bundle.inventory), limit, progress)[1]


def audit(
    bundle: Bundle,
    out: Path,
    *,
    limit: int | None = None,
    judge: Judge | None = None,
    progress: Progress = _silent,
    watching: Progress = _silent,
    saying: Callable[[str], None] = _unsaid,
) -> Summary:
    """Audit a bundle and write the audit file. An interrupted audit goes on where it stopped.

    Args:
        bundle: The open bundle.
        out: Where the audit file goes.
        limit: Audit only the first traces.
        judge: Who is asked where labels and answer judgements are missing; None = nobody.
        progress: Told after each batch how many traces are done.
        watching: Told the same of the preflight that comes first. Either may raise, to stop.
        saying: Told what a person should know about files beside the audit.

    Raises:
        InputError: No trace can be used, the gold is of another run, or preflight blocks.
        AuditFileError: The audit file cannot be written.
        JudgeError: The judge cannot be asked at all, or a reply is not on the tape that must be.
    """
    identities = Identities.of(bundle.inventory)
    preflight, findings = _watch(bundle, identities, limit, watching)
    blocked = next((finding for finding in findings if finding.severity is Level.BLOCK), None)
    if blocked is not None:
        raise InputError(f"{bundle.name}: {blocked.message}. {blocked.fix}")
    settings = bundle.settings
    acl = settings.acl or AclSettings()
    print_of_run = fingerprint(settings.pipeline, preflight.k_final, settings.acl)
    around = Surroundings(settings, identities, acl, preflight.facts(), UserFeedback.of(bundle.feedback))
    tally, judge_tally = Tally(settings.audit), JudgeTally()
    with AuditWriter(out, key=_key(bundle, print_of_run, limit, judge)) as writer:
        if writer.put_by is not None:
            saying(
                f"{writer.partial} was an unfinished audit of other files, settings or version. It is kept as "
                f"{writer.put_by}: to finish it, give it its name back and run its command again."
            )
        writer.add_inventory(bundle.inventory)
        done = writer.done_ids()
        said = {judgement.query_id: judgement for judgement in writer.stored_judgements()}
        for result in writer.stored():
            tally.add(result)
            if result.diagnosis.query_id in said:
                judge_tally.add(result, said[result.diagnosis.query_id])
        progress(tally.n)
        search = searchable(bundle.inventory if judge else Inventory())
        todo = (trace for trace in read_traces(bundle, limit=limit) if trace.query_id not in done)
        for batch in _batches(todo, BATCH if judge is None else JUDGED_BATCH):
            judgements = {}
            if judge is not None:
                judgements = judge.ask(
                    batch, identities, acl, settings.pipeline, search, lambda n: progress(tally.n + n)
                )
            results = diagnose_batch(batch, around, judgements)
            shown = [
                without_unreadable_text(trace, identities, acl, settings.pipeline.with_overrides(trace.config))
                for trace in batch
            ]
            writer.add(list(zip(results, shown, strict=True)), judgements)
            for result in results:
                tally.add(result)
                if result.diagnosis.query_id in judgements:
                    judge_tally.add(result, judgements[result.diagnosis.query_id])
            progress(tally.n)
        summary = _summary(bundle, tally, preflight, findings, print_of_run)
        proposed = experiments_of(
            read_traces(bundle, limit=limit), writer.stored, around, summary.metrics, writer.stored_judgements()
        )
        summary = summary.model_copy(update={"experiments": proposed})
        if judge is not None:
            summary = summary.model_copy(
                update={
                    "cost": judge_tally.cost(),
                    "judge": judge_tally.note(judge.how.model, judge.how.mode, judge.cuts),
                }
            )
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
    return preflight, preflight.findings(bundle.problems)


def _batches(traces: Iterable[Trace], size: int) -> Iterator[list[Trace]]:
    stream = iter(traces)
    while batch := list(islice(stream, size)):
        yield batch


def _key(bundle: Bundle, print_of_run: str, limit: int | None, judge: Judge | None) -> str:
    asked = None if judge is None else judge.how
    parts: list[Any] = [__version__, print_of_run, bundle.settings.model_dump_json(exclude={"origin"}), limit, asked]
    return repr([*parts, *sorted(bundle.digests.items())])


def _summary(
    bundle: Bundle, tally: Tally, preflight: Preflight, findings: tuple[Finding, ...], print_of_run: str
) -> Summary:
    settings = bundle.settings
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
            acl_everyone=(settings.acl or AclSettings()).everyone,
            seed=settings.audit.seed,
            resamples=settings.audit.resamples,
            gain=settings.audit.gain,
        ),
        preflight=findings,
        **figures(tally),
        canary=preflight.canary(),
        set_aside=bundle.problems.texts(),
    )
