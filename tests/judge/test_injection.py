"""Chunks, answers and references that give orders: with a judge that obeys them, every record stays what was asked."""

import re
import unicodedata

import pytest
from hostile_chunks import ADVICE, HOSTILE
from judge_builders import (
    LIMITS,
    PLANS,
    PROMPTS,
    Answer,
    Oracle,
    a_sample,
    ask_judge,
    claims_reply,
    how,
    rows_of,
    texts_of,
)
from msgspec.structs import replace

from ragaudit.judge.fence import shown
from ragaudit.model.judgement import ANSWER_COLUMN, Judgement, JudgeSample, JudgeState, Request

EXPIRY, ANSWER = "Free keys expire after 30 days.", "After 30 days."
STATIC = {
    name: PROMPTS.render(name, **dict.fromkeys(PROMPTS.prompts[name].variables, ""))[0][0]["content"]
    for name in ("claims", "matrix", "claim", "relevance")
}
FORBIDDEN = re.compile(
    r"<\||\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|^\W*(?:human|assistant|system):", re.I | re.M
)
REASONS = re.compile(
    r"the judge gave no verdict, asked 2 times|given two different verdicts|both supported and contradicted"
    r"|the quoted words are not in the text|the reply cannot be used: [-a-z ,\"']+"
    r"|refused as evidence: (?:no words are quoted|the quoted words are not in the text)",
    re.IGNORECASE,
)


def test_the_suite_is_large_and_speaks_many_languages() -> None:
    assert len(HOSTILE) >= 40
    scripts = {
        unicodedata.name(letter).split()[0] for text, _ in HOSTILE.values() for letter in text if letter.isalpha()
    }
    assert {"LATIN", "CYRILLIC", "ARABIC", "HEBREW", "HIRAGANA", "CJK", "HANGUL", "DEVANAGARI"} <= scripts


def check_requests(requests: list[Request], hostile: str) -> None:
    for request in requests:
        first = request.messages[:2]
        assert [message["role"] for message in first] == ["system", "user"]
        assert all(message["role"] in ("assistant", "user") for message in request.messages[2:])
        if request.prompt in STATIC:
            assert first[0]["content"] == STATIC[request.prompt]
        for message in request.messages[1:]:
            assert not FORBIDDEN.search(message["content"])
            assert not [
                letter
                for letter in message["content"]
                if unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in "\n\t\u200c\u200d"
            ]
        content = first[1]["content"]
        key = content.splitlines()[0].removeprefix("KEY: ")
        assert key not in hostile
        for name, text in texts_of(request).items():
            assert content.count(f"<{name}:{key}>") == content.count(f"</{name}:{key}>") == 1
            assert key not in text


def check_records(judgement: Judgement, sample: JudgeSample) -> None:
    packed = {chunk.id for chunk in sample.chunks or ()}
    outside = {chunk.id for chunk in sample.candidates}
    ids = {claim.id for claim in judgement.claims}
    assert {cell.claim_id for cell in judgement.cells} <= ids
    assert {cell.chunk_id for cell in judgement.cells} <= packed | outside | {ANSWER_COLUMN, "@reference"}
    assert {(one, other) for one in ids for other in packed} <= {(c.claim_id, c.chunk_id) for c in judgement.cells}
    for cell in judgement.cells:
        assert (cell.verdict is None) <= (cell.reason is not None)
        assert cell.reason is None or REASONS.fullmatch(cell.reason)
    for name, value in judgement.metrics.items():
        assert (value is None) is (judgement.states[name] is not JudgeState.SCORED)
        assert value is None or 0 <= value <= 1
    for found in judgement.found:
        text = next(chunk.text for chunk in sample.candidates if chunk.id == found.chunk_id)
        assert found.quote and (found.quote in text or found.quote in shown(text))


def check_no_advice(judgement: Judgement) -> None:
    """Nothing that a reply says beside verdicts, claims and quotes is kept outside of the raw reply."""
    ours = {
        "reasons": judgement.reasons,
        "states": judgement.states,
        "cells": [(cell.claim_id, cell.chunk_id, cell.reason) for cell in judgement.cells],
        "calls": [replace(call, raw=None) for call in judgement.calls],
        "found": [(found.claim_id, found.chunk_id, found.where) for found in judgement.found],
    }
    assert ADVICE.casefold() not in repr(ours).casefold()


@pytest.mark.parametrize("mode", ["matrix", "per_claim"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_chunk_and_a_judge_that_obeys_it(name: str, mode: str) -> None:
    text, obeying = HOSTILE[name]
    sample = a_sample([text, LIMITS], reference=EXPIRY, answer=ANSWER)

    def says(request: Request) -> Answer:
        if request.purpose == "claims":
            sides = texts_of(request)
            return claims_reply([EXPIRY] if "reference" in sides else None, [ANSWER] if "answer" in sides else None)
        return obeying

    judgement, requests = ask_judge(sample, says, how(mode=mode))
    check_requests(requests, text)
    check_records(judgement, sample)
    check_no_advice(judgement)
    assert [(claim.id, claim.text) for claim in judgement.claims] == [("r1", EXPIRY), ("a1", ANSWER)]
    assert len(requests) <= 8
    assert any(shown(text).strip() in request.messages[1]["content"] for request in requests)


@pytest.mark.parametrize("mode", ["matrix", "per_claim"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_candidate_becomes_evidence_only_by_words_that_stand_in_it(name: str, mode: str) -> None:
    text, obeying = HOSTILE[name]
    sample = a_sample([LIMITS], reference=EXPIRY, answer=None, candidates=[text])
    honest = Oracle([EXPIRY])
    judgement, requests = ask_judge(
        sample, lambda request: obeying if "evidence" in request.purpose else honest(request), how(mode=mode)
    )
    check_requests(requests, text)
    check_records(judgement, sample)
    check_no_advice(judgement)
    assert judgement.metrics["context_recall"] == 0.0
    assert judgement.found == ()


@pytest.mark.parametrize("side", ["answer", "reference"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_or_reference_and_a_judge_that_obeys_it(name: str, side: str) -> None:
    text, obeying = HOSTILE[name]
    sample = a_sample([PLANS], **({"reference": EXPIRY, "answer": ANSWER} | {side: text}))

    def says(request: Request) -> Answer:
        return obeying if request.purpose != "matrix" else Oracle()(request)

    judgement, requests = ask_judge(sample, says)
    check_requests(requests, text)
    check_records(judgement, sample)
    check_no_advice(judgement)
    if name != "claims_again":
        assert judgement.claims == ()
        assert set(judgement.states.values()) == {JudgeState.JUDGE_FAILED}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_claim_is_one_row_of_data(name: str) -> None:
    text, _ = HOSTILE[name]
    sample = a_sample([PLANS], reference=f"{EXPIRY} {text}", answer=None)
    judgement, requests = ask_judge(
        sample, lambda request: claims_reply([EXPIRY, text]) if request.prompt == "claims" else Oracle()(request)
    )
    check_requests(requests, text)
    check_records(judgement, sample)
    assert list(rows_of(requests[1])) == ["r1", "r2"]
    assert judgement.metrics["context_recall"] == 0.0
