"""Samples with broken values anywhere: an import gives rows that can be written, or an error of ours."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from span_builders import DATA

from ragaudit.errors import RagauditError
from ragaudit.importers.formats import Options
from ragaudit.importers.registry import format_named, guess
from ragaudit.importers.report import ImportReport

ODD: list[Any] = [
    *(None, True, 0, -1, 3.5, float("nan"), 10**30, "", "[]", "{}", "[1,2]", "\ud800x", "<script>"),
    *([], {}, [[]], [None], {"a": {"b": []}}, [{"id": []}], {"role": "user", "content": [{"text": None}]}),
    '{"documents": [1, null, {"id": {}}]}',
    [{"document.id": 7, "document.metadata": "x"}],
    {"documents": [{"id": None, "content": 5, "metadata": []}]},
]
FORMATS = {"haystack": ("haystack", "spans"), "mlflow": ("mlflow",), "phoenix": ("phoenix",)}


def mutated(value: Any, source: random.Random) -> Any:
    """The value with some of its parts replaced, left out or renamed, also inside JSON in texts."""
    if source.random() < 0.03:
        return source.choice(ODD)
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if source.random() > 0.02}
        return {key if source.random() > 0.01 else f"{key}.0": mutated(each, source) for key, each in kept.items()}
    if isinstance(value, list):
        return [mutated(each, source) for each in value if source.random() > 0.02]
    if isinstance(value, str) and value.startswith(("{", "[")) and source.random() < 0.5:
        try:
            return json.dumps(mutated(json.loads(value), source))
        except ValueError:
            return value
    return value


OURS = ("openinference_", "genai_", "openllmetry_", "haystack_", "mlflow_", "phoenix_")


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if path.name.startswith(OURS)))
def test_broken_values_anywhere_give_rows_or_an_error_of_ours(tmp_path: Path, name: str) -> None:
    source = random.Random(name)
    text = (DATA / name).read_text("utf-8")
    records = [json.loads(text)] if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    path = tmp_path / f"broken{Path(name).suffix}"
    read = 0
    for _ in range(12):
        path.write_text("".join(json.dumps(mutated(each, source)) + "\n" for each in records))
        for form in FORMATS.get(name.partition("_")[0], ("spans", "phoenix")):
            try:
                guess(path)
                rows = list(format_named(form).read(path, Options(), ImportReport()))
            except RagauditError:
                continue
            assert all(json.dumps(row) for _, row in rows)
            read += 1
    assert read > 0
