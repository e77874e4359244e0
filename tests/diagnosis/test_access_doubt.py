"""Gold that its user may perhaps not read: no stage is blamed for it, and nothing is proposed to be repaired."""

from typing import Any

import pytest
from diagnosis_builders import bundle, diagnosed

from ragaudit.model.diagnosis import Diagnosis, Outcome, Stage

GOLD = {"id": "g", "source_id": "s1"}
LOG = ("gold.eligible", "sources.jsonl: acl")


def missed(field: str = "tenant", stored: Any = "globex", **over: Any) -> Diagnosis:
    """A gold that no arm returned under a filter on this field; no ACL is known."""
    trace = {"filters_applied": {field: "acme"}, "gold": [{**GOLD, **over.pop("label", {})}]}
    built: dict[str, Any] = {"source": {"acl": None}, "chunk": {"acl": None, "metadata": {field: stored}}}
    return diagnosed(bundle(gold_at=0, trace=trace, **{**built, **over}))


def test_gold_of_another_tenant_is_not_called_a_filter_fault() -> None:
    verdict = missed()
    assert (verdict.outcome, verdict.stage, verdict.causes) == (Outcome.UNDETERMINED, Stage.UNDETERMINED, ())
    assert (verdict.could_be, verdict.log) == ((Stage.FILTER,), LOG)
    assert verdict.evidence == (
        "g: its tenant is another than the filter asks for; whether the user may read it is not known",
    )
    assert "globex" not in verdict.model_dump_json()


def test_gold_of_another_tenant_that_a_filter_behind_the_search_removed_is_not_either() -> None:
    trace = {
        "filters_applied": {"tenant": "acme"},
        "gold": [GOLD],
        "after_filter": [{"id": "d1"}, {"id": "d3"}],
        "final_context_ids": ["d1", "d3"],
    }
    row = {"acl": None, "metadata": {"tenant": "globex"}}
    verdict = diagnosed(
        bundle(gold_at=2, trace=trace, source={"acl": None}, chunk=row, pipeline={"filter": {"mode": "post"}})
    )
    assert (verdict.outcome, verdict.could_be, verdict.causes) == (Outcome.UNDETERMINED, (Stage.FILTER,), ())


@pytest.mark.parametrize("row", [None, {"acl": None, "metadata": None}], ids=["no row", "a row without metadata"])
def test_gold_whose_hit_was_logged_as_another_tenant_s_is_not_called_one_that_the_filter_dropped(row: Any) -> None:
    listed = [{"id": "d1"}, {"id": "g", "metadata": {"tenant": "globex"}}]
    trace = {
        "filters_applied": {"tenant": "acme"},
        "gold": [GOLD],
        "arms": {"dense": listed},
        "after_filter": [{"id": "d1"}],
        "final_context_ids": ["d1"],
    }
    without = ("chunk",) if row is None else ()
    verdict = diagnosed(bundle(trace=trace, source={"acl": None}, chunk=row, without=without))
    assert (verdict.outcome, verdict.stage, verdict.causes) == (Outcome.UNDETERMINED, Stage.UNDETERMINED, ())
    assert (verdict.could_be, verdict.log) == ((Stage.FILTER,), LOG)
    assert verdict.evidence == (
        "g: its tenant is another than the filter asks for; whether the user may read it is not known",
    )


@pytest.mark.parametrize(
    ("over", "proof"),
    [
        (
            {"label": {"eligible": True}},
            "g: filter on tenant is false on the stored 'globex', although the user may read it",
        ),
        (
            {"source": {"acl": ["tenant:acme"]}},
            "g: filter on tenant is false on the stored 'globex', although the user may read it",
        ),
        ({"field": "lang", "stored": "de"}, "g: filter on lang is false on the stored 'de'"),
        ({"stored": "ACME"}, "g: filter tenant = 'acme' meets the stored 'ACME' only when case is folded"),
        ({"stored": [None]}, "g: filter on tenant is false on the stored [None]"),
    ],
)
def test_a_filter_fault_stays_one_where_access_is_known_or_the_clause_does_not_say_otherwise(
    over: dict[str, Any], proof: str
) -> None:
    verdict = missed(**over)
    assert (verdict.outcome, verdict.stage, verdict.evidence[0]) == (Outcome.FAIL, Stage.FILTER, proof)


def disputed(stored: list[str]) -> Diagnosis:
    """The label says that the user may read the gold, the ACL of its source does not admit the user."""
    trace = {"gold": [{**GOLD, "eligible": True}], "filters_applied": {"acl": ["tenant:acme"]}}
    return diagnosed(bundle(gold_at=0, trace=trace, source={"acl": ["role:hr"]}, chunk={"acl": stored}))


@pytest.mark.parametrize("stored", [["role:hr"], ["role:old"], []])
def test_a_label_against_the_acl_of_its_source_is_no_fault_of_the_stored_acl(stored: list[str]) -> None:
    verdict = disputed(stored)
    assert (verdict.outcome, verdict.stage, verdict.causes) == (Outcome.FAIL, Stage.UNDETERMINED, ())
    assert Stage.FILTER in verdict.could_be
    assert verdict.log[:2] == LOG
    assert verdict.evidence[-1] == (
        "g: its label says that the user may read it, the ACL of its source does not admit the user"
    )


def test_a_clause_that_sends_other_principals_than_the_stored_acl_names_clears_no_filter() -> None:
    """The user holds what the ACL names; what was sent is what the store compares."""
    trace = {"user_acl": ["tenant:acme", "group:ops"], "filters_applied": {"acl": ["tenant:acme"]}}
    closed = {"source": {"acl": ["group:ops"]}, "chunk": {"acl": ["group:ops"]}}
    verdict = diagnosed(bundle(gold_at=0, trace=trace, **closed))
    assert (verdict.stage, verdict.causes) == (Stage.FILTER, ("principals_not_sent",))
    whole = {**trace, "filters_applied": {"acl": ["tenant:acme", "group:ops"]}}
    assert diagnosed(bundle(gold_at=0, trace=whole, **closed)).could_be == (Stage.EMBED, Stage.RETRIEVE)
