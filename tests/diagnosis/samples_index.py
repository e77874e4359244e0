"""Samples of the causes in the vectors, their index, and the search."""

from cause_samples import Sample, exact, probe
from diagnosis_builders import hits

_SHORT = hits("d", 5, 0)


def _dense(**over: object) -> dict[str, object]:
    return {"arms": {"dense": over}}


INDEX = {
    "row_model": Sample(
        {"chunk": {"embedding_model": "m0"}, "index": _dense(models={"m1": 99, "m0": 1})},
        {"chunk": {"embedding_model": "org/M1:latest"}},
        "g was embedded by m0; 99 of 100 rows and the query by m1",
        "fail embed row_model",
        "fail retrieve below_k",
    ),
    "model_mismatch": Sample(
        {"trace": {"embedding_model": "m2"}},
        {"trace": {"embedding_model": "org/M1:latest"}},
        "the query was embedded by m2, the corpus by m1",
        "fail embed model_mismatch",
        "fail retrieve below_k",
    ),
    "model_switch": Sample(
        {
            "chunk": {"indexed_at": "2026-01-01"},
            "index": _dense(
                model_history=[{"model": "m0", "from": "2025-01-01"}, {"model": "m1", "from": "2026-05-01"}]
            ),
        },
        {"chunk": {"indexed_at": "2026-06-01"}},
        "g was embedded at 2026-01-01, before dense moved to m1 on 2026-05-01",
        "fail embed model_switch",
        "fail retrieve below_k",
    ),
    "dim_mismatch": Sample(
        {"chunk": {"dim": 768}, "pipeline": {"embedding": {"query": {"dim": 1024}}}},
        {"chunk": {"dim": 1024}},
        "g has 768 dimensions, the query 1024",
        "fail embed dim_mismatch",
        "fail retrieve below_k",
    ),
    "prefix_missing": Sample(
        {"pipeline": {"embedding": {"query": {"prefix": ""}, "corpus": {"prefix": "doc: ", "requires_prefix": True}}}},
        {"pipeline": {"embedding": {"query": {"prefix": "query: "}}}},
        "the model needs prefixes; the query side has none",
        "fail embed prefix_missing",
        "fail retrieve below_k",
    ),
    "metric_mismatch": Sample(
        {"index": _dense(metric="l2"), "pipeline": {"metric": {"expected": "cosine"}}},
        {"index": _dense(norm_p5=1.0, norm_p95=1.0)},
        "dense compares by l2, the model expects cosine",
        "fail embed metric_mismatch",
        "fail retrieve below_k",
    ),
    "empty_vector": Sample(
        {"chunk": {"norm": 0.0}},
        {"chunk": {"norm": 1.0}},
        "g has a vector of length 0",
        "fail embed empty_vector",
        "fail retrieve below_k",
    ),
    "unnormalised": Sample(
        {"index": _dense(metric="dot", norm_p5=0.8, norm_p95=1.9)},
        {"index": _dense(norm_p95=0.85)},
        "dense compares by dot; vector lengths run from 0.8 (p5) to 1.9 (p95)",
        "fail embed unnormalised",
        "fail retrieve below_k",
    ),
    "direction_mismatch": Sample(
        {"index": _dense(score={"direction": "lower"})},
        {"index": _dense(score={"direction": "higher"})},
        "dense: lower is better, and the list runs from 0.9 to 0.55",
        "fail embed direction_mismatch",
        "fail retrieve below_k",
    ),
    "constant_scores": Sample(
        {"trace": {"arms": {"dense": [{**hit, "score": 0.0} for hit in hits("d", 8, 5)]}}},
        {"trace": {"arms": {"dense": hits("d", 8, 5)}}},
        "dense: all 8 hits have the score 0",
        "fail embed constant_scores",
        "fail retrieve below_k",
    ),
    "embedder_truncation": Sample(
        {"chunk": {"answer_token_offset": 600}, "pipeline": {"embedding": {"corpus": {"max_tokens": 512}}}},
        {"chunk": {"answer_token_offset": 500}},
        "g: the answer starts at token 600, the embedder reads 512",
        "fail embed embedder_truncation",
        "fail retrieve below_k",
    ),
    "vector_missing": Sample(
        {"gold_at": 0, "lexical_at": 4, "chunk": {"in": {"dense": False}}, "trace": {"probes": [exact(9)]}},
        {"chunk": {"in": {"dense": True}}},
        "g: not in the index of dense, though in that of another arm",
        "fail embed vector_missing",
        "fail retrieve weak_match",
    ),
    "tombstones": Sample(
        {"gold_at": 0, "trace": {"probes": [exact(2)]}, "index": _dense(tombstones=40)},
        {"index": _dense(tombstones=0)},
        "g: exact rank 2 in dense, which lost it among 40 deleted rows",
        "fail embed tombstones,ann_miss",
        "fail embed ann_miss",
    ),
    "ann_miss": Sample(
        {"gold_at": 0, "trace": {"probes": [exact(1)]}, "pipeline": {"search": {"dense": {"ef_search": 16}}}},
        {"trace": {"probes": [exact(4)]}},
        "g: exact rank 1 in dense, and the index missed it (searched with ef 16)",
        "fail embed ann_miss",
        "fail retrieve weak_match",
    ),
    "untrained_index": Sample(
        {"gold_at": 0, "trace": {"probes": [exact(9)]}, "index": _dense(ann="ivfflat", rows_at_build=10)},
        {"index": _dense(rows_at_build=90)},
        "dense: built on 10 rows, holds 100",
        "fail embed untrained_index",
        "fail retrieve weak_match",
    ),
    "narrow_search": Sample(
        {
            "gold_at": 0,
            "trace": {
                "arms": {"dense": _SHORT},
                "arm_status": {"dense": {"status": "ran", "limit": 8, "returned": 5}},
                "probes": [exact(9)],
            },
            "pipeline": {"search": {"dense": {"ef_search": 5}}},
        },
        {"pipeline": {"search": {"dense": {"ef_search": 64}}}},
        "dense: 5 of 8 rows returned with ef_search 5",
        "fail embed narrow_search",
        "fail retrieve weak_match",
    ),
}

SEARCH = {
    "literal_lost": Sample(
        {
            "trace": {"query_text": "what does ERR_2041 mean", "query_rewrite": "what does the error mean"},
            "chunk": {"text": "ERR_2041: ask again within 30 days of the delivery."},
        },
        {"trace": {"query_rewrite": "what does the error err_2041 mean"}},
        "the rewritten query lost 'ERR_2041', which g holds",
        "fail retrieve literal_lost",
        "fail retrieve below_k",
    ),
    "rewrite_drift": Sample(
        {"trace": {"probes": [probe("rank_original_query", 1)]}},
        {"trace": {"probes": [probe("rank_original_query", 4)]}},
        "g: rank 1 for the original query, not in the top 3 for the query that was sent",
        "fail retrieve rewrite_drift",
        "fail retrieve below_k",
    ),
    "followup_lost": Sample(
        {"gold_at": 0, "trace": {"conversation": {"turn": 2, "previous_context_ids": ["g"]}}},
        {"trace": {"conversation": {"previous_context_ids": ["d9"]}}},
        "g was in the former turn's context (turn 2); this turn's query lost it",
        "fail retrieve followup_lost",
        "fail undetermined",
    ),
    "query_incomplete": Sample(
        {
            "gold_at": 0,
            "trace": {"probes": [probe("rank_standalone_query", 2, note="bridging name added")]},
        },
        {"trace": {"probes": [probe("rank_standalone_query", 4)]}},
        "g: rank 2 for a question that stands alone (bridging name added), not in the top 3 for the one that was sent",
        "fail retrieve query_incomplete",
        "fail undetermined",
    ),
    "other_namespace": Sample(
        {
            "gold_at": 0,
            "lexical_at": 0,
            "chunk": {"namespace": "v2"},
            "chunks": [{"chunk_id": "b1", "source_id": "s2", "namespace": "v2"}],
            "index": {"namespace": "v1", "namespaces": {"v1": 0}},
        },
        {"chunks": [{"chunk_id": "b1", "source_id": "s2", "namespace": "v1"}]},
        "g stands in namespace 'v2', where bm25 searched; dense searched 'v1', which holds 0 rows",
        "fail retrieve other_namespace",
        "fail ingestion wrong_namespace",
    ),
    "lexical_no_terms": Sample(
        {
            "gold_at": 4,
            "lexical_at": 0,
            "trace": {"arms": {"bm25": []}, "probes": [probe("query_terms_in_vocabulary", 0, "bm25", "CJK")]},
        },
        {"trace": {"probes": [probe("query_terms_in_vocabulary", 3, "bm25")]}},
        "bm25: 0 terms in its vocabulary (CJK)",
        "fail retrieve lexical_no_terms",
        "fail retrieve below_k",
    ),
    "lexical_operator": Sample(
        {
            "gold_at": 4,
            "lexical_at": 0,
            "trace": {"arms": {"bm25": []}, "probes": [probe("lexical_rank", 2, "bm25")]},
            "pipeline": {"search": {"bm25": {"operator": "and"}}},
        },
        {"trace": {"probes": [probe("lexical_rank", 4, "bm25")]}},
        "g: rank 2 by the lexical engine's own ranking; bm25 with operator 'and' did not return it so",
        "fail retrieve lexical_operator",
        "fail retrieve weak_match",
    ),
    "dead_arm": Sample(
        {
            "gold_at": 4,
            "lexical_at": 0,
            "trace": {"arms": {"bm25": []}, "arm_status": {"bm25": {"status": "errored", "error": "timeout"}}},
        },
        {"trace": {"arm_status": {"bm25": {"status": "ran"}}}},
        "bm25: failed (timeout)",
        "fail retrieve dead_arm",
        "fail retrieve below_k",
    ),
    "lexical_stale": Sample(
        {"gold_at": 4, "lexical_at": 0, "chunk": {"in": {"bm25": False}}},
        {"chunk": {"in": {"bm25": True}}},
        "g: not in the index of bm25, though in that of another arm",
        "fail retrieve lexical_stale",
        "fail retrieve below_k",
    ),
    "diversity": Sample(
        {
            "gold_at": 0,
            "trace": {"probes": [exact(2)]},
            "pipeline": {"search": {"dense": {"type": "mmr", "lambda_mult": 0.2}}},
        },
        {"pipeline": {"search": {"dense": {"type": "similarity"}}}},
        "g: rank 2 by similarity alone; dense selects by MMR (lambda 0.2)",
        "fail retrieve diversity",
        "fail embed ann_miss",
    ),
    "fetch_too_small": Sample(
        {"gold_at": 0, "trace": {"arms": {"dense": hits("d", 2, 0)}, "probes": [exact(3)]}},
        {"trace": {"arms": {"dense": hits("d", 3, 0)}}},
        "g: exact rank 3 in dense, which fetched 2; K is 3",
        "fail retrieve fetch_too_small",
        "fail embed ann_miss",
    ),
    "weak_match": Sample(
        {
            "gold_at": 0,
            "trace": {"probes": [exact(41)]},
            "chunk": {"language": "de"},
            "pipeline": {"embedding": {"corpus": {"languages": ["en"]}}},
        },
        {"trace": {"probes": [exact(3)]}},
        "g: exact rank 41 in dense, K is 3; the text is de, the model is trained for en",
        "fail retrieve weak_match",
        "fail embed ann_miss",
    ),
    "below_k": Sample(
        {"gold_at": 4},
        {"chunk": {"text": None}},
        "g: best rank 4 in dense, K is 3; index, text and filter are sound",
        "fail retrieve below_k",
        "fail undetermined",
    ),
}
