"""The evidence finder: reference claims that no packed chunk supports are looked up in the candidates."""

from typing import Any

import pytest
from judge_builders import (
    LIMITS,
    PLANS,
    WEATHER,
    Oracle,
    a_sample,
    ask_judge,
    claims_reply,
    how,
    matrix_reply,
    row,
    rows_of,
    texts_of,
)

from ragaudit.model.judgement import Failure, FoundEvidence, JudgeState

EXPIRY = "Free keys expire after 30 days."
LOST, GONE = "The fee is 5 euros.", "Keys are made in Bergen."
ORACLE = Oracle(
    [EXPIRY, LOST, GONE],
    supports={EXPIRY: {PLANS: "after 30 days"}, LOST: {"Fees: 5 euros.": "5 euros"}},
)


def sample(*candidates: str, **given: Any) -> Any:
    return a_sample(reference=f"{EXPIRY} {LOST} {GONE}", answer=None, candidates=candidates, **given)


def test_a_lost_claim_is_found_where_it_stands_with_its_words() -> None:
    judgement, requests = ask_judge(sample(LIMITS, "Fees: 5 euros."), ORACLE)
    assert judgement.found == (FoundEvidence(claim_id="r2", chunk_id="d2", where="dense#2", quote="5 euros"),)
    assert [request.purpose for request in requests] == ["claims", "matrix", "evidence"]
    assert list(rows_of(requests[2])) == ["r2", "r3"]
    assert set(texts_of(requests[2])) == {"claims", "c1", "c2"}


def test_what_was_found_outside_changes_no_metric() -> None:
    with_evidence, _ = ask_judge(sample("Fees: 5 euros."), ORACLE)
    without, _ = ask_judge(sample(), ORACLE)
    assert with_evidence.metrics == without.metrics
    assert with_evidence.metrics["context_recall"] == pytest.approx(1 / 3)
    # of the candidates only the verdicts that say something are kept
    assert [cell.chunk_id for cell in with_evidence.cells if cell.chunk_id.startswith("d")] == ["d1"]


def test_candidates_are_not_looked_at_when_the_context_has_everything() -> None:
    oracle = Oracle([EXPIRY], supports={EXPIRY: {PLANS: None}})
    judgement, requests = ask_judge(a_sample(answer=None, candidates=[PLANS]), oracle)
    assert (len(requests), judgement.found) == (2, ())


def test_batches_stop_once_every_claim_is_found() -> None:
    oracle = Oracle([LOST], supports={LOST: {"Fees: 5 euros.": "5 euros"}})
    candidates = [WEATHER, LIMITS, "Fees: 5 euros.", "Rain.", "Snow."]
    asked = a_sample(reference=LOST, answer=None, candidates=candidates)
    judgement, requests = ask_judge(asked, oracle, how(max_candidates=2))
    assert [sorted(set(texts_of(request)) - {"claims"}) for request in requests[2:]] == [["c1", "c2"], ["c1", "c2"]]
    assert [found.chunk_id for found in judgement.found] == ["d3"]
    assert [found.where for found in judgement.found] == ["dense#3"]


def test_packed_and_repeated_candidates_are_not_asked_about_again() -> None:
    asked = sample("Fees: 5 euros.", WEATHER)
    chunks = asked.chunks or ()
    asked = asked.model_copy(update={"candidates": (chunks[0], *asked.candidates, asked.candidates[0])})
    _, requests = ask_judge(asked, ORACLE)
    assert [text for name, text in texts_of(requests[2]).items() if name != "claims"] == ["Fees: 5 euros.", WEATHER]


@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        ("", "refused as evidence: no words are quoted"),
        ("The fee is 5 euros, trust me", "refused as evidence: the quoted words are not in the text"),
    ],
)
def test_evidence_without_words_that_stand_in_the_chunk_is_refused(quote: str, reason: str) -> None:
    asked = a_sample([LIMITS], reference=LOST, answer=None, candidates=["Fees: 5 euros."])
    judgement, _ = ask_judge(
        asked, [claims_reply([LOST]), matrix_reply(row("r1")), matrix_reply(row("r1", [("c1", quote)]))]
    )
    assert judgement.found == ()
    refused = judgement.cells[-1]
    assert (refused.chunk_id, refused.verdict, refused.reason) == ("d1", None, reason)
    assert judgement.metrics["context_recall"] == 0.0


def test_a_claim_whose_verdict_failed_is_not_looked_up() -> None:
    asked = a_sample([LIMITS], reference=LOST, answer=None, candidates=["Fees: 5 euros."])
    judgement, requests = ask_judge(asked, [claims_reply([LOST]), Failure(kind="timeout", message="60 s")])
    assert [request.purpose for request in requests] == ["claims", "matrix"]
    assert judgement.found == ()
    assert judgement.states["context_recall"] is JudgeState.JUDGE_FAILED


def test_a_search_that_failed_is_no_absence() -> None:
    asked = a_sample([LIMITS], reference=LOST, answer=None, candidates=["Fees: 5 euros."])
    judgement, _ = ask_judge(
        asked, [claims_reply([LOST]), matrix_reply(row("r1")), Failure(kind="budget", message="spent")]
    )
    assert [(cell.chunk_id, cell.reason) for cell in judgement.cells if cell.verdict is None] == [
        ("d1", "not asked: the budget was spent")
    ]
    assert judgement.metrics["context_recall"] == 0.0


def test_an_empty_context_is_no_reason_not_to_look() -> None:
    judgement, requests = ask_judge(sample("Fees: 5 euros.", chunks=()), ORACLE)
    assert [request.purpose for request in requests] == ["claims", "evidence"]
    assert [found.claim_id for found in judgement.found] == ["r2"]
    assert judgement.metrics["context_recall"] == 0.0


def test_an_empty_context_with_an_answer_learns_whether_it_declines() -> None:
    declining = Oracle([LOST], ["nothing"], {LOST: {"Fees: 5 euros.": "5 euros"}}, declines=True)
    asked = a_sample([], reference=LOST, answer="I do not know.", candidates=["Fees: 5 euros."])
    judgement, _ = ask_judge(asked, declining)
    assert (judgement.abstained, judgement.states["faithfulness"]) == (True, JudgeState.ABSTAINED)
    assert [found.chunk_id for found in judgement.found] == ["d1"]


def test_answer_claims_are_never_looked_up() -> None:
    asked = a_sample([WEATHER], reference=None, answer=LOST, candidates=["Fees: 5 euros."])
    oracle = Oracle(answer=[LOST], supports={LOST: {"Fees: 5 euros.": "5 euros"}})
    judgement, requests = ask_judge(asked, oracle)
    assert (len(requests), judgement.found) == (2, ())
    assert judgement.metrics["faithfulness"] == 0.0
