import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reader_builders import as_line, one, read, record

from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Answer, ArmState, ArmStatus, Conversation, Hit, Provenance, Trace
from ragaudit.readers.bundle import read_traces
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
    {"id": st.text(min_size=1, max_size=4)},
    optional={"rank": st.none() | st.integers(-2, 9), "score": _score, "rrf": _score},
)
_ranking = st.none() | st.lists(_hit, max_size=4)
_ids = st.none() | st.lists(st.text(min_size=1, max_size=3), max_size=4)


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
        ({"gold": [{"id": "c1", "grade": -1}]}, "gold[0].grade: must be 0 or more, not the number -1."),
        ({"gold": [{"id": "c1", "grade": float("nan")}]}, "gold[0].grade: must be a finite number, not NaN."),
        ({"gold": [{"grade": 1}]}, "gold[0].id: missing."),
        ({"gold_mode": "some"}, 'gold_mode: a text is not a mode. Log "all" or "any".'),
        ({"gold_groups": [["a"], []]}, "gold_groups[1]: the group is empty,"),
        ({"arm_status": {"dense": {"status": "asleep"}}}, "arm_status.dense.status: must be 'ran', 'off' or 'errored'"),
        ({"provenance": {"fused": "guessed"}}, "provenance.fused: must be 'observed', 'derived' or"),
        ({"query_text": 5}, "query_text: the number 5 is no text. Log the text that the user asked."),
        ({"query_id": 1.0}, "query_id: the number 1.0 is no id."),
        ({"k_final": 0}, "k_final: the number 0 is no K."),
        ({"k_final": float("nan")}, "k_final: NaN is no K."),
        ({"k_final": True}, "k_final: true is no K."),
        ({"k_final": 2.5}, "k_final: the number 2.5 is no K."),
        ({"k_final": 10**12}, "k_final: the number 1000000000000 is no K."),
        ({"id_map": {"a": None, "b": 1.5}}, "id_map.b: the number 1.5 is no id."),
        ({"user_acl": "tenant:acme"}, "user_acl: a text is no list. Log a list of principals,"),
        ({"user_acl": ["tenant:acme", 1.5]}, "user_acl[1]: the number 1.5 is no id."),
        ({"filters_applied": "tenant=acme"}, "filters_applied: must be an object, not a text."),
        ({"filters_applied": [{"tenant": "acme"}]}, "filters_applied: must be an object, not a list."),
        ({"arm_status": {"dense": "ran"}}, "arm_status.dense: must be an object, not a text."),
        ({"arm_status": {"dense": {"filter": "tenant"}}}, "arm_status.dense.filter: must be an object, not a text."),
        (
            {"gold": [{"id": "c1", "span_in": {"chunk": "whole"}}]},
            "gold[0].span_in.chunk: must be true or false, or 'partial' or 'normalised', not a text.",
        ),
        ({"config": {"rerank": 5}}, "config.rerank: must be an object, not the number 5."),
        ({"config": {"pack": {"token_budget": "x"}}}, "config.pack.token_budget: must be a whole number, not a text."),
        ({"config": {"thresholds": "no"}}, "config.thresholds: must be a list, not a text."),
        ({"config": {"k_final": "many"}}, "config.k_final: must be a whole number, not a text."),
        ({"config": [1]}, "config: must be an object, not a list."),
        ({"query_id": ""}, "query_id: is empty."),
        ({"arms": {"dense": [{"id": ""}]}}, "arms.dense[0].id: is empty."),
        ({"fused": [""]}, "fused[0]: is empty."),
        ({"final_context_ids": ["c1", ""]}, "final_context_ids[1]: is empty."),
        ({"prompt_ids": [""]}, "prompt_ids[0]: is empty."),
        ({"gold_ids": [""]}, "gold_ids[0]: is empty."),
        ({"gold": [{"id": ""}]}, "gold[0].id: is empty."),
        ({"gold_groups": [["a", ""]]}, "gold_groups[0][1]: is empty."),
        ({"id_map": {"a": ""}}, "id_map.a: is empty."),
    ],
)
def test_a_field_that_cannot_be_read_is_named(tmp_path: Path, over: dict[str, Any], expected: str) -> None:
    message = why(tmp_path, record(**over))
    assert message.startswith(f"traces.jsonl:1: {expected}")
    assert message.endswith(".")


# --- what is left out while the trace is kept -------------------------------------------------------------------

_NOT_SO = "Log it so, or null when it was not observed."


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({"notes": 5}, f"notes: must be a text, not the number 5. {_NOT_SO} The trace is used without notes."),
        (
            {"reference": 5},
            f"reference: must be a text, not the number 5. {_NOT_SO} The trace is used without reference.",
        ),
        ({"answer": "yes"}, f"answer: must be an object, not a text. {_NOT_SO} The trace is used without answer."),
        ({"slices": []}, f"slices: must be an object, not a list. {_NOT_SO} The trace is used without slices."),
        (
            {"index_revision": 4.5},
            f"index_revision: must be a text, not the number 4.5. {_NOT_SO} The trace is used without index_revision.",
        ),
        (
            {"embedding_model": ["m"]},
            f"embedding_model: must be a text, not a list. {_NOT_SO} The trace is used without embedding_model.",
        ),
        (
            {"query_rewrite": 5},
            f"query_rewrite: must be a text, or a list, or an object, not the number 5. {_NOT_SO}"
            " The trace is used without query_rewrite.",
        ),
        (
            {"answerable": "maybe"},
            f"answerable: must be true or false, not a text. {_NOT_SO} The trace is used without answerable.",
        ),
        (
            {"timestamp": 5},
            "timestamp: the number 5 is no time. Log ISO 8601, as 2026-10-01T12:00:00Z, or null."
            " The trace is used without it.",
        ),
        (
            {"timestamp": ["2026"]},
            f"timestamp: must be a text, not a list. {_NOT_SO} The trace is used without timestamp.",
        ),
        (
            {"prompt_tokens": True},
            "prompt_tokens: true is no number. Log a number, or null. The trace is used without it.",
        ),
        (
            {"final_context_chars": 1.5},
            "final_context_chars: the number 1.5 is no count. Log a whole number, or null."
            " The trace is used without it.",
        ),
        ({"session_id": ""}, "session_id: is empty. Log the id, as the store holds it. The trace is used without it."),
        (
            {"context_texts": ["words"]},
            "context_texts: a list is no object. Log {...}, or null when it was not observed."
            " The trace is used without it.",
        ),
        (
            {"conversation": "turn 2"},
            f"conversation: must be an object, not a text. {_NOT_SO} The trace is used without conversation.",
        ),
        (
            {"probes": {"probe": "exact_rank"}},
            "probes: an object is no list. Log a list of probes, or null when it was not observed."
            " The trace is used without it.",
        ),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_an_optional_field_that_cannot_be_read_is_absent_and_the_trace_is_kept(
    tmp_path: Path, over: dict[str, Any], said: str
) -> None:
    (trace,), bundle = read(tmp_path, record(**over))
    (without,) = traces_from_lines([(1, as_line(record()))], TraceContext("traces.jsonl", Problems()))
    assert trace == without
    assert bundle.problems.texts() == (f"traces.jsonl:1: {said}",)
    assert bundle.problems.counts() == {"field_dropped": 1}
    assert bundle.inputs()["traces.jsonl"].set_aside == 0


def test_only_the_innermost_part_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (trace,), bundle = read(
        tmp_path,
        record(
            answer={"text": "yes", "correct": "maybe", "supported_by": ["a", 1.5]},
            arm_status={"dense": {"status": "ran", "limit": "many"}},
            conversation={"turn": 2, "previous_context_ids": [1.5]},
            context_texts={"c1": "words", "c2": 5},
        ),
    )
    assert trace.answer == Answer(text="yes")
    assert trace.arm_status == {"dense": ArmStatus(status=ArmState.RAN)}
    assert trace.conversation == Conversation(turn=2)
    assert trace.context_texts == {"c1": "words"}
    assert bundle.problems.counts() == {"field_dropped": 5}
    assert bundle.problems.texts() == (
        f"traces.jsonl:1: conversation.previous_context_ids[0]: must be a text, not the number 1.5. {_NOT_SO}"
        " The trace is used without conversation.previous_context_ids.",
        f"traces.jsonl:1: context_texts.c2: must be a text, not the number 5. {_NOT_SO}"
        " The trace is used without context_texts.c2.",
        f"traces.jsonl:1: arm_status.dense.limit: must be a whole number, not a text. {_NOT_SO}"
        " The trace is used without arm_status.dense.limit.",
        f"traces.jsonl:1: answer.correct: must be true or false, not a text. {_NOT_SO}"
        " The trace is used without answer.correct.",
    )


def test_a_probe_that_cannot_be_read_is_left_out_whole_since_null_would_mean_not_found(tmp_path: Path) -> None:
    probes = [{"probe": "exact_rank", "value": {"rank": 3}}, {"probe": "lexical_rank", "value": 2}, "self_query_rank"]
    (trace,), bundle = read(tmp_path, record(probes=probes))
    assert [(probe.probe, probe.value) for probe in trace.probes] == [("lexical_rank", 2)]
    assert bundle.problems.counts() == {"field_dropped": 2}
    assert bundle.problems.texts() == (
        "traces.jsonl:1: probes[0].value: must be true or false, or a number, or a list, or a text, not an object."
        f" {_NOT_SO} The trace is used without this probe.",
    )


def test_a_part_of_a_hit_that_cannot_be_read_is_absent_and_the_list_stays_whole(tmp_path: Path) -> None:
    hits = [
        {"id": "a", "score": "high", "rank": 1},
        {"id": "b", "score": "low", "text": 5, "metadata": "m", "sources": "dense", "source_id": 1.5, "rrf": [1]},
        ["c", "0.5"],
    ]
    (trace,), bundle = read(tmp_path, record(arms={"dense": hits}))
    assert trace.arms == {"dense": (Hit("a", 1), Hit("b"), Hit("c"))}
    assert bundle.problems.counts() == {"field_dropped": 8}
    assert bundle.problems.texts() == (
        "traces.jsonl:1: arms.dense[0].score: a text is no number. Log a number, or null. The hit is used without it.",
    )


def test_a_line_that_is_set_aside_says_nothing_of_its_optional_fields(tmp_path: Path) -> None:
    assert why(tmp_path, record(notes=5, k_final=0)).startswith("traces.jsonl:1: k_final: the number 0 is no K.")


def test_an_unreadable_acl_is_never_an_absent_one(tmp_path: Path) -> None:
    """Absent access is unknown: gold that the user may not read would count, and its text would be shown."""
    traces, bundle = read(tmp_path, record(user_acl={"tenant": "acme"}), record(query_id="q2", user_acl=None))
    assert [(trace.query_id, trace.user_acl) for trace in traces] == [("q2", None)]
    assert bundle.inputs()["traces.jsonl"].set_aside == 1


@pytest.mark.parametrize(
    "field",
    [
        *(
            "user_acl",
            "filters_applied",
            "arms",
            "fused",
            "after_filter",
            "after_threshold",
            "rerank_input",
            "after_rerank",
        ),
        *("final_context_ids", "prompt_ids", "gold_ids", "gold", "gold_groups", "gold_mode", "id_map"),
        *("config", "provenance", "arm_status"),
    ],
)
def test_a_field_without_which_the_trace_would_say_something_else_costs_the_line(tmp_path: Path, field: str) -> None:
    assert why(tmp_path, record(**{field: 5})).startswith(f"traces.jsonl:1: {field}: ")


def test_departures_that_can_be_read_are_kept_and_a_null_table_says_nothing(tmp_path: Path) -> None:
    config = {"rerank": None, "pack": {"token_budget": 100}, "search": {"alpha": 0.5}}
    trace = one(tmp_path, record(config=config))
    assert trace.config == config
    assert Pipeline().with_overrides(trace.config).pack.token_budget == 100


# --- numbers that are read as text -------------------------------------------------------------------------------


def test_a_revision_that_is_a_number_is_read_as_text(tmp_path: Path) -> None:
    assert one(tmp_path, record(index_revision=42)).index_revision == "42"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (1_700_000_000, "2023-11-14T22:13:20+00:00"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000+00:00"),
        (1_700_000_000_000, "2023-11-14T22:13:20+00:00"),
        (1_700_000_000_000_000, "2023-11-14T22:13:20+00:00"),
        (1_700_000_000_000_000_000, "2023-11-14T22:13:20+00:00"),
    ],
)
def test_a_timestamp_in_seconds_or_parts_of_them_is_read_as_iso_8601(tmp_path: Path, given: float, text: str) -> None:
    assert one(tmp_path, record(timestamp=given)).timestamp == text


# --- names that are almost right ---------------------------------------------------------------------------------


def test_a_field_that_is_almost_spelled_right_is_hinted_at_once(tmp_path: Path) -> None:
    value = record(after_rerankk=[], final_context_id=["c1"])
    del value["final_context_ids"]
    traces, bundle = read(tmp_path, value, {**value, "query_id": "q2"})
    assert traces[0].model_extra == {"after_rerankk": [], "final_context_id": ["c1"]}
    assert sorted(bundle.problems.texts()) == [
        "traces.jsonl:1: after_rerankk: not a field that is read, and kept as it is. Did you mean after_rerank?",
        "traces.jsonl:1: final_context_id: not a field that is read, and kept as it is."
        " Did you mean final_context_ids?",
    ]
    assert bundle.problems.counts() == {"field_misnamed": 2}
    assert list(read_traces(bundle)) == traces
    assert bundle.problems.counts() == {"field_misnamed": 2}


def test_a_field_of_your_own_gives_no_hint(tmp_path: Path) -> None:
    one(tmp_path, record(notes="n", note="mine", latency_ms=3, timestamp_ms=4, tenant="acme", fuse=None))


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
    _, bundle = read(tmp_path, record(arms={"\x1b[31mred\n": [{"id": "a", "text": ["secret words"]}]}))
    (message,) = bundle.problems.texts()
    assert message.isprintable()
    assert "secret" not in message
