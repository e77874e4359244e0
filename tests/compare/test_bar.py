"""What falls short in CI: leaks always, what newly fails, and what makes a gate fire; each the worst first."""

import pytest
from compare_builders import query, run

from ragaudit.compare.bar import Shortfall, Why, bar
from ragaudit.compare.gates import rules
from ragaudit.errors import InputError
from ragaudit.model.diagnosis import Outcome, Stage


def held(now, before=None, gates=None, **options):
    base = None if before is None else run(before, name="main")
    return bar(run(now, name="now"), rules(gates or {}, "ragaudit.toml"), base, **options)


def failing(query_id, recall=0.0, **fields):
    return query(query_id, recall=recall, stage=Stage.RERANK, **fields)


def whys(found):
    return [(query_id, short.why) for query_id, short in found.short.items()]


def test_without_gates_and_baseline_only_a_leak_falls_short():
    found = held([failing("q1"), query("q2", leaks=("hr#9",))])
    assert found.short == {"q2": Shortfall(Why.LEAK)}
    assert (found.gates, found.baseline, found.missing) == ((), None, ())


def test_leaks_stand_before_newly_failing_and_these_before_gates_with_new_leaks_first():
    before = [query("a"), query("b"), failing("c", 0.5), query("d", leaks=("x",)), query("e")]
    now = [failing("a", 0.5), failing("b"), failing("c", 0.25), query("d", leaks=("x",)), query("e", leaks=("y",))]
    found = held(now, before, {"recall@k": 0.9})
    assert whys(found) == [
        ("e", Why.LEAK),
        ("d", Why.LEAK),
        ("b", Why.NEWLY_FAILING),
        ("a", Why.NEWLY_FAILING),
        ("c", Why.GATE),
    ]
    assert found.short["e"].change.leaks == ("y",)
    assert found.short["b"].change.before == "pass"
    assert [gate.gate for gate in found.short["b"].gates] == ["recall@k.min"]
    assert found.before == {"a": "pass", "b": "pass", "c": "rerank", "d": "pass", "e": "pass"}


def test_queries_of_one_run_only_are_missing_or_unknown_and_never_newly_failing():
    found = held([query("a"), failing("new")], [query("a"), query("gone")])
    assert (found.missing, found.short, "new" in found.before) == (("gone",), {}, False)


def test_a_gate_that_holds_counts_nobody():
    assert held([failing("a", 0.5), query("b")], gates={"recall@k": 0.7}).short == {}


def test_a_gate_without_a_figure_fires_and_names_no_query():
    found = held([query("a", recall=None, outcome=Outcome.NOT_APPLICABLE)], gates={"recall@k": 0.7})
    assert ([gate.fired for gate in found.gates], found.short) == ([True], {})


def test_a_relative_gate_without_a_baseline_is_not_measured():
    found = held([query("a")], gates={"recall@k": {"min": 0.5, "max_drop": 0.1}})
    assert ([gate.gate for gate in found.gates], found.unchecked) == (["recall@k.min"], ("recall@k.max_drop",))


def test_runs_that_do_not_compare_are_refused_unless_it_is_allowed():
    with pytest.raises(InputError, match="the gold labels differ"):
        held([query("a", gold="b2:other")], [query("a")])
    assert held([query("a", gold="b2:other")], [query("a")], allow=("gold",)).short == {}
    with pytest.raises(InputError, match="no query id is in both"):
        held([query("a")], [query("b")])
