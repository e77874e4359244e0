import pytest
from compare_builders import query

from ragaudit.compare.changes import Way, came, transitions
from ragaudit.model.diagnosis import Outcome, Stage


def ways(*pairs, **options):
    return [(one.change.query_id, one.way) for one in came(pairs, **options)]


def both(query_id, before, after):
    return query(query_id, **before), query(query_id, **after)


FAILS = {"stage": Stage.RERANK, "recall": 0.0}
LEAKS = {"stage": Stage.FILTER, "leaks": ("hr#1",)}


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        ({}, {}, Way.SAME),
        ({}, FAILS, Way.WORSE),
        (FAILS, {}, Way.BETTER),
        (FAILS, {"stage": Stage.FUSE, "recall": 0.0}, Way.OTHER),
        (FAILS, {"stage": Stage.RERANK, "recall": 0.5}, Way.BETTER),
        ({"recall": 1.0}, {"recall": 0.5}, Way.WORSE),
        (FAILS, {"outcome": Outcome.UNDETERMINED, "delivered": True, "recall": 1.0}, Way.BETTER),
        (
            {"outcome": Outcome.UNDETERMINED, "recall": None},
            {"outcome": Outcome.LABEL_ISSUE, "recall": None},
            Way.OTHER,
        ),
        ({"stage": Stage.FILTER}, LEAKS, Way.WORSE),
        (LEAKS, {"stage": Stage.FILTER}, Way.BETTER),
        ({"recall": None, "metrics": {"hit@k": 0.0}}, {"recall": None, "metrics": {"hit@k": 1.0}}, Way.OTHER),
        (
            {"recall": None, "metrics": {"hallucination": 0.1}},
            {"recall": None, "metrics": {"hallucination": 0.6}},
            Way.WORSE,
        ),
        ({"metrics": {"recall@k": 1.0, "mrr@k": 0.5}}, {"metrics": {"recall@k": 1.0, "mrr@k": 1.0}}, Way.BETTER),
    ],
)
def test_what_became_of_a_query(before, after, way):
    assert ways(both("q1", before, after)) == [("q1", way)]


def test_the_worst_stand_first_and_the_same_last():
    found = ways(
        both("same", {}, {}),
        both("other", FAILS, {"stage": Stage.FUSE, "recall": 0.0}),
        both("up", FAILS, {}),
        both("down a little", {"recall": 1.0}, {"recall": 0.5}),
        both("down b", {}, FAILS),
        both("down a", {}, FAILS),
        both("leaks", {}, LEAKS),
    )
    assert found == [
        ("leaks", Way.WORSE),
        ("down a", Way.WORSE),
        ("down b", Way.WORSE),
        ("down a little", Way.WORSE),
        ("up", Way.BETTER),
        ("other", Way.OTHER),
        ("same", Way.SAME),
    ]


def test_where_metrics_do_not_compare_outcomes_alone_count():
    (one,) = came([both("q1", {"recall": 1.0}, {"recall": 0.5})], comparable=False)
    assert (one.way, one.change.differences) == (Way.SAME, {})
    assert ways(both("q1", {}, FAILS), comparable=False) == [("q1", Way.WORSE)]


def test_transitions_are_counted_most_frequent_first():
    pairs = [both(f"q{n}", {}, FAILS) for n in range(3)] + [both("q9", FAILS, {}), both("q8", {}, {})]
    found = transitions(one.change for one in came(pairs))
    assert [(each.before, each.after, each.n) for each in found] == [("pass", "rerank", 3), ("rerank", "pass", 1)]
