"""The experiments of a run: its queries on the bench, its levers ranked."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from ragaudit.audit.batch import Surroundings
from ragaudit.evidence.journey import gather
from ragaudit.experiments.bench import LIMIT, Bench
from ragaudit.experiments.propose import propose
from ragaudit.experiments.replay import ChunkTable
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import Estimate, QueryResult
from ragaudit.model.trace import Trace


def experiments_of(
    traces: Iterable[Trace],
    results: Callable[[], Iterable[QueryResult]],
    around: Surroundings,
    run: Mapping[str, Estimate],
) -> tuple[Experiment, ...]:
    """What could be changed next, best first. Only the first queries of a large run are replayed.

    Args:
        traces: The run's traces, in order.
        results: Reads the run's results from the start; called twice, so that they need not be held.
        around: What the run was diagnosed with.
        run: The run's metrics at its real K.
    """
    bench = bench_of(traces, results, around, run)
    return propose(results(), bench, around.settings.pipeline, recall=run.get("recall@k"))


def bench_of(
    traces: Iterable[Trace],
    results: Callable[[], Iterable[QueryResult]],
    around: Surroundings,
    run: Mapping[str, Estimate],
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
    kept = {result.diagnosis.query_id: result for result in islice(results(), LIMIT)}
    for trace in islice(traces, LIMIT):
        result = kept.get(trace.query_id)
        if result is not None:
            pipeline = settings.pipeline.with_overrides(trace.config)
            bench.add(gather(trace, around.identities, around.acl), result.diagnosis, pipeline, around.identities)
    return bench
