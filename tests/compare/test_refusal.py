import pytest
from compare_builders import JUDGE, changed, numbered, query, run

from ragaudit.compare.pairing import compare
from ragaudit.compare.variables import changed_variables, conditions
from ragaudit.errors import InputError
from ragaudit.model.comparison import FrozenAcl, FrozenJudge, means

TWO = changed(rerank={"top_n": 16}, fusion={"k": 30})


def variables(before, after, pairs=()):
    found = changed_variables(run(pipeline=before), run(pipeline=after), pairs)
    return [(each.name, each.before, each.after) for each in found]


def test_one_changed_variable_is_compared():
    found = compare(run(), run(pipeline=changed(rerank={"top_n": 16})))
    assert [(each.name, each.before, each.after, each.allowed) for each in found.variables] == [
        ("pipeline.rerank.top_n", 8, 16, False)
    ]


def test_two_changed_variables_are_refused_with_both():
    with pytest.raises(InputError) as refused:
        compare(run(), run(pipeline=TWO, name="cand"))
    assert refused.value.exit_code == 3
    assert str(refused.value) == (
        "base and cand: cannot be compared.\n"
        "  - 2 pipeline variables changed, so that no effect belongs to one of them: "
        "pipeline.fusion.k 60 -> 30; pipeline.rerank.top_n 8 -> 16\n"
        "Audit a candidate that differs in one variable, or name the exception: --allow pipeline.rerank.top_n."
    )


@pytest.mark.parametrize("name", ["pipeline.fusion.k", "fusion.k", "fusion"])
def test_an_allowed_variable_is_accepted_and_said(name):
    found = compare(run(), run(pipeline=TWO), allow=[name])
    assert [(each.name, each.allowed) for each in found.variables] == [
        ("pipeline.fusion.k", True),
        ("pipeline.rerank.top_n", False),
    ]
    assert any("allowed by --allow: pipeline.fusion.k differs too (60 -> 30)" in said for said in found.warnings)


def test_an_unknown_key_is_a_variable():
    assert variables({}, {"cache": {"ttl": 5}}) == [("pipeline.cache.ttl", None, 5)]


def test_nothing_said_in_three_ways_is_no_change():
    assert variables({"rerank": {}, "thresholds": []}, {"rerank": {"model": None}}) == []


def test_known_to_be_none_is_not_nothing_said():
    assert variables({"rerank": {"model": ""}}, {}) == [("pipeline.rerank.model", "", None)]


def test_a_moved_floor_is_one_variable():
    before = [{"value": 0.3, "on": "fused"}, {"value": 0.1, "on": "rerank"}]
    after = [{"value": 0.3, "on": "dense"}, {"value": 0.1, "on": "rerank"}]
    assert variables({"thresholds": before}, {"thresholds": after}) == [("pipeline.thresholds[0]", before[0], after[0])]


def test_two_floors_off_are_two_variables():
    before = [{"value": 0.3, "on": "fused"}, {"value": 0.1, "on": "rerank"}]
    names = [name for name, _, _ in variables({"thresholds": before}, {})]
    assert names == ["pipeline.thresholds[0]", "pipeline.thresholds[1]"]


def test_fusion_weights_together_are_one_variable():
    before = {"fusion": {"weights": {"dense": 0.7, "bm25": 0.3}}}
    after = {"fusion": {"weights": {"dense": 0.6, "bm25": 0.4}}}
    assert [name for name, _, _ in variables(before, after)] == ["pipeline.fusion.weights"]


def test_departures_of_single_queries_are_variables_with_their_queries():
    pairs = [
        (query("q1"), query("q1", config={"pipeline.rerank.top_n": 16})),
        (query("q2", config={"pipeline.rerank.model": ""}), query("q2", config={"pipeline.rerank.model": ""})),
    ]
    (found,) = changed_variables(run(), run(), pairs)
    assert (found.name, found.before, found.after, found.queries) == ("pipeline.rerank.top_n", 8, 16, ("q1",))


def test_a_floor_of_single_queries_is_one_variable_by_its_place():
    floor = {"value": 0.3, "on": "fused"}
    moved = {"value": 0.3, "on": "dense"}
    pairs = [(query(name, config={"pipeline.thresholds": [floor]}), query(name, config=now)) for name, now in (
        ("q1", {"pipeline.thresholds": [moved]}),
        ("q2", {}),
    )]  # fmt: skip
    (found,) = changed_variables(run(), run(), pairs)
    assert (found.name, found.before, found.after, found.queries) == (
        "pipeline.thresholds[0]", floor, moved, ("q1", "q2")
    )  # fmt: skip


def test_a_departure_to_what_the_other_run_has_anyway_is_no_second_variable():
    pairs = [(query("q1", config={"pipeline.rerank.top_n": 16}), query("q1"))]
    found = changed_variables(run(), run(pipeline=changed(rerank={"top_n": 16})), pairs)
    assert [(each.name, each.queries) for each in found] == [("pipeline.rerank.top_n", ())]


# --- conditions ------------------------------------------------------------------------------------------------------


def refused(base, candidate, *, allow=()):
    with pytest.raises(InputError) as error:
        compare(base, candidate, allow=allow)
    return str(error.value)


def test_another_k_is_refused_and_can_be_allowed():
    other = run(numbered([1.0] * 4, k=10), pipeline=changed(k_final=10), k_final=10)
    assert "K differs: metrics at another K are other metrics: k_final 8 -> 10" in refused(run(), other)
    found = compare(run(), other, allow=["k_final"])
    assert [each.name for each in found.exceptions] == ["k_final"]
    assert found.variables == ()


def test_k_of_some_queries_names_them():
    queries = [*numbered([1.0] * 3), query("q04", k=4)]
    assert "k_final 8 -> 4 (q04)" in refused(run(), run(queries))


def test_another_acl_rule_is_refused_and_no_exception_is_offered():
    said = refused(run(), run(acl=FrozenAcl(rule="all")))
    assert "who may read what differs: access is no variable of an experiment: acl rule any -> rule all" in said
    assert "--allow" not in said


def test_principals_that_everybody_holds_belong_to_the_rule():
    said = refused(run(), run(acl=FrozenAcl(everyone=("public",))))
    assert "rule any -> rule any, everyone holds public" in said


def test_other_principals_of_a_query_are_refused():
    said = refused(run(), run([*numbered([1.0] * 3), query("q04", access="b2:other")]))
    assert "who may read what differs" in said and "(q04)" in said


def test_other_gold_is_refused_with_its_queries():
    said = refused(run(), run([*numbered([1.0] * 3), query("q04", gold="b2:other")]))
    assert "the gold labels differ: gold b2:version -> b2:version (q04)" in said
    assert "name the exception: --allow gold" in said


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (None, "the judge differs: judge m1 -> not said"),
        (FrozenJudge(model="m2", mode="two_calls", prompts=JUDGE.prompts), "judge.model m1 -> m2"),
        (FrozenJudge(model="m1", mode="two_calls", prompts={"claims": 1, "matrix": 3}), "judge.prompts.matrix 2 -> 3"),
    ],
)
def test_another_judge_is_refused_and_can_be_allowed(other, reason):
    assert reason in refused(run(judge=JUDGE), run(judge=other))
    assert compare(run(judge=JUDGE), run(judge=other), allow=["judge"]).exceptions[0].allowed


@pytest.mark.parametrize(("field", "value"), [("scope", "retrieval"), ("gain", "exp")])
def test_another_way_of_counting_is_refused(field, value):
    assert f"the audit counted otherwise: audit.{field}" in refused(run(), run(**{field: value}))


def test_every_reason_is_listed_at_once():
    other = run(numbered([1.0] * 4, gold="b2:other"), pipeline=TWO, acl=FrozenAcl(rule="all"))
    said = refused(run(), other)
    assert said.count("\n  - ") == 3


def test_equal_conditions_have_no_difference():
    pairs = [(query("q1"), query("q1"))]
    assert conditions(run(judge=JUDGE), run(judge=JUDGE), pairs) == []


def test_the_planned_variable_is_the_one_change_though_it_is_k():
    other = run(numbered([1.0] * 4, k=10), pipeline=changed(k_final=10))
    assert compare(run(), other, planned="k_final").exceptions[0].allowed is False


def test_both_sides_of_an_embedding_are_one_planned_change():
    before = {"embedding": {"query": {"model": "a"}, "corpus": {"model": "a"}}}
    after = {"embedding": {"query": {"model": "b"}, "corpus": {"model": "b"}}}
    refused(run(pipeline=before), run(pipeline=after))
    found = compare(run(pipeline=before), run(pipeline=after), planned="embedding.*.model")
    assert len(found.variables) == 2


def test_runs_without_a_common_query_are_refused():
    assert "no query id is in both" in refused(run(), run([query("other")]))


@pytest.mark.parametrize(
    ("name", "variable", "meant"),
    [
        ("rerank.top_n", "pipeline.rerank.top_n", True),
        ("rerank", "pipeline.rerank.top_n", True),
        ("rerank.top", "pipeline.rerank.top_n", False),
        ("thresholds", "pipeline.thresholds[1]", True),
        ("thresholds[0]", "pipeline.thresholds[1]", False),
        ("search.*.fetch_k", "pipeline.search.dense.fetch_k", True),
        ("search.*.fetch_k", "pipeline.search.dense.nprobe", False),
        ("*", "k_final", False),
        ("", "k_final", False),
    ],
)
def test_what_a_name_means(name, variable, meant):
    assert means(name, variable) is meant
