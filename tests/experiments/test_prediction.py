"""What is proposed and replayed on the demo, held against the example pipeline really run with that one change."""

import sys
from functools import partial

import pytest

from ragaudit.config import load_settings


@pytest.fixture
def prediction(repository, monkeypatch):
    """The benchmark's own functions, and the example pipeline that it runs again."""
    monkeypatch.syspath_prepend(str(repository / "examples"))
    monkeypatch.syspath_prepend(str(repository))
    from benchmarks import prediction
    from benchmarks.rerun import Example

    yield prediction, Example(prediction.EXAMPLES)
    for name in [name for name in sys.modules if name.split(".")[0] in ("benchmarks", "pipeline")]:
        del sys.modules[name]


def test_each_replayed_proposal_of_the_demo_comes_true_when_it_is_run(prediction, tmp_path):
    benchmark, example = prediction
    settings = load_settings(benchmark.EXAMPLES / "demo" / "ragaudit.toml", env={}, flags={})
    quick = settings.model_copy(update={"audit": settings.audit.model_copy(update={"resamples": 500})})
    before = benchmark.audited(benchmark.EXAMPLES / "demo", quick, tmp_path / "before.audit")
    bench = benchmark.recorded(quick, before)
    changes = list(benchmark.proposed(before.summary.experiments, quick.pipeline, bench))
    found = {}
    for _, variant in changes:
        effect = bench.effect(variant.change, f"{variant.variable}={variant.after}")
        folder = example.run(tmp_path / variant.variable, partial(benchmark.laid_over, variant))
        after = benchmark.audited(folder, quick, tmp_path / f"{variant.variable}.audit")
        recall, predicted = after.summary.metrics["recall@k"].mean, effect.predicted["recall@k"]
        assert predicted.low <= recall <= predicted.high
        assert recall == pytest.approx(predicted.after)
        assert after.delivered - before.delivered == {*effect.kept}
        assert before.delivered - after.delivered == {*effect.lost}
        found[variant.variable] = {*effect.kept}
    assert found == {
        "pipeline.pack.token_budget": {"q-006", "q-052"},
        "pipeline.pack.dedupe_by": {"q-069"},
        "pipeline.rerank.model": {"q-085"},
    }
