"""A small run by hand: six queries, one leak, one undecided, every section of a report filled."""

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import (
    Checkpoint,
    Diagnosis,
    Gap,
    GoldDiagnosis,
    Outcome,
    Severity,
    Stage,
    State,
    Step,
)
from ragaudit.model.result import (
    JUDGED,
    METRICS,
    AclNote,
    Canary,
    Estimate,
    Finding,
    InputFile,
    Leak,
    Level,
    Pattern,
    QueryResult,
    RunInfo,
    SliceResult,
    Summary,
)

CAUSES = {
    "top_n_cut": CauseInfo(
        "top_n_cut",
        Stage.RERANK,
        "The chunk was ranked below top_n.",
        "Raise pipeline.rerank.top_n; keep everything else.",
    )
}
STAGE_NOTES = {Stage.RERANK: "The evidence was a candidate and did not reach the prompt."}


def steps(text):
    """Steps from words: `retrieved:arm:dense=3`, `packed:final_context_ids=-`, `indexed=yes`, `parsed=?`."""
    found = []
    for word in text.split():
        where, value = word.split("=")
        checkpoint, _, listed = where.partition(":")
        found.append(
            Step(
                checkpoint=Checkpoint(checkpoint),
                state={"?": State.UNOBSERVED, "-": State.ABSENT}.get(value, State.PRESENT),
                rank=int(value) if value.isdigit() else None,
                list=listed or None,
            )
        )
    return tuple(found)


LOST = (
    "eligible=yes parsed=? indexed=yes retrieved:arm:dense=3 retrieved:arm:bm25=- fused:fused=2 "
    "reranked:after_rerank=14 packed:final_context_ids=- prompted=? answered=-"
)
KEPT = "eligible=yes retrieved:arm:dense=1 fused:fused=1 reranked:after_rerank=2 packed:final_context_ids=2"


def gold(gold_id="c9", outcome=Outcome.FAIL, stage=Stage.RERANK, journey=LOST, **fields):
    return GoldDiagnosis(id=gold_id, outcome=outcome, stage=stage, journey=steps(journey), **fields)


def result(query_id="q1", outcome=Outcome.FAIL, stage=Stage.RERANK, text="refund window?", metrics=None, **fields):
    defined = {name: 0.5 for name in METRICS} if metrics is None else metrics
    return QueryResult(
        diagnosis=Diagnosis(query_id=query_id, outcome=outcome, stage=stage, **fields),
        query_text=text,
        k_final=8,
        metrics={name: None for name in (*METRICS, *JUDGED)} | defined,
        undefined={name: "judge off" for name in JUDGED},
    )


def leaking(query_id="q0", chunk_id="hr#9", **fields):
    return result(
        query_id,
        stage=Stage.FILTER,
        severity=Severity.LEAK,
        gap=Gap.WRONG_TENANT_HITS,
        leaks=(chunk_id,),
        evidence=(f"{chunk_id}: its ACL is hr, the user holds support",),
        final_context_ids=(chunk_id,),
        **fields,
    )


def failing(query_id="q1", **fields):
    given = {
        "causes": ("top_n_cut",),
        "evidence": ("c9: rank 3 in dense, 2 in fused, 14 after rerank, top_n 8",),
        "gold": (gold(causes=("top_n_cut",), grade=2), gold("c4", Outcome.PASS, Stage.NONE, KEPT)),
        "delivered": False,
        "final_context_ids": ("c4", "c1"),
    }
    return result(query_id, **(given | fields))


def undecided(query_id="q2", **fields):
    given = {
        "could_be": (Stage.FUSE, Stage.FILTER),
        "log": ("after_filter", "fused"),
        "gold": (gold(outcome=Outcome.FAIL, stage=Stage.UNDETERMINED, journey="retrieved:arm:dense=2 packed:final=-"),),
        "final_context_ids": (),
    }
    return result(query_id, stage=Stage.UNDETERMINED, **(given | fields))


def estimate(mean=0.8125, low=0.78, high=0.84, n=5, undefined=1, **reasons):
    return Estimate(mean=mean, low=low, high=high, n=n, undefined=undefined, reasons=reasons or {"no_eligible_gold": 1})


def summary(**fields):
    run = RunInfo(
        name="support-kb",
        traces=6,
        k_final=8,
        fingerprint="b2:2f9c41",
        pipeline={"arms": ["dense", "bm25"], "rerank": {"top_n": 8}},
        inputs={"traces.jsonl": InputFile(sha256="ab12", rows=7, set_aside=1)},
        ragaudit="0.1.0",
        seed=7,
    )
    given = {
        "run": run,
        "preflight": (
            Finding(check="few_queries", severity=Level.WARN, message="6 queries, fewer than 30.", fix="Log more."),
            Finding(check="acl_rules", severity=Level.BLOCK, message="No ACL rule is written.", fix="Write [acl]."),
        ),
        "metrics": {
            "mrr@k": estimate(0.5, 0.25, 0.75),
            "recall@k": estimate(),
            "faithfulness": Estimate(mean=None, low=None, high=None, n=0, undefined=6, reasons={"judge_off": 6}),
        },
        "at": {
            "arm:dense": {"recall@k": estimate(1.0, 1.0, 1.0)},
            "final": {"recall@k": estimate()},
        },
        "slices": (
            SliceResult(
                slice="language",
                value="de",
                n=2,
                metrics={"recall@k": estimate(n=2, undefined=0)},
                stages={"rerank": 1},
            ),
        ),
        "outcomes": {"pass": 1, "fail": 3, "undetermined": 1, "label_issue": 1},
        "stages": {"filter": 1, "rerank": 1},
        "undetermined": {"fuse|filter": 2},
        "delivered_unjudged": 1,
        "patterns": (Pattern(pattern="recall_down", message="Recall falls between dense and final."),),
        "acl": AclNote(
            excluded_gold=1, queries_without_eligible_gold=1, leaks=(Leak(query_id="q0", chunk_id="hr#9"),), unknown=2
        ),
        "not_retrieval": ("q5",),
        "canary": Canary(source_share={"dense": 0.75, "both": 0.25}),
        "set_aside": ("traces.jsonl:7: no query_id. Log it.",),
    }
    return Summary(**(given | fields))


def quiet_summary(**fields):
    """A run in which nothing is wrong."""
    given = {
        "preflight": (),
        "outcomes": {"pass": 6},
        "stages": {},
        "undetermined": {},
        "delivered_unjudged": 0,
        "patterns": (),
        "acl": AclNote(),
        "not_retrieval": (),
        "set_aside": (),
        "slices": (),
        "at": {},
    }
    return summary(**(given | fields))


RESULTS = (
    leaking(),
    failing(),
    undecided(),
    result("q4", Outcome.LABEL_ISSUE, Stage.NONE),
)

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>|`whoami`\u202e[click](javascript:x)\n# heading\n| a | **b** "
    "\u2028\x9b31m{{ 7*7 }}{% raw %}"
)
