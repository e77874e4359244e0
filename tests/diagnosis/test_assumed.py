from collections import Counter

import pytest

from ragaudit.diagnosis.assumed import assumed_fields, assumed_findings, with_assumptions
from ragaudit.model.diagnosis import Diagnosis, Outcome, Stage
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace


def trace(**provenance):
    return Trace(query_id="q", query_text="?", k_final=2, final_context_ids=("c1",), provenance=provenance)


def test_only_what_was_assumed_counts():
    assert assumed_fields(trace(final_context_ids="assumed", arms="derived"), Pipeline()) == ("final_context_ids",)
    assert assumed_fields(Trace(query_id="q", query_text="?", k_final=2), Pipeline()) == ()


def test_a_k_that_the_configuration_states_is_not_assumed():
    assert assumed_fields(trace(k_final="assumed"), Pipeline()) == ("k_final",)
    assert assumed_fields(trace(k_final="assumed"), Pipeline(k_final=2)) == ()


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.FAIL, Outcome.UNDETERMINED])
def test_a_verdict_says_what_it_rests_on(outcome):
    found = Diagnosis(query_id="q", outcome=outcome, stage=Stage.UNDETERMINED, evidence=("c1: not packed",))
    assert with_assumptions(found, ("final_context_ids", "k_final")).evidence == (
        "c1: not packed",
        "rests on what was assumed and not logged: final_context_ids, k_final",
    )
    assert with_assumptions(found, ()) == found


@pytest.mark.parametrize("outcome", [Outcome.NOT_APPLICABLE, Outcome.LABEL_ISSUE])
def test_where_nothing_was_concluded_there_is_nothing_to_say(outcome):
    found = Diagnosis(query_id="q", outcome=outcome, stage=Stage.UNDETERMINED)
    assert with_assumptions(found, ("k_final",)).evidence == ()


def test_preflight_counts_them():
    (found,) = assumed_findings(Counter({"final_context_ids": 3, "k_final": 1}), 4)
    assert found.message == (
        "assumed by the import, not logged: final_context_ids (3 of 4 queries), k_final (1 of 4 queries). "
        "Verdicts that may rest on them say so"
    )
    assert list(assumed_findings(Counter(), 4)) == []
