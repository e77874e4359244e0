"""Does the judge prefer the answer that people prefer? Pairs of answers to one question, from RAGChecker.

Two people said on a scale from -2 to 2 which answer is the more correct, the more complete, and the better one (Ru et
al. 2024, human_labeled_data.json). The judge is shown the right answer as reference and as the only chunk: faithfulness
is then correctness, answer_recall is completeness, and their F1 the whole. A pair counts as the difference between its
two answers. Pearson against the mean of the two people; beside it that of RAGChecker's own published scores on the same
pairs, and of one person against the other, which no judge can be expected to exceed.
"""

import argparse
import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import print_table
from benchmarks.judge_model import judged, shown

if TYPE_CHECKING:
    from ragaudit.model.judgement import Judgement, JudgeSample

ASPECTS = ("correctness", "completeness", "overall")
HEADER = ("", "pairs", "unscored", "judge", "RAGChecker", "two people")
SEED = 7


class Pair(NamedTuple):
    """Two answers to one question. Positive labels and differences are in favour of the second answer."""

    query: str
    reference: str
    answers: tuple[str, str]
    labels: tuple[dict[str, float], dict[str, float]]
    """Of two people, by aspect, from -2 to 2."""
    ragchecker: dict[str, float]
    """The difference of its published scores, by aspect."""


def pairs(folder: Path) -> list[Pair]:
    """All pairs, in the order of the file."""
    published = {row["instance_id"]: row for row in _rows(folder / "ragchecker" / "baseline_ragchecker.json.gz")}
    by_id: dict[int, list[dict[str, Any]]] = {}
    for row in _rows(folder / "ragchecker" / "human_labeled_data.json.gz"):
        by_id.setdefault(row["instance_id"], []).append(row)
    return [_pair(one, two, published[instance]) for instance, (one, two) in by_id.items()]


def table(folder: Path, n: int, arguments: argparse.Namespace) -> None:
    """Judge `n` pairs, always the same ones, and print how far the judge goes with the people."""
    found = pairs(folder)
    drawn = random.Random(SEED).sample(found, min(n, len(found)))
    said = judged([sample for number, pair in enumerate(drawn) for sample in _samples(number, pair)], arguments)
    answers = [_scores(judgement) for judgement in said]
    print_table(
        f"A judge against people: which of two answers; Pearson, 95 % intervals; {arguments.model}",
        HEADER,
        [_row(aspect, drawn, list(zip(answers[::2], answers[1::2], strict=True))) for aspect in ASPECTS],
    )


def _pair(one: dict[str, Any], two: dict[str, Any], published: dict[str, Any]) -> Pair:
    scores = [published[side]["ragchecker"] for side in ("model1", "model2")]
    first, second = ({aspect: float(row[f"{aspect}_label"]) for aspect in ASPECTS} for row in (one, two))
    return Pair(
        query=one["query"],
        reference=one["gt_answer"],
        answers=(one["model1"]["response"], one["model2"]["response"]),
        labels=(first, second),
        ragchecker={aspect: scores[1][f"{aspect}_label"] - scores[0][f"{aspect}_label"] for aspect in ASPECTS},
    )


def _samples(number: int, pair: Pair) -> "list[JudgeSample]":
    from ragaudit.model.judgement import JudgeSample, SampleChunk

    return [
        JudgeSample(
            query_id=f"{number}-{place}",
            query=pair.query,
            answer=answer,
            reference=pair.reference,
            chunks=(SampleChunk(id="reference", text=pair.reference),),
        )
        for place, answer in enumerate(pair.answers, start=1)
    ]


def _scores(judgement: "Judgement") -> dict[str, float | None]:
    """By aspect; None = not scored."""
    right, whole = judgement.metrics.get("faithfulness"), judgement.metrics.get("answer_recall")
    both = None
    if right is not None and whole is not None:
        both = 2 * right * whole / (right + whole) if right + whole else 0.0
    return {"correctness": right, "completeness": whole, "overall": both}


def _row(
    aspect: str, drawn: Sequence[Pair], answers: Sequence[tuple[dict[str, float | None], dict[str, float | None]]]
) -> tuple[str, ...]:
    from ragaudit.metrics.agreement import pearson

    scored = [
        (pair, second - first)
        for pair, scores in zip(drawn, answers, strict=True)
        for first, second in ((scores[0][aspect], scores[1][aspect]),)
        if first is not None and second is not None
    ]
    one, two = ([pair.labels[person][aspect] for pair, _ in scored] for person in (0, 1))
    people = [(a + b) / 2 for a, b in zip(one, two, strict=True)]
    judge = pearson(people, [difference for _, difference in scored], seed=SEED)
    theirs = pearson(people, [pair.ragchecker[aspect] for pair, _ in scored], seed=SEED)
    return (
        aspect,
        str(len(drawn)),
        str(len(drawn) - len(scored)),
        shown(judge),
        shown(theirs),
        shown(pearson(one, two, seed=SEED)),
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))
    return rows
