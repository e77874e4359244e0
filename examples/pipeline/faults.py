"""The faults that can be switched on: at ingestion (by source) and at query time (by name)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal[
    "ingestion", "parse", "chunk", "embed", "retrieve", "fuse", "filter", "rerank", "generate", "none", "undetermined"
]


@dataclass(frozen=True)
class Fault:
    """What a fault is called, and the stage that it breaks."""

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
    "not_visible": Fault("ingestion", "not_visible"),
    "source_failed": Fault("ingestion", "source_failed"),
    "not_deleted": Fault("ingestion", "stale_version", "stale_version"),
    "tables_dropped": Fault("parse", "table_lost"),
    "quotes_dropped": Fault("parse", "text_lost"),
    "words_broken": Fault("parse", "text_garbled"),
    "nothing_extracted": Fault("parse", "empty_extraction"),
    "fixed_window": Fault("chunk", "span_split"),
    "tail_dropped": Fault("chunk", "tail_dropped"),
    "header_not_repeated": Fault("chunk", "header_row_away"),
    "other_model": Fault("embed", "mixed_models"),
    "narrow_model": Fault("embed", "dimension_mismatch"),
    "embedder_truncates": Fault("embed", "embedder_truncation"),
    "bulk_load_wrong_list": Fault("embed", "ann_miss"),
    "few_probes": Fault("embed", "ann_miss"),
    "rewrite_drops_literals": Fault("retrieve", "literal_lost", "query_understanding"),
    "follow_up_not_rewritten": Fault("retrieve", "follow_up_not_standalone", "query_understanding"),
    "whitespace_tokenizer": Fault("retrieve", "dead_lexical_arm"),
    "operator_and": Fault("retrieve", "all_terms_required"),
    "vocabulary_gap": Fault("retrieve", "poor_exact_rank"),
    "no_reranker": Fault("retrieve", "below_k"),
    "fetch_too_small": Fault("retrieve", "fetch_too_small"),
    "floor_on_fused": Fault("fuse", "floor_on_fused_list"),
    "floor_on_bm25": Fault("fuse", "floor_on_wrong_arm"),
    "reversed_lexical_ranks": Fault("fuse", "fusion_differs"),
    "single_arm_rule": Fault("fuse", "single_arm_rule"),
    "split_id_space": Fault("fuse", "id_space_split"),
    "post_filter": Fault("filter", "post_filter_underfill"),
    "type_mismatch": Fault("filter", "type_mismatch"),
    "case_mismatch": Fault("filter", "case_mismatch"),
    "empty_acl": Fault("filter", "empty_acl"),
    "acl_filter_lost": Fault("filter", "foreign_hits", "wrong_tenant_hits"),
    "top_n": Fault("rerank", "top_n_cut"),
    "recency_reranker": Fault("rerank", "reranker_demotion"),
    "dedupe_by_source": Fault("rerank", "dedupe_collapse"),
    "token_budget": Fault("rerank", "token_budget"),
    "small_window": Fault("rerank", "prompt_cut"),
    "parent_ids_regenerated": Fault("rerank", "parent_map", "granularity_remap"),
    "ignores_context": Fault("generate", "ignored_context"),
    "blends_numbers": Fault("generate", "unsupported_answer"),
    "max_tokens": Fault("generate", "cut_off"),
    "answers_always": Fault("generate", "answered_unanswerable", "unanswerable"),
}
"""Name of a fault -> stage, cause and gap code of the truth."""
