"""The example pipeline, run again in memory under a changed configuration and written as a bundle.

Importable once `examples` is on the path: `benchmarks.prediction` puts it there.
"""

import json
import shutil
from collections.abc import Mapping
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


class Example:
    """The corpus, ingested once: no change here touches the index."""

    def __init__(self, examples: Path) -> None:
        self._examples = examples
        self._sources = load_corpus(examples / "corpus")
        self._cases = load_cases(examples / "queries.jsonl")
        models = train(source for source in self._sources.values() if source.superseded_by is None)
        self._stores = build(self._sources, models, SOURCE_FAULTS), build(self._sources, models, {})
        self._idf = stem_idf(row.text for row in self._stores[1].rows.values())

    def run(self, folder: Path, variable: str = "", value: Any = None, *, everywhere: bool = False) -> Path:
        """Answer every query with one key of the run's configuration changed; write what was logged.

        Args:
            folder: Where the bundle goes.
            variable: Dotted key of the configuration; nothing is changed without one.
            value: What it is set to.
            everywhere: Queries that depart from the run's value give up that departure. Otherwise they keep it.
        """
        base, cases = config.PIPELINE, self._cases
        if variable:
            base = config.merged(base, _table(variable, value))
        if everywhere:
            cases = [_conforming(case, variable) for case in cases]
        actual = self._stores[0]
        runs = {case.query_id: answer_query(case, actual, self._idf, True, base) for case in cases}
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


def _table(variable: str, value: Any) -> dict[str, Any]:
    *tables, key = variable.split(".")
    found: dict[str, Any] = {key: value}
    for table in reversed(tables):
        found = {table: found}
    return found


def _conforming(case: Case, variable: str) -> Case:
    keys = variable.split(".")
    return replace(case, config=_without(case.config, keys), fault_config=_without(case.fault_config, keys))


def _without(table: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    first, *rest = keys
    if not rest:
        return {name: value for name, value in table.items() if name != first}
    return {name: _without(value, rest) if name == first else value for name, value in table.items()}
