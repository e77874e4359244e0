"""What comes first: one variable each, by the failing queries recovered; what needs a run; what was refuted."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragaudit.audit.batch import Surroundings
from ragaudit.audit.proposals import bench_of
from ragaudit.audit.run import audit
from ragaudit.config import AclSettings, Settings, load_settings
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.evidence.identity import Identities
from ragaudit.experiments.bench import Bench, Effect
from ragaudit.experiments.guard import refuses
from ragaudit.experiments.levers import LEVERS, admits, lever, lever_for
from ragaudit.experiments.parts import answers
from ragaudit.experiments.propose import REPLAYED_SHARE, propose
from ragaudit.experiments.variants import value_of, variants, with_value
from ragaudit.model.diagnosis import STAGES, Diagnosis, Outcome, Severity, Stage
from ragaudit.model.experiment import Basis, Experiment, Replay
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import Estimate, QueryResult
from ragaudit.readers.bundle import locate, open_bundle, read_traces
from ragaudit.store import AuditReader

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
CONFIGURED = Pipeline.model_validate(
    {
        "arms": ["dense", "bm25"],
        "k_final": 5,
        "fusion": {"method": "rrf", "k": 60},
        "rerank": {"model": "m", "candidates": 20, "top_n": 5},
        "pack": {"token_budget": 400, "max_per_source": 1},
    }
)
RECALL = Estimate(mean=0.5, low=0.4, high=0.6, n=20)


class Told:
    """A bench that was told what each change does: name of the change -> (kept, lost), as counts or as ids."""

    failing = 12
    rows = ()

    pipelines = ()

    def __init__(self, replayed: int = 10, leaking: tuple[str, ...] = (), unknown: tuple[str, ...] = (), **told):
        self._replayed, self._leaking, self._unknown, self._told = replayed, leaking, unknown, told

    def row(self, query_id: str) -> None:
        return None

    def effect(self, change, name: str) -> Effect:
        kept, lost = self._told.get(name.partition("=")[0].removeprefix("pipeline.").replace(".", "_"), (0, 0))
        ids = [
            given if isinstance(given, tuple) else tuple(f"{letter}{n}" for n in range(given))
            for letter, given in (("q", kept), ("x", lost))
        ]
        counts = Replay(queries=self._replayed, of=10, keeps=len(ids[0]), loses=len(ids[1]))
        unknown = dict.fromkeys(self._unknown, "arms are not logged")
        return Effect(*ids, self._leaking, unknown, counts, {})


def failing(cause: str, stage: Stage, n: int = 1, **over) -> list[QueryResult]:
    return [
        QueryResult(
            diagnosis=Diagnosis(query_id=f"{cause}-{i}", outcome=Outcome.FAIL, stage=stage, causes=(cause,), **over),
            query_text="?",
            k_final=5,
            metrics={"recall@k": 0.0},
        )
        for i in range(n)
    ]


def ids_of(cause: str, n: int) -> tuple[str, ...]:
    return tuple(f"{cause}-{i}" for i in range(n))


def proposed(*results: QueryResult, told=None, refuted=(), run=CONFIGURED) -> tuple[Experiment, ...]:
    return propose(results, told or Told(), run, refuted=refuted, recall=RECALL)


def names(found: tuple[Experiment, ...]) -> list[str]:
    return [experiment.lever for experiment in found]


def test_without_a_failing_query_nothing_is_proposed():
    passed = failing("pack_loss", Stage.RERANK)[0].model_copy(
        update={"diagnosis": Diagnosis(query_id="q", outcome=Outcome.PASS)}
    )
    assert proposed(passed) == ()


def test_an_undetermined_stage_gives_no_proposal():
    assert proposed(*failing("pack_loss", Stage.UNDETERMINED)) == ()


# --- the order ----------------------------------------------------------------------------------------------------


def test_replayed_experiments_are_ranked_by_what_is_kept_less_what_is_lost():
    results = failing("pack_loss", Stage.RERANK, 3)
    found = proposed(*results, told=Told(k_final=(3, 0), pack_token_budget=(4, 2)))
    assert names(found)[:2] == ["k_final", "token_budget"]
    first, second = found[:2]
    assert (first.keeps, first.loses, first.of, first.basis) == (3, 0, 12, Basis.REPLAYED)
    assert (second.keeps, second.loses, second.lost) == (4, 2, ("x0", "x1"))
    assert second.lost_to == "recovers 2, k_final 3"
    assert first.lost_to is None


def test_a_tie_goes_to_the_earlier_lever():
    results = failing("pack_loss", Stage.RERANK, 3)
    found = proposed(*results, told=Told(k_final=(2, 0), pack_token_budget=(3, 1)))
    assert lever("k_final").order < lever("token_budget").order
    assert names(found)[:2] == ["k_final", "token_budget"]
    assert found[1].lost_to == "as many as k_final, a later lever"


def test_of_equal_values_the_smallest_step_is_taken():
    (first, *_) = proposed(*failing("pack_loss", Stage.RERANK), told=Told(k_final=(1, 0)))
    assert (first.variable, first.before, first.after) == ("pipeline.k_final", 5, 6)


def test_a_change_that_loses_as_much_as_it_keeps_is_not_proposed_as_replayed():
    assert "k_final" not in names(proposed(*failing("pool_cut", Stage.RERANK, 2), told=Told(k_final=(2, 2))))


def test_a_number_comes_before_a_ceiling_of_the_same_height():
    results = failing("source_missing", Stage.INGESTION, 2) + failing("pack_loss", Stage.RERANK, 2)
    first, second = proposed(*results, told=Told(k_final=(ids_of("pack_loss", 2), 0)))
    assert (first.lever, second.lever) == ("k_final", "reingest_source")
    assert second.lost_to == "as many as k_final at most, and that one was replayed"


def test_a_higher_ceiling_comes_before_a_number():
    results = failing("source_missing", Stage.INGESTION, 3) + failing("pack_loss", Stage.RERANK, 2)
    first, second = proposed(*results, told=Told(k_final=(ids_of("pack_loss", 2), 0)))
    assert (first.lever, second.lever) == ("reingest_source", "k_final")
    assert second.lost_to == "recovers 2, reingest_source 3 at most"


def test_what_closes_a_leak_comes_before_everything():
    leak = failing("foreign_hits", Stage.FILTER, severity=Severity.LEAK)
    found = proposed(*failing("source_missing", Stage.INGESTION, 5), *failing("half_written", Stage.INGESTION), *leak)
    assert names(found) == ["filter_enforced", "reingest_source"]
    assert found[1].lost_to == "filter_enforced closes a leak: that comes first"


def test_generation_comes_after_all_of_retrieval():
    results = failing("unsupported_answer", Stage.GENERATE, 9) + failing("source_missing", Stage.INGESTION)
    first, second = proposed(*results)
    assert (first.stage, second.stage) == (Stage.INGESTION, Stage.GENERATE)
    assert second.lost_to == "not retrieval: that comes first"


# --- a number, or a run -------------------------------------------------------------------------------------------


def test_what_the_lists_cannot_tell_needs_a_run_and_gets_a_ceiling_and_no_number():
    (only,) = proposed(*failing("source_missing", Stage.INGESTION, 4))
    assert (only.basis, only.keeps, only.loses, only.predicted) == (Basis.NEEDS_A_RUN, None, None, {})
    assert (only.before, only.after, only.replay) == (None, None, None)
    assert only.ceiling == pytest.approx(0.5 + 4 / 20)
    assert (only.of, len(only.queries)) == (4, 4)


def test_a_ceiling_is_never_over_1():
    (only,) = proposed(*failing("source_missing", Stage.INGESTION, 15))
    assert only.ceiling == 1.0


def test_a_ceiling_counts_only_recall_that_is_missing():
    half = [r.model_copy(update={"metrics": {"recall@k": 0.5}}) for r in failing("source_missing", Stage.INGESTION, 2)]
    assert proposed(*half)[0].ceiling == pytest.approx(0.5 + 1 / 20)
    whole = [r.model_copy(update={"metrics": {"recall@k": 1.0}}) for r in failing("span_split", Stage.CHUNK)]
    assert proposed(*whole)[0].ceiling is None
    undefined = [r.model_copy(update={"metrics": {"recall@k": None}}) for r in failing("span_split", Stage.CHUNK)]
    assert proposed(*undefined)[0].ceiling is None


def test_the_share_that_must_be_replayed_is_four_fifths():
    assert REPLAYED_SHARE == 0.8
    results = failing("pack_loss", Stage.RERANK, 3)
    enough, too_few = (proposed(*results, told=Told(n, unknown=("pack_loss-0",), k_final=(2, 0)))[0] for n in (8, 7))
    assert (enough.lever, enough.basis, enough.keeps) == ("k_final", Basis.REPLAYED, 2)
    assert (too_few.lever, too_few.basis, too_few.keeps) == ("k_final", Basis.NEEDS_A_RUN, None)


def test_a_change_that_too_few_queries_can_tell_of_needs_a_run_and_says_what_those_say():
    told = Told(7, unknown=ids_of("pack_loss", 3), k_final=(2, 0))
    (first, *_) = proposed(*failing("pack_loss", Stage.RERANK, 3), told=told)
    assert (first.lever, first.after, first.basis) == ("k_final", 6, Basis.NEEDS_A_RUN)
    assert (first.keeps, first.loses, first.predicted, first.of) == (None, None, {}, 3)
    assert first.replay == Replay(queries=7, of=10, keeps=2, loses=0)
    assert first.ceiling == pytest.approx(0.5 + 3 / 20)


def test_a_change_with_a_number_is_taken_before_one_that_recovers_more_of_too_few():
    results = failing("pack_loss", Stage.RERANK, 3)

    class Mixed(Told):
        def effect(self, change, name):
            few = name.endswith("=10")
            return Told(7 if few else 10, k_final=(3 if few else 1, 0)).effect(change, name)

    (first, *_) = proposed(*results, told=Mixed())
    assert (first.after, first.keeps, first.basis) == (6, 1, Basis.REPLAYED)


def test_what_would_newly_leak_is_never_proposed():
    found = proposed(*failing("pack_loss", Stage.RERANK, 3), told=Told(k_final=(3, 0), leaking=("q7",)))
    assert [each for each in found if each.keeps is not None] == []


# --- which lever answers ------------------------------------------------------------------------------------------


def test_a_query_that_needs_a_run_counts_for_the_first_of_its_levers_alone():
    assert len(lever_for("source_stale")) == 1
    assert len(lever_for("span_split")) > 1
    assert names(proposed(*failing("span_split", Stage.CHUNK, 3))) == ["chunk_boundary"]


def test_a_query_that_a_replayed_lever_recovers_counts_for_none_that_nobody_tried():
    results = failing("below_k", Stage.RETRIEVE, 3)
    found = proposed(*results, told=Told(k_final=(ids_of("below_k", 2), 0)))
    assert [(each.lever, each.keeps, each.queries) for each in found] == [
        ("k_final", 2, ("below_k-0", "below_k-1")),
        ("arm_pool", None, ("below_k-2",)),
    ]


def test_a_lever_that_was_replayed_in_vain_for_a_query_leaves_it_to_the_next():
    run = CONFIGURED.with_overrides({"pack": {"token_budget": 0}})
    assert names(proposed(*failing("pool_cut", Stage.RERANK, 2), run=run)) == []
    assert lever_for("pool_cut")[-1].name == "k_final"
    told = Told(unknown=ids_of("pool_cut", 2))
    assert names(proposed(*failing("pool_cut", Stage.RERANK, 2), run=run, told=told)) == ["rerank_candidates"]


BARE = Pipeline.model_validate({"arms": ["dense"], "filter": {"mode": "pre"}, "rerank": {"model": ""}})
"""One vector arm, filtered before the search; nothing behind it but the packer."""
NOT_THERE = {
    "pack_loss": {"dedupe_key", "token_budget", "pack_overflow"},
    "prompt_window": {"token_budget"},
    "token_budget": {"pack_overflow"},
    "duplicate_collapse": {"max_per_source"},
    "filter_dropped": {"post_filter_pool", "pre_filter"},
    "ann_miss": {"search_probes"},
    "narrow_search": {"search_probes"},
    "pool_cut": {"rerank_candidates"},
    "below_k": {"rerank_candidates"},
    "fusion_loss": {"arm_dropped", "fusion_constant"},
    "fusion_weight": {"fusion_constant"},
    "constant_scores": {"arm_dropped"},
    "floor_probed": {"floor_moved"},
    "threshold_dropped": {"floor_moved"},
}
"""Cause -> levers that would tune a part which that pipeline has not."""


@pytest.mark.parametrize("cause", NOT_THERE)
def test_a_lever_on_a_part_that_is_not_there_answers_nothing(cause):
    asked = {known.name for known in lever_for(cause)}
    assert asked >= NOT_THERE[cause]
    assert {known.name for known in lever_for(cause) if not answers(known, cause, BARE, None)} == NOT_THERE[cause]


FULL = Pipeline.model_validate(
    {
        "arms": ["dense", "words"],
        "search": {"dense": {"lists": 8, "nprobe": 2}, "words": {"tokenizer": "standard"}},
        "rerank": {"model": "m"},
    }
)
THERE = {
    "below_k": {"lexical_arm", "rerank_on"},
    "weak_match": {"lexical_arm", "rerank_on"},
    "pool_cut": {"rerank_on"},
    "literal_lost": {"lexical_arm"},
    "ann_miss": {"search_breadth"},
    "narrow_search": {"search_breadth"},
}
"""Cause -> levers that would add what that pipeline has, or tune an index of another kind."""


@pytest.mark.parametrize("cause", THERE)
def test_a_lever_that_adds_a_part_answers_nothing_where_the_part_is(cause):
    assert {known.name for known in lever_for(cause) if not answers(known, cause, FULL, None)} == THERE[cause]


@pytest.mark.parametrize("rule", [None, "chunk_id", "none", ""])
def test_without_duplicate_removal_its_key_is_no_fix_for_a_loss_in_the_packer(rule):
    run = CONFIGURED.with_overrides({"pack": {"dedupe_by": rule}})
    assert "dedupe_key" not in names(proposed(*failing("pack_loss", Stage.RERANK, 3), run=run))


def test_a_cause_that_proves_the_part_needs_no_configuration_of_it():
    known = lever("dedupe_key")
    assert answers(known, "duplicate_collapse", BARE, None)
    assert answers(lever("post_filter_pool"), "post_filter_underfill", BARE, None)


@pytest.mark.parametrize("known", LEVERS, ids=lambda known: known.name)
def test_conditions_are_written_for_causes_that_the_lever_answers(known):
    assert {*known.given, *known.unless} <= {*known.causes}


# --- queries that depart from the run's configuration -------------------------------------------------------------


def departing(**over) -> Pipeline:
    return CONFIGURED.with_overrides(over)


def test_the_run_s_value_is_tried_for_queries_that_depart_from_it():
    held = (CONFIGURED, departing(pack={"token_budget": 20}), departing(pack={"token_budget": 60}))
    found = [
        (v.before, v.after, [v.touches(p) for p in held], v.is_departure)
        for v in variants("pack.token_budget", CONFIGURED, held)
    ]
    assert found[:4] == [(400, value, [True, False, False], False) for value in (500, 600, 800, 1600)]
    assert found[4] == ([20, 60], 400, [False, True, True], True)
    assert found[5] == (20, 25, [False, True, False], True)


def test_a_change_of_the_run_s_value_leaves_a_departing_query_alone():
    own = departing(pack={"token_budget": 20})
    first = next(variants("pack.token_budget", CONFIGURED, (own,)))
    assert first.change(own) is own
    assert first.change(CONFIGURED).pack.token_budget == 500


def test_a_floor_of_one_query_is_tried_where_it_stands():
    own = departing(thresholds=[{"on": "fused", "value": 0.3, "score": "cosine"}])
    moved, off = (next(variants(f"thresholds.*.{field}", CONFIGURED, (own,))) for field in ("on", "value"))
    assert (moved.variable, moved.before, moved.after) == ("pipeline.thresholds.0.on", "fused", "dense")
    assert (off.variable, off.before, off.after, off.is_departure) == ("pipeline.thresholds.0.value", 0.3, None, True)
    assert moved.change(own).thresholds[0].on == "dense"
    assert moved.change(CONFIGURED) is CONFIGURED


# --- the journal --------------------------------------------------------------------------------------------------


def test_what_was_refuted_is_left_out_and_another_value_is_tried():
    results, told = failing("pack_loss", Stage.RERANK), Told(k_final=(1, 0))
    (first, *_) = proposed(*results, told=told, refuted={("pipeline.k_final", "6")})
    assert (first.lever, first.after) == ("k_final", 7)
    every = {("pipeline.k_final", str(v.after)) for v in variants("k_final", CONFIGURED)}
    assert "k_final" not in names(proposed(*results, told=told, refuted=every))


@pytest.mark.parametrize("variable", ["pipeline.index.sources", "index.sources"])
def test_what_needs_a_run_is_left_out_when_it_was_refuted(variable):
    assert proposed(*failing("source_missing", Stage.INGESTION), refuted={(variable, "")}) == ()


def test_a_reranker_that_nobody_ran_is_never_replayed():
    found = proposed(*failing("weak_match", Stage.RETRIEVE), told=Told(rerank_model=(5, 0)), run=BARE)
    assert [each.lever for each in found if each.keeps is not None] == []


def test_the_same_results_give_the_same_proposals():
    results = failing("pack_loss", Stage.RERANK, 3) + failing("ann_miss", Stage.EMBED, 3)
    assert proposed(*results) == proposed(*results)


# --- on the demo --------------------------------------------------------------------------------------------------


class Demo:
    """The demo's audit, and its bench."""

    def __init__(self, folder: Path) -> None:
        paths = locate(DEMO)
        loaded = load_settings(paths.config, env={}, flags={})
        few = loaded.audit.model_copy(update={"resamples": 50})
        self.settings: Settings = loaded.model_copy(update={"audit": few})
        self.summary = audit(open_bundle(paths, self.settings), folder / "demo.audit")
        with AuditReader.open(folder / "demo.audit") as reader:
            self.results = tuple(reader.iter_results())
        bundle = open_bundle(paths, self.settings)
        around = Surroundings(self.settings, Identities.of(bundle.inventory), AclSettings(), RunFacts())
        self.bench: Bench = bench_of(read_traces(bundle), lambda: self.results, around, self.summary.metrics)

    def of(self, stage: Stage) -> tuple[QueryResult, ...]:
        return tuple(
            result
            for result in self.results
            if result.diagnosis.outcome is Outcome.FAIL and result.diagnosis.stage is stage
        )

    def propose(self, results: tuple[QueryResult, ...]) -> tuple[Experiment, ...]:
        return propose(results, self.bench, self.settings.pipeline, recall=self.summary.metrics["recall@k"])


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


FIRST = {
    Stage.INGESTION: ("reingest_source", {"q-016", "q-039", "q-051", "q-054"}),
    Stage.PARSE: ("parser", {"q-002", "q-042", "q-045", "q-049"}),
    Stage.CHUNK: ("chunk_boundary", {"q-010", "q-014", "q-021", "q-038"}),
    Stage.EMBED: ("reembed_rows", {"q-007", "q-033", "q-058"}),
    Stage.RETRIEVE: ("embedding_model", {"q-008", "q-015", "q-090"}),
    Stage.FUSE: ("stable_ids", {"q-001"}),
    Stage.FILTER: ("filter_enforced", {"q-013", "q-056"}),
    Stage.RERANK: ("token_budget", {"q-006", "q-052"}),
    Stage.GENERATE: ("prompt", {"q-003", "q-079"}),
}
"""Stage -> the lever to try first where it loses everything, and the queries that it answers."""

BY_FAULT = {
    "source_missing": "reingest_source",
    "source_stale": "reingest_source",
    "half_written": "reingest_source",
    "not_yet_visible": "read_consistency",
    "stale_version_served": "prune_source",
    "text_lost": "parser",
    "empty_extraction": "parser",
    "span_in_no_chunk": "chunk_boundary",
    "span_split": "chunk_boundary",
    "row_model": "reembed_rows",
    "dim_mismatch": "reembed_rows",
    "ann_miss": "search_probes",
    "embedder_truncation": "embedder_limit",
    "lexical_operator": "embedding_model",  # the page's vector is empty, the model reads no Japanese: a second fault
    "weak_match": "embedding_model",
    "lexical_no_terms": "lexical_tokenizer",
    "literal_lost": "rewrite_off",
    "followup_lost": "standalone_question",
    "fetch_too_small": "arm_pool",
    "pool_cut": "rerank_on",
    "fusion_ids": "stable_ids",
    "arm_floor": "floor_value",
    "fused_floor": "floor_moved",
    "fusion_formula": "fusion_as_configured",
    "single_arm_rule": "single_arm",
    "foreign_hits": "filter_enforced",
    "predicate_type": "filter_value_type",
    "predicate_case": "filter_value_type",
    "post_filter_underfill": "post_filter_pool",
    "acl_data": "acl_data",
    "parent_map": "parent_key",
    "token_budget": "token_budget",
    "top_n_cut": "rerank_top_n",
    "duplicate_collapse": "dedupe_key",
    "prompt_truncation": "prompt_window",
    "reranker_demotion": "rerank_off",
    "unsupported_answer": "prompt",
    "cut_off_answer": "output_limit",
    "unanswerable_answered": "abstention",
}
"""The fault that was switched on in the example pipeline (truth.jsonl) -> the lever that mends it."""

MENDED = {
    "search.dense.fetch_k": (3, 20),
    "search.bm25.tokenizer": ("whitespace", "words+cjk-bigrams"),
    "thresholds.0.on": ("fused", "dense"),
    "thresholds.0.value": (50.0, None),
    "rerank.model": ("", "overlap-cross-2"),
    "rerank.top_n": (1, 10),
    "pack.token_budget": ([20, 60], 900),
    "pack.dedupe_by": ("source_id", "content_hash"),
    "generator.context_window": (110, 2000),
    "generator.max_tokens": (9, 200),
}
"""Keys that single queries of the demo set otherwise than the run: from, to."""


@pytest.mark.parametrize("stage", STAGES)
def test_where_one_stage_loses_everything_the_lever_that_mends_most_of_it_is_named(demo: Demo, stage: Stage):
    first = demo.propose(demo.of(stage))[0]
    assert (first.lever, {*first.queries}) == FIRST[stage]
    assert first.stage is stage


@pytest.mark.parametrize(
    ("family", "stage", "named"),
    [
        ("api", Stage.RERANK, "token_budget"),
        ("contract", Stage.FILTER, "filter_enforced"),
        ("handbook", Stage.RETRIEVE, "embedding_model"),
        ("runbook", Stage.EMBED, "reembed_rows"),
    ],
)
def test_where_one_stage_dominates_a_slice_the_first_lever_is_that_stage_s(demo: Demo, family, stage, named):
    results = tuple(r for r in demo.results if r.slices.get("family") == family)
    lost = Counter(r.diagnosis.stage for r in results if r.diagnosis.stage in STAGES)
    assert [each for each in lost if lost[each] == max(lost.values())] == [stage]
    first = demo.propose(results)[0]
    assert (first.lever, first.stage) == (named, stage)


def test_each_failing_query_gets_the_lever_that_mends_its_fault(demo: Demo):
    truth = map(json.loads, (DEMO / "truth.jsonl").read_text("utf-8").splitlines())
    faults = {row["query_id"]: row["cause"] for row in truth}
    named, other = {}, {}
    for result in demo.results:
        if result.diagnosis.outcome is Outcome.FAIL and result.diagnosis.stage in STAGES:
            query_id = result.diagnosis.query_id
            named[query_id] = demo.propose((result,))[0].lever
            if named[query_id] != BY_FAULT[faults[query_id]]:
                other[query_id] = named[query_id]
    assert (len(named), other) == (52, {})


def test_where_a_query_departs_from_the_run_its_own_value_is_given_up(demo: Demo):
    found = {
        e.variable.removeprefix("pipeline."): (e.before, e.after)
        for e in demo.summary.experiments
        if e.departing and e.lever != "rerank_off"
    }
    assert found == MENDED
    (off,) = (e for e in demo.summary.experiments if e.lever == "rerank_off")
    assert (off.before, off.after, off.departing) == ("overlap-cross-1+recency", "", ("q-085",))


def test_the_audit_proposes_what_the_proposer_does(demo: Demo):
    assert demo.summary.experiments == demo.propose(demo.results)


def test_every_experiment_with_a_value_changes_exactly_one_key_of_a_configuration_that_it_touches(demo: Demo):
    concrete = [e for e in demo.summary.experiments if e.after is not None and "thresholds" not in e.variable]
    assert len(concrete) >= 6
    for experiment in concrete:
        name = experiment.variable.removeprefix("pipeline.")
        row = demo.bench.row((*experiment.departing, *experiment.queries)[0])
        assert row is not None
        was = row.pipeline if experiment.departing else demo.settings.pipeline
        assert value_of(was, name) in (
            experiment.before,
            *(experiment.before if isinstance(experiment.before, list) else ()),
        )
        now, then = (
            dict(_leaves(each.model_dump(exclude_unset=True)))
            for each in (was, with_value(name, experiment.after)(was))
        )
        assert [key for key in now.keys() | then.keys() if now.get(key) != then.get(key)] == [name]


def _leaves(table: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict) and key != "weights":
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_an_experiment_s_value_is_one_that_its_lever_admits(demo: Demo):
    for experiment in demo.summary.experiments:
        if experiment.before is not None:
            assert admits(lever(experiment.lever), experiment.after), experiment.variable
        else:
            assert (experiment.after, experiment.basis) == (None, Basis.NEEDS_A_RUN)


def test_no_experiment_of_the_demo_sets_a_filter_s_predicate_or_an_acl(demo: Demo):
    for experiment in demo.summary.experiments:
        key = experiment.variable.removeprefix("pipeline.")
        assert key.split(".")[0] != "acl"
        assert key != "filter.expected"
        if key.startswith(("filter.", "index.acl")):
            assert experiment.basis is Basis.NEEDS_A_RUN
        assert "the ACL rule and every filter clause" in experiment.frozen


def test_no_text_of_the_demo_s_experiments_proposes_wider_access(demo: Demo):
    said = {
        text
        for e in demo.summary.experiments
        for text in (e.variable, e.why, e.how, *e.frozen, *e.watch, e.lost_to or "", e.authorisation or "")
    }
    assert len(said) > 60
    assert {text: refuses(text) for text in said if refuses(text)} == {}


@pytest.mark.parametrize("variable", ["filter.expected", "filter.mode", "filter.enforced", "index.acl", "acl.rule"])
def test_no_value_of_a_filter_or_an_acl_is_ever_replayed(variable: str):
    assert list(variants(variable, CONFIGURED)) == []
