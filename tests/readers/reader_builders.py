"""Builders for reader tests: one good trace with defaults, a bundle folder from it, and reading it back."""

import json
from pathlib import Path
from typing import Any

from ragaudit.config import load_settings
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import Bundle, locate, open_bundle, read_traces


def record(**over: Any) -> dict[str, Any]:
    """A well-formed trace as an application would log it."""
    return {
        "query_id": "q1",
        "query_text": "how do I reset my password",
        "k_final": 8,
        "arms": {"dense": [{"id": "c1", "rank": 1, "score": 0.7}, {"id": "c2", "rank": 2, "score": 0.6}]},
        "final_context_ids": ["c1", "c2"],
        "gold_ids": ["c1"],
        **over,
    }


def as_line(value: Any) -> bytes:
    """Bytes as they are; anything else as one JSON line."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


def write(path: Path, *values: Any) -> Path:
    path.write_bytes(b"".join(map(as_line, values)))
    return path


def bundle_of(folder: Path, *values: Any, toml: str | None = None, **files: bytes) -> Bundle:
    """An open bundle of these trace lines; further files as `chunks_jsonl=b"..."`."""
    write(folder / "traces.jsonl", *values)
    for name, content in files.items():
        stem, _, end = name.rpartition("_")
        (folder / f"{stem}.{end}").write_bytes(content)
    config = None
    if toml is not None:
        config = folder / "ragaudit.toml"
        config.write_text(toml)
    return open_bundle(locate(folder), load_settings(config, env={}, flags={}))


def read(folder: Path, *values: Any, **over: Any) -> tuple[list[Trace], Bundle]:
    """The traces that these lines give, and the bundle with its problems."""
    bundle = bundle_of(folder, *values, **over)
    return list(read_traces(bundle)), bundle


def one(folder: Path, *values: Any, **over: Any) -> Trace:
    """The only trace, read without any problem."""
    traces, bundle = read(folder, *values, **over)
    assert bundle.problems.texts() == ()
    (trace,) = traces
    return trace
