import pytest
from report_builders import CAUSES, RESULTS, STAGE_NOTES, summary

from ragaudit.model.judgement import Agreement, Calibration, Statistic
from ragaudit.model.result import Cost, JudgeNote
from ragaudit.report.html import html
from ragaudit.report.markdown import markdown
from ragaudit.report.method import agreement_rows, formula_rows, method_sentences
from ragaudit.report.view import Beside

NOTE = JudgeNote(
    model="openai/judge-1",
    mode="per_claim",
    prompts={"claims": 1, "relevance": 3},
    samples=6,
    cuts={"context_recall": 0.5, "faithfulness": 0.7},
)
JUDGED = summary(judge=NOTE, cost=Cost(judge_calls=12, from_tape=10, input_tokens=2_000, output_tokens=300, usd=0.05))


def figure(value):
    return Statistic(value=value, low=value - 0.1, high=value + 0.1, n=40)


def calibration():
    known = figure(0.75)
    agreement = Agreement(
        about="faithfulness",
        n=40,
        kappa=figure(0.5),
        balanced_accuracy=known,
        tpr=known,
        tnr=known,
        pearson=known,
        spearman=known,
        auc=known,
        human_kappa=figure(0.625),
    )
    unused = agreement.model_copy(update={"about": "abstained", "n": 0})
    return Calibration(
        labels="labels.jsonl", labels_sha256="ab12", n_labels=40, annotators=2, agreements=(agreement, unused)
    )


def test_a_judged_run_names_model_prompts_and_cuts():
    said = method_sentences(JUDGED, None)
    assert (
        "Judge: openai/judge-1, per claim mode; prompts claims v1, relevance v3; "
        "cuts of the 2x2: Context recall 0.5, Faithfulness 0.7." in said
    )
    assert "Agreement of the judge with people: not calibrated." in said


def test_a_calibrated_judge_comes_with_its_agreement_and_intervals():
    said = method_sentences(JUDGED, calibration())
    assert "Agreement of the judge with people: 40 labels by 2 people in labels.jsonl (ab12)." in said
    assert agreement_rows(calibration()) == [
        {
            "about": "Faithfulness",
            "n": 40,
            "balanced_accuracy": "0.750 [0.650, 0.850]",
            "kappa": "0.500 [0.400, 0.600]",
            "people": "0.625 [0.525, 0.725]",
        }
    ]


def test_without_a_judge_it_says_so():
    assert "Judge: off. Every number comes from the logs alone." in method_sentences(summary(), None)
    assert agreement_rows(None) == []


def test_formulas_are_those_of_the_metrics_that_have_a_mean():
    assert [row["label"] for row in formula_rows(summary())] == ["Recall", "MRR"]


@pytest.mark.parametrize("written", [markdown, html])
def test_both_forms_say_it_and_what_it_cost(written):
    text = written(JUDGED, RESULTS, CAUSES, STAGE_NOTES, beside=Beside(calibration=calibration()))
    for said in ("0.500 [0.400, 0.600]", "prompts claims v1, relevance v3", "12 calls, 10 of them from the tape"):
        assert said in text
