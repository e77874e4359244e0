"""How far a judge model agrees with people, on public sets that they labelled: claims against texts, pairs of answers.

`wice`: a claim of Wikipedia against passages of a cited page (label: supported, partially or not; partially counts as
not). `ragtruth`: a sentence of an answer against the passages it was written from (not supported = a span in it was
marked as made up). `ragchecker`: which of two answers is better, see benchmarks/judge_pairs.py. The sets are not
shipped, for their licences; a set that is not there is left out and said to be.
Needs a model that answers: the default is the one of examples/local_model, asked on loopback.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import judge_pairs, print_table
from benchmarks.judge_model import judged, options, shown

if TYPE_CHECKING:
    from ragaudit.judge.how import HowToJudge
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.model.judgement import Failure, Judgement, JudgeSample, Reply, Request

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SEED = 7
TITLE = "A judge against people: one claim, one text; 95 % intervals"
HEADER = (
    "set",
    "items",
    "supported",
    "unscored",
    "balanced accuracy",
    "kappa",
    "AUC of P",
    "Pearson of P",
    "cut -> ba",
)


class Item(NamedTuple):
    """One labelled pair. `grade` is 1 supported, 0.5 partially, 0 not."""

    claim: str
    text: str
    grade: float


def wice(folder: Path) -> Iterator[Item]:
    """Gold chunk labels of WiCE (Kamoi et al. 2023)."""
    grades = {"supported": 1.0, "partially_supported": 0.5, "not_supported": 0.0}
    for row in _rows(folder / "wice" / "oracle_chunks.claim.test.jsonl.gz"):
        yield Item(row["claim"], "\n".join(row["evidence"]), grades[row["label"]])


def ragtruth(folder: Path) -> Iterator[Item]:
    """Sentences of at least six words from RAGTruth's answered questions (Niu et al. 2024)."""
    for row in _rows(folder / "ragtruth-qa" / "ragtruth_qa.jsonl.gz"):
        for response in row["responses"]:
            spans = [(label["start"], label["end"]) for label in response["labels"]]
            for found in re.finditer(r"[^.!?\n]+[.!?]*", response["response"]):
                if len(found[0].split()) >= 6:
                    is_made_up = any(start < found.end() and found.start() < end for start, end in spans)
                    yield Item(found[0].strip(), row["source"]["passages"], 0.0 if is_made_up else 1.0)


SETS: dict[str, Callable[[Path], Iterator[Item]]] = {"wice": wice, "ragtruth": ragtruth}


def balanced(items: Sequence[Item], n: int) -> list[Item]:
    """`n` items, as nearly half of them supported as there are; always the same ones."""
    drawn = random.Random(SEED).sample(items, len(items))
    yes = [item for item in drawn if item.grade == 1][: n // 2]
    return yes + [item for item in drawn if item.grade < 1][: n - len(yes)]


def one_claim(
    sample: "JudgeSample", prompts: "PromptSet", how: "HowToJudge"
) -> Generator[list["Request"], list["Reply | Failure"], "Judgement"]:
    """Ask what an audit asks about a claim and a chunk, with the claim given."""
    from ragaudit.judge.asking import ask
    from ragaudit.judge.fence import key_for
    from ragaudit.judge.matrix import CHUNK, cells_of, rows_of, windows_of
    from ragaudit.judge.tasks import MatrixTask, Verdicts
    from ragaudit.model.judgement import Claim, JudgeCall, Judgement, Side

    assert sample.answer is not None and sample.chunks is not None
    claim = Claim(id="a1", side=Side.ANSWER, text=sample.answer)
    windows = windows_of(CHUNK, [(chunk.id, chunk.text) for chunk in sample.chunks], how.max_chunk_chars)
    key = key_for([*(window.text for window in windows), claim.text])
    calls: list[JudgeCall] = []
    heard = Verdicts()
    yield from ask([MatrixTask("", (claim,), windows, "matrix", key, how, prompts, heard)], calls)
    cells = cells_of(rows_of([claim], windows), heard.said, heard.unsaid)
    return Judgement(query_id=sample.query_id, claims=(claim,), cells=tuple(cells), calls=tuple(calls))


def samples_of(items: Sequence[Item]) -> "list[JudgeSample]":
    """One sample an item: the claim is the answer, the text the only chunk."""
    from ragaudit.model.judgement import JudgeSample, SampleChunk

    return [
        JudgeSample(query_id=str(n), query="", answer=item.claim, chunks=(SampleChunk(id="text", text=item.text),))
        for n, item in enumerate(items)
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print one row for each set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_quality", description=__doc__)
    options(parser)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("-n", type=int, default=60, help="items of wice and ragtruth")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of ragchecker, about 30 calls each for per_claim")
    arguments = parser.parse_args(argv)
    rows, missing = [], []
    for name, read in SETS.items():
        try:
            items = balanced(list(read(arguments.data)), arguments.n)
        except FileNotFoundError as error:
            missing.append(f"{name}: left out, {error.filename} is not there")
        else:
            rows.append(_row(name, items, judged(samples_of(items), arguments, one_claim)))
    if rows:
        print_table(f"{TITLE}; {arguments.model}", HEADER, rows)
    try:
        judge_pairs.table(arguments.data, arguments.pairs, arguments)
    except FileNotFoundError as error:
        missing.append(f"ragchecker: left out, {error.filename} is not there")
    for line in missing:
        print(line)


def _row(name: str, items: Sequence[Item], judgements: "Sequence[Judgement]") -> tuple[str, ...]:
    from ragaudit.metrics.agreement import cohen_kappa, fit_threshold, pearson, rates, roc_auc
    from ragaudit.model.judgement import Verdict

    scored = [
        (item.grade, cell.verdict is Verdict.SUPPORTED, cell.p_supported)
        for item, judgement in zip(items, judgements, strict=True)
        for cell in judgement.cells
        if cell.verdict is not None
    ]
    truth, said = [grade == 1 for grade, _, _ in scored], [verdict for _, verdict, _ in scored]
    known = [(grade, p) for grade, _, p in scored if p is not None]
    grades, ps = [grade for grade, _ in known], [p for _, p in known]
    cut = fit_threshold([grade == 1 for grade in grades], ps, seed=SEED)
    cut_figure = "-" if cut.cross_validated is None else f"{cut.cut:.2f} -> {cut.cross_validated:.2f}"
    return (
        name,
        str(len(items)),
        str(sum(item.grade == 1 for item in items)),
        str(len(items) - len(scored)),
        shown(rates(truth, said).balanced_accuracy),
        shown(cohen_kappa(truth, said, seed=SEED)),
        shown(roc_auc([grade == 1 for grade in grades], ps, seed=SEED)),
        shown(pearson(grades, ps, seed=SEED)),
        cut_figure,
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
