"""Labels: what a file may say, how it meets the judge's verdicts, and what comes out as a calibration."""

import json

import pytest
from msgspec.structs import replace

from ragaudit.errors import InputError
from ragaudit.judge.calibrate import compare, described, read_labels
from ragaudit.metrics.calibration import calibrated
from ragaudit.model.judgement import Cell, Claim, Judgement, JudgeState, Side, Verdict

SCORED = JudgeState.SCORED


def judged(query_id="q1", claims=("r1", "a1"), cells=(), states=None, **metrics):
    return Judgement(
        query_id=query_id,
        claims=tuple(
            Claim(id=c, side=Side.ANSWER if c[0] == "a" else Side.REFERENCE, text=f"{c} text") for c in claims
        ),
        cells=tuple(cells),
        metrics=metrics,
        states=dict.fromkeys(metrics, SCORED) | (states or {}),
    )


def cell(claim, chunk, verdict="supported", p=None):
    return Cell(claim_id=claim, chunk_id=chunk, verdict=verdict and Verdict(verdict), p_supported=p)


def labels_file(folder, *rows):
    path = folder / "labels.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def metric(query_id, label, name="faithfulness", **more):
    return {"query_id": query_id, "metric": name, "label": label, **more}


def verdict(label, claim="r1", chunk="c1", query_id="q1", **more):
    where = {} if chunk is None else {"chunk_id": chunk}
    return {"query_id": query_id, "claim": claim, **where, "label": label, **more}


PACKED = ("c0", "c1", "c2", "c3")


def compared(tmp_path, rows, judgements):
    found, unmatched = compare(read_labels(labels_file(tmp_path, *rows)), [(each, PACKED) for each in judgements])
    return {each.about: each for each in found}, unmatched


# --- the file ------------------------------------------------------------------------------------------------------


def test_labels_are_read_with_their_digest_and_annotators(tmp_path):
    rows = [metric("q1", True, annotator="ana"), "", metric("q1", 0.5, annotator="bo"), verdict("missing", note="sic")]
    labels = read_labels(labels_file(tmp_path, *rows))
    assert (labels.name, len(labels.labels), labels.annotators) == ("labels.jsonl", 3, 2)
    assert labels.sha256.startswith("sha256:") and len(labels.sha256) == 71
    assert [(each.about, each.said, each.line) for each in labels.labels] == [
        ("faithfulness", 1.0, 1),
        ("faithfulness", 0.5, 3),
        ("verdict", Verdict.MISSING, 4),
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "labels.jsonl:1: is not JSON"),
        ("[" * 100_000, "labels.jsonl:1: is not JSON"),
        ("[]", "labels.jsonl:1: is not an object"),
        ({"metric": "faithfulness", "label": 1}, "no query_id"),
        ({"query_id": "q1", "label": 1}, "either metric or claim"),
        ({"query_id": "q1", "metric": "faithfulness", "claim": "a1", "label": 1}, "either metric or claim"),
        ({"query_id": "q1", "metric": "faithfulness", "chunk_id": "c1", "label": 1}, "chunk_id and no claim"),
        ({"query_id": "q1", "metric": "helpfulness", "label": 1}, "unknown metric 'helpfulness'"),
        (metric("q1", 2), "a number from 0 to 1, not 2"),
        (metric("q1", "yes"), 'from 0 to 1, not "yes"'),
        (metric("q1", None), "not null"),
        ('{"query_id": "q1", "metric": "faithfulness", "label": NaN}', "from 0 to 1, not NaN"),
        (verdict("Supported"), 'one of supported, contradicted, missing, not "Supported"'),
        (verdict(True), "one of supported, contradicted, missing, not true"),
        (metric(["q1"], 1), "query_id: must be a text"),
        (metric("q1", 1, annotator=True), "annotator: must be a text"),
    ],
)
def test_a_line_that_is_no_label_is_refused_with_its_place(tmp_path, row, said):
    with pytest.raises(InputError, match=r"labels\.jsonl:1: ") as error:
        read_labels(labels_file(tmp_path, row))
    assert said in str(error.value)


def test_one_person_may_not_label_a_thing_twice(tmp_path):
    with pytest.raises(InputError, match=r"labels\.jsonl:2: labels what line 1 labels\. Keep one, or name"):
        read_labels(labels_file(tmp_path, metric("q1", 1), metric("q1", 0)))
    with pytest.raises(InputError, match=r"labels\.jsonl:2: ana labelled what line 1"):
        read_labels(labels_file(tmp_path, verdict("missing", annotator="ana"), verdict("missing", annotator="ana")))


def test_an_empty_and_an_absent_file(tmp_path):
    with pytest.raises(InputError, match="no labels in it"):
        read_labels(labels_file(tmp_path, ""))
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "none.jsonl")


# --- against the judge ---------------------------------------------------------------------------------------------


def test_metric_labels_meet_scored_values_and_the_rest_is_counted_by_state(tmp_path):
    rows = [metric("q1", 1), metric("q2", 0), metric("q3", 1), metric("q9", 1)]
    judgements = [
        judged("q1", faithfulness=0.75),
        judged("q2", faithfulness=0.25),
        judged("q3", faithfulness=None, states={"faithfulness": JudgeState.JUDGE_FAILED}),
        judged("q4", faithfulness=0.5),
        judged("q5", faithfulness=None, states={"faithfulness": JudgeState.ABSTAINED}),
    ]
    found, unmatched = compared(tmp_path, rows, judgements)
    said = found["faithfulness"]
    assert (said.human, said.judged, said.unlabelled) == ((1.0, 0.0), (0.75, 0.25), (0.5,))
    assert said.left_out == {"judge_failed": 1}
    assert unmatched == 1


def test_verdicts_meet_cells_by_claim_id_or_by_the_claims_words(tmp_path):
    cells = [cell("r1", "c1"), cell("r1", "c2", "missing"), cell("a1", "c1", None), cell("a1", "c2", "contradicted")]
    rows = [
        verdict("supported"),
        verdict("contradicted", claim="r1 text", chunk="c2"),
        verdict("supported", claim="a1"),
        verdict("contradicted", claim="a1", chunk="c2"),
        verdict("missing", claim="r7"),
        verdict("missing", chunk="c7"),
    ]
    found, unmatched = compared(tmp_path, rows, [judged(cells=cells)])
    said = found["verdict"]
    assert said.human_said == ("supported", "contradicted", "contradicted")
    assert said.judge_said == ("supported", "missing", "contradicted")
    assert (said.human, said.judged) == ((1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    assert said.left_out == {"unscored": 1}
    assert unmatched == 2


@pytest.mark.parametrize(
    ("verdicts", "said", "reason"),
    [
        (("missing", "supported", None), "supported", None),
        (("missing", "contradicted"), "contradicted", None),
        (("missing", "missing"), "missing", None),
        (("missing", None), None, "unscored"),
    ],
)
def test_a_claim_without_a_chunk_is_about_everything_packed(tmp_path, verdicts, said, reason):
    cells = [cell("a1", f"c{n}", each) for n, each in enumerate(verdicts)]
    cells += [cell("a1", "@reference"), cell("a1", "found-elsewhere")]
    found, _ = compared(tmp_path, [verdict("supported", claim="a1", chunk=None)], [judged(cells=cells)])
    assert found["claim"].judge_said == ((said,) if said else ())
    assert found["claim"].left_out == ({reason: 1} if reason else {})


def test_probabilities_are_compared_where_the_model_gave_them(tmp_path):
    cells = [cell("r1", "c1", p=0.9), cell("r1", "c2", "supported", p=0.6), cell("r1", "c3")]
    rows = [verdict("supported"), verdict("missing", chunk="c2"), verdict("missing", chunk="c3")]
    found, _ = compared(tmp_path, rows, [judged(cells=cells)])
    assert (found["p_supported"].human, found["p_supported"].judged) == ((1.0, 0.0), (0.9, 0.6))
    assert len(found["verdict"].human) == 3


def test_two_people_make_the_ceiling_and_their_mean_is_the_label(tmp_path):
    rows = [
        metric("q1", 1, annotator="bo"),
        metric("q1", 0.5, annotator="ana"),
        verdict("supported", annotator="ana"),
        verdict("missing", annotator="bo"),
        verdict("missing", annotator="cy", chunk="c2"),
    ]
    cells = [cell("r1", "c1"), cell("r1", "c2")]
    found, _ = compared(tmp_path, rows, [judged(cells=cells, faithfulness=0.8)])
    assert found["faithfulness"].human == (0.75,)
    assert found["faithfulness"].two_people == (("0.5", "1.0"),)  # ana before bo, whoever stands first in the file
    assert found["verdict"].two_people == (("supported", "missing"),)
    assert found["verdict"].left_out == {"people disagree": 1}
    assert found["verdict"].human_said == ("missing",)


def test_three_people_vote(tmp_path):
    rows = [verdict(said, annotator=who) for who, said in (("a", "missing"), ("b", "supported"), ("c", "missing"))]
    found, _ = compared(tmp_path, rows, [judged(cells=[cell("r1", "c1")])])
    assert found["verdict"].human_said == ("missing",)
    assert found["verdict"].two_people == (("missing", "supported"), ("missing", "missing"), ("supported", "missing"))


def test_abstention_can_be_labelled(tmp_path):
    rows = [metric("q1", True, "abstained"), metric("q2", False, "abstained"), metric("q3", True, "abstained")]
    judgements = [Judgement(query_id=q, abstained=a) for q, a in (("q1", True), ("q2", True), ("q3", None))]
    found, _ = compared(tmp_path, rows, judgements)
    assert (found["abstained"].human, found["abstained"].judged) == ((1.0, 0.0), (1.0, 1.0))
    assert found["abstained"].left_out == {"unmeasured": 1}


def test_labels_of_another_run_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no label is about a query.*first: 'q9'"):
        compared(tmp_path, [metric("q9", 1)], [judged("q1", faithfulness=0.5)])


# --- the calibration -----------------------------------------------------------------------------------------------


def calibration_of(tmp_path, rows, judgements, before=None):
    labels = read_labels(labels_file(tmp_path, *rows))
    found, unmatched = compare(labels, [(each, PACKED) for each in judgements])
    about = described(labels, model="m", prompts=["matrix@2", "claims@1", "matrix@2"], unmatched=unmatched)
    return calibrated(about, found, before or {}, seed=0, resamples=500)


def test_a_calibration_fits_the_cut_and_corrects_the_mean(tmp_path):
    # The judge is lenient: unfaithful answers get .7, faithful ones .9; four answers of eight are labelled.
    rows = [metric("q1", 1), metric("q2", 1), metric("q3", 0), metric("q4", 0)]
    values = {"q1": 0.9, "q2": 0.9, "q3": 0.7, "q4": 0.7, "q5": 0.7, "q6": 0.9, "q7": 0.7, "q8": 0.9}
    found = calibration_of(
        tmp_path, rows, [judged(q, faithfulness=v) for q, v in values.items()], {"faithfulness": 0.6}
    )
    assert (found.model, found.prompts, found.n_labels) == ("m", ("claims@1", "matrix@2"), 4)
    (agreed,) = found.agreements
    assert (agreed.cut, agreed.tpr.value, agreed.tnr.value, agreed.balanced_accuracy.value) == (0.6, 1.0, 0.0, 0.5)
    assert (agreed.kappa.value, agreed.auc.value) == (0.0, 1.0)
    assert agreed.pearson.value == pytest.approx(1.0, abs=1e-12)
    (cut,) = found.cuts
    assert (cut.setting, cut.before, cut.fitted) == ("judge.cuts.faithfulness", 0.6, pytest.approx(0.8))
    assert (cut.balanced_accuracy, cut.cross_validated) == (1.0, 1.0)
    (mean,) = found.means
    assert mean.raw.value == pytest.approx(0.8, abs=1e-12)
    # Unlabelled mean .8; label - judge: .1 .1 -.7 -.7, mean -.3.
    assert mean.corrected.value == pytest.approx(0.5, abs=1e-12)
    assert (mean.raw.n, mean.corrected.n) == (8, 4)


def test_verdicts_and_abstention_have_no_mean_and_what_is_undefined_says_why(tmp_path):
    rows = [verdict("supported"), metric("q1", True, "abstained")]
    found = calibration_of(tmp_path, rows, [replace(judged(cells=[cell("r1", "c1", p=0.8)]), abstained=True)])
    assert [each.about for each in found.agreements] == ["abstained", "verdict", "p_supported"]
    assert found.means == ()
    assert [each.setting for each in found.cuts] == ["p_supported"]
    assert (found.cuts[0].fitted, found.cuts[0].reason) == (None, "all cases are of one class")
    assert {each.kappa.reason for each in found.agreements} == {"both sides gave one and the same label throughout"}


def test_the_human_ceiling_stands_beside_the_judge(tmp_path):
    rows = [
        metric(q, label, annotator=who)
        for q, ana, bo in (("q1", 1, 1), ("q2", 0, 1), ("q3", 0, 0), ("q4", 1, 1))
        for who, label in (("ana", ana), ("bo", bo))
    ]
    found = calibration_of(tmp_path, rows, [judged(f"q{n}", faithfulness=n / 10) for n in range(1, 5)])
    agreed = found.agreements[0]
    # Two people: 3 of 4 alike; expected .5 * .75 + .5 * .25 = .5; kappa .5.
    assert (agreed.human_kappa.value, agreed.human_kappa.n) == (0.5, 4)
    assert agreed.human_pearson.value == pytest.approx(1 / 3**0.5, abs=1e-12)


def test_a_calibration_survives_being_written(tmp_path):
    found = calibration_of(tmp_path, [metric("q1", 1)], [judged("q1", faithfulness=0.5)])
    assert type(found).model_validate_json(found.model_dump_json()) == found
