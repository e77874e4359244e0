"""Every registered cause: a bundle that has it, and the same bundle with the one decisive value changed."""

from pathlib import Path

import pytest
from cause_samples import Sample
from diagnosis_builders import brief, diagnosed
from samples_access import ACCESS, ANSWER
from samples_context import CONTEXT
from samples_corpus import CORPUS
from samples_fusion import FUSION
from samples_index import INDEX, SEARCH

from ragaudit.diagnosis.registry import CAUSES
from ragaudit.model.diagnosis import STAGES

SAMPLES = {**CORPUS, **ACCESS, **ANSWER, **CONTEXT, **FUSION, **INDEX, **SEARCH}
DOCS = Path(__file__).resolve().parents[2] / "docs"

each = pytest.mark.parametrize(("name", "sample"), SAMPLES.items(), ids=SAMPLES)


def test_every_registered_cause_has_a_sample() -> None:
    assert set(SAMPLES) == set(CAUSES)


@each
def test_the_cause_is_named_first_or_among_the_causes_with_its_exact_proof(name: str, sample: Sample) -> None:
    verdict = diagnosed(sample.bundle)
    assert brief(verdict) == sample.verdict
    assert verdict.stage is CAUSES[name].stage
    assert name in verdict.causes
    assert sample.says in verdict.evidence


@each
def test_the_near_miss_gets_another_verdict(name: str, sample: Sample) -> None:
    verdict = diagnosed(sample.near_miss)
    assert brief(verdict) == sample.then
    assert name not in verdict.causes
    assert sample.says not in verdict.evidence


@each
def test_a_near_miss_changes_a_single_table(name: str, sample: Sample) -> None:
    assert len(sample.near) == 1


@pytest.mark.parametrize("name", CAUSES)
def test_the_manual_has_a_heading_for_every_cause(name: str) -> None:
    manual = (DOCS / "causes.md").read_text(encoding="utf-8").splitlines()
    assert f"### {name}" in manual


@pytest.mark.parametrize("name", CAUSES)
def test_the_manual_quotes_the_remedy_and_the_proof(name: str) -> None:
    section = (DOCS / "causes.md").read_text(encoding="utf-8").split(f"\n### {name}\n")[1].split("\n### ")[0]
    assert CAUSES[name].summary in section
    assert CAUSES[name].remedy in section
    assert SAMPLES[name].says in section


@pytest.mark.parametrize("stage", STAGES)
def test_the_manual_of_stages_has_a_heading_for_every_stage(stage: str) -> None:
    assert f"## {STAGES[STAGES.index(stage)].label}" in (DOCS / "stages.md").read_text(encoding="utf-8")
