"""The experiments of a run: its queries on the bench, its levers ranked."""

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice

from ragaudit.audit.batch import Surroundings
from ragaudit.audit.judging import complete
from ragaudit.config import AclSettings, AuditSettings, JudgeSettings, Settings
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import gather
from ragaudit.experiments.bench import LIMIT, Bench
from ragaudit.experiments.propose import propose
from ragaudit.experiments.replay import ChunkTable
from ragaudit.model.experiment import Experiment
from ragaudit.model.judgement import Judgement
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import Estimate, QueryResult, Summary
from ragaudit.model.trace import Trace
from ragaudit.store import AuditReader
from ragaudit.store.filters import EVERYTHING, Filter


def experiments_of(
    traces: Iterable[Trace],
    results: Callable[[], Iterable[QueryResult]],
    around: Surroundings,
    run: Mapping[str, Estimate],
    judgements: Iterable[Judgement] = (),
) -> tuple[Experiment, ...]:
    """What could be changed next, best first. Only the first queries of a large run are replayed.

    Args:
        traces: The run's traces, in order.
        results: Reads the run's results from the start; called twice, so that they need not be held.
        around: What the run was diagnosed with.
        run: The run's metrics at its real K.
        judgements: What the judge said, whose evidence is gold where there are no labels.
    """
    bench = bench_of(traces, results, around, run, judgements)
    return propose(results(), bench, around.settings.pipeline, recall=run.get("recall@k"))


def proposed_again(
    reader: AuditReader,
    *,
    where: Filter = EVERYTHING,
    refuted: Collection[tuple[str, str]] = (),
    summary: Summary | None = None,
) -> tuple[Experiment, ...]:
    """The same from an audit file, for some of its failing queries, or without what was tried and refuted.

    Recovered and lost are counted over the whole run all the same.

    Args:
        reader: The open audit.
        where: Only the failing queries among these.
        refuted: Variables and values that are ranked out.
        summary: With figures that are newer than those in the file; None = the file's.

    Raises:
        AuditFileError: The file is damaged.
    """
    summary = summary or reader.summary()
    around = _around(reader, summary)
    bench = bench_of(reader.iter_traces(), reader.iter_results, around, summary.metrics, reader.iter_judgements())
    wanted = None if where is EVERYTHING else {*reader.ids(where)}
    asked = (r for r in reader.iter_results(passed=False) if wanted is None or r.diagnosis.query_id in wanted)
    return propose(asked, bench, around.settings.pipeline, refuted=refuted, recall=summary.metrics.get("recall@k"))


def bench_of(
    traces: Iterable[Trace],
    results: Callable[[], Iterable[QueryResult]],
    around: Surroundings,
    run: Mapping[str, Estimate],
    judgements: Iterable[Judgement] = (),
) -> Bench:
    """The first queries of a run, ready to be replayed; arguments as for `experiments_of`."""
    settings = around.settings
    bench = Bench(
        ChunkTable.of(around.identities.inventory),
        run,
        gain=settings.audit.gain,
        seed=settings.audit.seed,
        resamples=settings.audit.resamples,
    )
    first = {trace.query_id: trace for trace in islice(traces, LIMIT)}
    said = {judgement.query_id: judgement for judgement in judgements if judgement.query_id in first}
    diagnoses = {}
    for result in results():
        if result.diagnosis.query_id in first:
            diagnoses[result.diagnosis.query_id] = result.diagnosis
        if len(diagnoses) == len(first):
            break
    for query_id, trace in first.items():
        if query_id not in diagnoses:
            continue
        if query_id in said:
            inventory = around.identities.inventory
            trace = complete(trace, said[query_id], settings.judge or JudgeSettings(), inventory).trace
        pipeline = settings.pipeline.with_overrides(trace.config)
        evidence = gather(trace, around.identities, around.acl)
        bench.add(evidence, diagnoses[query_id], pipeline, around.identities, around.acl)
    return bench


def _around(reader: AuditReader, summary: Summary) -> Surroundings:
    """What the run was diagnosed with, as far as replays need it."""
    run = summary.run
    acl = AclSettings.model_validate({"rule": run.acl_rule, "everyone": run.acl_everyone})
    how = {"gain": run.gain, "seed": run.seed, "resamples": run.resamples, "scope": run.scope}
    cuts = {} if summary.judge is None else {"cuts": summary.judge.cuts}
    settings = Settings(
        pipeline=Pipeline.model_validate(run.pipeline),
        acl=acl,
        audit=AuditSettings.model_validate(how),
        judge=JudgeSettings.model_validate(cuts),
    )
    return Surroundings(settings, Identities.of(reader.inventory()), acl, RunFacts())
