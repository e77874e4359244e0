"""What one change does to recorded queries, by hand: three letters are packed, the gold is one of the others."""

import pytest
from replay_builders import pipeline, table, trace

from ragaudit.config import AclSettings
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import gather
from ragaudit.experiments.bench import Bench
from ragaudit.experiments.variants import with_value
from ragaudit.model.diagnosis import Diagnosis, Gap, GoldDiagnosis, Outcome, Severity, Stage
from ragaudit.model.inventory import Chunk, Inventory, Source
from ragaudit.model.result import Estimate
from ragaudit.model.trace import Gold, GoldMode

CHUNKS = {name: Chunk(chunk_id=name, source_id=f"s-{name}", tokens=10) for name in "abcdefg"}
IDENTITIES = Identities.of(Inventory.of(None, CHUNKS, None))
OF_RUN = {"recall@k": 0.5, "hit@k": 0.5, "precision@k": 0.2, "mrr@k": 0.4, "ndcg@k": 0.4}
MORE = with_value("k_final", 4)
FEWER = with_value("k_final", 1)


def bench(*queries, n=None, chunks=None):
    """A bench over these (trace, delivered, lost gold by stage), of a run of n queries with a mean recall of 0.5."""
    run = {m: Estimate(mean=v, low=0, high=1, n=n or len(queries) or 1) for m, v in OF_RUN.items()}
    made = Bench(chunks or table(), run, gain="linear", seed=0, resamples=200)
    for query, delivered, lost in queries:
        evidence = gather(query, IDENTITIES, AclSettings())
        verdicts = tuple(GoldDiagnosis(id=g, outcome=Outcome.FAIL, stage=stage) for g, stage in lost.items())
        outcome = Outcome.PASS if delivered else Outcome.FAIL
        diagnosis = Diagnosis(query_id=query.query_id, outcome=outcome, delivered=delivered, gold=verdicts)
        made.add(evidence, diagnosis, pipeline(**(query.config or {})), IDENTITIES, AclSettings())
    return made


def over_run(effect, metric="recall@k"):
    return effect.predicted[metric]


def over_replayed(effect, metric="recall@k"):
    return effect.replay.changes[metric]


def query(gold="d", query_id="q1", context="bad", **over):
    """Lists in the order b a d c; three are packed."""
    return trace(query_id=query_id, gold=tuple(gold), final_context_ids=tuple(context), **over)


def had(gold="d", query_id="q1", **over):
    return query(gold, query_id, **over), True, {}


def missed(gold="c", query_id="q2", stage=Stage.RERANK, **over):
    return query(gold, query_id, **over), False, dict.fromkeys(gold, stage)


def test_a_failing_query_whose_gold_would_be_packed_is_kept():
    effect = bench(had(), missed()).effect(MORE, "k")
    assert (effect.kept, effect.lost, effect.unknown) == (("q2",), (), {})
    assert (effect.replay.queries, effect.replay.of, effect.replay.keeps, effect.replay.loses) == (2, 2, 1, 0)


def test_a_query_whose_gold_would_no_longer_be_packed_is_lost():
    effect = bench(had(), missed()).effect(FEWER, "k")
    assert (effect.kept, effect.lost) == ((), ("q1",))


def test_the_run_s_mean_moves_as_the_queries_on_the_bench_do():
    # one of two queries gains all its recall; the run's other queries are taken to be like the ones on the bench
    effect = bench(had(), missed(), n=4).effect(MORE, "k")
    change = over_run(effect)
    assert (change.before, change.after, change.n) == (0.5, 1.0, 4)
    assert (change.low, change.high) == (0.5, 1.0)
    change = over_replayed(effect)
    assert (change.before, change.after, change.low, change.high, change.n) == (0.5, 1.0, 0.5, 1.0, 2)


def test_what_the_others_could_do_is_in_the_interval_of_the_run_and_not_in_that_of_the_replayed():
    # the third query has its gold now, the fourth has not: neither can be replayed. No list tells of either
    hidden = [query(g, i, fused="badc") for g, i in (("d", "q3"), ("c", "q4"))]
    unlogged = [(q.model_copy(update={"arms": None}), d, {}) for q, d in zip(hidden, (True, False), strict=True)]
    effect = bench(had(), missed(), *unlogged).effect(with_value("fusion.k", 61), "k")
    assert effect.unknown == {"q3": "arms are not logged", "q4": "arms are not logged"}
    assert (over_replayed(effect).low, over_replayed(effect).high, over_replayed(effect).n) == (0.5, 0.5, 2)
    assert (over_run(effect).after, over_run(effect).low, over_run(effect).high) == (0.5, 0.25, 0.75)


def test_precision_falls_as_k_grows():
    # d is one of three, then one of four
    change = over_run(bench(had(), n=1).effect(MORE, "k"), "precision@k")
    assert change.after == pytest.approx(0.2 + 1 / 4 - 1 / 3)


def test_a_metric_that_the_run_does_not_have_is_not_predicted():
    assert set(bench(had()).effect(MORE, "k").predicted) == set(OF_RUN)


def test_no_change_moves_nothing():
    effect = bench(had(), missed()).effect(lambda configured: configured, "same")
    assert (effect.kept, effect.lost) == ((), ())
    assert all(c.before == c.after == c.low == c.high for c in effect.predicted.values())


def test_an_empty_bench_predicts_nothing():
    effect = bench().effect(MORE, "k")
    assert (bench().failing, effect.predicted, effect.replay.of, effect.replay.share) == (0, {}, 0, 0.0)


def test_all_the_gold_is_needed_and_recall_counts_its_parts():
    effect = bench(missed("dc"), n=1).effect(MORE, "k")
    assert effect.kept == ("q2",)
    assert over_run(effect).after == 0.5 + (1.0 - 0.5)
    assert bench(missed("gc")).effect(MORE, "k").kept == ()


def test_any_of_the_gold_is_enough_where_the_query_says_so():
    effect = bench(missed("gc", gold_mode=GoldMode.ANY), n=1).effect(MORE, "k")
    assert effect.kept == ("q2",)
    assert over_run(effect).after == 1.0  # no mean is over 1


def test_one_of_each_group_is_needed():
    grouped = missed("bcdg", gold_groups=(("b", "g"), ("c",)))
    effect = bench(grouped, n=1).effect(MORE, "k")
    assert effect.kept == ("q2",)
    assert over_run(effect).after == 0.5 + (1.0 - 0.5)
    assert bench(missed("bcg", gold_groups=(("b",), ("g",)))).effect(MORE, "k").kept == ()


@pytest.mark.parametrize("stage", [Stage.INGESTION, Stage.PARSE, Stage.CHUNK])
def test_a_chunk_that_lost_the_evidence_delivers_none_when_it_is_packed(stage):
    assert bench(missed(stage=stage)).effect(MORE, "k").kept == ()
    packed_already = query("d", "q3"), False, {"d": stage}
    assert bench(packed_already).effect(FEWER, "k").lost == ()


def test_gold_that_does_not_count_is_not_needed():
    labels = GoldDiagnosis(id="g", outcome=Outcome.LABEL_ISSUE)
    made = bench()
    of = query("cg", "q2")
    verdict = Diagnosis(query_id="q2", outcome=Outcome.FAIL, delivered=False, gold=(labels,))
    made.add(gather(of, IDENTITIES, AclSettings()), verdict, pipeline(), IDENTITIES, AclSettings())
    assert made.effect(MORE, "k").kept == ("q2",)


def test_a_query_that_is_not_reproduced_is_left_out_and_counted():
    effect = bench(had(), missed(context="abd")).effect(MORE, "k")
    assert effect.unknown == {"q2": "replaying no change gives another context"}
    assert (effect.replay.queries, effect.replay.of, effect.replay.share) == (1, 2, 0.5)
    assert effect.replay.unknown == {"replaying no change gives another context": 1}


def test_a_change_of_the_packer_is_replayed_though_fusion_is_not_reproduced():
    fused_otherwise = missed("c", fused="abdc", context="abd")
    assert bench(fused_otherwise).effect(MORE, "k").kept == ("q2",)
    effect = bench(fused_otherwise).effect(with_value("fusion.k", 61), "fusion")
    assert effect.unknown == {"q2": "replaying no change gives another context"}


def test_a_prompt_that_cut_the_context_is_left_out_and_its_queries_count_as_they_were_read():
    made = bench(had(prompt_ids=("b", "a")), missed(prompt_ids=("b", "a", "d")))
    effect = made.effect(MORE, "k")
    assert effect.unknown == {"q1": "the prompt left out part of the context"}
    assert (made.failing, over_replayed(effect).n) == (1, 1)


def test_a_query_that_a_change_does_not_touch_stays_as_it_is_and_is_known():
    unlogged = query("d", "q3").model_copy(update={"arms": None}), True, {}
    own = missed("d", context="ba", config={"pack": {"token_budget": 20}})
    made = bench(unlogged, own, chunks=table(tokens=dict.fromkeys("abcd", 10)))

    def change(configured):
        departs = configured.pack.token_budget == 20
        return with_value("pack.token_budget", 40)(configured) if departs else configured

    effect = made.effect(change, "own")
    assert (effect.kept, effect.unknown, effect.replay.share) == (("q2",), {}, 1.0)


def test_what_newly_holds_a_chunk_that_the_user_may_not_read_is_said():
    closed = Inventory.of({"s-c": Source(source_id="s-c", acl=("board",))}, CHUNKS, None)
    made = bench()
    of = missed("d", context="ba", k=2, user_acl=("staff",))[0]
    verdict = Diagnosis(query_id="q2", outcome=Outcome.FAIL, delivered=False)
    identities = Identities.of(closed)
    made.add(gather(of, identities, AclSettings()), verdict, pipeline(), identities, AclSettings())
    assert made.effect(with_value("k_final", 3), "k").leaking == ()
    assert made.effect(with_value("k_final", 4), "k").leaking == ("q2",)


@pytest.mark.parametrize(
    "over",
    [{"outcome": Outcome.NOT_APPLICABLE}, {"severity": Severity.LEAK}, {"outcome": Outcome.UNDETERMINED}],
)
def test_only_a_query_that_fails_and_does_not_leak_can_be_recovered(over):
    made = bench()
    fields = {"query_id": "q2", "outcome": Outcome.FAIL, "delivered": False} | over
    evidence = gather(query("c", "q2"), IDENTITIES, AclSettings())
    made.add(evidence, Diagnosis(**fields), pipeline(), IDENTITIES, AclSettings())
    assert (made.failing, made.effect(MORE, "k").kept) == (0, ())


def test_a_query_without_gold_or_without_a_context_is_neither_replayed_nor_counted():
    made = bench(had(""), (trace(query_id="q4", gold=("d",)), None, {}))
    assert made.rows == []


def test_a_query_that_the_change_makes_unreplayable_stays_as_it_is():
    scored = {"rerank_input": ("b", "a", "d"), "after_rerank": ("d", "b", "a"), "context": "dba"}
    cut = {"config": {"rerank": {"candidates": 3}}}
    made = bench(missed(query_id="q1"), missed(**scored, **cut))
    effect = made.effect(with_value("rerank.candidates", 4), "candidates")
    assert effect.unknown == {"q2": "the reranker never scored some of the candidates"}
    assert (effect.replay.queries, effect.kept) == (1, ())
    assert over_run(effect).after == 0.5


def test_each_query_keeps_its_own_departures_under_the_change():
    chunks = table(tokens=dict.fromkeys("abcd", 10))
    narrow = missed(context="ba", config={"pack": {"token_budget": 20}})
    effect = bench(had(), narrow, chunks=chunks).effect(MORE, "k")
    assert effect.kept == ()
    assert bench(narrow, chunks=chunks).effect(with_value("pack.token_budget", 40), "b").kept == ()
    roomy = missed("d", context="ba", config={"pack": {"token_budget": 20}})
    assert bench(roomy, chunks=chunks).effect(with_value("pack.token_budget", 40), "b").kept == ("q2",)


def test_a_query_that_needs_more_than_k_holds_moves_no_recall():
    made = bench(n=2)
    of = query("abcd", "q5")
    verdict = Diagnosis(query_id="q5", outcome=Outcome.NOT_APPLICABLE, gap=Gap.AGGREGATE_QUERY)
    made.add(gather(of, IDENTITIES, AclSettings()), verdict, pipeline(), IDENTITIES, AclSettings())
    effect = made.effect(FEWER, "k")
    assert "recall@k" not in effect.predicted
    assert over_run(effect, "precision@k").after == 0.2


def test_queries_may_differ_in_k():
    short = query("d", "q3", context="ba", k=2), False, {"d": Stage.RERANK}
    effect = bench(had(), short, n=2).effect(with_value("pack.max_per_source", 0), "same")
    assert (effect.replay.queries, effect.kept) == (2, ())


def test_the_gold_s_other_names_count():
    of = had("d", id_map=None)[0]
    chunks = {**CHUNKS, "x": Chunk(chunk_id="x", aliases=("c",))}
    identities = Identities.of(Inventory.of(None, {k: v for k, v in chunks.items() if k != "c"}, None))
    made = bench()
    relabelled = of.model_copy(update={"gold": (Gold(id="x"),), "query_id": "q9"})
    lost = GoldDiagnosis(id="x", outcome=Outcome.FAIL, stage=Stage.RERANK)
    verdict = Diagnosis(query_id="q9", outcome=Outcome.FAIL, delivered=False, gold=(lost,))
    made.add(gather(relabelled, identities, AclSettings()), verdict, pipeline(), identities, AclSettings())
    assert made.effect(MORE, "k").kept == ("q9",)


TENANTS = {"a": "t1", "b": "t2", "c": "t1", "d": "t1", "e": "t2"}


def filtered_behind_the_search(sent, acl=None):
    """Lists in the order b a d c; the filter was given two of them, and left a."""
    rows = {
        name: Chunk(chunk_id=name, metadata={"tenant": tenant}, acl=(acl or {}).get(name, ("staff",)))
        for name, tenant in TENANTS.items()
    }
    identities = Identities.of(Inventory.of(None, rows, None))
    post = {"filter": {"mode": "post", "fetch_k": 2}}
    of = query("d", "q2", context="a", fused="badc", after_filter="a", filters_applied=sent, user_acl=("staff",))
    made = Bench(table(), {}, gain="linear", seed=0, resamples=50)
    verdict = Diagnosis(query_id="q2", outcome=Outcome.FAIL, delivered=False)
    made.add(gather(of, identities, AclSettings()), verdict, pipeline(**post), identities, AclSettings())
    return made


def test_a_filter_behind_the_search_keeps_the_rows_that_meet_it_when_it_is_given_more():
    made = filtered_behind_the_search({"tenant": "t1"})
    assert made.effect(with_value("filter.fetch_k", 3), "more").kept == ("q2",)
    assert made.effect(with_value("filter.mode", "pre"), "pre").unknown == {
        "q2": "what the search returns is not recorded for another configuration"
    }


def test_a_row_whose_stored_acl_keeps_the_user_out_stays_out_of_every_replay():
    sent = {"tenant": "t1", "acl": ["staff"]}
    closed = filtered_behind_the_search(sent, {"d": ("board",)})
    effect = closed.effect(with_value("filter.fetch_k", 4), "more")
    assert (effect.kept, effect.leaking, effect.unknown) == ((), (), {})
    assert filtered_behind_the_search(sent).effect(with_value("filter.fetch_k", 4), "more").kept == ("q2",)


def test_a_filter_that_our_reading_does_not_reproduce_is_not_replayed():
    made = filtered_behind_the_search({"tenant": "t2"})
    assert made.effect(with_value("filter.fetch_k", 3), "more").unknown == {
        "q2": "replaying no change gives another context"
    }
