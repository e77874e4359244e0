from pathlib import Path

import pytest
from reader_builders import one, read, record

from ragaudit.model.trace import Gold, GoldMode
from ragaudit.readers.gold import gold_mode_of, settle_gold
from ragaudit.readers.lines import LineError


def test_nothing_said_is_unlabelled_and_an_empty_list_is_labelled() -> None:
    assert settle_gold(None, None, None) == ((), None, False, ())
    assert settle_gold((), None, None) == ((), None, True, ())
    assert settle_gold(None, [], None) == ((), None, True, ())
    assert settle_gold(None, None, ()) == ((), None, True, ())


def test_repeated_gold_ids_count_once() -> None:
    assert [gold.id for gold in settle_gold(("a", "b", "a"), None, None).gold] == ["a", "b"]


def test_gold_ids_and_gold_are_merged_by_id() -> None:
    settled = settle_gold(("a", "b"), [{"id": "b", "grade": 3, "span": "words"}, {"id": "c"}, "d", 5], None)
    assert settled.gold == (
        Gold(id="a"),
        Gold(id="b", grade=3, span="words"),
        Gold(id="c"),
        Gold(id="d"),
        Gold(id="5"),
    )


def test_grade_zero_is_kept_as_judged_and_not_relevant() -> None:
    assert [gold.grade for gold in settle_gold(None, [{"id": "a", "grade": 0}], None).gold] == [0.0]


def test_a_null_in_a_gold_entry_is_absent() -> None:
    assert settle_gold(None, [{"id": "a", "grade": None, "span_in": None}], None).gold == (Gold(id="a"),)


def test_unknown_keys_of_a_gold_entry_are_kept() -> None:
    (gold,) = settle_gold(None, [{"id": "a", "annotator": "kim"}], None).gold
    assert gold.model_extra == {"annotator": "kim"}


def test_groups_replace_gold_ids_and_take_what_gold_knows() -> None:
    settled = settle_gold(("x",), [{"id": "b", "span": "words"}], (("a", "b", "a"), ("c",)))
    assert settled.gold == (Gold(id="a"), Gold(id="b", span="words"), Gold(id="c"))
    assert settled.gold_groups == (("a", "b"), ("c",))


def test_a_group_given_twice_counts_once() -> None:
    assert settle_gold(None, None, (("a", "b"), ("b", "a"), ("c",))).gold_groups == (("a", "b"), ("c",))


def test_empty_groups_say_nothing_about_grouping() -> None:
    settled = settle_gold(("a",), None, ())
    assert (settled.gold, settled.gold_groups, settled.gold_labelled) == ((Gold(id="a"),), None, True)


def test_relevant_gold_outside_the_groups_is_left_out_and_reported() -> None:
    settled = settle_gold(None, [{"id": "z"}, {"id": "n", "grade": 0}], (("a",),))
    assert [(gold.id, gold.grade) for gold in settled.gold] == [("a", 1.0), ("n", 0.0)]
    assert settled.remarks == (
        ("gold_outside_groups", "gold lists 'z', which is in no group of gold_groups: left out. Add it to a group."),
    )


def test_qrels_are_the_gold_of_a_query_that_has_none() -> None:
    settled = settle_gold(None, None, None, {"a": 2.0, "b": 0.0})
    assert settled == ((Gold(id="a", grade=2.0), Gold(id="b", grade=0.0)), None, True, ())


def test_grades_are_filled_from_qrels_unless_the_trace_has_its_own() -> None:
    settled = settle_gold(("a",), [{"id": "b", "grade": 1}], None, {"a": 3.0, "b": 2.0})
    assert [(gold.id, gold.grade) for gold in settled.gold] == [("a", 3.0), ("b", 1.0)]
    assert settled.remarks == ()


def test_where_trace_and_qrels_differ_the_trace_counts_and_the_difference_is_reported() -> None:
    settled = settle_gold(("a", "b"), None, None, {"a": 1.0, "b": 0.0, "c": 1.0})
    assert [(gold.id, gold.grade) for gold in settled.gold] == [("a", 1.0), ("b", 1.0)]
    ((kind, message),) = settled.remarks
    assert kind == "gold_differs_from_qrels"
    assert message.startswith("gold in the trace and in the qrels differ in 2 ids (first: 'b', only in the trace);")


def test_an_empty_group_is_an_error() -> None:
    with pytest.raises(LineError, match=r"^gold_groups\[1\]: the group is empty"):
        settle_gold(None, None, (("a",), ()))


def test_the_mode_is_all_unless_said_otherwise() -> None:
    assert [gold_mode_of(value) for value in (None, "all", "any")] == [GoldMode.ALL, GoldMode.ALL, GoldMode.ANY]


def test_a_trace_tells_labelled_from_unlabelled(tmp_path: Path) -> None:
    unlabelled = record(query_id="q2")
    del unlabelled["gold_ids"]
    traces, _ = read(tmp_path, record(gold_ids=[]), unlabelled, record(query_id="q3", gold_ids=None))
    assert [(trace.gold, trace.gold_labelled) for trace in traces] == [((), True), ((), False), ((), False)]


def test_a_field_named_like_our_own_flag_is_overruled(tmp_path: Path) -> None:
    trace = one(tmp_path, record(gold_ids=None, gold_labelled=True))
    assert trace.gold_labelled is False


def test_qrels_reach_the_traces_of_a_bundle(tmp_path: Path) -> None:
    trace = one(tmp_path, record(gold_ids=None), qrels_tsv=b"q1\tc9\t2\n")
    assert trace.gold == (Gold(id="c9", grade=2.0),)
    assert trace.gold_labelled is True


def test_a_difference_from_the_qrels_is_counted_once_for_each_query(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, record(), record(query_id="q2"), qrels_tsv=b"q1\tc9\t1\nq2\tc9\t1\n")
    assert [gold.id for trace in traces for gold in trace.gold] == ["c1", "c1"]
    assert bundle.problems.counts() == {"gold_differs_from_qrels": 2}
    assert bundle.inputs()["traces.jsonl"].set_aside == 0
