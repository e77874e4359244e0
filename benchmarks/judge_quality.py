"""How far a judge model agrees with people: one claim against one text, on public sets that people labelled.

`wice`: a claim of Wikipedia against passages of a cited page (label: supported, partially or not; partially counts as
not). `ragtruth`: a sentence of an answer against the passages it was written from (not supported = a span in it was
marked as made up). The sets are not shipped, for their licences; a set that is not there is left out and said to be.
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

from benchmarks import print_table

if TYPE_CHECKING:
    from ragaudit.judge.how import HowToJudge
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.model.judgement import Failure, Judgement, JudgeSample, Reply, Request, Statistic

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
    from ragaudit.judge.matrix import CHUNK, cells_of, windows_of
    from ragaudit.judge.tasks import MatrixTask, Verdicts
    from ragaudit.model.judgement import Claim, JudgeCall, Judgement, Side

    assert sample.answer is not None and sample.chunks is not None
    claim = Claim(id="a1", side=Side.ANSWER, text=sample.answer)
    windows = windows_of(CHUNK, [(chunk.id, chunk.text) for chunk in sample.chunks], how.max_chunk_chars)
    key = key_for([*(window.text for window in windows), claim.text])
    calls: list[JudgeCall] = []
    heard = Verdicts()
    yield from ask([MatrixTask("", (claim,), windows, "matrix", key, how, prompts, heard)], calls)
    cells = cells_of([(claim.id, windows)], heard.said, heard.unsaid)
    return Judgement(query_id=sample.query_id, claims=(claim,), cells=tuple(cells), calls=tuple(calls))


def options(parser: argparse.ArgumentParser) -> None:
    """Which model is asked, and what keeps its replies."""
    parser.add_argument("--model", default="openai/qwen2.5-coder-1.5b")
    parser.add_argument("--api-base", default="http://127.0.0.1:8091/v1")
    parser.add_argument("--cache", default="", help="folder that keeps the replies")
    parser.add_argument("--p-cut", type=float, help="supported from this P(supported) on; default: the model's word")


def judged(items: Sequence[Item], arguments: argparse.Namespace) -> "list[Judgement]":
    """What the model says about each item, in their order; at temperature 0, one call at a time."""
    from ragaudit.config import JudgeSettings
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.judge.runner import run
    from ragaudit.judge.settings import how_to_judge, limits, litellm_client, open_tape
    from ragaudit.model.judgement import JudgeSample, SampleChunk

    settings = JudgeSettings(
        model=arguments.model,
        api_base=arguments.api_base,
        cache=arguments.cache,
        mode="per_claim",
        logprobs=True,
        p_cut=arguments.p_cut,
        parameters={"seed": 1},
        concurrency=1,
        call_timeout=600,
    )
    samples = [
        JudgeSample(query_id=str(n), query="", answer=item.claim, chunks=(SampleChunk(id="text", text=item.text),))
        for n, item in enumerate(items)
    ]
    with open_tape(settings, "new") as tape:
        judgements = run(
            samples,
            prompts=PromptSet.load(),
            how=how_to_judge(settings),
            tape=tape,
            client=litellm_client(settings),
            limits=limits(settings),
            judge=one_claim,
        )
        return list(judgements)


def main(argv: Sequence[str] | None = None) -> None:
    """Print one row for each set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_quality", description=__doc__)
    options(parser)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("-n", type=int, default=60, help="items of each set")
    arguments = parser.parse_args(argv)
    rows, missing = [], []
    for name, read in SETS.items():
        try:
            items = balanced(list(read(arguments.data)), arguments.n)
        except FileNotFoundError as error:
            missing.append(f"{name}: left out, {error.filename} is not there")
        else:
            rows.append(_row(name, items, judged(items, arguments)))
    if rows:
        print_table(f"{TITLE}; {arguments.model}", HEADER, rows)
    print("\n".join(missing))


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
        _shown(rates(truth, said).balanced_accuracy),
        _shown(cohen_kappa(truth, said, seed=SEED)),
        _shown(roc_auc([grade == 1 for grade in grades], ps, seed=SEED)),
        _shown(pearson(grades, ps, seed=SEED)),
        cut_figure,
    )


def _shown(figure: "Statistic") -> str:
    if figure.value is None:
        return "-"
    return f"{figure.value:.2f}" + ("" if figure.low is None else f" [{figure.low:.2f}, {figure.high:.2f}]")


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    main()
