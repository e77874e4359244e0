"""The inventory of the bundle: sources, chunks, the index object and ragaudit.toml."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from . import config
from .corpus import Source, content_hash
from .faults import SOURCE_FAULTS
from .probes import answer_offset
from .store import Ingested, Row, Store

HEAD = """\
# Frozen configuration of the demo run. Written by examples/make_demo.py.
"""


def source_row(source: Source, record: Ingested) -> dict[str, Any]:
    """One line of sources.jsonl."""
    is_registered = record.status != "absent"
    parsed = record.parsed
    row: dict[str, Any] = {
        "source_id": source.source_id,
        "registered": is_registered,
        "status": record.status if is_registered else None,
        "in_source_of_truth": source.superseded_by is None,
        "superseded_by": source.superseded_by,
        "source_hash": content_hash(source.text),
        "indexed_hash": record.indexed_hash,
        "source_chars": len(source.text),
        "extracted_chars": len(parsed.text) if parsed else None,
        "chunked_chars": record.chunked_chars if parsed else None,
        "tables_in_source": parsed.tables_in_source if parsed else None,
        "tables_extracted": parsed.tables_extracted if parsed else None,
        "chunks_expected": record.n_expected if parsed else None,
        "chunks_indexed": {"dense": record.n_indexed, "bm25": record.n_indexed},
        "acl": list(source.acl),
        "updated_at": source.updated,
        "indexed_at": record.indexed_at,
        "text": source.text,
        "extracted_text": parsed.text if parsed else None,
    }
    return row


def chunk_row(row: Row, offsets: dict[str, int]) -> dict[str, Any]:
    """One line of chunks.jsonl."""
    fields: dict[str, Any] = {
        "chunk_id": row.chunk_id,
        "source_id": row.source_id,
        "kind": "parent" if row.is_parent else "chunk",
        "text": row.text,
        "content_hash": row.hash,
        "tokens": row.tokens,
        "metadata": row.metadata,
        "acl": list(row.acl),
        "language": row.language,
    }
    if row.parent_id is not None:
        fields["parent_id"] = row.parent_id
    fields["in"] = {"dense": row.is_indexed, "bm25": row.is_indexed}
    if not row.is_parent:
        fields["embedding_model"] = row.model
        fields["dim"] = len(row.vector)
        fields["norm"] = round(float(np.linalg.norm(row.vector)), 4)
    fields["indexed_at"] = row.indexed_at
    fields["visible_at"] = row.visible_at
    if row.chunk_id in offsets:
        fields["answer_token_offset"] = offsets[row.chunk_id]
    return fields


def token_offsets(spans: list[tuple[str, str]], store: Store) -> dict[str, int]:
    """Where the answer begins in chunks that are longer than the embedder reads."""
    long = {key for key, row in store.rows.items() if row.tokens > config.EMBED_MAX_TOKENS and not row.is_parent}
    return {key: answer_offset(store, key, span) for key, span in spans if key in long}


def index_object(store: Store, gold_ids: list[str]) -> dict[str, Any]:
    """The content of index.json."""
    rows = [row for row in store.rows.values() if row.is_indexed]
    norms = [round(float(np.linalg.norm(row.vector)), 4) for row in rows]
    models = Counter(row.model for row in rows)
    dims = Counter(str(len(row.vector)) for row in rows)
    p5, p50, p95 = (round(float(np.percentile(norms, share)), 4) for share in (5, 50, 95))
    current = [key for key, record in store.ingested.items() if record.source.superseded_by is None]
    known = sum(key in store.rows for key in gold_ids)
    return {
        "revision": config.REVISION,
        "snapshot_at": config.SNAPSHOT,
        "namespace": "osterby",
        "namespaces": {"osterby": len(rows)},
        "arms": {
            "dense": {
                "chunks": len(rows),
                "built_at": config.BUILT,
                "metric": "cosine",
                "models": dict(sorted(models.items())),
                "dims": dict(sorted(dims.items())),
                "norm_p5": p5,
                "norm_p50": p50,
                "norm_p95": p95,
                "tombstones": 0,
                "ann": "ivf",
                "score": {"direction": "higher", "formula": "cosine"},
            },
            "bm25": {"chunks": len(rows), "built_at": config.BUILT, "score": {"direction": "higher"}},
        },
        "chunks_in_store": len(store.rows),
        "sources_expected": len(current),
        "sources_indexed": sum(store.ingested[key].n_indexed > 0 for key in current),
        "id_overlap_with_gold": round(known / len(gold_ids), 4),
        "metadata_types": {
            "api_version": "int",
            "family": "str",
            "language": "str",
            "region": "str",
            "tenant": "str",
            "updated": "str",
        },
        "complete": True,
        "note": f"demo; {len(SOURCE_FAULTS)} sources were ingested with a fault",
    }


def ragaudit_toml(gates: dict[str, float]) -> str:
    """The content of ragaudit.toml."""
    lines = "\n".join(f'"{name}" = {value:.2f}' for name, value in gates.items())
    return (
        HEAD
        + "\n"
        + config.to_toml(config.PIPELINE, "pipeline")
        + "# Chosen from this baseline: the measured value, rounded down to the next 0.05.\n"
        + f"[gates]\n{lines}\n\n"
        + "# Off: no model is named, so none is called.\n[judge]\n\n"
        + '[slices]\ndimensions = ["family", "language"]\n\n'
        + '[acl]\nrule = "any"\n\n'
        + '[experiment]\nindex_write = "test"\n'
    )
