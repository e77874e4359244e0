"""What stands in a live index -> sources.jsonl, chunks.jsonl and index.json. Reads only; no store is ever changed."""
