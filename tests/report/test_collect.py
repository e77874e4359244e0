import pytest
from report_builders import RESULTS, failing, gold, leaking, result, steps, summary

from ragaudit.model.diagnosis import Checkpoint, Outcome, Stage, State
from ragaudit.model.trace import Hit, Trace
from ragaudit.report.collect import MAX_LISTED, collect, state_at
from ragaudit.report.scores import SAMPLED, ScoreSample, quantile


def trace(*arms, model="m1"):
    """A trace with arms of scores: `("dense", 0.9, 0.5)`."""
    lists = {name: tuple(Hit(id=f"c{n}", score=score) for n, score in enumerate(scores)) for name, *scores in arms}
    return Trace(query_id="q1", query_text="x", k_final=2, arms=lists, embedding_model=model)


def scored(*pairs):
    sample = ScoreSample()
    for journey, logged in pairs:
        known = failing(gold=(gold(journey=journey),)).diagnosis
        sample.add(known, logged)
    return sample.arms()


@pytest.mark.parametrize(
    ("journey", "checkpoint", "state"),
    [
        ("retrieved:arm:dense=- retrieved:arm:bm25=7", Checkpoint.RETRIEVED, State.PRESENT),
        ("retrieved:arm:dense=- retrieved:arm:bm25=-", Checkpoint.RETRIEVED, State.ABSENT),
        ("reranked:rerank_input=2 reranked:after_rerank=-", Checkpoint.RERANKED, State.ABSENT),
        ("fused:fused=2 fused:after_threshold:a=- fused:after_threshold:b=1", Checkpoint.FUSED, State.PRESENT),
        ("indexed=?", Checkpoint.INDEXED, State.UNOBSERVED),
        ("indexed=yes", Checkpoint.PACKED, State.UNOBSERVED),
    ],
)
def test_a_checkpoint_is_any_arm_or_its_last_list(journey, checkpoint, state):
    assert state_at(steps(journey), checkpoint) is state


def test_the_funnel_counts_gold_that_its_user_may_read_and_nobody_doubts():
    golds = (
        gold(journey="packed:final_context_ids=1"),
        gold(journey="packed:final_context_ids=-"),
        gold(journey="packed:final_context_ids=-", eligible=False),
        gold(journey="packed:final_context_ids=-", outcome=Outcome.LABEL_ISSUE, stage=Stage.NONE),
    )
    kept = collect(summary(), [failing(gold=golds), result("q4", Outcome.LABEL_ISSUE, Stage.NONE, gold=golds)])
    assert kept.n_gold == 2
    assert kept.way[Checkpoint.PACKED] == {State.PRESENT: 1, State.ABSENT: 1}


def test_one_query_a_stage_is_worked_and_the_worst_stage_leads():
    run = summary(stages={"fuse": 1, "rerank": 3})
    fused = failing("q8").model_copy(
        update={"diagnosis": failing("q8").diagnosis.model_copy(update={"stage": Stage.FUSE})}
    )
    kept = collect(run, [leaking(), fused, failing("q9"), failing("q10")])
    assert [each.diagnosis.query_id for each in kept.worked] == ["q9", "q8", "q0"]


def test_what_is_kept_does_not_grow_with_the_run():
    rows = [failing(f"q{n}") for n in range(50)]
    rows += [result(f"d{n}", Outcome.LABEL_ISSUE, Stage.NONE) for n in range(MAX_LISTED + 7)]
    kept = collect(summary(), iter(rows), max_rows=3)
    assert (len(kept.failing), kept.n_failing) == (3, 50)
    assert (len(kept.label_issues), kept.n_label_issues) == (MAX_LISTED, MAX_LISTED + 7)
    assert len(kept.worked) == 1


def test_nothing_failed_and_nothing_is_worked():
    assert collect(summary(), [result("q1", Outcome.PASS, Stage.NONE)]).worked == []


@pytest.mark.parametrize(("queries", "every"), [(0, 1), (SAMPLED, 1), (SAMPLED + 1, 2), (100_000, 50)])
def test_the_sample_of_scores_is_spread_over_the_run(queries, every):
    sample = ScoreSample()
    sample.spread_over(queries)
    taken = [n for n in range(120) if sample.wants()]
    assert taken == list(range(0, 120, every))


def test_traces_are_read_for_the_sample_alone():
    asked = []
    run = summary(outcomes={"fail": 2 * SAMPLED})
    collect(run, [failing(f"q{n}") for n in range(5)], traces=lambda query_id: asked.append(query_id))
    assert asked == ["q0", "q2", "q4"]


def test_scores_of_gold_stand_apart_from_the_rest_in_each_arm():
    journey = "retrieved:arm:dense=2 retrieved:arm:bm25=-"
    dense, lexical = scored((journey, trace(("dense", 0.9, 0.5, 0.1), ("bm25", 12.0))))
    assert (dense.arm, dense.gold.n, dense.gold.median) == ("dense", 1, 0.5)
    assert (dense.others.n, dense.others.low, dense.others.high) == (2, 0.14, 0.86)
    assert (lexical.gold, lexical.others.median) == (None, 12.0)


def test_scores_of_two_embedding_models_are_never_put_together():
    journey = "retrieved:arm:dense=1"
    one = scored((journey, trace(("dense", 0.9))))
    two = scored((journey, trace(("dense", 0.9))), (journey, trace(("dense", 300.0), model="m2")))
    assert [each.model for each in one] == [""]
    assert [(each.model, each.gold.n, each.gold.median) for each in two] == [("m1", 1, 0.9), ("m2", 1, 300.0)]


def test_scores_that_are_no_number_and_queries_without_gold_say_nothing():
    journey = "retrieved:arm:dense=1"
    assert scored((journey, trace(("dense", float("nan"), float("inf"), None)))) == []
    sample = ScoreSample()
    sample.add(failing(gold=()).diagnosis, trace(("dense", 0.9)))
    sample.add(failing().diagnosis, None)
    assert (sample.arms(), sample.queries) == ([], 0)


def test_gold_that_the_user_may_not_read_is_neither_gold_nor_other():
    barred = gold("c0", journey="retrieved:arm:dense=1", eligible=False)
    known = gold("c1", journey="retrieved:arm:dense=2")
    sample = ScoreSample()
    sample.add(failing(gold=(barred, known)).diagnosis, trace(("dense", 0.9, 0.5, 0.1)))
    (dense,) = sample.arms()
    assert (dense.gold.n, dense.gold.median, dense.others.n, dense.others.median) == (1, 0.5, 1, 0.1)


@pytest.mark.parametrize(("q", "value"), [(0, 1.0), (0.25, 1.75), (0.5, 2.5), (1, 4.0)])
def test_quantiles_lie_between_neighbours(q, value):
    assert quantile([1.0, 2.0, 3.0, 4.0], q) == value


def test_every_result_is_looked_at_once():
    assert collect(summary(), iter(RESULTS)).n_failing == 3
