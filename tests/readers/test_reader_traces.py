import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_builders import as_line, one, read, record

from ragaudit.model.trace import ArmState, Hit, Provenance, Trace
from ragaudit.readers.problems import Problems
from ragaudit.readers.traces import TraceContext, traces_from_lines, traces_from_rows


def both_paths(value: dict[str, Any]) -> tuple[Trace, Trace]:
    """The trace of the fast path and that of the patient one."""
    fast, patient = (TraceContext("traces.jsonl", Problems()) for _ in range(2))
    (first,) = traces_from_lines([(1, as_line(value))], fast)
    (second,) = traces_from_rows([(1, json.loads(as_line(value)))], patient)
    assert fast.problems.texts() == patient.problems.texts() == ()
    return first, second


def why(folder: Path, value: Any) -> str:
    """Why this line is set aside, while the good line after it is read."""
    traces, bundle = read(folder, value, record(query_id="good"))
    assert [trace.query_id for trace in traces] == ["good"]
    (message,) = bundle.problems.texts()
    assert bundle.inputs()["traces.jsonl"].set_aside == 1
    return message


# --- what is kept ---------------------------------------------------------------------------------------------


def test_an_empty_list_stays_empty_and_a_null_stays_absent(tmp_path: Path) -> None:
    trace = one(tmp_path, record(arms={"dense": [], "bm25": None}, fused=[], after_rerank=None, prompt_ids=[]))
    assert trace.arms == {"dense": ()}
    assert trace.fused == ()
    assert trace.after_rerank is None
    assert trace.rerank_input is None
    assert trace.prompt_ids == ()


def test_empty_and_null_differ_on_both_paths() -> None:
    fast, patient = both_paths(record(fused=[], after_rerank=None, filters_applied={}, after_filter={"dense": []}))
    assert fast == patient
    assert (fast.fused, fast.after_rerank, fast.filters_applied) == ((), None, {})
    assert fast.after_filter == {"dense": ()}


def test_unknown_fields_of_a_trace_and_of_a_hit_are_kept(tmp_path: Path) -> None:
    hit = {"id": "c1", "score": 0.7, "distance": 0.3, "payload": {"page": 4}}
    trace = one(tmp_path, record(fused=[hit], latency_ms=12, note=None))
    assert trace.model_extra == {"latency_ms": 12, "note": None}
    assert trace.fused == (Hit("c1", score=0.7, extra={"distance": 0.3, "payload": {"page": 4}}),)


def test_hits_may_be_objects_bare_ids_or_pairs(tmp_path: Path) -> None:
    trace = one(tmp_path, record(fused=["c1", 12, ["c3", 0.5], [4, None], {"id": "c5"}]))
    assert trace.fused == (Hit("c1"), Hit("12"), Hit("c3", score=0.5), Hit("4"), Hit("c5"))


def test_integer_ids_become_text_wherever_an_id_stands(tmp_path: Path) -> None:
    trace = one(
        tmp_path,
        {
            "query_id": 7,
            "query_text": "q",
            "k_final": 3,
            "session_id": 70,
            "arms": {"dense": [{"id": 1, "source_id": 10}]},
            "after_filter": [{"id": 1}],
            "final_context_ids": [1],
            "prompt_ids": [1],
            "gold_ids": [1, 2],
            "gold": [{"id": 1, "source_id": 10}],
            "id_map": {"1": 2},
            "probes": [{"probe": "exact_rank", "gold_id": 1, "value": 3}],
            "conversation": {"previous_context_ids": [1]},
            "context_texts": {"1": "text"},
            "answer": {"supported_by": [1]},
        },
    )
    assert trace.query_id == "7"
    assert trace.session_id == "70"
    assert trace.arms == {"dense": (Hit("1", source_id="10"),)}
    assert trace.after_filter == (Hit("1"),)
    assert trace.final_context_ids == trace.prompt_ids == ("1",)
    assert trace.gold_ids == ("1", "2")
    assert [(gold.id, gold.source_id) for gold in trace.gold] == [("1", "10"), ("2", None)]
    assert trace.id_map == {"1": "2"}
    assert trace.probes[0].gold_id == "1"
    assert trace.conversation is not None and trace.conversation.previous_context_ids == ("1",)
    assert trace.context_texts == {"1": "text"}
    assert trace.answer is not None and trace.answer.supported_by == ("1",)


def test_integer_ids_in_groups_become_text(tmp_path: Path) -> None:
    assert one(tmp_path, record(gold_groups=[[1, 2], [3]])).gold_groups == (("1", "2"), ("3",))


def test_uuid_ids_of_a_table_become_text() -> None:
    key = UUID("12345678-1234-5678-1234-567812345678")
    context = TraceContext("traces.parquet", Problems())
    (trace,) = traces_from_rows([(1, record(final_context_ids=[key], fused=[key]))], context)
    assert trace.final_context_ids == (str(key),)
    assert trace.fused == (Hit(str(key)),)


def test_a_text_id_with_leading_zeros_is_never_made_a_number(tmp_path: Path) -> None:
    trace = one(tmp_path, record(final_context_ids=["007", 7]))
    assert trace.final_context_ids == ("007", "7")


def test_ranks_from_zero_gaps_and_negative_ranks_are_kept_as_logged(tmp_path: Path) -> None:
    trace = one(tmp_path, record(fused=[{"id": "a", "rank": 0}, {"id": "b", "rank": 4}, {"id": "c", "rank": -1}]))
    assert [hit.rank for hit in trace.fused or ()] == [0, 4, -1]


def test_unsorted_lists_ties_and_repeated_ids_keep_their_order(tmp_path: Path) -> None:
    hits = [
        {"id": "a", "rank": 3, "score": 0.1},
        {"id": "b", "rank": 1, "score": 0.9},
        {"id": "c", "rank": 1, "score": 0.9},
        {"id": "a", "rank": 2, "score": 0.5},
    ]
    trace = one(tmp_path, record(fused=hits))
    assert [hit.id for hit in trace.fused or ()] == ["a", "b", "c", "a"]
    assert [hit.rank for hit in trace.fused or ()] == [3, 1, 1, 2]


@pytest.mark.parametrize("rewrite", [None, "text", ["a", "b"], {"hyde": "text", "n": 2}])
def test_a_query_rewrite_may_be_null_text_list_or_object(tmp_path: Path, rewrite: Any) -> None:
    assert one(tmp_path, record(query_rewrite=rewrite)).query_rewrite == rewrite


def test_a_filtered_list_may_be_merged_or_per_arm() -> None:
    fast, patient = both_paths(record(after_filter=[{"id": "c1"}], after_threshold={"dense": [{"id": "c2"}]}))
    assert fast == patient
    assert fast.after_filter == (Hit("c1"),)
    assert fast.after_threshold == {"dense": (Hit("c2"),)}


def test_every_optional_field_arrives_and_both_paths_agree() -> None:
    fast, patient = both_paths(
        record(
            user_acl=["tenant:acme"],
            slices={"language": "de", "turns": 3},
            filters_applied={"tenant": "acme", "year": {"gte": 2024}},
            fused=[{"id": "c1", "rank": 1, "rrf": 0.03, "sources": ["dense"], "text": "t", "metadata": {"a": 1}}],
            arm_status={"bm25": {"status": "errored", "error": "timeout", "limit": 50}},
            gold=[{"id": "c1", "grade": 2, "span": "words", "span_in": {"chunk": "normalised"}, "eligible": True}],
            gold_mode="any",
            provenance={"fused": "derived"},
            answerable=True,
            answer={"text": "yes", "correct": False},
            probes=[{"probe": "fetch_by_id", "value": True}, {"probe": "exact_rank", "value": None}],
            id_map={"s1": "c1"},
            config={"pack": {"token_budget": 100}},
            timestamp="2026-10-01T12:00:00Z",
            prompt_tokens=900,
        )
    )
    assert fast == patient
    assert fast.arm_status is not None and fast.arm_status["bm25"].status is ArmState.ERRORED
    assert fast.gold[0].grade == 2
    assert fast.gold[0].span_in is not None and fast.gold[0].span_in.chunk == "normalised"
    assert [probe.value for probe in fast.probes] == [True, None]
    assert fast.provenance == {"fused": Provenance.DERIVED}
    assert fast.slices == {"language": "de", "turns": 3}


_score = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5)
_hit = st.fixed_dictionaries(
    {"id": st.text(max_size=4)}, optional={"rank": st.none() | st.integers(-2, 9), "score": _score, "rrf": _score}
)
_ranking = st.none() | st.lists(_hit, max_size=4)
_ids = st.none() | st.lists(st.text(max_size=3), max_size=4)


@given(
    st.fixed_dictionaries(
        {
            "fused": _ranking,
            "after_filter": _ranking | st.dictionaries(st.text(max_size=3), st.lists(_hit, max_size=2)),
        },
        optional={"final_context_ids": _ids, "gold_ids": _ids, "prompt_ids": _ids, "notes": st.none() | st.text()},
    )
)
def test_the_fast_and_the_patient_path_read_the_same(over: dict[str, Any]) -> None:
    fast, patient = both_paths(record(**over))
    assert fast == patient


# --- what is odd, and used all the same -----------------------------------------------------------------------


def test_nan_and_infinity_become_null_and_are_counted(tmp_path: Path) -> None:
    line = (
        b'{"query_id": "q1", "query_text": "q", "k_final": 2, "final_context_chars": NaN, "slices": {"x": NaN},'
        b'"arms": {"dense": [{"id": "a", "score": NaN}, {"id": "b", "score": Infinity}, {"id": "c", "score":-Infinity},'
        b'{"id": "d", "rrf": 1e999}, {"id": "e", "rank": NaN, "score": 0.5}, ["f", NaN]]}}\n'
    )
    traces, bundle = read(tmp_path, line)
    assert [hit.score for hit in (traces[0].arms or {})["dense"]] == [None, None, None, None, 0.5, None]
    assert (traces[0].arms or {})["dense"][3].rrf is None
    assert traces[0].slices == {"x": None}
    assert traces[0].final_context_chars is None
    assert bundle.problems.counts() == {"not_a_number": 8}
    assert bundle.problems.messages[0].place == "traces.jsonl:1"


def test_a_probe_that_measured_nan_is_left_out_since_null_would_mean_not_found(tmp_path: Path) -> None:
    line = as_line(
        record(probes=[{"probe": "exact_rank", "value": float("nan")}, {"probe": "lexical_rank", "value": 2}])
    )
    traces, bundle = read(tmp_path, line)
    assert [probe.probe for probe in traces[0].probes] == ["lexical_rank"]
    assert bundle.problems.counts() == {"not_a_number": 1}


def test_a_rank_of_the_wrong_type_is_dropped_and_counted(tmp_path: Path) -> None:
    hits = [{"id": "a", "rank": "1"}, {"id": "b", "rank": 2.0}, {"id": "c", "rank": True}, {"id": "d", "rank": 2.5}]
    traces, bundle = read(tmp_path, record(fused=hits))
    assert [hit.rank for hit in traces[0].fused or ()] == [None, 2, None, None]
    assert bundle.problems.counts() == {"rank_not_integer": 3}
    assert bundle.problems.texts() == (
        "traces.jsonl:1: fused[0].rank: a text is no rank and was read as null; the position in the list counts.",
    )


# --- what is set aside, and what it says ----------------------------------------------------------------------


def test_good_lines_survive_bad_ones(tmp_path: Path) -> None:
    bad = [b"not json\n", b"[1, 2]\n", b"null\n", b'{"query_id": "x"}\n', b"\x00\x00\n", b'{"query_id": "y",}\n']
    good = [record(query_id=f"q{n}") for n in range(7)]
    mixed = [item for pair in zip(good, [*bad, b"\n"], strict=True) for item in pair]
    traces, bundle = read(tmp_path, *mixed)
    assert [trace.query_id for trace in traces] == [f"q{n}" for n in range(7)]
    assert [problem.place for problem in bundle.problems.messages] == [
        f"traces.jsonl:{n}" for n in (2, 4, 6, 8, 10, 12)
    ]
    assert (bundle.inputs()["traces.jsonl"].rows, bundle.inputs()["traces.jsonl"].set_aside) == (13, 6)


def test_a_wrong_score_names_line_field_and_what_to_do(tmp_path: Path) -> None:
    hits = [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d", "score": "high"}]
    assert why(tmp_path, record(arms={"dense": hits})) == (
        "traces.jsonl:1: arms.dense[3].score: a text is no number. Log a number, or null."
    )


@pytest.mark.parametrize("over", [{"final_context_ids": ["c1", 12.0]}, {"gold_ids": ["c1", 12.0]}])
def test_a_float_is_no_id(tmp_path: Path, over: dict[str, Any]) -> None:
    (field,) = over
    assert why(tmp_path, record(**over)) == (
        f"traces.jsonl:1: {field}[1]: the number 12.0 is no id. Log ids as text, as the store holds them."
    )


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ({"fused": [{"id": 1.5}]}, "fused[0].id: the number 1.5 is no id."),
        ({"fused": [{"id": True}]}, "fused[0].id: true is no id."),
        ({"fused": [{"rank": 1}]}, "fused[0].id: missing."),
        ({"fused": [None]}, "fused[0]: null is no hit."),
        ({"fused": [["a", 0.5, 3]]}, "fused[0]: a list of 3 is no hit."),
        ({"fused": {"a": 0.5}}, "fused: an object is no list."),
        ({"arms": [["a"]]}, "arms: a list is no object."),
        ({"after_filter": {"dense": [{"id": "a", "text": 5}]}}, "after_filter.dense[0].text: the number 5 is no text."),
        ({"gold": [{"id": "c1", "grade": -1}]}, "gold[0].grade: Input should be greater than or equal to 0,"),
        ({"gold": [{"id": "c1", "grade": float("nan")}]}, "gold[0].grade: Input should be a finite number,"),
        ({"gold": [{"grade": 1}]}, "gold[0].id: missing."),
        ({"gold_mode": "some"}, 'gold_mode: a text is not a mode. Log "all" or "any".'),
        ({"gold_groups": [["a"], []]}, "gold_groups[1]: the group is empty,"),
        ({"answer": "yes"}, "answer: Input should be a valid object"),
        ({"answer": {"supported_by": ["a", 1.5]}}, "answer.supported_by[1]: Input should be a valid string,"),
        ({"arm_status": {"dense": {"status": "asleep"}}}, "arm_status.dense.status: Input should be 'ran', 'off'"),
        ({"provenance": {"fused": "guessed"}}, "provenance.fused: Input should be 'observed', 'derived'"),
        ({"query_text": 5}, "query_text: Input should be a valid string, not the number 5."),
        ({"query_id": 1.0}, "query_id: the number 1.0 is no id."),
        ({"k_final": 0}, "k_final: the number 0 is no K."),
        ({"k_final": True}, "k_final: true is no K."),
        ({"k_final": 2.5}, "k_final: the number 2.5 is no K."),
        ({"k_final": 10**12}, "k_final: the number 1000000000000 is no K."),
        ({"prompt_tokens": True}, "prompt_tokens: true is no number."),
        ({"id_map": {"a": None, "b": 1.5}}, "id_map.b: the number 1.5 is no id."),
        ({"user_acl": "tenant:acme"}, "user_acl: a text is no list."),
    ],
)
def test_a_field_that_cannot_be_read_is_named(tmp_path: Path, over: dict[str, Any], expected: str) -> None:
    message = why(tmp_path, record(**over))
    assert message.startswith(f"traces.jsonl:1: {expected}")
    assert message.endswith(".")


@pytest.mark.parametrize("field", ["query_id", "query_text", "k_final"])
def test_a_missing_mandatory_field_sets_the_line_aside(tmp_path: Path, field: str) -> None:
    assert why(tmp_path, record(**{field: None})).startswith(f"traces.jsonl:1: {field}: missing. ")


def test_the_old_field_k_is_not_read_as_k_final(tmp_path: Path) -> None:
    value = record(k=8)
    del value["k_final"]
    message = why(tmp_path, value)
    assert "an old field `k` is not read: rename it to k_final" in message
    assert "[pipeline] in ragaudit.toml" in message


def test_arms_or_final_context_ids_are_enough(tmp_path: Path) -> None:
    only_arms, only_ids = record(), record(query_id="q2")
    del only_arms["final_context_ids"], only_ids["arms"]
    traces, bundle = read(tmp_path, only_arms, only_ids)
    assert [trace.query_id for trace in traces] == ["q1", "q2"]
    assert bundle.problems.texts() == ()


def test_a_trace_without_any_list_is_set_aside(tmp_path: Path) -> None:
    message = why(tmp_path, record(arms=None, final_context_ids=None))
    assert message.startswith("traces.jsonl:1: arms, final_context_ids: both missing. Log what each arm returned")


def test_a_missing_k_is_taken_from_the_configuration_and_marked_assumed(tmp_path: Path) -> None:
    value = record(provenance={"fused": "derived"})
    del value["k_final"]
    trace = one(tmp_path, value, toml="[pipeline]\nk_final = 5\n")
    assert trace.k_final == 5
    assert trace.provenance == {"fused": Provenance.DERIVED, "k_final": Provenance.ASSUMED}


def test_a_logged_k_wins_over_the_configuration(tmp_path: Path) -> None:
    trace = one(tmp_path, record(k_final=3), toml="[pipeline]\nk_final = 5\n")
    assert (trace.k_final, trace.provenance) == (3, None)


def test_the_first_of_two_lines_with_one_query_id_counts(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, record(query_id=1, notes="first"), record(), record(query_id="1", notes="second"))
    assert [(trace.query_id, trace.notes) for trace in traces] == [("1", "first"), ("q1", None)]
    assert bundle.problems.texts() == (
        "traces.jsonl:3: query_id '1' was already on line 1, which counts. Log one line a query.",
    )
    assert bundle.problems.counts() == {"duplicate_query_id": 1}


def test_a_line_set_aside_does_not_claim_its_query_id(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, record(k_final=0), record(k_final=4))
    assert [trace.k_final for trace in traces] == [4]
    assert "duplicate_query_id" not in bundle.problems.counts()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "rank", "score", "grade", "value", "extra", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(sorted(Trace.model_fields)), _json)
def test_whatever_stands_in_a_field_the_line_is_read_or_set_aside_and_the_next_one_read(field: str, value: Any) -> None:
    problems = Problems()
    lines = [(1, as_line(record(**{field: value}))), (2, as_line(record(query_id="good")))]
    traces = list(traces_from_lines(lines, TraceContext("traces.jsonl", problems)))
    assert traces[-1].query_id == "good"
    assert len(traces) + problems.tally("traces.jsonl").set_aside == 2
    assert problems.tally("traces.jsonl").rows == 2


def test_messages_hold_no_control_characters_and_no_texts_of_the_trace(tmp_path: Path) -> None:
    message = why(tmp_path, record(arms={"\x1b[31mred\n": [{"id": "a", "text": ["secret words"]}]}))
    assert message.isprintable()
    assert "secret" not in message
