"""What people said of judged queries: reads their labels and lays them beside the judge's verdicts."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.judge.score import METRICS
from ragaudit.model.judgement import Calibration, Cell, Compared, Judgement, JudgeState, Verdict

ABSTAINED = "abstained"
VERDICT, CLAIM, PROBABILITY = "verdict", "claim", "p_supported"

MAX_BYTES = 64 << 20
"""Labels are typed by people; a larger file is something else."""


@dataclass(frozen=True)
class Label:
    """What one person said of one thing of one query.

    `about` is a metric, "abstained", "verdict" (a claim against a chunk) or "claim" (against all packed chunks); `said`
    is a number in 0..1, or the word of a verdict.
    """

    query_id: str
    about: str
    said: float | Verdict
    claim: str | None = None
    """The claim's id, or its text."""
    chunk_id: str | None = None
    annotator: str | None = None
    line: int = 0

    @property
    def item(self) -> tuple[str, str, str | None, str | None]:
        """What was labelled: two people's labels of one thing share it."""
        return self.query_id, self.about, self.claim, self.chunk_id


@dataclass(frozen=True)
class Labels:
    """One labels file."""

    name: str
    sha256: str
    labels: tuple[Label, ...]

    @property
    def annotators(self) -> int:
        """How many people are named."""
        return len({label.annotator for label in self.labels if label.annotator is not None})


def read_labels(path: Path) -> Labels:
    """Read a labels file: JSON lines, one label a line.

    Raises:
        InputError: The file cannot be read, or a line is no label, or one person labelled a thing twice.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"{path}: more than {MAX_BYTES >> 20} MB. Is this a file of labels?")
    labels = tuple(_parsed(content, path.name))
    if not labels:
        raise InputError(
            f'{path}: no labels in it. Write one a line: {{"query_id": ..., "metric": ..., "label": ...}}.'
        )
    _refuse_repeated(labels, path.name)
    return Labels(path.name, "sha256:" + hashlib.sha256(content).hexdigest(), labels)


def compare(labels: Labels, judged: Iterable[tuple[Judgement, Collection[str]]]) -> tuple[tuple[Compared, ...], int]:
    """Lay labels beside judgements, each thing in its own `Compared`, and count the labels about nothing that is there.

    Several people's numbers of one item are averaged; of their verdicts the most frequent counts, a tie is left out.

    Args:
        labels: What people said.
        judged: Each judgement with the ids of the chunks that were packed.

    Raises:
        InputError: No label is about anything in the judgements.
    """
    by_query: dict[str, list[Label]] = defaultdict(list)
    for label in labels.labels:
        by_query[label.query_id].append(label)
    found: dict[str, _Gathered] = defaultdict(_Gathered)
    wanted = {label.about for label in labels.labels}
    matched = 0
    for judgement, packed in judged:
        own = by_query.get(judgement.query_id, [])
        matched += _gather(own, judgement, packed, found)
        for metric in wanted.intersection(METRICS) - {label.about for label in own}:
            value, reason = _metric(judgement, metric)
            if reason is None and value is not None:
                found[metric].unlabelled.append(value)
    if not matched:
        first = labels.labels[0]
        raise InputError(
            f"{labels.name}: no label is about a query, claim or chunk that was judged (first: {first.query_id!r}). "
            "Are these the labels of another run?"
        )
    order = {about: place for place, about in enumerate((*METRICS, ABSTAINED, VERDICT, CLAIM, PROBABILITY))}
    compared = tuple(found[about].compared(about) for about in sorted(found, key=order.__getitem__))
    return compared, len(labels.labels) - matched


def described(labels: Labels, *, model: str | None, prompts: Iterable[str], unmatched: int) -> Calibration:
    """A calibration that says what it rests on, and has no figures yet."""
    return Calibration(
        model=model,
        prompts=tuple(sorted(set(prompts))),
        labels=labels.name,
        labels_sha256=labels.sha256,
        n_labels=len(labels.labels),
        annotators=labels.annotators,
        unmatched=unmatched,
    )


@dataclass
class _Gathered:
    human: list[float] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    human_said: list[str] = field(default_factory=list)
    judge_said: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    two_people: list[tuple[str, str]] = field(default_factory=list)
    unlabelled: list[float] = field(default_factory=list)

    def compared(self, about: str) -> Compared:
        return Compared(
            about=about,
            human=tuple(self.human),
            judged=tuple(self.judged),
            human_said=tuple(self.human_said),
            judge_said=tuple(self.judge_said),
            left_out=dict(sorted(self.left_out.items())),
            two_people=tuple(self.two_people),
            unlabelled=tuple(self.unlabelled),
        )


def _gather(
    labels: Sequence[Label], judgement: Judgement, packed: Collection[str], found: Mapping[str, _Gathered]
) -> int:
    """Add one query's labels; how many of them are about something that is there."""
    ids = {claim.id for claim in judgement.claims} | {cell.claim_id for cell in judgement.cells}
    by_text = {claim.text: claim.id for claim in judgement.claims}
    items: dict[tuple[str, str | None, str | None], list[Label]] = defaultdict(list)
    for label in labels:
        claim = label.claim if label.claim in ids else by_text.get(label.claim or "")
        if label.claim is None or claim is not None:
            items[label.about, claim, label.chunk_id].append(label)
    matched = 0
    for (about, claim, chunk_id), said in items.items():
        if claim is None:
            _add_metric(found[about], said, *_metric(judgement, about))
        else:
            cells = [cell for cell in judgement.cells if cell.claim_id == claim]
            if chunk_id is not None and all(cell.chunk_id != chunk_id for cell in cells):
                continue
            verdict, reason = _of_chunk(cells, chunk_id) if chunk_id is not None else _of_all(cells, packed)
            word = _add_verdict(found[about], said, verdict, reason)
            cell = next((cell for cell in cells if cell.chunk_id == chunk_id), None)
            if word is not None and cell is not None and cell.p_supported is not None:
                found[PROBABILITY].human.append(float(word is Verdict.SUPPORTED))
                found[PROBABILITY].judged.append(cell.p_supported)
        matched += len(said)
    return matched


def _add_metric(gathered: _Gathered, labels: Sequence[Label], value: float | None, reason: str | None) -> None:
    numbers = [float(label.said) for label in labels if not isinstance(label.said, Verdict)]
    gathered.two_people += [(str(a), str(b)) for a, b in combinations(_in_order(labels), 2)]
    if value is None or reason is not None:
        gathered.left_out[reason or "not judged"] += 1
        return
    gathered.human.append(sum(numbers) / len(numbers))
    gathered.judged.append(value)


def _add_verdict(
    gathered: _Gathered, labels: Sequence[Label], verdict: Verdict | None, reason: str | None
) -> Verdict | None:
    """Add one claim's labels; what people said, None when they do not agree."""
    words = _in_order(labels)
    gathered.two_people += [(str(a), str(b)) for a, b in combinations(words, 2)]
    ranked = Counter(words).most_common(2)
    if len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
        gathered.left_out["people disagree"] += 1
        return None
    said = Verdict(ranked[0][0])
    if verdict is None:
        gathered.left_out[reason or "unscored"] += 1
        return said
    gathered.human.append(float(said is Verdict.SUPPORTED))
    gathered.judged.append(float(verdict is Verdict.SUPPORTED))
    gathered.human_said.append(said.value)
    gathered.judge_said.append(verdict.value)
    return said


def _in_order(labels: Sequence[Label]) -> list[Any]:
    """What each person said, in the order of their names."""
    return [label.said for label in sorted(labels, key=lambda label: label.annotator or "")]


def _metric(judgement: Judgement, metric: str) -> tuple[float | None, str | None]:
    if metric == ABSTAINED:
        told = judgement.abstained
        return (None, "unmeasured") if told is None else (float(told), None)
    state = judgement.states.get(metric, JudgeState.UNMEASURED)
    return judgement.metrics.get(metric), None if state is JudgeState.SCORED else state.value


def _of_chunk(cells: Sequence[Cell], chunk_id: str) -> tuple[Verdict | None, str | None]:
    cell = next(cell for cell in cells if cell.chunk_id == chunk_id)
    return cell.verdict, "unscored"


def _of_all(cells: Sequence[Cell], packed: Collection[str]) -> tuple[Verdict | None, str | None]:
    """A claim against everything packed: one chunk that supports it is enough, then one that contradicts it."""
    verdicts = [cell.verdict for cell in cells if cell.chunk_id in packed]
    if Verdict.SUPPORTED in verdicts:
        return Verdict.SUPPORTED, None
    if None in verdicts:
        return None, "unscored"
    return (Verdict.CONTRADICTED if Verdict.CONTRADICTED in verdicts else Verdict.MISSING), None


def _parsed(content: bytes, name: str) -> Iterator[Label]:
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{name}:{number}: is not JSON. Write one JSON object a line.") from None
            yield _label(row, f"{name}:{number}", number)


def _label(row: Any, place: str, line: int) -> Label:
    if not isinstance(row, dict):
        raise InputError(f"{place}: is not an object. Write {{...}} with query_id, metric or claim, and label.")
    texts = {key: row.get(key) for key in ("query_id", "metric", "claim", "chunk_id", "annotator")}
    for key, value in texts.items():
        if value is not None and (not isinstance(value, str | int) or isinstance(value, bool) or value == ""):
            raise InputError(f"{place}: {key}: must be a text, not {json.dumps(value)[:60]}. Correct it.")
    known = {key: None if value is None else str(value) for key, value in texts.items()}
    query_id, metric, claim, chunk_id = known["query_id"], known["metric"], known["claim"], known["chunk_id"]
    if query_id is None:
        raise InputError(f"{place}: no query_id. Say which query the label is about.")
    if (metric is None) == (claim is None):
        raise InputError(f"{place}: needs either metric or claim. Say what the label is about.")
    if chunk_id is not None and claim is None:
        raise InputError(f"{place}: has chunk_id and no claim. Name the claim, or leave the chunk out.")
    about = metric if metric is not None else (CLAIM if chunk_id is None else VERDICT)
    if metric is not None and metric not in (*METRICS, ABSTAINED):
        raise InputError(f"{place}: unknown metric {metric!r}. Known: {', '.join((*METRICS, ABSTAINED))}.")
    said = _number(row.get("label"), place) if metric is not None else _verdict(row.get("label"), place)
    return Label(query_id, about, said, claim, chunk_id, known["annotator"], line)


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool | int | float) and 0 <= value <= 1:
        return float(value)
    raise InputError(f"{place}: label: must be true, false or a number from 0 to 1, not {json.dumps(value)[:60]}.")


def _verdict(value: Any, place: str) -> Verdict:
    if isinstance(value, str) and value in Verdict.__members__.values():
        return Verdict(value)
    raise InputError(f"{place}: label: must be one of {', '.join(Verdict)}, not {json.dumps(value)[:60]}.")


def _refuse_repeated(labels: Sequence[Label], name: str) -> None:
    seen: dict[object, Label] = {}
    for label in labels:
        first = seen.setdefault((*label.item, label.annotator), label)
        if first is not label:
            who = f"{label.annotator} labelled" if label.annotator else "labels"
            raise InputError(
                f"{name}:{label.line}: {who} what line {first.line} labels. Keep one, or name another annotator."
            )
