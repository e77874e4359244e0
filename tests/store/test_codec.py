import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.model.judgement import (
    ANSWER_COLUMN,
    Cell,
    Claim,
    FoundEvidence,
    JudgeCall,
    Judgement,
    JudgeState,
    Side,
    Verdict,
)
from ragaudit.model.trace import Answer, ArmState, ArmStatus, Gold, Hit, Probe, SpanIn, Trace
from ragaudit.store.codec import MAX_TRACE_BYTES, pack_judgement, pack_trace, unpack_judgement, unpack_trace

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
hits = st.builds(
    Hit,
    id=st.text(min_size=1),
    rank=st.none() | st.integers(-1, 5),
    score=st.none() | st.floats(allow_nan=False),
    rrf=st.none() | st.floats(allow_nan=False),
    sources=st.none() | st.lists(st.text(max_size=3), max_size=2).map(tuple),
    text=st.none() | st.text(max_size=20),
    metadata=st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=2),
    extra=st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=2),
)
rankings = st.lists(hits, max_size=4).map(tuple)
ids = st.lists(st.text(max_size=4), max_size=3).map(tuple)


def trace(**fields: object) -> Trace:
    return Trace.model_validate({"query_id": "q1", "query_text": "refund window?", "k_final": 8, **fields})


@given(
    arms=st.none() | st.dictionaries(st.text(max_size=4), rankings, max_size=2),
    fused=st.none() | rankings,
    after_filter=st.none() | rankings | st.dictionaries(st.text(max_size=4), rankings, max_size=2),
    final=st.none() | ids,
    rewrite=st.none() | st.text(max_size=5) | st.lists(json_values, max_size=2),
    config=st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=2),
    unknown=json_values,
)
def test_a_trace_comes_back_as_it_was(arms, fused, after_filter, final, rewrite, config, unknown):
    before = trace(
        arms=arms,
        fused=fused,
        after_filter=after_filter,
        final_context_ids=final,
        query_rewrite=rewrite,
        config=config,
        vendor_field=unknown,
    )
    after = unpack_trace(pack_trace(before))
    assert after == before
    assert after.model_extra == {"vendor_field": unknown}


def test_absent_and_empty_lists_stay_apart():
    before = trace(arms={"dense": (), "bm25": (Hit("c1"),)}, fused=(), after_rerank=None, final_context_ids=())
    after = unpack_trace(pack_trace(before))
    assert after.arms == {"dense": (), "bm25": (Hit("c1"),)}
    assert after.fused == ()
    assert after.after_rerank is None
    assert after.final_context_ids == ()
    assert after.prompt_ids is None
    assert unpack_trace(pack_trace(trace(arms={}))).arms == {}


def test_nested_records_keep_their_types_and_unknown_keys():
    before = trace(
        arm_status={"dense": ArmStatus(status=ArmState.ERRORED, filter={"tenant": "acme"}, took_ms=12)},
        gold=(Gold(id="c1", grade=2, span_in=SpanIn(source=True, extracted="partial", chunk=False), who="ann"),),
        probes=(Probe(probe="exact_rank", value=3), Probe(probe="literals_lost", value=("a", "b"))),
        answer=Answer(text="14 days", correct=False, supported_by=()),
        gold_labelled=True,
    )
    after = unpack_trace(pack_trace(before))
    assert after == before
    assert after.arm_status is not None and after.arm_status["dense"].model_extra == {"took_ms": 12}
    assert after.probes[0].value == 3 and after.probes[1].value == ("a", "b")
    assert after.answer is not None and after.answer.supported_by == ()


@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), 2**70, "half \ud800 surrogate", None])
def test_values_beyond_plain_json_survive(odd):
    before = trace(fused=(Hit("c1", extra={"odd": odd}),))
    assert unpack_trace(pack_trace(before)).fused == (Hit("c1", extra={"odd": odd}),)


def test_a_nan_score_does_not_become_an_absent_one():
    after = unpack_trace(pack_trace(trace(fused=(Hit("c1", score=float("nan")), Hit("c2")))))
    assert after.fused is not None
    assert after.fused[0].score != after.fused[0].score
    assert after.fused[1].score is None


def test_defaults_take_no_room():
    row = json.loads(zlib.decompress(pack_trace(trace(fused=(Hit("c1", rank=1),)))))
    assert row == {"query_id": "q1", "query_text": "refund window?", "k_final": 8, "fused": [{"id": "c1", "rank": 1}]}


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no zlib",
        zlib.compress(b'{"query_id": "q1"'),
        zlib.compress(b'{"query_id": "q1"}'),
        zlib.compress(b"[]"),
        zlib.compress(b'{"query_id": "q", "query_text": "", "k_final": 8, "fused": [{"rank": 1}]}'),
        zlib.compress(b"[" * 200_000),
        zlib.compress(b'{"query_id": "q1", "query_text": "", "k_final": 8}')[:-2],
    ],
)
def test_a_damaged_trace_is_a_value_error(packed):
    with pytest.raises(ValueError):
        unpack_trace(packed)


def test_a_trace_that_unpacks_without_end_is_refused():
    with pytest.raises(ValueError):
        unpack_trace(zlib.compress(b" " * (MAX_TRACE_BYTES + 1)))


JUDGEMENT = Judgement(
    query_id="q1",
    abstained=False,
    claims=(Claim(id="r1", side=Side.REFERENCE, text="日本 \x00", quote="日本", quote_found=True),),
    cells=(
        Cell("r1", "c1", Verdict.SUPPORTED, quote="日本", p_supported=0.75),
        Cell("r1", "c2", None, "refused"),
        Cell("r1", ANSWER_COLUMN, Verdict.MISSING),
    ),
    found=(FoundEvidence("r1", "c9", where="dense#7", quote="日本"),),
    metrics={"context_recall": 1.0, "faithfulness": None},
    states={"context_recall": JudgeState.SCORED, "faithfulness": JudgeState.JUDGE_FAILED},
    reasons={"faithfulness": "refused"},
    calls=(JudgeCall(purpose="claims", prompt="claims@1", key="sha256:0", from_tape=True, usd=None, raw="[]"),),
)


def test_a_judgement_comes_back_as_it_was() -> None:
    assert unpack_judgement(pack_judgement(JUDGEMENT)) == JUDGEMENT


def test_an_empty_judgement_is_its_id() -> None:
    assert pack_judgement(Judgement(query_id="q1")) == '{"query_id":"q1"}'


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "null",
        '{"query_id": 1}',
        '{"query_id": "q", "cells": [{"claim_id": "r1", "chunk_id": "c1", "verdict": "perhaps"}]}',
        '{"query_id": "q", "cells": [{"claim_id": "r1", "chunk_id": "c1", "verdict": null, "p_supported": 2}]}',
        '{"query_id": "q", "run": "me"}',
        "[" * 100_000,
        None,
    ],
)
def test_a_damaged_judgement_is_a_value_error(packed: str) -> None:
    with pytest.raises(ValueError, match=r"^a judgement does not unpack: "):
        unpack_judgement(packed)
