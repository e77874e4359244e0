"""What one change does to recorded queries, by hand: three letters are packed, the gold is one of the others."""

import pytest
from replay_builders import pipeline, table, trace

from ragaudit.config import AclSettings
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import gather
from ragaudit.experiments.bench import Bench
from ragaudit.experiments.variants import with_value
from ragaudit.model.diagnosis import Diagnosis, Gap, GoldDiagnosis, Outcome, Stage
from ragaudit.model.inventory import Chunk, Inventory
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
        made.add(evidence, diagnosis, pipeline(**(query.config or {})), IDENTITIES)
    return made


def query(gold="d", query_id="q1", context="bad", **over):
    """Lists in the order b a d c; three are packed."""
    return trace(query_id=query_id, gold=tuple(gold), final_context_ids=tuple(context), **over)


def had(gold="d", query_id="q1", **over):
    return query(gold, query_id, **over), True, {}


def missed(gold="c", query_id="q2", stage=Stage.RERANK, **over):
    return query(gold, query_id, **over), False, dict.fromkeys(gold, stage)


def test_a_failing_query_whose_gold_would_be_packed_is_kept():
    effect = bench(had(), missed()).effect(MORE, "k")
    assert (effect.kept, effect.lost, effect.replayed, effect.unknown) == (("q2",), (), 2, ())


def test_a_query_whose_gold_would_no_longer_be_packed_is_lost():
    effect = bench(had(), missed()).effect(FEWER, "k")
    assert (effect.kept, effect.lost) == ((), ("q1",))


def test_the_prediction_is_the_mean_of_the_whole_run_moved_by_the_queries_on_the_bench():
    # one of two queries on the bench gains all its recall: 0.5 of them, who are 2 of the run's 4
    change = bench(had(), missed(), n=4).effect(MORE, "k").changes["recall@k"]
    assert (change.before, change.after) == (0.5, 0.75)
    assert (change.low, change.high) == (0.5, 1.0)


def test_precision_falls_as_k_grows():
    # d is one of three, then one of four
    change = bench(had(), n=1).effect(MORE, "k").changes["precision@k"]
    assert change.after == pytest.approx(0.2 + 1 / 4 - 1 / 3)


def test_a_metric_that_the_run_does_not_have_is_not_predicted():
    assert set(bench(had()).effect(MORE, "k").changes) == set(OF_RUN)


def test_no_change_moves_nothing():
    effect = bench(had(), missed()).effect(lambda configured: configured, "same")
    assert (effect.kept, effect.lost) == ((), ())
    assert all(c.before == c.after == c.low == c.high for c in effect.changes.values())


def test_an_empty_bench_predicts_nothing():
    made = bench()
    assert (made.failing, made.effect(MORE, "k").changes, made.effect(MORE, "k").replayed) == (0, {}, 0)


def test_all_the_gold_is_needed_and_recall_counts_its_parts():
    effect = bench(missed("dc"), n=1).effect(MORE, "k")
    assert effect.kept == ("q2",)
    assert effect.changes["recall@k"].after == 0.5 + (1.0 - 0.5)
    assert bench(missed("gc")).effect(MORE, "k").kept == ()


def test_any_of_the_gold_is_enough_where_the_query_says_so():
    effect = bench(missed("gc", gold_mode=GoldMode.ANY), n=1).effect(MORE, "k")
    assert effect.kept == ("q2",)
    assert effect.changes["recall@k"].after == 0.5 + 1.0


def test_one_of_each_group_is_needed():
    grouped = missed("bcdg", gold_groups=(("b", "g"), ("c",)))
    effect = bench(grouped, n=1).effect(MORE, "k")
    assert effect.kept == ("q2",)
    assert effect.changes["recall@k"].after == 0.5 + (1.0 - 0.5)
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
    made.add(gather(of, IDENTITIES, AclSettings()), verdict, pipeline(), IDENTITIES)
    assert made.effect(MORE, "k").kept == ("q2",)


def test_a_query_that_is_not_reproduced_is_left_out_and_counted():
    made = bench(had(), missed(context="abd"))
    assert (made.excluded, made.failing, made.effect(MORE, "k").replayed) == (1, 0, 1)


def test_a_prompt_that_cut_the_context_is_left_out_and_counted():
    made = bench(had(prompt_ids=("b", "a")), missed(prompt_ids=("b", "a", "d")))
    assert (made.excluded, made.failing) == (1, 1)


def test_a_query_without_gold_or_without_a_context_is_neither_replayed_nor_counted():
    made = bench(had(""), (trace(query_id="q4", gold=("d",)), None, {}))
    assert (made.rows, made.excluded) == ([], 0)


def test_a_query_that_the_change_makes_unreplayable_stays_as_it_is():
    scored = {"rerank_input": ("b", "a", "d"), "after_rerank": ("d", "b", "a"), "context": "dba"}
    cut = {"config": {"rerank": {"candidates": 3}}}
    made = bench(missed(query_id="q1"), missed(**scored, **cut))
    effect = made.effect(with_value("rerank.candidates", 4), "candidates")
    assert effect.unknown == ("q2",)
    assert effect.unreplayable == {"the reranker never scored some of the candidates": 1}
    assert (effect.replayed, effect.kept) == (1, ())
    assert effect.changes["recall@k"].after == 0.5


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
    made.add(gather(of, IDENTITIES, AclSettings()), verdict, pipeline(), IDENTITIES)
    changes = made.effect(FEWER, "k").changes
    assert "recall@k" not in changes
    assert changes["precision@k"].after == 0.2 + 0.5 * (1 - 1)


def test_queries_may_differ_in_k():
    short = query("d", "q3", context="ba", k=2), False, {"d": Stage.RERANK}
    effect = bench(had(), short, n=2).effect(with_value("pack.max_per_source", 0), "same")
    assert (effect.replayed, effect.kept) == (2, ())


def test_the_gold_s_other_names_count():
    of = had("d", id_map=None)[0]
    chunks = {**CHUNKS, "x": Chunk(chunk_id="x", aliases=("c",))}
    identities = Identities.of(Inventory.of(None, {k: v for k, v in chunks.items() if k != "c"}, None))
    made = bench()
    relabelled = of.model_copy(update={"gold": (Gold(id="x"),), "query_id": "q9"})
    lost = GoldDiagnosis(id="x", outcome=Outcome.FAIL, stage=Stage.RERANK)
    verdict = Diagnosis(query_id="q9", outcome=Outcome.FAIL, delivered=False, gold=(lost,))
    made.add(gather(relabelled, identities, AclSettings()), verdict, pipeline(), identities)
    assert made.effect(MORE, "k").kept == ("q9",)
