"""The facts of an audit, one sentence each with an id: all that a written summary may rest on."""

from dataclasses import dataclass

from ragaudit.model.counting import queries
from ragaudit.model.result import Summary
from ragaudit.report import verdict as say
from ragaudit.report.figures import LABELS, in_order, interval, losses, number, without_stage
from ragaudit.report.judged import judge_sentences
from ragaudit.report.next_text import change_of, effect

METRICS_SAID = 8
EXPERIMENTS_SAID = 3


@dataclass(frozen=True)
class Fact:
    """One sentence about the run. `id` is `f1`, `f2`, ... in the order of weight."""

    id: str
    text: str


def facts_of(summary: Summary) -> tuple[Fact, ...]:
    """Leaks, verdict, losses, what is undecided, the next experiments, metrics, patterns, access, the judge.

    They name stages, variables, metrics and counts, and of the queries ids only: no text of a query or chunk.
    """
    said = [say.leak_sentence(summary), say.verdict(summary)]
    said += [f"{stage.label} lost the evidence of {queries(n)}." for stage, n in losses(summary) if n]
    said += [f"Undecided between {could_be}: {queries(n)}." for could_be, n in without_stage(summary)]
    said += [
        f"{'Next experiment' if rank == 1 else f'Experiment {rank}'}: change {change_of(one)}; {effect(one)}. {one.why}"
        for rank, one in enumerate(summary.experiments[:EXPERIMENTS_SAID], start=1)
    ]
    for name in in_order(summary.metrics)[:METRICS_SAID]:
        found = summary.metrics[name]
        if found.mean is not None:
            said.append(f"{LABELS.get(name, name)}: {number(found.mean)} {interval(found)}, {queries(found.n)}.")
    said += [pattern.message for pattern in summary.patterns]
    said += [say.generation_sentence(summary), *say.acl_sentences(summary), *judge_sentences(summary)]
    return tuple(Fact(f"f{n}", text) for n, text in enumerate(filter(None, said), start=1))
