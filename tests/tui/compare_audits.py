"""Pairs of small audits, A and B, and a way to drive the app with both of them and a journal."""

import asyncio
from pathlib import Path

from ragaudit.compare.baselines import write_baseline
from ragaudit.compare.freeze import freeze
from ragaudit.model.diagnosis import Diagnosis, GoldDiagnosis, Outcome, Stage
from ragaudit.model.result import QueryResult, RunInfo
from ragaudit.model.trace import Answer, Gold, Hit, Trace
from ragaudit.store import AuditReader
from ragaudit.tui.app import ReviewApp
from ragaudit.tui.comparing import Comparing
from ragaudit.tui.session import Session
from ragaudit.tui.trials import Trials
from tests.tui.builders import bare, step, write
from tests.tui.conftest import NOON, Steps

BASE = {"rerank": {"model": "r1", "top_n": 3}}
CHANGED = {"rerank": {"model": "r2", "top_n": 3}}
TWICE = {"rerank": {"model": "r2", "top_n": 9}}


def reranked(query_id, order, *, text="refund window?", gold="c9", answer=None, correct=None, leaks=(), gold_ids=None):
    """One query: the arm finds c1 c4 c9 c7, the reranker puts them into `order`, the first two are packed.

    It passes when its gold is packed, and else fails at the reranker.
    """
    packed = tuple(order[:2])
    arrived = gold in packed
    rank = order.index(gold) + 1 if gold in order else None
    journey = (
        step("registered", "present"),
        step("retrieved", "present", 3, "arm:dense"),
        step("reranked", "absent" if rank is None else "present", rank, "after_rerank"),
        step("packed", "present" if arrived else "absent", rank if arrived else None, "final"),
    )
    outcome = Outcome.PASS if arrived else Outcome.FAIL
    golds = tuple(
        GoldDiagnosis(id=i, outcome=outcome, stage=Stage.NONE if arrived else Stage.RERANK, journey=journey)
        for i in gold_ids or (gold,)
    )
    diagnosis = Diagnosis(
        query_id=query_id,
        outcome=Outcome.FAIL if leaks else outcome,
        stage=Stage.FILTER if leaks else Stage.NONE if arrived else Stage.RERANK,
        gold=golds,
        final_context_ids=packed,
        leaks=leaks,
        severity="leak" if leaks else "normal",
    )
    trace = Trace(
        query_id=query_id,
        query_text=text,
        k_final=2,
        user_acl=("staff",),
        arms={"dense": (Hit("c1", score=0.9), Hit("c4", score=0.8), Hit(gold, score=0.7), Hit("c7", score=0.6))},
        after_rerank=tuple(Hit(i, score=1 - n / 10) for n, i in enumerate(order)),
        final_context_ids=packed,
        gold=tuple(Gold(id=i) for i in gold_ids or (gold,)),
        answer=Answer(text=answer, correct=correct),
    )
    metrics = {"recall@k": float(arrived), "mrr@k": 1 / rank if rank is not None and arrived else 0.0}
    return QueryResult(diagnosis=diagnosis, query_text=text, k_final=2, metrics=metrics), trace


def info(pipeline=BASE, name="base", **fields):
    given = {"name": name, "traces": 4, "k_final": 2, "fingerprint": f"b2:{name}", "inputs": {}, "ragaudit": "0"}
    return RunInfo(**(given | {"pipeline": pipeline, "resamples": 200} | fields))


GOOD, BAD = ("c9", "c1", "c4", "c7"), ("c1", "c4", "c7", "c9")


def before(**fields):
    """A: q1, q2 and q5 pass, q3 fails."""
    return [
        reranked("q1", GOOD, answer="within 30 days", correct=True),
        reranked("q2", GOOD, text="gift cards?"),
        reranked("q3", BAD, text="who pays?"),
        bare("q4"),
        reranked("q5", ("c9", "c1", "c4", "c7"), text="same outcome?"),
    ]


def after():
    """B: q1 fails now, q3 passes now, q5 packs its gold second; q2 and q4 are as they were."""
    return [
        reranked("q1", ("c4", "c1", "c7", "c9"), answer="within 14 days", correct=False),
        reranked("q2", GOOD, text="gift cards?"),
        reranked("q3", GOOD, text="who pays?"),
        bare("q4"),
        reranked("q5", ("c1", "c9", "c4", "c7"), text="same outcome?"),
    ]


def pair(folder: Path, *, a=None, b=None, pipeline=CHANGED, **fields) -> tuple[Path, Path]:
    """Both audit files."""
    return (
        write(folder / "a.audit", before() if a is None else a, run=info()),
        write(folder / "b.audit", after() if b is None else b, run=info(pipeline, "cand"), **fields),
    )


def frozen(audit: Path, folder: Path) -> Path:
    """The same run as a baseline file."""
    path = folder / "frozen.json"
    with AuditReader.open(audit) as reader:
        write_baseline(freeze(reader), path)
    return path


def drive_both(
    audit: Path, against: Path | None, size: tuple[int, int], steps: Steps, *, first="compare", allow=(), **options
) -> None:
    """Open the app on B with A beside it, wait until they are compared, and run the steps."""
    folder = audit.parent

    async def body() -> None:
        with Session.open(audit, **options) as session:
            comparing = None
            if against is not None:
                comparing = Comparing.open(session, str(against), folder=folder / "baselines", allow=allow)

            def trials():
                return Trials(session, folder / "experiments.jsonl", clock=lambda: NOON)

            app = ReviewApp(session, comparing=comparing, make_trials=trials, first=first)
            async with app.run_test(size=size) as pilot:
                await settled(app, pilot)
                await steps(app, pilot)
            if comparing is not None:
                comparing.close()

    asyncio.run(body())


async def settled(app, pilot) -> None:
    """Wait until no thread works for the app any more."""
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()
