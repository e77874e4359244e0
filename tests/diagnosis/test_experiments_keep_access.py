"""No experiment that an incident leads to sets a filter's predicate or an ACL, or says that access should widen."""

from typing import Any

import pytest
from diagnosis_builders import bundle, diagnosed, identities_of, merged, seed_only, trace_of
from incident_rows import bundle_of, own, public
from test_causes import SAMPLES

from ragaudit.evidence.journey import gather
from ragaudit.experiments.bench import Bench
from ragaudit.experiments.guard import refuses
from ragaudit.experiments.propose import propose
from ragaudit.experiments.replay import ChunkTable
from ragaudit.model.experiment import Basis, Experiment
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import METRICS, Estimate, QueryResult

RUN = {metric: Estimate(mean=0.0, low=0.0, high=0.0, n=1) for metric in METRICS}


def proposals(parts: Any) -> tuple[Experiment, ...]:
    trace, identities, verdict = trace_of(parts), identities_of(parts), diagnosed(parts)
    pipeline = Pipeline.model_validate(parts.pipeline or {})
    bench = Bench(ChunkTable.of(identities.inventory), RUN, gain="linear", seed=0, resamples=20)
    own = pipeline.with_overrides(trace.config)
    bench.add(gather(trace, identities, parts.acl), verdict, own, identities, parts.acl)
    result = QueryResult(diagnosis=verdict, query_text=trace.query_text, k_final=trace.k_final, metrics={})
    return propose([result], bench, pipeline, recall=RUN["recall@k"])


@pytest.fixture(scope="module")
def every() -> list[Experiment]:
    incidents = [bundle_of(row) for row in (*public(), *own())]
    samples = [bundle(**merged(sample.has, {})) for sample in SAMPLES.values()]
    return [e for parts in (*incidents, *map(seed_only, incidents), *samples) for e in proposals(parts)]


def test_every_cause_s_sample_and_every_incident_leads_somewhere(every: list[Experiment]) -> None:
    assert len({experiment.lever for experiment in every}) > 30


def test_no_experiment_changes_a_predicate_or_a_user_s_rights(every: list[Experiment]) -> None:
    keys = {experiment.variable.removeprefix("pipeline.") for experiment in every}
    assert {key for key in keys if key.split(".")[0] in ("acl", "user_acl")} == set()
    assert {key for key in keys if key.startswith("filter.")} <= {
        "filter.mode",
        "filter.fetch_k",
        "filter.value_type",
        "filter.enforced",
    }


def test_what_touches_a_filter_or_an_acl_is_never_given_a_value(every: list[Experiment]) -> None:
    touching = [e for e in every if e.variable.startswith(("pipeline.filter.", "pipeline.index."))]
    assert touching
    assert {(e.basis, e.after) for e in touching} == {(Basis.NEEDS_A_RUN, None)}


def test_every_experiment_freezes_the_access_rule(every: list[Experiment]) -> None:
    assert all("the ACL rule and every filter clause" in experiment.frozen for experiment in every)


def test_no_text_of_an_experiment_is_refused_by_the_guard(every: list[Experiment]) -> None:
    said = {
        text for e in every for text in (e.variable, str(e.after), e.why, e.how, *e.frozen, *e.watch, e.lost_to or "")
    }
    assert len(said) > 80
    assert {text: refuses(text) for text in said if refuses(text)} == {}
