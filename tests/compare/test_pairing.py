import pytest
from compare_builders import changed, numbered, query, run

from ragaudit.compare.gating import regressions
from ragaudit.compare.pairing import compare
from ragaudit.model.comparison import Verdict
from ragaudit.model.diagnosis import Outcome, Stage

CHANGED = changed(rerank={"top_n": 16})


def compared(before, after, **fields):
    return compare(run(before), run(after, pipeline=CHANGED, name="cand"), **fields)


def test_a_metric_by_hand():
    found = compared(numbered([0.0, 0.5, 1.0, 1.0]), numbered([1.0, 0.5, 1.0, 0.5]))
    change = found.change_of("recall@k")
    assert (change.paired.before, change.paired.after, change.paired.difference) == (0.625, 0.75, 0.125)
    assert (change.paired.wins, change.paired.losses, change.paired.ties) == (1, 1, 2)
    assert change.p_holm == 1.0
    assert change.verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([0.0] * 9, [1.0] * 9, Verdict.BETTER),
        ([1.0] * 9, [0.0] * 9, Verdict.WORSE),
        ([1.0] * 9, [1.0] * 9, Verdict.SAME),
    ],
)
def test_the_verdict_is_by_the_adjusted_p(before, after, verdict):
    assert compared(numbered(before), numbered(after)).change_of("recall@k").verdict is verdict


def test_a_rise_of_hallucination_is_worse():
    def side(value):
        return [query(f"q{n}", recall=None, metrics={"hallucination": value}) for n in range(9)]

    change = compared(side(0.1), side(0.6)).change_of("hallucination")
    assert change.verdict is Verdict.WORSE
    assert change.paired.losses == 9


def test_too_few_changed_queries_are_said_to_be_too_few():
    change = compared(numbered([0.0] * 4), numbered([1.0] * 4)).change_of("recall@k")
    assert change.verdict is Verdict.SAME
    assert change.note == "only 4 changed: no adjusted p under 0.12 was possible"


def test_p_is_adjusted_over_the_metrics():
    def side(value):
        return [query(f"q{n}", recall=value, metrics={"recall@k": value, "mrr@k": value}) for n in range(6)]

    change = compared(side(0.0), side(1.0)).change_of("recall@k")
    assert (change.paired.p, change.p_holm, change.verdict) == (0.03125, 0.0625, Verdict.SAME)


def test_undefined_values_are_counted_with_their_reasons_and_are_in_no_mean():
    before = [*numbered([1.0] * 3), query("q04", recall=None, undefined={"recall@k": "unlabelled"})]
    after = [query("q01", recall=None, undefined={"recall@k": "context_not_logged"}), *numbered([1.0] * 4)[1:]]
    found = compared(before, after)
    change = found.change_of("recall@k")
    assert change.paired.n == 2
    assert change.undefined_before == {"unlabelled": 1}
    assert change.undefined_after == {"context_not_logged": 1}
    assert "recall@k: 1 queries that had a value have none now (q01)" in found.warnings


def test_transitions_count_from_stage_to_stage():
    before = [query(f"q{n}", stage=Stage.RETRIEVE) for n in range(2)] + [query(f"q{n}") for n in range(2, 6)]
    after = (
        [query(f"q{n}") for n in range(2)] + [query(f"q{n}", stage=Stage.RERANK) for n in range(2, 5)] + [query("q5")]
    )
    found = compared(before, after)
    assert [(each.n, each.before, each.after) for each in found.transitions] == [
        (3, "pass", "rerank"),
        (2, "retrieve", "pass"),
    ]
    assert found.unchanged == 1


def test_newly_failing_queries_come_worst_first():
    before = numbered([1.0, 1.0, 1.0])
    after = [
        query("q01", recall=0.5, stage=Stage.RERANK),
        query("q02", recall=0.0, stage=Stage.RERANK),
        query("q03", recall=1.0, stage=Stage.GENERATE, leaks=("c9",)),
    ]
    found = compared(before, after)
    assert [change.query_id for change in found.newly_failing] == ["q03", "q02", "q01"]
    assert found.newly_failing[1].differences == {"recall@k": -1.0}


def test_a_delivered_query_that_nobody_judged_counts_as_arrived():
    before = [query("q1", recall=0.0, stage=Stage.RETRIEVE)]
    after = [query("q1", outcome=Outcome.UNDETERMINED, stage=Stage.UNDETERMINED, delivered=True)]
    found = compared(before, after)
    assert [(change.before, change.after) for change in found.newly_passing] == [("retrieve", "delivered")]


def test_newly_leaking_queries_are_listed_with_what_is_new():
    before = [query("q1", leaks=("c1",)), query("q2")]
    after = [query("q1", leaks=("c1",)), query("q2", leaks=("c7",))]
    found = compared(before, after)
    assert [(change.query_id, change.leaks) for change in found.newly_leaking] == [("q2", ("c7",))]
    assert found.warnings[0].startswith("the candidate shows chunks that their users may not read")
    assert "leaks of the baseline are still there (q1)" in found.warnings[1]


def test_recall_up_and_mrr_down_is_warned_of():
    before = [query(f"q{n}", metrics={"recall@k": 0.5, "mrr@k": 1.0}) for n in range(12)]
    after = [query(f"q{n}", metrics={"recall@k": 1.0, "mrr@k": 0.5}) for n in range(12)]
    warned = [said for said in compared(before, after).warnings if "recall up" in said]
    assert warned[0].startswith("recall up (+0.500), MRR down (-0.500)")
    assert "Neither" not in warned[0]
    assert not [said for said in compared(after, before).warnings if "recall up" in said]


@pytest.mark.parametrize(("n", "small"), [(29, True), (30, False)])
def test_a_test_set_under_thirty_is_too_small(n, small):
    found = compared(numbered([1.0] * n), numbered([1.0] * n))
    assert any("the test set is too small" in said for said in found.warnings) is small


def test_queries_of_one_run_only_are_listed_and_left_out():
    found = compared(numbered([1.0, 0.0]), [query("q02", recall=1.0), query("q99", recall=0.0)])
    assert (found.pairs, found.only_base, found.only_candidate) == (1, ("q01",), ("q99",))
    assert found.change_of("recall@k").paired.after == 1.0
    assert "1 queries of the baseline are not in the candidate (q01): unknown, not passed" in found.warnings


def test_slices_have_intervals_and_no_p():
    before = [query(f"q{n}", recall=1.0, slices={"language": "de" if n < 3 else "en"}) for n in range(9)]
    after = [
        query(f"q{n}", recall=0.0 if n < 3 else 1.0, slices={"language": "de" if n < 3 else "en"}) for n in range(9)
    ]
    found = compared(before, after)
    assert [(part.value, part.n) for part in found.slices] == [("en", 6), ("de", 3)]
    part = found.slices[1].metrics["recall@k"]
    assert (part.difference, part.p) == (-1.0, None)
    assert any("recall@k falls by 1.000 in language = de (3 queries)" in said for said in found.warnings)


def test_the_same_run_twice_differs_in_nothing():
    found = compare(run(), run())
    assert found.transitions == ()
    assert found.change_of("recall@k").paired.reason == "no query changed"
    assert any("no pipeline variable differs" in said for said in found.warnings)


def test_the_order_of_the_queries_does_not_matter():
    before, after = numbered([0.0, 0.5, 1.0]), numbered([1.0, 0.5, 0.25])
    assert compared(before, after) == compared(before[::-1], after[::-1])


def test_a_gate_on_a_comparison_fires_for_worse_leaks_and_missing():
    assert regressions(compared(numbered([1.0] * 9), numbered([1.0] * 9))) == ()
    worse = regressions(compared(numbered([1.0] * 9), numbered([0.0] * 9)))
    assert worse == ("recall@k is worse by 1.000 (adjusted p 0.0039)",)
    leaking = compared(numbered([1.0] * 2), [query("q01", leaks=("c1",))])
    assert regressions(leaking) == ("1 queries newly leak", "1 queries of the baseline are missing")
