"""The decision order for one gold id: what outranks what, and what is not a miss at all."""

import pytest
from diagnosis_builders import OLD_TEXT, SPAN, TEXT, Bundle, brief, bundle, diagnosed, hits

from ragaudit.model.diagnosis import Gap, Outcome, Stage

LOST = {"extracted_text": OLD_TEXT, "extracted_chars": 64}


@pytest.mark.parametrize("gold_at", [0, 1, 2, 5])
def test_lost_text_is_parse_at_whatever_rank_the_empty_chunk_stands(gold_at: int) -> None:
    verdict = diagnosed(bundle(gold_at=gold_at, source=LOST, chunk={"text": OLD_TEXT}))
    assert brief(verdict) == "fail parse text_lost"


def test_parse_outranks_a_demotion_by_the_reranker() -> None:
    found = {"gold_at": 1, "reranked_at": 8}
    assert brief(diagnosed(bundle(**found))) == "fail rerank reranker_demotion"
    assert brief(diagnosed(bundle(**found, source=LOST, chunk={"text": OLD_TEXT}))) == "fail parse text_lost"


def test_chunk_outranks_a_model_mismatch() -> None:
    found = {"trace": {"embedding_model": "m2"}, "chunk": {"text": OLD_TEXT}}
    assert brief(diagnosed(bundle(**found))) == "fail chunk span_in_no_chunk"


def test_a_right_answer_ends_the_text_tests_for_delivered_gold() -> None:
    held = {"gold_at": 2, "source": LOST, "chunk": {"text": OLD_TEXT}}
    assert brief(diagnosed(bundle(**held, trace={"answer": {"correct": False}}))) == "fail parse text_lost"
    assert brief(diagnosed(bundle(**held, trace={"answer": {"correct": True}}))) == "pass none"


def test_hashes_are_compared_before_any_text() -> None:
    stale = {"source": {**LOST, "indexed_hash": "h0"}, "chunk": {"text": OLD_TEXT}}
    verdict = diagnosed(bundle(**stale))
    assert (brief(verdict), verdict.gap) == ("fail ingestion source_stale", Gap.STALE_VERSION)
    stale["source"]["indexed_hash"] = "h1"
    assert brief(diagnosed(bundle(**stale))) == "fail parse text_lost"


def test_fusion_outranks_the_filter_and_the_filter_outranks_the_reranker() -> None:
    floor = {"thresholds": [{"value": 0.88, "on": "dense", "score": "cosine"}]}
    cut = [{"id": "d1"}]
    late = {"after_filter": cut, "after_threshold": cut, "after_rerank": cut, "final_context_ids": ["d1"]}
    post = {"filter": {"mode": "post"}}
    assert brief(diagnosed(bundle(gold_at=2, trace=late, pipeline={**post, **floor}))) == "fail fuse arm_floor"
    assert brief(diagnosed(bundle(gold_at=2, trace=late, pipeline=post))) == "fail filter filter_dropped"


def test_a_filter_that_starves_explains_itself_unless_the_search_breadth_does() -> None:
    asked = {
        "arms": {"dense": hits("d", 4, 0)},
        "filters_applied": {"tenant": "acme"},
        "arm_status": {"dense": {"status": "ran", "limit": 8, "returned": 4, "matching": 8}},
        "final_context_ids": ["d1", "d2"],
    }
    post = {"filter": {"mode": "post"}}
    assert brief(diagnosed(bundle(gold_at=0, trace=asked, pipeline=post))) == "fail filter post_filter_underfill"
    narrow = {**post, "search": {"dense": {"ef_search": 4}}}
    assert brief(diagnosed(bundle(gold_at=0, trace=asked, pipeline=narrow))) == "fail embed narrow_search"


# --- the label ----------------------------------------------------------------------------------------------------


def doubtful(**gold: object) -> dict[str, object]:
    return {"gold": [{"id": "g", "source_id": "s1", **gold}]}


@pytest.mark.parametrize(
    ("parts", "gap", "says"),
    [
        (bundle(trace=doubtful(suspect=True)), Gap.WRONG_GOLD_LABEL, "g: the label is marked as doubtful"),
        (
            bundle(source={"text": OLD_TEXT, "extracted_text": None}, chunk={"text": OLD_TEXT}),
            Gap.WRONG_GOLD_LABEL,
            "g: the label's span is not in its own source",
        ),
        (
            bundle(
                chunk={"text": OLD_TEXT},
                chunks=[{"chunk_id": "g2", "source_id": "s1", "text": TEXT, "in": {"dense": True}}],
                trace=doubtful(span=SPAN, span_in={"chunk": False}),
            ),
            None,
            None,
        ),
        (
            bundle(source={"in_source_of_truth": False}),
            Gap.WRONG_GOLD_LABEL,
            "g: its source s1 was deleted at the source",
        ),
        (
            bundle(gold_at=0, index={"id_overlap_with_gold": 0.0}),
            Gap.GOLD_ID_SPACE,
            "g: no gold id is known to the index: labels and index are of different builds",
        ),
    ],
    ids=["suspect", "span not in source", "given span_in wins", "deleted source", "other id space"],
)
def test_a_doubtful_label_is_no_miss(parts: Bundle, gap: Gap | None, says: str | None) -> None:
    verdict = diagnosed(parts)
    if gap is None:
        assert verdict.outcome is not Outcome.LABEL_ISSUE
        return
    assert (verdict.outcome, verdict.stage, verdict.gap) == (Outcome.LABEL_ISSUE, Stage.NONE, gap)
    assert verdict.evidence == (says,)


@pytest.mark.parametrize("index", [{"id_overlap_with_gold": 0.0}, {"id_overlap_with_gold": 1.0}])
def test_gold_that_a_list_holds_is_in_the_id_space_whatever_the_export_says(index: dict[str, object]) -> None:
    assert brief(diagnosed(bundle(index=index))) == "fail retrieve below_k"


def test_a_stale_source_is_ingestion_and_not_a_wrong_label() -> None:
    newer = {"text": OLD_TEXT, "extracted_text": None, "indexed_hash": "h0"}
    assert brief(diagnosed(bundle(source=newer, chunk={"text": OLD_TEXT}))) == "fail ingestion source_stale"


# --- access -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gold_at", [0, 1, 5])
def test_gold_the_user_may_not_read_is_not_applicable(gold_at: int) -> None:
    verdict = diagnosed(bundle(gold_at=gold_at, source={"acl": ["role:hr"]}, trace={"final_context_ids": ["d2"]}))
    assert brief(verdict) == "not_applicable none"
    assert verdict.evidence == ("g: the user may not read it; not a miss",)
    assert verdict.gold[0].causes == ()


def test_the_label_s_own_word_on_access_wins_over_the_acl() -> None:
    refused = {"source": {"acl": ["role:hr"]}}
    said = {"gold": [{"id": "g", "source_id": "s1", "span": SPAN, "eligible": True}]}
    assert diagnosed(bundle(**refused)).outcome is Outcome.NOT_APPLICABLE
    assert brief(diagnosed(bundle(**refused, chunk={"acl": ["tenant:acme"]}, trace=said))) == "fail retrieve below_k"


def test_only_the_eligible_gold_decides() -> None:
    two = {"gold": [{"id": "g", "source_id": "s1", "span": SPAN}, {"id": "h", "source_id": "s2"}]}
    hidden = [{"source_id": "s2", "acl": ["role:hr"]}]
    verdict = diagnosed(bundle(gold_at=2, trace={**two, "answer": {"correct": True}}, sources=hidden))
    assert (verdict.outcome, verdict.delivered) == (Outcome.PASS, True)
    assert [gold.outcome for gold in verdict.gold] == [Outcome.PASS, Outcome.NOT_APPLICABLE]
