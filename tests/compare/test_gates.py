import pytest
from compare_builders import changed, numbered, query, run

from ragaudit.compare.gates import Kind, On, rules
from ragaudit.compare.gating import hold
from ragaudit.errors import ConfigError, InputError
from ragaudit.model.diagnosis import Stage


def held(gates, queries, baseline=None, **fields):
    return hold(run(queries), rules(gates, "ragaudit.toml"), baseline, **fields)


def one(gates, queries, baseline=None):
    (gate,) = held(gates, queries, baseline).gates
    return gate


def test_a_number_is_the_least_mean():
    (rule,) = rules({"recall@k": 0.8}, "t")
    assert (rule.gate, rule.kind, rule.limit, rule.on) == ("recall@k.min", Kind.MIN, 0.8, On.MEAN)


def test_a_number_for_hallucination_is_the_most():
    assert rules({"hallucination": 0.1}, "t")[0].kind is Kind.MAX


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ({"recal@k": 0.8}, "ragaudit.toml: gates.recal@k: is no metric. Did you mean 'recall@k'?"),
        ({"leak": 0}, "ragaudit.toml: gates.leak: is no metric. Did you mean 'leaks'?"),
        ({"recall@k": {"mini": 0.8}}, "gates.recall@k.mini: unknown. Did you mean 'min'?"),
        ({"recall@k": True}, "gates.recall@k: must be a number from 0 to 1, not True."),
        ({"recall@k": 80}, "must be a number from 0 to 1, not 80."),
        ({"recall@k": {"min": 0.8, "on": "high"}}, 'gates.recall@k.on: must be "mean" or "low", not \'high\'.'),
        ({"recall@k": {"on": "low"}}, "gates.recall@k: asks nothing."),
        ({"recall@k": {"max": 0.9}}, "gates.recall@k.max: of recall@k higher is better: write min."),
        ({"hallucination": {"min": 0.1}}, "gates.hallucination.min: of hallucination lower is better: write max."),
        ({"leaks": 3}, "gates.leaks: must be 0. No leak is one to get used to"),
        ({"stages": {"rerankk": 3}}, "gates.stages.rerankk: unknown. Did you mean 'rerank'?"),
        ({"stages": {"rerank": -1}}, "gates.stages.rerank: must be a number of queries from 0, not -1."),
        ({"stages": 3}, "gates.stages: is a value. Write a table: [gates.stages]."),
    ],
)
def test_gates_that_make_no_sense_are_refused(gates, message):
    with pytest.raises(ConfigError) as refused:
        rules(gates, "ragaudit.toml")
    assert message in str(refused.value)


def test_a_mean_under_the_minimum_fires_and_names_the_worst_queries_first():
    gate = one({"recall@k": 0.8}, numbered([1.0, 0.5, 0.0, 1.0]))
    assert (gate.fired, gate.value) == (True, 0.625)
    assert gate.queries == ("q03", "q02")
    assert gate.says == "0.625 (4 queries)"


def test_a_mean_at_the_minimum_holds_whatever_its_last_bit():
    assert not one({"recall@k": 0.3}, numbered([0.1 + 0.2 - 1e-16] * 3)).fired


def test_the_lower_bound_may_fire_where_the_mean_holds():
    queries = numbered([0.9] * 4)
    assert not one({"recall@k": {"min": 0.85}}, queries).fired
    gate = one({"recall@k": {"min": 0.85, "on": "low"}}, queries)
    assert gate.fired
    assert gate.asks == "lower bound of the mean at least 0.85"


def test_an_undefined_metric_fires():
    gate = one({"faithfulness": 0.5}, numbered([1.0] * 2))
    assert (gate.fired, gate.value) == (True, None)
    assert gate.says == "undefined for every query (judge off)"


def test_too_few_scored_queries_fire_with_the_unscored_ones():
    queries = [*numbered([1.0] * 3), query("q04", recall=None, undefined={"recall@k": "unlabelled"})]
    gate = one({"recall@k": {"coverage": 0.9}}, queries)
    assert (gate.fired, gate.value, gate.queries) == (True, 0.75, ("q04",))
    assert gate.says == "scored 75.0% of 4 queries; the rest: unlabelled"
    assert not one({"recall@k": {"coverage": 0.75}}, queries).fired


def test_a_drop_against_the_baseline_fires_with_the_queries_that_fell():
    gate = one({"recall@k": {"max_drop": 0.1}}, numbered([1.0, 0.5, 0.0, 1.0]), run(numbered([1.0] * 4)))
    assert (gate.fired, gate.value) == (True, -0.375)
    assert gate.queries == ("q03", "q02")
    assert not one({"recall@k": {"max_drop": 0.375}}, numbered([1.0, 0.5, 0.0, 1.0]), run(numbered([1.0] * 4))).fired


def test_a_drop_on_the_lower_bound_asks_for_proof_that_it_is_no_worse():
    base, now = run(numbered([1.0] * 9 + [0.0])), numbered([0.0] + [1.0] * 9)
    assert not one({"recall@k": {"max_drop": 0.1}}, now, base).fired
    assert one({"recall@k": {"max_drop": 0.1, "on": "low"}}, now, base).fired


def test_leaks_and_stage_counts_name_their_queries():
    queries = [query("q1", stage=Stage.RERANK), query("q2", stage=Stage.RERANK), query("q3", leaks=("c1",))]
    report = held({"leaks": 0, "stages": {"rerank": 1, "fuse": 0}, "outcomes": {"fail": 2}}, queries)
    assert [(gate.gate, gate.fired, gate.queries) for gate in report.gates] == [
        ("leaks", True, ("q3",)),
        ("stages.rerank", True, ("q1", "q2")),
        ("stages.fuse", False, ()),
        ("outcomes.fail", False, ()),
    ]


def test_leaks_without_a_gate_on_them_are_said():
    report = held({"recall@k": 0.5}, [query("q1", leaks=("c1",))])
    assert report.fired == ()
    assert report.warnings == ("1 queries leak, and no gate looks at leaks: write leaks = 0 under [gates]",)


def test_a_release_may_change_many_variables_but_not_the_gold():
    base = run(pipeline=changed(rerank={"top_n": 1}, fusion={"k": 1}))
    assert held({"recall@k": {"max_drop": 0.0}}, numbered([1.0] * 4), base).fired == ()
    other = run(numbered([1.0] * 4, gold="b2:other"))
    with pytest.raises(InputError, match="the gold labels differ"):
        held({"recall@k": {"max_drop": 0.0}}, numbered([1.0] * 4), other)
    report = held({"recall@k": {"max_drop": 0.0}}, numbered([1.0] * 4), other, allow=["gold"])
    assert [each.name for each in report.exceptions] == ["gold"]


def test_queries_that_vanished_are_said():
    report = held({"recall@k": {"max_drop": 0.0}}, numbered([1.0] * 3), run(numbered([1.0] * 4)))
    assert report.warnings == ("1 queries of the baseline are not in this run: relative gates know nothing of them",)
