"""The drill: every fault on every healthy query it applies to, each diagnosed like a trace of its own."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ragaudit.audit.batch import Surroundings, diagnose_batch
from ragaudit.config import AclSettings, Settings
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.drill import faults as _faults  # noqa: F401  registers every fault
from ragaudit.drill.case import Broken, Case, Store, victims_of
from ragaudit.drill.gating import gates_fired
from ragaudit.drill.neighbourhood import neighbourhood
from ragaudit.drill.outcome import DrillReport, FaultResult, Misnamed
from ragaudit.drill.registry import FAULTS, Fault
from ragaudit.drill.relist import relistable
from ragaudit.errors import ConfigError, InputError
from ragaudit.evidence.identity import Identities
from ragaudit.model.diagnosis import Diagnosis, Outcome, Stage
from ragaudit.model.result import QueryResult
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import Bundle, check_consistency, read_traces

_BATCH = 500

Progress = Callable[[int], None]
"""Told how many faults have been injected."""


@dataclass(frozen=True)
class _Healthy:
    """A query that passes, as it was measured."""

    case: Case
    result: QueryResult
    relistable: bool


def run(
    bundle: Bundle,
    *,
    names: Sequence[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    progress: Progress = lambda done: None,
) -> DrillReport:
    """Break the bundle's healthy queries on purpose and see what the diagnosis makes of it.

    Args:
        bundle: The open bundle.
        names: The faults to inject; None = all.
        seed: Of the choices that a fault makes (which foreign chunk, which order).
        limit: Break at most this many healthy queries, in the order of the file.
        progress: Told now and then how many faults have been injected.

    Raises:
        ConfigError: A name is not that of a fault.
        InputError: No trace can be used, or no query of the run is healthy.
    """
    chosen = [_named(name) for name in names] if names else list(FAULTS.values())
    identities = Identities.of(bundle.inventory)
    preflight = Preflight(identities, bundle.settings)
    for trace in read_traces(bundle):
        preflight.watch(trace)
    check_consistency(bundle)
    around = Surroundings(bundle.settings, identities, bundle.settings.acl or AclSettings(), preflight.facts())
    store = Store.of(identities, around.acl, around.run)
    healthy = list(islice(_healthy(read_traces(bundle), around, store, seed), limit))
    if not healthy:
        raise InputError(
            f"{bundle.name}: no query passes with its evidence delivered, so there is nothing healthy to break. "
            "Judge the answers, or pass --scope retrieval."
        )
    done = 0
    results: list[FaultResult] = []
    tables: dict[bool, dict[str, dict[str, int]]] = {False: {}, True: {}}
    for fault, blind in _variants(chosen):
        struck = _struck(fault, blind, healthy, around)
        results.append(_judged(fault, blind, healthy, struck))
        for result in struck.values():
            row = tables[blind].setdefault(fault.stage.value, {})
            found = result.diagnosis.stage.value
            row[found] = row.get(found, 0) + 1
        done += len(struck)
        progress(done)
    return DrillReport(
        name=bundle.name,
        traces=preflight.n,
        healthy=len(healthy),
        seed=seed,
        recall=_mean([one.result for one in healthy]),
        results=tuple(results),
        table=tables[False],
        blind=tables[True],
    )


def _named(name: str) -> Fault:
    if name not in FAULTS:
        raise ConfigError(f"--fault {name}: there is no such fault. `ragaudit drill --list` names them.")
    return FAULTS[name]


def _variants(chosen: Iterable[Fault]) -> Iterator[tuple[Fault, bool]]:
    for fault in chosen:
        yield fault, False
        if fault.hide is not None:
            yield fault, True


def _healthy(traces: Iterable[Trace], around: Surroundings, store: Store, seed: int) -> Iterator[_Healthy]:
    """The queries that pass, whose evidence was delivered and found by an arm."""
    stream = iter(traces)
    while batch := list(islice(stream, _BATCH)):
        for trace, result in zip(batch, diagnose_batch(batch, around, {}), strict=True):
            diagnosis = result.diagnosis
            if diagnosis.outcome is not Outcome.PASS or not diagnosis.delivered:
                continue
            victims = victims_of(trace, diagnosis)
            pipeline = around.settings.pipeline.with_overrides(trace.config)
            case = Case(trace.model_copy(update={"config": None}), pipeline, store, victims, str(seed))
            if victims and all(f.in_any_arm for f in case.gold):
                yield _Healthy(case, result, relistable(case))


def _struck(fault: Fault, blind: bool, healthy: Sequence[_Healthy], around: Surroundings) -> dict[str, QueryResult]:
    """What one fault makes of every healthy query that it applies to, by query id."""
    found: dict[str, QueryResult] = {}
    for one in healthy:
        broken = _inject(fault, one)
        if broken is not None and blind and fault.hide is not None:
            broken = fault.hide(broken)
        if broken is not None:
            found[broken.trace.query_id] = _diagnosed(broken, one.case.store, around)
    return found


def _judged(fault: Fault, blind: bool, healthy: Sequence[_Healthy], struck: Mapping[str, QueryResult]) -> FaultResult:
    """How the diagnosis fared against the truth, and which gates the struck run sets off."""
    verdicts = [result.diagnosis for result in struck.values()]
    named = [d for d in verdicts if d.outcome is Outcome.FAIL and d.stage is fault.stage]
    left_open = [d for d in verdicts if d.stage is Stage.UNDETERMINED and fault.stage in d.could_be]
    wrong = [d for d in verdicts if d not in named and d not in left_open]
    before = [one.result for one in healthy]
    after = [struck.get(result.diagnosis.query_id, result) for result in before]
    return FaultResult(
        fault=fault.name,
        stage=fault.stage,
        summary=fault.summary,
        hides=fault.hides if blind else "",
        applied=len(verdicts),
        named=len(named),
        open=len(left_open),
        causes=dict(Counter(d.causes[0] if d.causes else "leak" for d in named)),
        misnamed=tuple(_misnamed(d) for d in wrong),
        log=tuple(dict.fromkeys(field for d in left_open for field in d.log)),
        recall=_mean(after),
        leaks=sum(len(d.leaks) for d in verdicts),
        gates=gates_fired(before, after) if verdicts else (),
    )


def _inject(fault: Fault, one: _Healthy) -> Broken | None:
    """The broken query; None when the fault does not apply, or would lose nothing."""
    case = Case(one.case.trace, one.case.pipeline, one.case.store, one.case.victims, f"{one.case.seed}/{fault.name}")
    if not one.relistable and not fault.delivers:
        return None
    broken = fault.apply(case)
    if broken is None or fault.delivers:
        return broken
    return None if case.delivered(broken.trace) else replace(broken, trace=case.before_too(broken.trace))


def _diagnosed(broken: Broken, store: Store, around: Surroundings) -> QueryResult:
    """The broken query's diagnosis, with no more of the inventory around it than bears on it."""
    inventory = neighbourhood(broken, store)
    settings: Settings = around.settings.model_copy(update={"pipeline": broken.pipeline})
    facts = replace(
        around, settings=settings, identities=Identities.of(inventory), run=_stamps(broken, around.run, store)
    )
    (result,) = diagnose_batch([broken.trace], facts, {})
    return result


def _stamps(broken: Broken, run_facts: RunFacts, store: Store) -> RunFacts:
    """The run's count of embedding stamps, with the changed rows'."""
    stamps = dict(run_facts.stamps)
    for chunk_id, row in broken.chunks.items():
        before = store.inventory.chunk(chunk_id)
        for chunk, step in ((before, -1), (row, 1)):
            if chunk is not None and chunk.embedding_model is not None:
                stamps[chunk.embedding_model] = stamps.get(chunk.embedding_model, 0) + step
    return RunFacts({model: n for model, n in stamps.items() if n > 0})


def _misnamed(diagnosis: Diagnosis) -> Misnamed:
    return Misnamed(
        query_id=diagnosis.query_id,
        outcome=diagnosis.outcome,
        stage=diagnosis.stage,
        could_be=diagnosis.could_be,
        causes=diagnosis.causes,
        evidence=diagnosis.evidence[0] if diagnosis.evidence else "",
    )


def _mean(results: Iterable[QueryResult]) -> float | None:
    known = [value for result in results if (value := result.metrics["recall@k"]) is not None]
    return sum(known) / len(known) if known else None
