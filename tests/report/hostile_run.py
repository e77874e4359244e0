"""A run in which everything that comes from outside is markup: ids, texts, causes, settings, file names, slices."""

from report_builders import HOSTILE, failing, gold, leaking, result, steps, summary, undecided

from ragaudit.model.comparison import Comparison, Difference, MetricChange, Paired, QueryChange, Transition, Verdict
from ragaudit.model.comparison import Side as Run
from ragaudit.model.diagnosis import Checkpoint, Outcome, Stage, State, Step
from ragaudit.model.experiment import Basis, Experiment
from ragaudit.model.judgement import Agreement, Calibration, Statistic
from ragaudit.model.result import (
    AclNote,
    Canary,
    Disagreement,
    Estimate,
    Finding,
    InputFile,
    JudgeNote,
    Leak,
    Level,
    Pattern,
    SliceResult,
)
from ragaudit.model.trace import Hit, Trace
from ragaudit.report.before import Against
from ragaudit.report.view import Beside

BAD = (
    HOSTILE + "\"'></title></desc></svg></style></code><img src=x onerror=alert(1)><svg onload=alert(1)>"
    "<a href=javascript:alert(1)>&#x3c;script></textarea><!--"
)

JOURNEY = (
    *steps("eligible=yes parsed=? indexed=yes"),
    Step(checkpoint=Checkpoint.RETRIEVED, state=State.PRESENT, rank=1, score=0.5, list=f"arm:{BAD}", note=BAD),
    Step(checkpoint=Checkpoint.FUSED, state=State.ABSENT, list=BAD),
    Step(checkpoint=Checkpoint.PACKED, state=State.ABSENT, list="final_context_ids"),
)


def bad_summary():
    """Every field that a file, a setting or a person may have filled."""
    run = summary().run.model_copy(
        update={
            "name": BAD,
            "pipeline": {BAD: BAD, "```": "\n```\n# x"},
            "inputs": {BAD: InputFile(sha256=BAD, rows=1)},
            "fingerprint": BAD,
            "acl_rule": BAD,
            "acl_everyone": (BAD,),
            "scope": BAD,
            "gain": BAD,
            "ragaudit": BAD,
        }
    )
    estimate = summary().metrics["recall@k"]
    return summary(
        run=run,
        preflight=(Finding(check=BAD, severity=Level.WARN, message=BAD, fix=BAD),),
        metrics=summary().metrics | {BAD: estimate},
        at={BAD: {"recall@k": estimate, BAD: estimate}},
        slices=(SliceResult(slice=BAD, value=BAD, n=1, metrics={"recall@k": estimate}, stages={}),),
        undetermined={BAD: 1},
        patterns=(Pattern(pattern=BAD, message=BAD),),
        acl=AclNote(leaks=(Leak(query_id=BAD, chunk_id=BAD),)),
        not_retrieval=(BAD,),
        canary=Canary(source_share={BAD: 1.0}),
        set_aside=(BAD,),
        judge=JudgeNote(
            model=BAD,
            mode=BAD,
            prompts={BAD: 1},
            states={BAD: {}},
            failures={BAD: 1},
            quadrants={BAD: 1, "good context, faithful": 1},
            disagreements=(Disagreement(query_id=BAD, labels=BAD, judge=BAD),),
            calibration=BAD,
            cuts={BAD: 0.5},
        ),
        experiments=tuple(
            Experiment.model_validate(
                {
                    "lever": BAD,
                    "variable": BAD,
                    "from": BAD,
                    "to": BAD,
                    "why": BAD,
                    "stage": Stage.RERANK,
                    "basis": Basis.NEEDS_A_RUN,
                    "departing": (BAD,),
                    "frozen": (BAD,),
                    "watch": (BAD,),
                    "authorisation": BAD,
                    "lost_to": BAD,
                }
            )
            for _ in range(2)
        ),
    )


def bad_results():
    """A leak, a failure with a journey, an undecided query and a doubtful label."""
    known = gold(BAD, grade=2).model_copy(update={"journey": JOURNEY})
    return [
        leaking(BAD, BAD, text=BAD),
        failing(BAD, text=BAD, evidence=(BAD,), causes=(BAD, "top_n_cut"), gold=(known,), final_context_ids=(BAD,)),
        undecided(BAD, text=BAD, log=(BAD,)),
        result(BAD, Outcome.LABEL_ISSUE, Stage.NONE),
    ]


def bad_trace(query_id):
    """Scores of an arm and a model with bad names."""
    hits = (Hit(id=BAD, score=0.5), Hit(id="c2", score=0.25))
    return Trace(query_id=query_id, query_text=BAD, k_final=8, arms={BAD: hits}, embedding_model=BAD)


def bad_against():
    """A comparison with a run of the same kind."""
    side = Run(name=BAD, fingerprint=BAD, ragaudit=BAD, queries=1, k_final=8, leaking=0)
    change = QueryChange(query_id=BAD, before="pass", after="rerank", leaks=(BAD,))
    return Against(
        BAD,
        Comparison(
            base=side,
            candidate=side,
            pairs=1,
            variables=(Difference(name=BAD, before=BAD, after=BAD),),
            exceptions=(Difference(name=BAD, before=BAD, after=BAD, queries=(BAD,), allowed=True),),
            newly_leaking=(change,),
            metrics=(
                MetricChange(
                    metric=BAD,
                    paired=Paired(n=1, before=0.5, after=0.25, difference=-0.25, reason=BAD),
                    verdict=Verdict.SAME,
                    note=BAD,
                    undefined_before={BAD: 1},
                ),
            ),
            transitions=(Transition(before=BAD, after=BAD, n=1),),
            unchanged=0,
            newly_failing=(change,),
            newly_passing=(change,),
            warnings=(BAD,),
        ),
        {BAD: Estimate(mean=0.5, low=0.25, high=0.75, n=1)},
    )


def bad_calibration():
    """A labels file with a bad name and a bad subject."""
    known = Statistic(value=None, reason=BAD)
    agreement = Agreement(
        about=BAD,
        n=1,
        kappa=known,
        balanced_accuracy=known,
        tpr=known,
        tnr=known,
        pearson=known,
        spearman=known,
        auc=known,
        human_kappa=known,
    )
    return Calibration(labels=BAD, labels_sha256=BAD, n_labels=1, annotators=0, agreements=(agreement,))


def bad_beside():
    """All of it beside a report."""
    return Beside(traces=bad_trace, calibration=bad_calibration(), against=bad_against())
