"""Build the demo bundle: ingest the corpus, run every query, prove every fault, write examples/demo."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline import bundle
from pipeline.cases import Case, load_cases
from pipeline.corpus import Source, load_corpus
from pipeline.faults import SOURCE_FAULTS
from pipeline.gold import gold_id, is_delivered, is_readable
from pipeline.rerank import stem_idf
from pipeline.run import Run, answer_query
from pipeline.store import Store, build, train
from pipeline.trace import trace_row
from pipeline.truth import FaultDidNotBiteError, truth_row

HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the bundle; returns 1 when a fault did not bite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "demo")
    output: Path = parser.parse_args(arguments).output
    sources = load_corpus(HERE / "corpus")
    cases = load_cases(HERE / "queries.jsonl")
    models = train(source for source in sources.values() if source.superseded_by is None)
    reference = build(sources, models, {})
    actual = build(sources, models, SOURCE_FAULTS)
    idf = stem_idf(row.text for row in reference.rows.values())
    runs = {case.query_id: answer_query(case, actual, idf, faulty=True) for case in cases}
    stores = (actual, reference)
    truths: list[dict[str, Any]] = []
    problems: list[str] = []
    for case in cases:
        try:
            truths.append(truth_row(case, runs[case.query_id], stores, sources, idf))
        except FaultDidNotBiteError as problem:
            problems.append(str(problem))
    if problems:
        sys.stdout.write("\n".join(problems) + f"\n{len(problems)} of {len(cases)} queries are not as promised\n")
        return 1
    traces = [
        trace_row(number, case, runs[case.query_id], stores, sources, idf, runs.get(case.previous))
        for number, case in enumerate(cases)
    ]
    _write(output, cases, runs, stores, sources, traces, truths)
    sys.stdout.write(_summary(truths, actual))
    return 0


def _write(
    output: Path,
    cases: list[Case],
    runs: dict[str, Run],
    stores: tuple[Store, Store],
    sources: dict[str, Source],
    traces: list[dict[str, Any]],
    truths: list[dict[str, Any]],
) -> None:
    actual, reference = stores
    labelled = [(gold_id(gold, actual, reference), gold.span) for case in cases for gold in case.gold]
    offsets = bundle.token_offsets([pair for pair in labelled if pair[0] in actual.rows], actual)
    output.mkdir(parents=True, exist_ok=True)
    _lines(output / "traces.jsonl", traces)
    _lines(
        output / "sources.jsonl",
        (bundle.source_row(source, actual.ingested[key]) for key, source in sources.items()),
    )
    _lines(output / "chunks.jsonl", (bundle.chunk_row(row, offsets) for row in actual.rows.values()))
    _lines(output / "truth.jsonl", truths)
    index = bundle.index_object(actual, [chunk_id for chunk_id, _ in labelled])
    (output / "index.json").write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    toml = bundle.ragaudit_toml(_gates(cases, runs, sources))
    (output / "ragaudit.toml").write_text(toml, encoding="utf-8")


def _gates(cases: list[Case], runs: dict[str, Run], sources: dict[str, Source]) -> dict[str, float]:
    """Recall and hit rate of the packed context over queries with eligible gold, rounded down."""
    recalls: list[float] = []
    for case in cases:
        eligible = [gold for gold in case.gold if is_readable(gold, case, sources)]
        if eligible:
            found = sum(is_delivered(gold, runs[case.query_id]) for gold in eligible)
            recalls.append(found / len(eligible))
    values = {"recall@k": sum(recalls) / len(recalls), "hit@k": sum(value > 0 for value in recalls) / len(recalls)}
    return {name: math.floor(value * 20) / 20 for name, value in values.items()}


def _lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def _summary(truths: list[dict[str, Any]], actual: Store) -> str:
    outcomes = Counter(row["outcome"] for row in truths)
    stages = Counter(row["stage"] for row in truths if row["outcome"] == "fail")
    return (
        f"{len(actual.ingested)} sources, {len(actual.rows)} chunks, {len(truths)} queries\n"
        f"outcomes: {dict(sorted(outcomes.items()))}\n"
        f"failing stage: {dict(sorted(stages.items()))}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
