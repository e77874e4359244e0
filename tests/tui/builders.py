"""Small audits built by hand, with whatever text a test wants in them."""

from pathlib import Path

from ragaudit.model.diagnosis import Checkpoint, Diagnosis, GoldDiagnosis, Outcome, Severity, Stage, State, Step
from ragaudit.model.inventory import Chunk, Inventory, Source
from ragaudit.model.result import AclNote, Canary, Leak, QueryResult, RunInfo, Summary
from ragaudit.model.trace import Answer, Gold, Hit, Trace
from ragaudit.store import AuditWriter

Rows = list[tuple[QueryResult, Trace]]


def step(checkpoint: str, state: str, rank: int | None = None, list_name: str | None = None) -> Step:
    return Step(checkpoint=Checkpoint(checkpoint), state=State(state), rank=rank, list=list_name)


def lost_at_pack(
    query_id: str = "q1",
    *,
    text: str = "refund window?",
    gold_id: str = "c9",
    span: str = "30 days",
    leaks: tuple[str, ...] = (),
    eligible: bool | None = None,
) -> tuple[QueryResult, Trace]:
    """A query whose gold chunk is 3rd in the arm, 2nd after fusion and not in the packed two."""
    journey = (
        step("registered", "present"),
        step("retrieved", "present", 3, "arm:dense"),
        step("fused", "present", 2, "fused"),
        step("packed", "absent", None, "final"),
    )
    gold = GoldDiagnosis(
        id=gold_id, outcome=Outcome.FAIL, stage=Stage.RERANK, journey=journey, eligible=eligible, causes=("top_n_cut",)
    )
    diagnosis = Diagnosis(
        query_id=query_id,
        outcome=Outcome.FAIL,
        stage=Stage.RERANK,
        causes=("top_n_cut",),
        evidence=(f"{gold_id}: rank 2 in fused, not in the final 2",),
        gold=(gold,),
        leaks=leaks,
        severity=Severity.LEAK if leaks else Severity.NORMAL,
        final_context_ids=("c1", "c4"),
    )
    trace = Trace(
        query_id=query_id,
        query_text=text,
        k_final=2,
        user_acl=("staff",),
        arms={"dense": (Hit("c1", score=0.9), Hit("c4", score=0.8), Hit(gold_id, score=0.7))},
        fused=(Hit("c1"), Hit(gold_id), Hit("c4")),
        final_context_ids=("c1", "c4"),
        gold=(Gold(id=gold_id, span=span),),
        answer=Answer(text="within 14 days"),
        reference="30 days",
    )
    return QueryResult(diagnosis=diagnosis, query_text=text, k_final=2, metrics={"recall@k": 0.0}), trace


def passed(query_id: str = "q2", text: str = "gift cards?") -> tuple[QueryResult, Trace]:
    diagnosis = Diagnosis(query_id=query_id, outcome=Outcome.PASS, final_context_ids=())
    return QueryResult(diagnosis=diagnosis, query_text=text, k_final=2, metrics={"recall@k": 1.0}), Trace(
        query_id=query_id, query_text=text, k_final=2
    )


def bare(query_id: str = "q3", text: str = "?") -> tuple[QueryResult, Trace]:
    """Nothing was logged but the query: no gold, no arms, no text, no answer."""
    diagnosis = Diagnosis(
        query_id=query_id, outcome=Outcome.UNDETERMINED, stage=Stage.UNDETERMINED, could_be=(Stage.FUSE, Stage.RERANK)
    )
    return QueryResult(diagnosis=diagnosis, query_text=text, k_final=2, metrics={}), Trace(
        query_id=query_id, query_text=text, k_final=2
    )


def inventory(texts: dict[str, str], acl: dict[str, tuple[str, ...]] | None = None) -> Inventory:
    """Chunks with texts; `acl` by chunk id, each chunk being its own source then."""
    acl = acl or {}
    chunks = {i: Chunk(chunk_id=i, source_id=f"s-{i}" if i in acl else None, text=text) for i, text in texts.items()}
    sources = {f"s-{i}": Source(source_id=f"s-{i}", acl=principals) for i, principals in acl.items()}
    return Inventory.of(sources, chunks, None)


def write(path: Path, rows: Rows, held: Inventory | None = None, **fields: object) -> Path:
    """An audit file of these rows."""
    outcomes: dict[str, int] = {}
    for result, _ in rows:
        outcome = result.diagnosis.outcome.value
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    given: dict[str, object] = {
        "run": RunInfo(
            name="run", traces=len(rows), k_final=2, fingerprint="b2:1", pipeline={}, inputs={}, ragaudit="0"
        ),
        "preflight": (),
        "metrics": {},
        "at": {},
        "slices": (),
        "outcomes": outcomes,
        "stages": {},
        "undetermined": {},
        "delivered_unjudged": 0,
        "patterns": (),
        "acl": AclNote(
            leaks=tuple(
                Leak(query_id=result.diagnosis.query_id, chunk_id=leak)
                for result, _ in rows
                for leak in result.diagnosis.leaks
            )
        ),
        "not_retrieval": (),
        "canary": Canary(),
    }
    with AuditWriter(path, key="k") as writer:
        if held is not None:
            writer.add_inventory(held)
        writer.add(rows)
        writer.finish(Summary(**(given | fields)))
    return path
