"""The faults that can be switched on: at ingestion (by source) and at query time (by name)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal[
    "ingestion", "parse", "chunk", "embed", "retrieve", "fuse", "filter", "rerank", "generate", "none", "undetermined"
]


@dataclass(frozen=True)
class Fault:
    """The cause that ragaudit has for a fault, and the stage that it breaks."""

    stage: Stage
    cause: str
    gap: str | None = None


SOURCE_FAULTS: dict[str, str] = {
    "api-signing": "source_missing",
    "hb-learning": "source_stale",
    "rb-failover": "half_written",
    "rel-4-3": "not_visible",
    "sec-keys": "source_failed",
    "price-2025": "not_deleted",
    "hb-benefits": "tables_dropped",
    "rb-cert-rotation": "quotes_dropped",
    "sec-data-retention": "words_broken",
    "dpa-us": "nothing_extracted",
    "hb-sabbatical": "fixed_window",
    "rb-cache": "fixed_window",
    "hb-travel": "tail_dropped",
    "api-regions": "header_not_repeated",
    "rb-rollback": "other_model",
    "hb-equipment": "other_model",
    "rb-postmortem": "narrow_model",
    "hb-relocation": "embedder_truncates",
    "api-pagination": "bulk_load_wrong_list",
    "api-v3-quotas": "type_mismatch",
    "dpa-eu": "case_mismatch",
    "hb-referral": "empty_acl",
    "rb-dead-letter": "parent_ids_regenerated",
}
"""Source id -> the fault of its ingestion."""

FORMER_TEXT: dict[str, tuple[tuple[str, str], ...]] = {
    "hb-learning": (("1,800 EUR", "1,200 EUR"), ("below 300 EUR", "below 200 EUR")),
}
"""For a stale source: what the current text says, and what the indexed one says."""

HALF_WRITTEN_KEEPS = 3

FAULTS: dict[str, Fault] = {
    "source_missing": Fault("ingestion", "source_missing"),
    "source_stale": Fault("ingestion", "source_stale", "stale_version"),
    "half_written": Fault("ingestion", "half_written"),
    "not_visible": Fault("ingestion", "not_yet_visible"),
    "source_failed": Fault("ingestion", "source_missing"),
    "not_deleted": Fault("ingestion", "stale_version_served", "stale_version"),
    "tables_dropped": Fault("parse", "text_lost"),
    "quotes_dropped": Fault("parse", "text_lost"),
    "words_broken": Fault("parse", "text_lost"),
    "nothing_extracted": Fault("parse", "empty_extraction"),
    "fixed_window": Fault("chunk", "span_split"),
    "tail_dropped": Fault("chunk", "span_in_no_chunk"),
    "header_not_repeated": Fault("chunk", "span_split"),
    "other_model": Fault("embed", "row_model"),
    "narrow_model": Fault("embed", "dim_mismatch"),
    "embedder_truncates": Fault("embed", "embedder_truncation"),
    "bulk_load_wrong_list": Fault("embed", "ann_miss"),
    "few_probes": Fault("embed", "ann_miss"),
    "rewrite_drops_literals": Fault("retrieve", "literal_lost", "query_understanding"),
    "follow_up_not_rewritten": Fault("retrieve", "followup_lost", "query_understanding"),
    "whitespace_tokenizer": Fault("retrieve", "lexical_no_terms"),
    "operator_and": Fault("retrieve", "lexical_operator"),
    "vocabulary_gap": Fault("retrieve", "weak_match"),
    "no_reranker": Fault("rerank", "pool_cut"),
    "fetch_too_small": Fault("retrieve", "fetch_too_small"),
    "floor_on_fused": Fault("fuse", "fused_floor"),
    "floor_on_bm25": Fault("fuse", "arm_floor"),
    "reversed_lexical_ranks": Fault("fuse", "fusion_formula"),
    "single_arm_rule": Fault("fuse", "single_arm_rule"),
    "split_id_space": Fault("fuse", "fusion_ids"),
    "post_filter": Fault("filter", "post_filter_underfill"),
    "type_mismatch": Fault("filter", "predicate_type"),
    "case_mismatch": Fault("filter", "predicate_case"),
    "empty_acl": Fault("filter", "acl_data"),
    "acl_filter_lost": Fault("filter", "foreign_hits", "wrong_tenant_hits"),
    "top_n": Fault("rerank", "top_n_cut"),
    "recency_reranker": Fault("rerank", "reranker_demotion"),
    "dedupe_by_source": Fault("rerank", "duplicate_collapse"),
    "token_budget": Fault("rerank", "token_budget"),
    "small_window": Fault("rerank", "prompt_truncation"),
    "parent_ids_regenerated": Fault("rerank", "parent_map", "granularity_remap"),
    "ignores_context": Fault("generate", "unsupported_answer"),
    "blends_numbers": Fault("generate", "unsupported_answer"),
    "max_tokens": Fault("generate", "cut_off_answer"),
    "answers_always": Fault("generate", "unanswerable_answered", "unanswerable"),
}
"""Name of a fault -> stage, cause and gap code of the truth."""
