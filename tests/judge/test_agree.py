"""The judge against gold ids and one mode against another: what is paired, what is left out, what is listed."""

from ragaudit.judge.agree import Difference, DifferentVerdict, Kind, against_gold, between_modes, replicated_verdicts
from ragaudit.model.diagnosis import Basis, Checkpoint, Diagnosis, GoldDiagnosis, Outcome, State, Step
from ragaudit.model.judgement import Cell, Claim, FoundEvidence, Judgement, JudgeState, Side, Verdict
from ragaudit.model.result import QueryResult

WORDS = {"s": Verdict.SUPPORTED, "c": Verdict.CONTRADICTED, "m": Verdict.MISSING, "?": None}


def gold(chunk_id, packed=True, **more):
    journey = (Step(checkpoint=Checkpoint.PACKED, state=State.PRESENT if packed else State.ABSENT),)
    return GoldDiagnosis(**{"id": chunk_id, "outcome": Outcome.PASS, "journey": journey} | more)


def compared(*rows, packed=("c1", "c2", "c3")):
    return against_gold([(*row, packed) for row in rows])


def result(*golds, query_id="q1", basis=Basis.GOLD, recall=1.0):
    diagnosis = Diagnosis(query_id=query_id, outcome=Outcome.PASS, gold=golds, basis=basis)
    return QueryResult(diagnosis=diagnosis, query_text="?", k_final=2, metrics={"recall@k": recall})


def judgement(verdicts, query_id="q1", found=(), recall=0.5, state=JudgeState.SCORED, words="claim"):
    """`verdicts`: {"r1": {"c1": "s"}}."""
    return Judgement(
        query_id=query_id,
        claims=tuple(
            Claim(id=c, side=Side.REFERENCE if c[0] == "r" else Side.ANSWER, text=f"{words} {c}") for c in verdicts
        ),
        cells=tuple(
            Cell(claim_id=claim, chunk_id=chunk, verdict=WORDS[word])
            for claim, row in verdicts.items()
            for chunk, word in row.items()
        ),
        found=tuple(FoundEvidence(claim_id=c, chunk_id=k, where="arm:bm25#7") for c, k in found),
        metrics={"context_recall": recall},
        states={"context_recall": state},
    )


def test_packed_chunks_are_paired_and_both_kinds_of_difference_are_listed():
    said = judgement({"r1": {"c1": "s", "c2": "m", "c3": "s"}, "r2": {"c1": "m", "c2": "c", "c3": "s"}})
    found = compared((result(gold("c1"), gold("c2")), said))
    assert (found.chunks.human, found.chunks.judged) == ((1.0, 1.0, 0.0), (1.0, 0.0, 1.0))
    assert (found.recall.human, found.recall.judged, found.queries) == ((1.0,), (0.5,), 1)
    assert found.differences == (
        Difference("q1", Kind.GOLD_UNSUPPORTED, "c2"),
        Difference("q1", Kind.JUDGE_ONLY, "c3", ("r1", "r2")),
    )


def test_evidence_found_outside_the_context_is_listed_unless_it_is_gold():
    said = judgement({"r1": {"c1": "m", "c8": "s"}, "r2": {"c9": "s"}}, found=[("r1", "c8"), ("r2", "c9")])
    found = compared((result(gold("c9", packed=False)), said))
    assert found.differences == (Difference("q1", Kind.FOUND_ELSEWHERE, "c8", ("r1",), "arm:bm25#7"),)
    assert (found.chunks.human, found.chunks.judged) == ((0.0,), (0.0,))  # c8 and c9 were never packed


def test_claims_of_the_answer_and_the_answer_column_are_no_evidence():
    said = judgement({"a1": {"c1": "s"}, "r1": {"c1": "m", "@answer": "s"}})
    found = compared((result(gold("c2", packed=False)), said))
    assert (found.chunks.human, found.chunks.judged, found.differences) == ((0.0,), (0.0,), ())


def test_an_unscored_chunk_is_left_out_unless_another_claim_settles_it():
    said = judgement({"r1": {"c1": "?", "c2": "?"}, "r2": {"c1": "s", "c2": "m"}})
    found = compared((result(gold("c1"), gold("c2")), said))
    assert (found.chunks.judged, found.chunks.left_out) == ((1.0,), {"unscored": 1})


def test_queries_that_cannot_be_compared_are_counted_with_their_reason():
    said = judgement({"r1": {"c1": "s"}})
    rows = [
        (result(), said),
        (result(gold("c1"), basis=Basis.JUDGE), said),
        (result(gold("c1", eligible=False)), said),
        (result(gold("c1", outcome=Outcome.LABEL_ISSUE)), said),
        (result(gold("c1")), None),
        (result(gold("parent-of-c1")), said),
    ]
    found = compared(*rows)
    assert found.chunks.left_out == {"no labelled gold": 4, "not judged": 1, "gold packed under another id": 1}
    assert (found.queries, found.chunks.human, found.differences) == (0, (), ())


def test_recall_is_paired_only_where_both_have_one():
    rows = [
        (result(gold("c1"), recall=None), judgement({"r1": {"c1": "s"}})),
        (result(gold("c1")), judgement({"r1": {"c1": "s"}}, recall=None, state=JudgeState.JUDGE_FAILED)),
    ]
    found = compared(*rows)
    assert (found.recall.human, found.recall.left_out) == ((), {"judge_failed": 1, "recall@k undefined": 1})


def test_modes_are_compared_cell_by_cell_where_both_asked_the_same():
    matrix = judgement({"r1": {"c1": "s", "c2": "m"}, "r2": {"c1": "c"}}, recall=1.0)
    other = judgement({"r1": {"c1": "s", "c2": "s"}, "r2": {"c1": "?"}, "r3": {"c1": "m"}}, recall=0.5)
    found = between_modes([(matrix, other)])
    verdicts, recall = found.compared
    assert (verdicts.human_said, verdicts.judge_said) == (("supported", "missing"), ("supported", "supported"))
    assert verdicts.left_out == {"asked in one mode only": 1, "unscored": 1}
    assert (recall.about, recall.human, recall.judged) == ("context_recall", (1.0,), (0.5,))
    assert found.differing == (DifferentVerdict("q1", "claim r1", "c2", "missing", "supported"),)


def test_claims_are_matched_by_their_words_not_by_their_number():
    found = between_modes([(judgement({"r1": {"c1": "s"}}), judgement({"r1": {"c1": "s"}}, words="other"))])
    assert found.compared[0].human == ()
    assert found.compared[0].left_out == {"asked in one mode only": 2}


def test_a_metric_that_only_one_mode_scored_is_counted():
    failed = judgement({}, recall=None, state=JudgeState.JUDGE_FAILED)
    found = between_modes([(judgement({}), failed), (failed, failed)])
    assert found.queries == 2
    assert found.compared[1].left_out == {"scored in one mode only": 1}


def test_replicates_collect_what_was_said_of_the_same_claim_and_text():
    def once(verdict):
        claim = Claim(id="r1", side=Side.REFERENCE, text="The depot opens at 8.")
        cells = (Cell(claim_id="r1", chunk_id="c1", verdict=verdict),)
        return [Judgement(query_id="q1", claims=(claim,), cells=cells)]

    said = replicated_verdicts([once(Verdict.SUPPORTED), once(Verdict.MISSING), once(None)])
    assert said == [[Verdict.SUPPORTED, Verdict.MISSING]]
    assert replicated_verdicts([once(Verdict.SUPPORTED)]) == []
