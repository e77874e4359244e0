"""Build the judged bundle: queries without gold, answered by a real small model; check it against the hand-made truth.

The model's replies are recorded in examples/judged/made_from/answers.json, so that a build needs no model. With
`--answers http://127.0.0.1:8091/v1` every question is asked again (see examples/local_model).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local_model.chat import complete
from pipeline import bundle, config
from pipeline.cases import Case, load_cases
from pipeline.corpus import Source, load_corpus
from pipeline.gold import is_readable, is_satisfied
from pipeline.pack import INSTRUCTION
from pipeline.rerank import Idf, stem_idf
from pipeline.run import Run, answer_query
from pipeline.store import Models, Store, build, train
from pipeline.trace import trace_row

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "judged"
MADE_FROM = OUTPUT / "made_from"
MODEL = "qwen2.5-coder-1.5b"

SETTINGS: config.Config = {
    "k_final": 3,
    "search": {"dense": {"fetch_k": 8}, "bm25": {"fetch_k": 8}},
    "rerank": {"candidates": 10, "top_n": 6},
    "pack": {"token_budget": 360},
    "generator": {"model": MODEL, "context_window": 600, "max_tokens": 80},
}
"""What differs from the demo's pipeline: fewer and shorter passages, and a model that writes the answers."""

LEFT_OUT = frozenset({"hb-relocation"})
"""A page of one sentence of 190 words: too long a passage for a small judge."""

SOURCE_FAULTS = {
    "rb-failover": "half_written",
    "hb-learning": "source_stale",
    "api-signing": "source_missing",
    "rel-4-1": "not_visible",
    "hb-benefits": "tables_dropped",
    "hb-travel": "tail_dropped",
    "hb-equipment": "other_model",
    "api-v3-quotas": "type_mismatch",
    "dpa-eu": "empty_acl",
}
"""Source id -> the fault of its ingestion."""

INSTRUCTIONS = {
    "ignores_context": "The passages are samples of the tone to write in. Do not take facts from them. Answer the "
    "question at the end in one confident sentence with a typical value that you know from other companies.",
    "answers_always": "Answer the question at the end in one confident sentence. Never say that something is unknown.",
}
"""Faults of the prompt template: the instruction that stood there in place of the right one."""

GENERATOR_FAULTS = frozenset({*INSTRUCTIONS, "max_tokens", "cached_answer"})
"""`cached_answer`: the application's answer cache returned the reply to another question (`memory` names it)."""


class NotAsPromisedError(AssertionError):
    """A query does not show what its fault promises."""


@dataclass(frozen=True)
class World:
    """What all queries share: the documents, and the index as it is and as it would be without faults."""

    sources: dict[str, Source]
    models: Models
    actual: Store
    reference: Store
    idf: Idf


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the bundle; returns 1 when a fault did not bite."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    parser.add_argument("--answers", metavar="MODEL_URL", help="ask the model again and record its replies")
    options = parser.parse_args(arguments)
    world = make_world()
    cases = load_cases(MADE_FROM / "queries.jsonl")
    runs = {case.query_id: run_case(case, world.actual, world, faulty=True) for case in cases}
    problems = [problem for case in cases if (problem := _unproved(case, runs[case.query_id], world))]
    if problems:
        sys.stdout.write("\n".join(problems) + f"\n{len(problems)} of {len(cases)} queries are not as promised\n")
        return 1
    recorded = MADE_FROM / "answers.json"
    if options.answers:
        asked = {case.query_id: ask(options.answers, case, runs[case.query_id]) for case in cases if _is_asked(case)}
        recorded.write_text(json.dumps(asked, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    answers: dict[str, dict[str, Any]] = json.loads(recorded.read_text(encoding="utf-8"))
    traces = [judged_row(number, case, runs, world, answers) for number, case in enumerate(cases)]
    write(options.output, traces, world)
    truth = [json.loads(line) for line in (OUTPUT / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    _lines(options.output / "labels.jsonl", labels(truth))
    stages = Counter(f"{row['outcome']}/{row['stage']}" for row in truth)
    sys.stdout.write(f"{len(world.actual.rows)} chunks, {len(traces)} queries: {dict(sorted(stages.items()))}\n")
    return 0


def make_world() -> World:
    """Ingest the demo's documents once with the faults and once without."""
    corpus = load_corpus(HERE / "corpus")
    sources = {key: source for key, source in corpus.items() if key not in LEFT_OUT}
    models = train(source for source in sources.values() if source.superseded_by is None)
    reference = build(sources, models, {})
    idf = stem_idf(row.text for row in reference.rows.values())
    return World(sources, models, build(sources, models, SOURCE_FAULTS), reference, idf)


def run_case(case: Case, store: Store, world: World, faulty: bool) -> Run:
    """One query through the pipeline up to the prompt. The pipeline's own extractive answer is not used."""
    return answer_query(replace(case, config=config.merged(SETTINGS, case.config)), store, world.idf, faulty)


# --- the answers --------------------------------------------------------------------------------------------------


def prompt_text(case: Case, run: Run) -> str:
    """The prompt as it was sent: the passages and the question, under the right or the wrong instruction."""
    return run.prompt.text.replace(INSTRUCTION, INSTRUCTIONS.get(case.fault or "", INSTRUCTION), 1)


def ask(url: str, case: Case, run: Run) -> dict[str, Any]:
    """One recorded reply of the model."""
    messages = [{"role": "user", "content": prompt_text(case, run)}]
    reply = complete(url, MODEL, messages, max_tokens=run.settings["generator"]["max_tokens"])
    (choice,) = reply["choices"]
    text = choice["message"]["content"].strip()
    return {"text": text, "finish_reason": choice["finish_reason"], "prompt": messages[0]["content"]}


def _is_asked(case: Case) -> bool:
    return case.fault != "cached_answer"


def _answer(case: Case, run: Run, answers: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    reply = answers[case.query_id if _is_asked(case) else case.memory]
    if _is_asked(case) and reply["prompt"] != prompt_text(case, run):
        raise NotAsPromisedError(f"{case.query_id}: the recorded answer is one to another prompt. Ask again: --answers")
    return {"text": reply["text"], "finish_reason": reply["finish_reason"]}


# --- the proof ----------------------------------------------------------------------------------------------------


def _unproved(case: Case, run: Run, world: World) -> str | None:
    """What is wrong with a query: its fault must be what loses the evidence, and nobody may get a closed passage."""
    eligible = [gold for gold in case.gold if is_readable(gold, case, world.sources)]
    foreign = [row.chunk_id for row in run.packed if not set(world.sources[row.source_id].acl) & set(case.user_acl)]
    if foreign:
        return f"{case.query_id}: chunks the user may not read are in the prompt: {foreign}"
    if not eligible:
        return None
    is_delivered = is_satisfied(case, run, eligible)
    if case.fault is None or case.fault in GENERATOR_FAULTS:
        return None if is_delivered else f"{case.query_id}: the evidence is not in the prompt: {run.packed_ids}"
    if is_delivered:
        return f"{case.query_id}: {case.fault} is on, and the evidence is in the prompt"
    repaired = run_case(case, _repaired(case, world), world, faulty=False)
    if not is_satisfied(case, repaired, eligible):
        return f"{case.query_id}: {case.fault} is off, and the evidence is not in the prompt: {repaired.packed_ids}"
    return None


def _repaired(case: Case, world: World) -> Store:
    """The index with this query's ingestion fault off and every other one on."""
    broken = [gold.source for gold in case.gold if SOURCE_FAULTS.get(gold.source) == case.fault]
    if not broken or case.fault == "type_mismatch":
        return world.actual
    faults = {source: fault for source, fault in SOURCE_FAULTS.items() if source not in broken}
    return build(world.sources, world.models, faults)


# --- the bundle ---------------------------------------------------------------------------------------------------


def judged_row(
    number: int, case: Case, runs: Mapping[str, Run], world: World, answers: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """One line of traces.jsonl: what a system logs that has no labels."""
    run = runs[case.query_id]
    stores = (world.actual, world.reference)
    row = trace_row(number, case, run, stores, world.sources, world.idf, runs.get(case.previous))
    for label in ("gold_ids", "gold", "gold_mode", "gold_groups"):
        row.pop(label, None)
    if case.answerable:
        del row["answerable"]
    if not case.reference:
        del row["reference"]
    row["answer"] = _answer(case, run, answers)
    return row


def write(output: Path, traces: Iterable[dict[str, Any]], world: World) -> None:
    """The files of the bundle, except the hand-made ones (README.md, truth.jsonl, made_from)."""
    store = world.actual
    output.mkdir(parents=True, exist_ok=True)
    _lines(output / "traces.jsonl", traces)
    sources = (bundle.source_row(source, store.ingested[key]) for key, source in world.sources.items())
    _lines(output / "sources.jsonl", sources)
    _lines(output / "chunks.jsonl", (bundle.chunk_row(row, {}) for row in store.rows.values()))
    index = bundle.index_object(store, [next(iter(store.rows))])
    del index["id_overlap_with_gold"]
    index["note"] = f"judged example; {len(SOURCE_FAULTS)} sources were ingested with a fault"
    (output / "index.json").write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    pipeline = config.to_toml(config.merged(config.PIPELINE, SETTINGS), "pipeline")
    (output / "ragaudit.toml").write_text(HEAD + pipeline + TAIL, encoding="utf-8")


def labels(truth: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The truth as labels for `ragaudit judge calibrate`: one number a line."""
    for row in truth:
        said = {"abstained": float(row["abstained"])} | {key: row[key] for key in ("context_recall", "faithfulness")}
        for metric, label in said.items():
            if label is not None:
                yield {"query_id": row["query_id"], "metric": metric, "label": label}


HEAD = """\
# Frozen configuration of the judged example. Written by examples/make_judged.py.

"""
TAIL = """\
# There is no gold here: a judge reads the passages. `ragaudit audit examples/judged --tape none` replays its recorded
# replies and calls nothing. To ask again: `make cassettes`, or examples/local_model.
[judge]
model = "openai/qwen2.5-coder-1.5b"      # LiteLLM's name: the provider whose protocol is spoken, and the model
api_base = "http://127.0.0.1:8091/v1"    # loopback: nothing leaves the machine
cassette = "../../cassettes/judged.jsonl"
cache = ""
mode = "per_claim"                       # one claim against one text a call: more is too much for so small a model
max_texts = 1
logprobs = true                          # its "supported" says little, its probability says more:
p_cut = 0.75                             # a verdict counts as supported from here on
parameters = {seed = 1}
concurrency = 1                          # the server answers one request at a time, on two cores
call_timeout = 600

# Where the 2x2 is cut. Defaults; `ragaudit judge calibrate` fits them to human labels.
[judge.cuts]
context_recall = 0.5
faithfulness = 0.7

[slices]
dimensions = ["family", "language"]

[acl]
rule = "any"

[experiment]
index_write = "test"
"""


def _lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
