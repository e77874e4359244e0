"""Samples of the causes before the index: ingestion, parse, chunk."""

from cause_samples import Sample, exact, probe
from diagnosis_builders import OLD_TEXT, TEXT

_OTHER = {"chunk_id": "d1", "source_id": "s0", "text": "Refunds are not possible.", "in": {"dense": True}}
_SPLIT = {"chunk_id": "g2", "source_id": "s1", "text": "of the delivery. Keep the receipt.", "in": {"dense": True}}

CORPUS = {
    "source_stale": Sample(
        {"source": {"indexed_hash": "h0", "extracted_text": None}, "chunk": {"text": OLD_TEXT}},
        {"source": {"indexed_hash": "h1"}},
        "source s1: its hash is h1, the indexed hash is h0: the index holds another version",
        "fail ingestion source_stale",
        "fail chunk span_in_no_chunk",
    ),
    "source_missing": Sample(
        {"gold_at": 0, "source": {"status": "failed"}, "without": ("chunk",)},
        {"source": {"status": "ok"}},
        "source s1: the last ingestion ended as 'failed'",
        "fail ingestion source_missing",
        "fail undetermined",
    ),
    "half_written": Sample(
        {
            "gold_at": 0,
            "source": {"chunks_expected": 7, "chunks_indexed": {"dense": 4}},
            "without": ("chunk",),
        },
        {"source": {"chunks_indexed": {"dense": 7}}},
        "source s1: dense holds 4 of 7 chunks; nothing shows g among them",
        "fail ingestion half_written",
        "fail undetermined",
    ),
    "wrong_namespace": Sample(
        {"gold_at": 0, "chunk": {"namespace": "v2"}, "index": {"namespace": "v1", "namespaces": {"v1": 412}}},
        {"chunk": {"namespace": "v1"}},
        "g stands in namespace 'v2'; the search reads 'v1', which holds 412 rows",
        "fail ingestion wrong_namespace",
        "fail undetermined",
    ),
    "not_yet_visible": Sample(
        {
            "gold_at": 0,
            "trace": {"timestamp": "2026-10-01T12:00:00Z"},
            "chunk": {"visible_at": "2026-10-01T12:00:30Z"},
        },
        {"chunk": {"visible_at": "2026-10-01T11:59:30Z"}},
        "g became visible at 2026-10-01T12:00:30Z, after the query at 2026-10-01T12:00:00Z",
        "fail ingestion not_yet_visible",
        "fail undetermined",
    ),
    "chunk_not_written": Sample(
        {"gold_at": 0, "chunk": {"in": {"dense": False}}},
        {"chunk": {"in": {"dense": True}}},
        "g: not in the index of dense",
        "fail ingestion chunk_not_written",
        "fail undetermined",
    ),
    "stale_version_served": Sample(
        {
            "gold_at": 4,
            "chunks": [_OTHER],
            "sources": [{"source_id": "s0", "in_source_of_truth": False}],
        },
        {"sources": [{"source_id": "s0", "in_source_of_truth": True}]},
        "d1 in the context comes from s0, which was deleted at the source",
        "fail ingestion stale_version_served",
        "fail retrieve below_k",
    ),
    "empty_extraction": Sample(
        {
            "gold_at": 0,
            "source": {
                "extracted_chars": 0,
                "extracted_text": None,
                "text": None,
                "chunks_indexed": None,
                "chunks_expected": None,
            },
            "without": ("chunk",),
        },
        {"source": {"extracted_chars": 100}},
        "source s1: 0 characters extracted of 100",
        "fail parse empty_extraction",
        "fail undetermined",
    ),
    "text_lost": Sample(
        {"source": {"extracted_text": OLD_TEXT, "extracted_chars": 64}, "chunk": {"text": OLD_TEXT}},
        {"source": {"extracted_text": TEXT}},
        "g: the answer's words are not in the extracted text; 64 of 100 characters were extracted",
        "fail parse text_lost",
        "fail chunk span_in_no_chunk",
    ),
    "text_garbled": Sample(
        {
            "source": {"extracted_text": "a refund wi thin 30 da ys of the delivery.", "note": "broken spacing"},
            "chunk": {"text": "a refund wi thin 30 da ys of the delivery."},
        },
        {"source": {"extracted_text": TEXT}},
        "g: the answer's words are in the extracted text only after normalisation; broken spacing",
        "fail parse text_garbled",
        "fail chunk span_broken",
    ),
    "no_chunks": Sample(
        {
            "gold_at": 0,
            "source": {"chunks_expected": 0, "chunks_indexed": {"dense": 0}},
            "without": ("chunk",),
        },
        {"source": {"chunks_expected": 1}},
        "source s1: 100 characters extracted, 0 chunks made",
        "fail chunk no_chunks",
        "fail ingestion source_missing,half_written",
    ),
    "span_in_no_chunk": Sample(
        {"chunk": {"text": OLD_TEXT}, "source": {"chunked_chars": 64}},
        {"chunk": {"text": TEXT}},
        "g: the answer's words are whole in no chunk; its chunks hold 64 of 100 extracted characters",
        "fail chunk span_in_no_chunk",
        "fail retrieve below_k",
    ),
    "span_split": Sample(
        {"chunk": {"text": "Refunds: a customer may ask for a refund within 30 days"}, "chunks": [_SPLIT]},
        {"chunk": {"text": TEXT}},
        "g: the chunk holds only part of the answer's words",
        "fail chunk span_split",
        "fail retrieve below_k",
    ),
    "span_broken": Sample(
        {"chunk": {"text": "a refund with in 30 days of the delivery"}},
        {"chunk": {"text": TEXT}},
        "g: the answer's words are whole in the extracted text, and in the chunk only after normalisation",
        "fail chunk span_broken",
        "fail retrieve below_k",
    ),
    "context_lost": Sample(
        {"trace": {"probes": [probe("rank_with_context", 2)]}},
        {"trace": {"probes": [probe("rank_with_context", 4)]}},
        "g: rank 2 once its heading is restored, outside the top 3 without it",
        "fail chunk context_lost",
        "fail retrieve below_k",
    ),
    "oversized_chunk": Sample(
        {
            "chunk": {"tokens": 900},
            "pipeline": {"chunker": {"target_tokens": 400}, "embedding": {"corpus": {"max_tokens": 8192}}},
            "trace": {"probes": [exact(5)]},
        },
        {"chunk": {"tokens": 800}},
        "g: 900 tokens, the chunker's target is 400",
        "fail chunk oversized_chunk",
        "fail retrieve weak_match",
    ),
}
