"""Incidents whose cause is known from a public thread: the verdict agrees with it, or says what is missing."""

from typing import Any

import pytest
from diagnosis_builders import diagnosed, seed_only
from incident_rows import bundle_of, parameters

from ragaudit.model.diagnosis import STAGES, Stage

incidents = pytest.mark.parametrize("row", parameters())


@incidents
def test_the_verdict_is_the_thread_s(row: dict[str, Any]) -> None:
    verdict = diagnosed(bundle_of(row))
    found = {"stage": verdict.stage.value, "outcome": verdict.outcome.value}
    assert found["stage"] in row["acceptable_stages"], (row["tempting_wrong"], verdict.evidence)
    assert found["outcome"] == row["outcome"]
    assert (verdict.gap.value if verdict.gap else None) == row["gap"]
    if row.get("stage_per_gold"):
        assert {gold.id: gold.stage.value for gold in verdict.gold} == row["stage_per_gold"]


@incidents
def test_a_named_stage_comes_with_a_cause_and_its_proof(row: dict[str, Any]) -> None:
    verdict = diagnosed(bundle_of(row))
    if verdict.stage in STAGES:
        assert verdict.causes or verdict.leaks
        assert verdict.evidence


@incidents
def test_with_the_seed_s_fields_alone_it_is_right_or_undetermined(row: dict[str, Any]) -> None:
    verdict = diagnosed(seed_only(bundle_of(row)))
    if verdict.stage is Stage.UNDETERMINED:
        assert verdict.could_be
        assert verdict.log
        if row["stage"] in STAGES and verdict.delivered is False:
            assert set(row["acceptable_stages"]) & set(verdict.could_be), verdict.evidence
    else:
        assert verdict.stage.value in row["acceptable_stages"], verdict.evidence
        assert verdict.outcome.value == row["outcome"]
