"""What comes first: one variable each, by the failing queries recovered; what needs a run; what was refuted."""

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
from ragaudit.experiments.levers import admits, lever, lever_for
from ragaudit.experiments.propose import propose
from ragaudit.experiments.variants import variants, with_value
from ragaudit.model.diagnosis import STAGES, Diagnosis, Outcome, Stage
from ragaudit.model.experiment import Basis, Experiment
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
NO_DEDUPE = {("pipeline.pack.dedupe_by", "")}
"""Leaves out the lever that comes first for a pack loss, which this configuration could not replay."""
RECALL = Estimate(mean=0.5, low=0.4, high=0.6, n=20)


class Recorded:
    """A bench that was told what each change does: name of the change -> (kept, lost)."""

    failing = 12
    excluded = 2

    def __init__(self, **told: tuple[int, int]) -> None:
        self._told = told

    def effect(self, change, name: str) -> Effect:
        assert change(CONFIGURED) != CONFIGURED
        kept, lost = self._told.get(name.partition("=")[0].removeprefix("pipeline.").replace(".", "_"), (0, 0))
        if name.endswith(("=False", "=None")):
            kept, lost = 0, 0
        ids = tuple(f"q{n}" for n in range(kept)), tuple(f"x{n}" for n in range(lost))
        return Effect(*ids, ("u1",), {}, 10, {"arms are not logged": 1})


def failing(cause: str, stage: Stage, n: int = 1) -> list[QueryResult]:
    return [
        QueryResult(
            diagnosis=Diagnosis(query_id=f"{cause}-{i}", outcome=Outcome.FAIL, stage=stage, causes=(cause,)),
            query_text="?",
            k_final=5,
            metrics={},
        )
        for i in range(n)
    ]


def proposed(*results: QueryResult, told=None, tried=()) -> tuple[Experiment, ...]:
    return propose(results, told or Recorded(), CONFIGURED, tried=tried, recall=RECALL)


def names(found: tuple[Experiment, ...]) -> list[str]:
    return [experiment.lever for experiment in found]


def test_without_a_failing_query_nothing_is_proposed():
    passed = failing("pack_loss", Stage.RERANK)[0].model_copy(
        update={"diagnosis": Diagnosis(query_id="q", outcome=Outcome.PASS)}
    )
    assert proposed(passed) == ()


def test_an_undetermined_stage_gives_no_proposal():
    assert proposed(*failing("pack_loss", Stage.UNDETERMINED)) == ()


def test_replayed_experiments_are_ranked_by_what_is_kept_less_what_is_lost():
    results = failing("pack_loss", Stage.RERANK, 3)
    found = proposed(*results, told=Recorded(k_final=(3, 0), pack_token_budget=(4, 2)), tried=NO_DEDUPE)
    assert names(found)[:2] == ["k_final", "token_budget"]
    first, second = found[:2]
    assert (first.keeps, first.loses, first.of, first.basis) == (3, 0, 12, Basis.REPLAYED)
    assert (second.keeps, second.loses, second.lost) == (4, 2, ("x0", "x1"))
    assert second.lost_to == "recovers 2, k_final recovers 3"
    assert first.lost_to is None
    assert first.excluded == 2 + 1


def test_a_tie_goes_to_the_earlier_lever():
    results = failing("pack_loss", Stage.RERANK, 3)
    found = proposed(*results, told=Recorded(k_final=(2, 0), pack_token_budget=(3, 1)), tried=NO_DEDUPE)
    assert lever("k_final").order < lever("token_budget").order
    assert names(found)[:2] == ["k_final", "token_budget"]
    assert found[1].lost_to == "as many as k_final, a later lever"


def test_of_equal_values_the_smallest_step_is_taken():
    (first, *_) = proposed(*failing("pack_loss", Stage.RERANK), told=Recorded(k_final=(1, 0)), tried=NO_DEDUPE)
    assert (first.variable, first.before, first.after) == ("pipeline.k_final", 5, 6)


def test_a_change_that_loses_as_much_as_it_keeps_is_not_proposed_as_replayed():
    found = proposed(*failing("pool_cut", Stage.RERANK, 2), told=Recorded(k_final=(2, 2)))
    assert "k_final" not in names(found)


def test_what_the_lists_cannot_tell_needs_a_run_and_gets_a_ceiling_and_no_number():
    (only,) = proposed(*failing("source_missing", Stage.INGESTION, 4))
    assert (only.basis, only.keeps, only.loses, only.predicted) == (Basis.NEEDS_A_RUN, None, None, {})
    assert (only.before, only.after) == (None, None)
    assert only.ceiling == pytest.approx(0.5 + 4 / 20)
    assert (only.of, len(only.queries)) == (4, 4)


def test_a_ceiling_is_never_over_1():
    (only,) = proposed(*failing("source_missing", Stage.INGESTION, 15))
    assert only.ceiling == 1.0


def test_a_query_that_needs_a_run_counts_for_the_first_of_its_levers_alone():
    known = [each.name for each in lever_for("ann_miss")]
    assert len(known) > 1
    assert names(proposed(*failing("ann_miss", Stage.EMBED, 3))) == known[:1]


def test_a_later_lever_is_proposed_when_its_effect_could_be_replayed():
    known = [each.name for each in lever_for("below_k")]
    assert known.index("k_final") > 0
    found = proposed(*failing("below_k", Stage.RETRIEVE, 3), told=Recorded(k_final=(2, 0)))
    assert names(found) == [known[0], "k_final"]
    assert found[1].why.startswith("3 failing queries: below k 3.")


def test_generation_comes_after_all_of_retrieval():
    results = failing("unsupported_answer", Stage.GENERATE, 9) + failing("source_missing", Stage.INGESTION)
    first, second = proposed(*results)
    assert (first.stage, second.stage) == (Stage.INGESTION, Stage.GENERATE)
    assert second.lost_to == "not retrieval: that comes first"
    assert second.ceiling is None


def test_what_was_refuted_is_left_out_and_another_value_is_tried():
    results, told = failing("pack_loss", Stage.RERANK), Recorded(k_final=(1, 0))
    (first, *_) = proposed(*results, told=told, tried={("pipeline.k_final", "6"), *NO_DEDUPE})
    assert (first.lever, first.after) == ("k_final", 7)
    every = {("pipeline.k_final", str(v.after)) for v in variants("k_final", CONFIGURED)}
    assert "k_final" not in names(proposed(*results, told=told, tried=every))


def test_what_needs_a_run_is_left_out_when_it_was_refuted():
    results = failing("source_missing", Stage.INGESTION)
    assert proposed(*results, tried={("pipeline.index.sources", "")}) == ()


def test_a_reranker_that_nobody_ran_is_never_replayed():
    found = proposed(*failing("weak_match", Stage.RETRIEVE), told=Recorded(rerank_model=(5, 0)))
    assert "rerank_on" not in names(found)


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


@pytest.mark.parametrize("stage", STAGES)
def test_where_one_stage_loses_everything_the_first_lever_answers_that_stage(demo: Demo, stage: Stage):
    results = demo.of(stage)
    assert results
    first = demo.propose(results)[0]
    assert first.stage is stage
    assert stage in lever(first.lever).stages


def test_the_audit_proposes_what_the_proposer_does(demo: Demo):
    assert demo.summary.experiments == demo.propose(demo.results)


def test_every_replayed_experiment_changes_exactly_one_key(demo: Demo):
    replayed = [e for e in demo.summary.experiments if e.basis is Basis.REPLAYED]
    assert len(replayed) >= 3
    now = dict(_leaves(demo.settings.pipeline.model_dump(exclude_unset=True)))
    for experiment in replayed:
        changed = with_value(experiment.variable, experiment.after)(demo.settings.pipeline)
        then = dict(_leaves(changed.model_dump(exclude_unset=True)))
        assert [key for key in now.keys() | then.keys() if now.get(key) != then.get(key)] == [
            experiment.variable.removeprefix("pipeline.")
        ]


def _leaves(table: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict) and key != "weights":
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_an_experiment_s_value_is_one_that_its_lever_admits(demo: Demo):
    for experiment in demo.summary.experiments:
        if experiment.basis is Basis.REPLAYED:
            assert admits(lever(experiment.lever), experiment.after), experiment.variable
        else:
            assert experiment.after is None


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
