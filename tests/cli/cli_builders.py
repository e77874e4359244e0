"""A stand-in for the audit, and audit files to show: the commands are tested apart from what they call."""

import sys
from types import ModuleType

from ragaudit.model.diagnosis import Checkpoint, Diagnosis, GoldDiagnosis, Outcome, Severity, Stage, State, Step
from ragaudit.model.inventory import Chunk, Inventory
from ragaudit.model.result import (
    METRICS,
    AclNote,
    Canary,
    Estimate,
    Finding,
    Level,
    QueryResult,
    RunInfo,
    Summary,
)
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import read_traces
from ragaudit.store import AuditWriter

TRACE = (
    '{"query_id": "%s", "query_text": "refund window?", "k_final": 2, "final_context_ids": ["c1"], "gold_ids": ["c9"]}'
)
WARNING = Finding(check="few_queries", severity=Level.WARN, message="Fewer than 30 queries.", fix="Log more.")
BLOCK = Finding(check="acl_rules", severity=Level.BLOCK, message="No ACL rule.", fix="Write [acl].")


def bundle(folder, *query_ids):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "traces.jsonl").write_text("".join(TRACE % query_id + "\n" for query_id in query_ids or ("q1", "q2")))
    return folder


def result(query_id="q1", outcome=Outcome.FAIL, stage=Stage.RERANK, leaks=(), gold_id="c9"):
    journey = (
        Step(checkpoint=Checkpoint.RETRIEVED, state=State.PRESENT, rank=3, list="arm:dense"),
        Step(checkpoint=Checkpoint.PACKED, state=State.ABSENT, list="final_context_ids"),
    )
    return QueryResult(
        diagnosis=Diagnosis(
            query_id=query_id,
            outcome=outcome,
            stage=stage,
            evidence=(f"{gold_id}: rank 3 in dense, not packed",),
            gold=(GoldDiagnosis(id=gold_id, outcome=outcome, stage=stage, journey=journey),),
            final_context_ids=("c1", *leaks),
            severity=Severity.LEAK if leaks else Severity.NORMAL,
            leaks=leaks,
        ),
        query_text="refund window?",
        k_final=2,
        metrics=dict.fromkeys(METRICS, 0.0),
    )


def summary(n=2, preflight=(WARNING,), name="support-kb"):
    run = RunInfo(
        name=name, traces=n, k_final=2, fingerprint="b2:1", pipeline={"arms": ["dense"]}, inputs={}, ragaudit="0.1.0"
    )
    return Summary(
        run=run,
        preflight=preflight,
        metrics={"recall@k": Estimate(mean=0.0, low=0.0, high=0.0, n=n)},
        at={},
        slices=(),
        outcomes={"fail": n},
        stages={"rerank": n},
        undetermined={},
        delivered_unjudged=0,
        patterns=(),
        acl=AclNote(),
        not_retrieval=(),
        canary=Canary(),
    )


def write_audit(path, results=None, inventory=None, **fields):
    results = [result("q1"), result("q2")] if results is None else results
    traces = [Trace(query_id=r.diagnosis.query_id, query_text=r.query_text, k_final=2) for r in results]
    with AuditWriter(path, key="k") as writer:
        writer.add(list(zip(results, traces, strict=True)))
        chunks = {"c9": Chunk(chunk_id="c9", text="30 days"), "c7": Chunk(chunk_id="c7", text="salary bands")}
        writer.add_inventory(inventory or Inventory.of(None, chunks, None))
        writer.finish(summary(len(results), **fields))
    return path


def stand_in(monkeypatch, findings=(WARNING,), raising=None):
    """Put a small audit in the place of the real one; returns the calls it got."""
    calls = []

    def audit(opened, out, *, limit=None, judge=None, progress=None, saying=None):
        calls.append({"bundle": opened, "out": out, "limit": limit, "judge": judge})
        traces = list(read_traces(opened, limit=limit))
        results = [result(trace.query_id) for trace in traces]
        with AuditWriter(out, key="k") as writer:
            writer.add(list(zip(results, traces, strict=True)))
            progress(len(traces))
            if raising is not None:
                raise raising
            writer.finish(summary(len(traces), tuple(findings), opened.name))
        return summary(len(traces), tuple(findings), opened.name)

    def check(opened, *, progress=None):
        calls.append({"bundle": opened})
        progress(sum(1 for _ in read_traces(opened)))
        if raising is not None:
            raise raising
        return tuple(findings)

    module = ModuleType("ragaudit.audit.run")
    module.audit, module.check = audit, check
    monkeypatch.setitem(sys.modules, "ragaudit.audit.run", module)
    for name in ("audit", "check", "demo"):
        # Set first, so that the command bound to this stand-in is forgotten afterwards even if it was new here.
        monkeypatch.setitem(sys.modules, f"ragaudit.cli.commands.{name}", module)
        del sys.modules[f"ragaudit.cli.commands.{name}"]
    return calls
