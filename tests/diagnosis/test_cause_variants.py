"""The other ways to see a cause: each further branch of a check, by its exact sentence."""

from typing import Any

import pytest
from cause_samples import answered, probe
from diagnosis_builders import TEXT, brief, bundle, diagnosed, hits

ELIGIBLE = {"id": "g", "source_id": "s1", "eligible": True}
RERANK_INPUT = hits("d", 3, 0)
NO_CHUNK = {"gold_at": 0, "without": ("chunk",)}
VARIANTS: list[tuple[str, dict[str, Any], str]] = [
    (
        "source_stale",
        {
            "gold_at": 0,
            "source": {"source_hash": None, "updated_at": "2026-02-02", "indexed_at": "2026-02-01"},
            "without": ("chunk",),
        },
        "source s1: updated at 2026-02-02, last indexed at 2026-02-01",
    ),
    ("source_missing", {**NO_CHUNK, "source": {"registered": False}}, "source s1: not registered with the indexer"),
    ("source_missing", {**NO_CHUNK, "source": {"chunks_indexed": {"dense": 0}}}, "source s1: 0 chunks in dense"),
    (
        "source_missing",
        {"gold_at": 0, "without": ("source", "chunk"), "sources": [{"source_id": "s0"}]},
        "source s1: not in the complete export of sources",
    ),
    (
        "chunk_not_written",
        {"gold_at": 0, "trace": {"probes": [probe("fetch_by_id", False)]}},
        "g: fetched by id, the index does not hold it",
    ),
    (
        "chunk_not_written",
        {
            "gold_at": 0,
            "chunk": {"in": {"dense": False}, "content_hash": "sha256:1"},
            "chunks": [{"chunk_id": "twin", "content_hash": "sha256:1"}],
        },
        "g: not in the index of dense; twin has the same text: an id made from the text alone overwrites one of them",
    ),
    (
        "not_yet_visible",
        {
            "gold_at": 0,
            "trace": {"timestamp": "2026-10-01T12:00:00+02:00"},
            "source": {"indexed_at": "2026-10-01T10:30:00Z"},
        },
        "g became indexed with its source at 2026-10-01T10:30:00Z, after the query at 2026-10-01T12:00:00+02:00",
    ),
    (
        "stale_version_served",
        {
            "chunks": [{"chunk_id": "d1", "source_id": "s0"}],
            "sources": [{"source_id": "s0", "superseded_by": "s9"}, {"source_id": "s9", "superseded_by": "s1"}],
        },
        "d1 in the context comes from s0, superseded by s9",
    ),
    (
        "text_lost",
        {
            "source": {"extracted_text": "none", "tables_in_source": 2, "tables_extracted": 0},
            "chunk": {"text": "none"},
        },
        "g: the answer's words are not in the extracted text; 0 of 2 tables were extracted",
    ),
    (
        "filter_fails_gold",
        {"gold_at": 0, "trace": {"probes": [probe("filter_passes", False, note="date clause")]}},
        "g: the filter is false on its metadata (date clause), although the user may read it",
    ),
    (
        "acl_data",
        {"gold_at": 0, "chunk": {"acl": ["team:old"]}},
        "g: its source admits the user, its ACL in the index is ['team:old']",
    ),
    (
        "acl_data",  # the label's word, where the source's ACL is not known
        {"gold_at": 0, "source": {"acl": None}, "chunk": {"acl": ["team:old"]}, "trace": {"gold": [ELIGIBLE]}},
        "g: its label says that the user may read it, its ACL in the index is ['team:old']",
    ),
    (
        "acl_data",  # the source names the user's principal in other words: the sync lost it
        {"gold_at": 0, "source": {"acl": ["Hr", "Acme"]}, "chunk": {"acl": []}, "trace": {"gold": [ELIGIBLE]}},
        "g: its label says that the user may read it, the ACL of its source names 'Acme' where the user holds "
        "'tenant:acme': the ACL sync did not map it, the ACL in the index is empty",
    ),
    (
        "principals_not_sent",
        {
            "gold_at": 0,
            "trace": {
                "user_acl": ["user:u42", "tenant:acme"],
                "filters_applied": {"acl": {"$in": ["user:u42"]}},
            },
        },
        "g: the acl clause lacks tenant:acme, which the user holds and its ACL names",
    ),
    (
        "predicate_case",  # the arm's own clause was tested, not the query's
        {
            "gold_at": 0,
            "trace": {
                "filters_applied": {"team": "hr"},
                "arm_status": {"dense": {"status": "ran", "filter": {"team": "HR"}}},
            },
            "chunk": {"metadata": {"team": "hr"}},
        },
        "g: filter team = 'HR' meets the stored 'hr' only when case is folded",
    ),
    (
        "filter_fails_gold",  # the row's own fields count as stored
        {"gold_at": 0, "trace": {"filters_applied": {"lang": "en"}}, "chunk": {"language": "de"}},
        "g: filter on lang is false on the stored 'de', although the user may read it",
    ),
    (
        "filter_fails_gold",
        {"gold_at": 0, "trace": {"filters_applied": {"source_id": ["s7"]}}},
        "g: filter on source_id is false on the stored 's1', although the user may read it",
    ),
    (
        "filter_fails_gold",  # null, and a language without its region, are dropped by a store that compares words
        {"gold_at": 0, "trace": {"filters_applied": {"lang": "es"}}, "chunk": {"metadata": {"lang": "es-MX"}}},
        "g: filter on lang is false on the stored 'es-MX', although the user may read it",
    ),
    (
        "filter_dropped",
        {
            "gold_at": 2,
            "trace": {"after_filter": [{"id": "d1"}], "final_context_ids": ["d1"]},
            "pipeline": {"filter": {"mode": "post"}},
        },
        "g: rank 2 in the search, gone after the filter",
    ),
    (
        "filter_dropped",
        {
            "gold_at": 1,
            "lexical_at": 1,
            "trace": {"after_filter": [{"id": "d2"}], "final_context_ids": ["d2"]},
            "pipeline": {"filter": {"mode": "post"}},
        },
        "g: rank 1 in the fused list, gone after the filter",
    ),
    (
        "post_filter_underfill",
        {
            "gold_at": 0,
            "trace": {"probes": [probe("rank_prefilter", 1, "dense")], "arm_status": {"dense": {"matching": 7}}},
        },
        "g: rank 1 with the same filter before the search, lost when it runs after; 7 rows match",
    ),
    (
        "wrong_answer",
        {"gold_at": 2, "trace": answered(correct=False, supported=True)},
        "the evidence was in the prompt; the answer is drawn from the context, and wrong or incomplete",
    ),
    (
        "packed_text",
        {
            "gold_at": 2,
            "trace": {"gold": [{"id": "g"}], "context_texts": {"g": "x"}, "answer": {"correct": False}},
        },
        "g: the text packed under g differs from the chunk's",
    ),
    (
        "rerank_floor",
        {"gold_at": 2, "reranked_at": 3, "pipeline": {"thresholds": [{"on": "rerank", "value": 0.95}]}}
        | {"trace": {"final_context_ids": ["d1"]}},
        "g: rerank score 0.9 is under the floor 0.95",
    ),
    (
        "candidate_cut",
        {"gold_at": 5, "reranked_at": 0, "trace": {"rerank_input": RERANK_INPUT}},
        "g: rank 5, and the reranker was given 3 candidates",
    ),
    (
        "duplicate_collapse",
        {
            "gold_at": 2,
            "trace": {"final_context_ids": ["d1", "d3"]},
            "source": {"text": None},
            "chunks": [{"chunk_id": "d1", "source_id": "s1", "text": "Another part."}],
            "pipeline": {"pack": {"dedupe_by": "doc_id"}},
        },
        "g: dropped for d1, of the same source (dedupe by 'doc_id')",
    ),
    (
        "fusion_ids",
        {"gold_at": 4, "lexical_at": 0, "trace": {"probes": [probe("canonical_fused_rank", 2)]}},
        "g: rank 2 when fusion keys on canonical ids; the log has it at 7",
    ),
    (
        "fused_floor",
        {
            "gold_at": 2,
            "lexical_at": 0,
            "trace": {"after_threshold": [{"id": "d1"}], "final_context_ids": ["d1"]},
            "pipeline": {"thresholds": [{"value": 0.0162, "on": "fused", "score": "rrf"}]},
        },
        "g: rrf 0.01613 is under the floor 0.0162 on fused",
    ),
    (
        "arm_floor",
        {
            "gold_at": 8,
            "trace": {"after_threshold": hits("d", 3, 0)},
            "pipeline": {"thresholds": [{"value": 0.5, "on": "dense", "kind": "autocut"}]},
        },
        "g: rank 8 in dense; autocut on dense kept 3 hits",
    ),
    (
        "model_mismatch",
        {"trace": {"embedding_model": "m2"}, "pipeline": {"embedding": {"corpus": {"model": None}}}},
        "the query was embedded by m2, g by m1",
    ),
    (
        "dim_mismatch",
        {"chunk": {"dim": 384}, "index": {"arms": {"dense": {"dims": {"768": 99, "384": 1}}}}},
        "g has 384 dimensions, 99 rows of dense have 768",
    ),
    (
        "dim_mismatch",
        {"trace": {"arm_status": {"dense": {"status": "errored", "error": "wrong dimension 768"}}}},
        "dense failed on dimensions: wrong dimension 768",
    ),
    (
        "model_mismatch",
        {"chunk": {"embedding_model": "m0"}, "index": {"arms": {"dense": {"models": {"m1": 50, "m0": 50}}}}},
        "the query was embedded by m1, g by m0",
    ),
    (
        "empty_vector",
        {
            "chunk": {"norm": 0.0, "language": "ja"},
            "pipeline": {"embedding": {"corpus": {"languages": ["en", "de"]}}},
        },
        "g has a vector of length 0; the text is ja, the model is trained for en, de",
    ),
    (
        "unnormalised",
        {
            "index": {"arms": {"dense": {"metric": "ip"}}},
            "pipeline": {"embedding": {"query": {"normalised": True}, "corpus": {"normalised": False}}},
        },
        "dense compares by dot; only the query is normalised",
    ),
    (
        "unnormalised",
        {"index": {"arms": {"dense": {"metric": "dot", "norm_p50": 1.0}}}, "chunk": {"norm": 2.0}},
        "dense compares by dot; g has length 2, the median row 1",
    ),
    (
        "embedder_truncation",
        {"chunk": {"tokens": 900}, "pipeline": {"embedding": {"corpus": {"max_tokens": 512}}}},
        "g: 900 tokens, the embedder reads 512",
    ),
    (
        "ann_miss",
        {"gold_at": 0, "trace": {"probes": [probe("self_query_rank", None, "dense")]}},
        "g: searched with its own vector, dense does not return it",
    ),
    (
        "ann_miss",
        {"gold_at": 0, "trace": {"probes": [probe("self_query_rank", 12, "dense")]}},
        "g: searched with its own vector, it comes back at rank 12 in dense",
    ),
    (
        "narrow_search",
        {
            "gold_at": 0,
            "trace": {
                "arms": {"dense": hits("d", 5, 0)},
                "arm_status": {"dense": {"limit": 8, "returned": 5, "matching": 30}},
            },
            "pipeline": {"search": {"dense": {"nprobe": 1, "lists": 10}}},
        },
        "dense: 5 of 8 rows returned with nprobe 1 of 10 lists",
    ),
    ("literal_lost", {"trace": {"probes": [probe("literals_lost", ["SKU-9"])]}}, "the rewritten query lost 'SKU-9'"),
    (
        "followup_lost",
        {"trace": {"conversation": {"turn": 2}, "probes": [probe("rank_standalone_query", 2)]}},
        "g: rank 2 for the standalone question, not in the top 3 for the one that was sent",
    ),
    (
        "dead_arm",
        {"gold_at": 4, "lexical_at": 0, "trace": {"arms": {"bm25": []}, "arm_status": {"bm25": {"status": "off"}}}},
        "bm25: configured, and off for this query",
    ),
    (
        "dead_arm",
        {
            "gold_at": 4,
            "lexical_at": 0,
            "trace": {"arms": {"bm25": []}},
            "index": {"arms": {"bm25": {"chunks": 0}}},
        },
        "bm25: its index holds 0 chunks",
    ),
    (
        "lexical_stale",
        {
            "gold_at": 4,
            "lexical_at": 0,
            "chunk": {"indexed_at": "2026-03-02"},
            "index": {"arms": {"bm25": {"built_at": "2026-03-01"}}},
        },
        "bm25: built at 2026-03-01, before g was written",
    ),
    (
        "fetch_too_small",
        {
            "gold_at": 0,
            "trace": {"probes": [probe("rank_other_limit", 3, "dense", "limit 200")]},
            "pipeline": {"pack": {"dedupe_by": "source_id"}},
        },
        "g: rank 3 in dense with limit 200, absent with the limit that was sent",
    ),
    (
        "prefix_missing",
        {
            "gold_at": 4,
            "pipeline": {
                "embedding": {
                    "query": {"prefix": "passage: "},
                    "corpus": {"prefix": "passage: ", "requires_prefix": True},
                }
            },
        },
        "the model needs prefixes of two kinds; both sides have 'passage: '",
    ),
    (
        "ann_miss",
        {"gold_at": 0, "trace": {"probes": [probe("rank_other_limit", 3, "dense", "limit 200")]}},
        "g: rank 3 in dense with another limit, and missed with the limit that was sent",
    ),
    (
        "weak_match",
        {"gold_at": 4, "lexical_at": 0, "trace": {"probes": [probe("lexical_rank", 9, "bm25")]}},
        "g: lexical rank 9, K is 3",
    ),
]


@pytest.mark.parametrize(("name", "has", "says"), VARIANTS)
def test_another_branch_of_the_check(name: str, has: dict[str, Any], says: str) -> None:
    verdict = diagnosed(bundle(**has))
    assert name in verdict.causes, (brief(verdict), verdict.evidence)
    assert says in verdict.evidence


# --- what looks like a cause and is not one -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "has"),
    [
        (
            "metric_mismatch",
            {"index": {"arms": {"dense": {"metric": "ip"}}}, "pipeline": {"metric": {"expected": "dot"}}},
        ),
        ("model_mismatch", {"trace": {"embedding_model": "ORG/m1:latest"}}),
        (
            "model_mismatch",
            {"chunk": {"embedding_model": "m0"}, "index": {"arms": {"dense": {"models": {"m1": 51, "m0": 49}}}}},
        ),
        (
            "row_model",
            {"chunk": {"embedding_model": "m0"}, "index": {"arms": {"dense": {"models": {"m1": 50, "m0": 50}}}}},
        ),
        ("empty_vector", {"chunk": {"norm": None}}),
        ("constant_scores", {"trace": {"arms": {"dense": [{"id": "d1", "score": 0.5}, {"id": "d2", "score": 0.5}]}}}),
        ("direction_mismatch", {"index": {"arms": {"dense": {"score": {"direction": None}}}}}),
        ("prefix_missing", {"pipeline": {"embedding": {"query": {"prefix": ""}, "corpus": {"prefix": ""}}}}),
        ("source_stale", {"source": {"source_hash": None, "updated_at": "2026-02-02", "indexed_at": "2026-02-01"}}),
        ("empty_extraction", {"source": {"extracted_chars": 0, "source_chars": 0}}),
        ("token_budget", {"gold_at": 4, "pipeline": {"pack": {"token_budget": 10}}}),
        ("max_per_source", {"gold_at": 2, "pipeline": {"pack": {"max_per_source": 0}}}),
        ("fusion_formula", {"gold_at": 2, "lexical_at": 2}),
        ("packed_text", {"gold_at": 2, "trace": {"context_texts": {"g": TEXT.upper()}, "answer": {"correct": False}}}),
        ("wrong_namespace", {"chunk": {"namespace": "v2"}, "index": {"namespace": "v1"}}),
    ],
)
def test_a_harmless_value_does_not_fire(name: str, has: dict[str, Any]) -> None:
    assert name not in diagnosed(bundle(**has)).causes
