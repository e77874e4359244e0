"""Samples of the causes between the candidates and the prompt."""

from cause_samples import Sample, probe
from diagnosis_builders import TEXT, hits

_D1 = {"chunk_id": "d1", "source_id": "s1", "text": "Refunds need a receipt.", "in": {"dense": True}}
_D3 = {**_D1, "chunk_id": "d3", "text": "Refunds are paid to the card."}
_PARENT = {"chunk_id": "p1", "source_id": "s9", "kind": "parent", "text": "Another page."}
_SCORES = {"d1": 0.9, "d2": 0.899, "d3": 0.898, "g": 0.8995, "d5": 0.897}


def _flat(gold: float) -> list[dict[str, object]]:
    return [{"id": hit, "score": gold if hit == "g" else score} for hit, score in _SCORES.items()]


CONTEXT = {
    "prompt_truncation": Sample(
        {"gold_at": 3, "trace": {"prompt_ids": ["d1", "d2"]}},
        {"trace": {"prompt_ids": ["d1", "d2", "g"]}},
        "g: position 3 of 3 packed, and the prompt holds 2 of them without it",
        "fail rerank prompt_truncation",
        "undetermined undetermined",
    ),
    "prompt_window": Sample(
        {
            "gold_at": 2,
            "trace": {"prompt_tokens": 9000, "answer": {"correct": False}},
            "pipeline": {"generator": {"context_window": 8192}},
        },
        {"trace": {"prompt_tokens": 8192}},
        "the prompt has 9000 tokens, the model reads 8192",
        "fail rerank prompt_window",
        "fail generate wrong_answer",
    ),
    "packed_text": Sample(
        {"gold_at": 2, "trace": {"context_texts": {"g": "Shipping is free."}, "answer": {"correct": False}}},
        {"trace": {"context_texts": {"g": TEXT}}},
        "g: the text packed under g does not hold the answer's words",
        "fail rerank packed_text",
        "fail generate wrong_answer",
    ),
    "parent_map": Sample(
        {
            "gold_at": 2,
            "trace": {"final_context_ids": ["d1", "d3"]},
            "chunk": {"parent_id": "p1"},
            "pipeline": {"pack": {"parent_expansion": True}},
        },
        {"chunks": [{**_PARENT, "source_id": "s1"}]},
        "g (for g) points to parent p1, which no row has",
        "fail rerank parent_map",
        "fail rerank pack_loss",
    ),
    "parent_shared": Sample(
        {
            "gold_at": 2,
            "trace": {"final_context_ids": ["d1", "p1"]},
            "chunk": {"parent_id": "p1"},
            "chunks": [_PARENT],
            "pipeline": {"pack": {"parent_expansion": True}},
        },
        {"chunks": [{**_PARENT, "source_id": "s1"}]},
        "g (for g) points to parent p1 of another source, s9",
        "fail rerank parent_shared",
        "undetermined undetermined",
    ),
    "id_lookup": Sample(
        {
            "trace": {
                "arms": {"dense": [{"id": "d1"}, {"id": "row-7"}, {"id": "d3"}]},
                "id_map": {"row-7": "g"},
                "final_context_ids": ["d1", "d3"],
            },
        },
        {"trace": {"arms": {"dense": [{"id": "d1"}, {"id": "g"}, {"id": "d3"}]}}},
        "g was found as row-7; the context, looked up by that id, has none of it",
        "fail rerank id_lookup",
        "fail rerank pack_loss",
    ),
    "duplicate_collapse": Sample(
        {
            "gold_at": 2,
            "trace": {"final_context_ids": ["d1", "d3"]},
            "chunks": [_D1],
            "pipeline": {"pack": {"dedupe_by": "source_id"}},
        },
        {"chunks": [{**_D1, "source_id": "s0"}]},
        "g: dropped for d1, of the same source (dedupe by 'source_id')",
        "fail rerank duplicate_collapse",
        "fail rerank pack_loss",
    ),
    "max_per_source": Sample(
        {
            "gold_at": 2,
            "trace": {"final_context_ids": ["d1", "d3"]},
            "chunks": [_D1, _D3],
            "pipeline": {"pack": {"max_per_source": 2}},
        },
        {"pipeline": {"pack": {"max_per_source": 3}}},
        "g: 2 chunks of its source are packed, 2 are allowed",
        "fail rerank max_per_source",
        "fail rerank pack_loss",
    ),
    "rerank_floor": Sample(
        {
            "gold_at": 2,
            "trace": {"after_rerank": [{"id": "d1", "score": 0.9}], "rerank_input": hits("d", 8, 2)},
            "pipeline": {"thresholds": [{"on": "rerank", "value": 0.5}]},
        },
        {"pipeline": {"thresholds": [{"on": "none", "value": 0.5}]}},
        "g: gone behind the reranker, whose score has a floor of 0.5; 1 hits left",
        "fail rerank rerank_floor,reranker_demotion",
        "fail rerank reranker_demotion",
    ),
    "candidate_cut": Sample(
        {"gold_at": 5, "reranked_at": 0, "pipeline": {"rerank": {"candidates": 4}}},
        {"pipeline": {"rerank": {"candidates": 5}}},
        "g: rank 5, and the reranker is given 4 candidates",
        "fail rerank candidate_cut",
        "fail rerank reranker_demotion",
    ),
    "reranker_noop": Sample(
        {"gold_at": 5, "reranked_at": 5},
        {"reranked_at": 6},
        "g: rank 5 before and after the reranker, which changed no position",
        "fail rerank reranker_noop,reranker_demotion",
        "fail rerank reranker_demotion",
    ),
    "reranker_flat": Sample(
        {"gold_at": 2, "trace": {"after_rerank": _flat(0.8995)}},
        {"trace": {"after_rerank": _flat(0.8975)}},
        "g: rank 4, though 2 by the reranker's own score; all scores lie in 0.897..0.9",
        "fail rerank reranker_flat,reranker_demotion",
        "fail rerank reranker_demotion",
    ),
    "reranker_order": Sample(
        {"gold_at": 2, "reranked_at": 6, "trace": {"probes": [probe("rerank_rank", 1)]}},
        {"trace": {"probes": [probe("rerank_rank", 6)]}},
        "g: rank 1 by the reranker's own score, rank 6 in its output",
        "fail rerank reranker_order,reranker_demotion",
        "fail rerank reranker_demotion",
    ),
    "reranker_skipped": Sample(
        {"gold_at": 4, "trace": {"rerank_input": hits("d", 8, 4), "probes": [probe("rerank_rank", 1)]}},
        {"trace": {"rerank_input": hits("d", 8, 0)}},
        "g: candidate 4 of 8 for the reranker, rank 1 by the reranker's own score; no output was logged",
        "fail rerank reranker_skipped",
        "fail rerank pack_loss",
    ),
    "reranker_demotion": Sample(
        {"gold_at": 1, "reranked_at": 4},
        {"reranked_at": 3},
        "g: rank 1 before the reranker, 4 after it, K is 3",
        "fail rerank reranker_demotion",
        "undetermined undetermined",
    ),
    "top_n_cut": Sample(
        {
            "gold_at": 1,
            "reranked_at": 3,
            "trace": {"final_context_ids": ["d2", "d3"]},
            "pipeline": {"rerank": {"top_n": 2}},
        },
        {"pipeline": {"rerank": {"top_n": 3}}},
        "g: rank 3 in the last list, top_n is 2",
        "fail rerank top_n_cut",
        "fail rerank pack_loss",
    ),
    "token_budget": Sample(
        {"gold_at": 2, "trace": {"final_context_ids": ["d1"]}, "pipeline": {"pack": {"token_budget": 50}}},
        {"pipeline": {"pack": {"token_budget": None}}},
        "g: rank 2 of K 3, 1 packed; the budget is 50 tokens, the chunk has 40",
        "fail rerank token_budget",
        "fail rerank pack_loss",
    ),
    "pool_cut": Sample(
        {"gold_at": 5, "trace": {"arm_status": {"dense": {"status": "ran", "limit": 8}}}},
        {"trace": {"arm_status": {"dense": {"limit": 3}}}},
        "g: rank 5 of the 8 fetched from dense, cut at 3",
        "fail rerank pool_cut",
        "fail retrieve below_k",
    ),
    "pack_loss": Sample(
        {"gold_at": 2, "trace": {"final_context_ids": ["d1", "d3", "d4"]}},
        {"trace": {"final_context_ids": ["d1", "d3", "g"]}},
        "g: rank 2 in the last list, and not packed",
        "fail rerank pack_loss",
        "undetermined undetermined",
    ),
}
