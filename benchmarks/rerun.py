"""The example pipeline, run again in memory under a changed configuration and written as a bundle.

Importable once `examples` is on the path: `benchmarks.prediction` puts it there.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import config
from pipeline.cases import Case, load_cases
from pipeline.corpus import load_corpus
from pipeline.faults import SOURCE_FAULTS
from pipeline.rerank import stem_idf
from pipeline.run import answer_query
from pipeline.store import build, train
from pipeline.trace import trace_row

TABLES = ("sources.jsonl", "chunks.jsonl", "index.json", "ragaudit.toml")

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""From what a query ran under to the tables that are to be laid over it; none for a query that it does not touch."""


class Example:
    """The corpus, ingested once: no change here touches the index."""

    def __init__(self, examples: Path) -> None:
        self._examples = examples
        self._sources = load_corpus(examples / "corpus")
        self._cases = load_cases(examples / "queries.jsonl")
        models = train(source for source in self._sources.values() if source.superseded_by is None)
        self._stores = build(self._sources, models, SOURCE_FAULTS), build(self._sources, models, {})
        self._idf = stem_idf(row.text for row in self._stores[1].rows.values())

    def run(self, folder: Path, change: Change = lambda settings: {}) -> Path:
        """Answer every query, each under its own configuration with this change laid over it; write what was logged."""
        cases = [_changed(case, change) for case in self._cases]
        actual = self._stores[0]
        runs = {case.query_id: answer_query(case, actual, self._idf, True) for case in cases}
        rows = [
            trace_row(n, case, runs[case.query_id], self._stores, self._sources, self._idf, runs.get(case.previous))
            for n, case in enumerate(cases)
        ]
        folder.mkdir(parents=True)
        for name in TABLES:
            shutil.copy(self._examples / "demo" / name, folder / name)
        lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
        (folder / "traces.jsonl").write_text("".join(lines), encoding="utf-8")
        return folder


def _changed(case: Case, change: Change) -> Case:
    settings = config.merged(config.merged(config.PIPELINE, case.config), case.fault_config)
    return replace(case, fault_config=config.merged(case.fault_config, change(settings)))
