"""Samples of the causes in the filter, and in the answer."""

from cause_samples import Sample, answered, probe
from diagnosis_builders import hits

_FOREIGN = {"chunk_id": "d1", "source_id": "s0", "metadata": {"tenant": "other"}, "in": {"dense": True}}

ACCESS = {
    "predicate_type": Sample(
        {"gold_at": 0, "trace": {"filters_applied": {"year": 2026}}, "chunk": {"metadata": {"year": "2026"}}},
        {"chunk": {"metadata": {"year": 2026}}},
        "g: filter year = 2026 meets the stored '2026' only when both are read as text",
        "fail filter predicate_type",
        "fail undetermined",
    ),
    "predicate_case": Sample(
        {"gold_at": 0, "trace": {"filters_applied": {"team": "HR"}}, "chunk": {"metadata": {"team": "hr"}}},
        {"chunk": {"metadata": {"team": "HR"}}},
        "g: filter team = 'HR' meets the stored 'hr' only when case is folded",
        "fail filter predicate_case",
        "fail undetermined",
    ),
    "acl_data": Sample(
        {"gold_at": 0, "chunk": {"acl": []}},
        {"chunk": {"acl": ["tenant:acme"]}},
        "g: its source admits the user, its ACL in the index is empty",
        "fail filter acl_data",
        "fail undetermined",
    ),
    "principals_not_sent": Sample(
        {
            "gold_at": 0,
            "trace": {
                "user_acl": ["tenant:acme", "group:ops"],
                "arm_status": {"dense": {"status": "ran", "filter": {"acl": ["tenant:acme"]}}},
            },
            "source": {"acl": ["group:ops"]},
            "chunk": {"acl": ["group:ops"]},
        },
        {"trace": {"arm_status": {"dense": {"filter": {"acl": ["tenant:acme", "group:ops"]}}}}},
        "g: the acl clause of dense lacks group:ops, which the user holds and its ACL names",
        "fail filter principals_not_sent",
        "fail undetermined",
    ),
    "filter_fails_gold": Sample(
        {"gold_at": 0, "trace": {"filters_applied": {"lang": "en"}}, "chunk": {"metadata": {"lang": "de"}}},
        {"chunk": {"metadata": {"lang": "en"}}},
        "g: filter on lang is false on the stored 'de', although the user may read it",
        "fail filter filter_fails_gold",
        "fail undetermined",
    ),
    "filter_matches_nothing": Sample(
        {
            "gold_at": 0,
            "trace": {
                "arms": {"dense": []},
                "final_context_ids": [],
                "filters_applied": {"dept": "sales"},
                "arm_status": {"dense": {"status": "ran", "limit": 8, "returned": 0, "matching": 0}},
            },
        },
        {"trace": {"arm_status": {"dense": {"matching": 5}}}},
        "dense: 0 rows satisfy the filter on dept; g is in the index, although the user may read it",
        "fail filter filter_matches_nothing",
        "fail filter post_filter_underfill",
    ),
    "filter_dropped": Sample(
        {
            "gold_at": 2,
            "trace": {"after_filter": {"dense": [{"id": "d1"}, {"id": "d3"}]}, "final_context_ids": ["d1", "d3"]},
            "pipeline": {"filter": {"mode": "post"}},
        },
        {"trace": {"after_filter": {"dense": [{"id": "d1"}, {"id": "g"}]}}},
        "g: rank 2 in dense, gone after its filter",
        "fail filter filter_dropped",
        "fail rerank pack_loss",
    ),
    "expected_filter": Sample(
        {"trace": {"probes": [probe("rank_expected_filter", 1)]}},
        {"trace": {"probes": [probe("rank_expected_filter", 4)]}},
        "g: rank 1 under the expected filter, not in the top 3 under the one that was sent",
        "fail filter expected_filter",
        "fail retrieve below_k",
    ),
    "foreign_hits": Sample(
        {"gold_at": 4, "pipeline": {"filter": {"expected": {"tenant": "acme"}}}, "chunks": [_FOREIGN]},
        {"chunks": [{**_FOREIGN, "metadata": {"tenant": "acme"}}]},
        "g: rank 4 in dense behind 1 rows outside the filter",
        "fail filter foreign_hits",
        "fail undetermined",
    ),
    "post_filter_underfill": Sample(
        {
            "gold_at": 0,
            "trace": {
                "arms": {"dense": hits("d", 2, 0)},
                "filters_applied": {"tenant": "acme"},
                "arm_status": {"dense": {"status": "ran", "limit": 8, "returned": 2, "matching": 5}},
            },
            "pipeline": {"filter": {"mode": "post"}},
        },
        {"trace": {"arm_status": {"dense": {"matching": 2}}}},
        "dense: 2 rows after the filter, 5 match and 3 were asked for",
        "fail filter post_filter_underfill",
        "fail undetermined",
    ),
}

ANSWER = {
    "unanswerable_answered": Sample(
        {"trace": {"gold": None, "gold_ids": [], "answerable": False, "answer": {"abstained": False}}},
        {"trace": {"answer": {"abstained": True}}},
        "the corpus holds no answer, and the answer did not abstain",
        "fail generate unanswerable_answered",
        "pass none",
    ),
    "cut_off_answer": Sample(
        {"gold_at": 2, "trace": answered(correct=False, finish_reason="length")},
        {"trace": {"answer": {"finish_reason": "stop"}}},
        "the evidence was in the prompt; the answer ended with finish_reason 'length'",
        "fail generate cut_off_answer,wrong_answer",
        "fail generate wrong_answer",
    ),
    "ignored_context": Sample(
        {"gold_at": 2, "trace": answered(abstained=True)},
        {"trace": {"answer": {"abstained": False}}},
        "the evidence was in the prompt, and the answer abstained",
        "fail generate ignored_context",
        "undetermined undetermined",
    ),
    "unsupported_answer": Sample(
        {"gold_at": 2, "trace": answered(supported=False)},
        {"trace": {"answer": {"supported": True}}},
        "the evidence was in the prompt; the answer is not supported by it",
        "fail generate unsupported_answer",
        "undetermined undetermined",
    ),
    "wrong_answer": Sample(
        {"gold_at": 2, "trace": answered(correct=False)},
        {"trace": {"answer": {"correct": True}}},
        "the evidence was in the prompt; the answer is wrong",
        "fail generate wrong_answer",
        "pass none",
    ),
}
