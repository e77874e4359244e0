"""Where the judge and gold ids differ, and where two ways of judging differ: pairs to measure, and a list to review."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ragaudit.model.diagnosis import Basis, Checkpoint, GoldDiagnosis, Outcome, State
from ragaudit.model.judgement import Claim, Compared, Judgement, JudgeState, Side, Verdict
from ragaudit.model.result import QueryResult

NO_GOLD = "no labelled gold"
NOT_JUDGED = "not judged"
ANOTHER_ID = "gold packed under another id"
UNSCORED = "unscored"


class Kind(StrEnum):
    """What stands against what."""

    GOLD_UNSUPPORTED = "gold_unsupported"
    """A gold chunk was in the context, and the judge found that it supports no claim of the reference."""
    JUDGE_ONLY = "judge_only"
    """A chunk in the context supports a claim, says the judge, and is no gold."""
    FOUND_ELSEWHERE = "found_elsewhere"
    """A chunk outside the context supports a claim, says the judge, and is no gold."""


@dataclass(frozen=True)
class Difference:
    """One chunk of one query that the labels and the judge see differently."""

    query_id: str
    kind: Kind
    chunk_id: str
    claims: tuple[str, ...] = ()
    """Ids of the claims that the judge says it supports."""
    where: str | None = None


@dataclass(frozen=True)
class AgainstGold:
    """The judge against gold ids. `chunks` compares packed chunks, `recall` the recall of whole queries."""

    chunks: Compared
    recall: Compared
    queries: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class DifferentVerdict:
    """One claim against one chunk, judged differently in two modes."""

    query_id: str
    claim: str
    chunk_id: str
    matrix: str
    per_claim: str


@dataclass(frozen=True)
class Modes:
    """One mode against the other: verdicts, the metrics that follow, and where they differ."""

    compared: tuple[Compared, ...]
    queries: int
    differing: tuple[DifferentVerdict, ...]


def against_gold(rows: Iterable[tuple[QueryResult, Judgement | None, Collection[str]]]) -> AgainstGold:
    """Compare the judge with gold ids, query by query: (result, judgement, ids of the packed chunks).

    Labels are seldom complete: a chunk that only the judge calls evidence may be gold that nobody labelled, which is
    why both kinds of difference are listed and none is averaged away. Only labelled gold counts, never proxy gold.
    """
    chunks: list[tuple[float, float]] = []
    recall: list[tuple[float, float]] = []
    left_out: Counter[str] = Counter()
    no_recall: Counter[str] = Counter()
    listed: list[Difference] = []
    queries = 0
    for result, judgement, packed in rows:
        gold = _gold(result)
        reason = NO_GOLD if not gold else NOT_JUDGED if judgement is None else None
        if reason is not None or judgement is None:
            left_out[reason or NOT_JUDGED] += 1
            continue
        supports = _supports(judgement, packed)
        hidden = [each for each in gold.values() if _packed(each) and each.id not in supports]
        if hidden and supports:
            left_out[ANOTHER_ID] += 1
            continue
        queries += 1
        for chunk_id, claims in supports.items():
            if claims is None:
                left_out[UNSCORED] += 1
                continue
            chunks.append((float(chunk_id in gold), float(bool(claims))))
        listed += _listed(result.diagnosis.query_id, gold, supports, judgement)
        by_ids, judged = result.metrics.get("recall@k"), judgement.metrics.get("context_recall")
        state = judgement.states.get("context_recall", JudgeState.UNMEASURED)
        if by_ids is None or judged is None or state is not JudgeState.SCORED:
            no_recall["recall@k undefined" if by_ids is None else state.value] += 1
        else:
            recall.append((by_ids, judged))
    return AgainstGold(
        _compared("gold chunks", chunks, left_out), _compared("recall", recall, no_recall), queries, tuple(listed)
    )


def between_modes(pairs: Iterable[tuple[Judgement, Judgement]]) -> Modes:
    """Compare what two modes said of the same samples: (matrix, per claim).

    Verdicts are compared where both modes asked about the same words: a claim that only one of them made is left out.
    The matrix stands in the place of people: neither is the truth.
    """
    verdicts: list[tuple[Verdict, Verdict]] = []
    left_out: Counter[str] = Counter()
    metrics: dict[str, list[tuple[float, float]]] = {}
    unscored: dict[str, Counter[str]] = {}
    differing: list[DifferentVerdict] = []
    queries = 0
    for matrix, per_claim in pairs:
        queries += 1
        first, second = _verdicts(matrix), _verdicts(per_claim)
        for key in first | second:
            if key not in first or key not in second:
                left_out["asked in one mode only"] += 1
                continue
            a, b = first[key], second[key]
            if a is None or b is None:
                left_out[UNSCORED] += 1
                continue
            verdicts.append((a, b))
            if a is not b:
                differing.append(DifferentVerdict(matrix.query_id, key[1], key[2], a.value, b.value))
        for name in matrix.metrics.keys() & per_claim.metrics.keys():
            x, y = _scored(matrix, name), _scored(per_claim, name)
            if x is not None and y is not None:
                metrics.setdefault(name, []).append((x, y))
            elif x is not None or y is not None:
                unscored.setdefault(name, Counter())["scored in one mode only"] += 1
    said = Compared(
        about="verdict",
        human=tuple(float(a is Verdict.SUPPORTED) for a, _ in verdicts),
        judged=tuple(float(b is Verdict.SUPPORTED) for _, b in verdicts),
        human_said=tuple(a.value for a, _ in verdicts),
        judge_said=tuple(b.value for _, b in verdicts),
        left_out=dict(sorted(left_out.items())),
    )
    names = sorted(metrics.keys() | unscored.keys())
    others = tuple(_compared(name, metrics.get(name, []), unscored.get(name, Counter())) for name in names)
    return Modes((said, *others), queries, tuple(differing))


def replicated_verdicts(replicates: Sequence[Sequence[Judgement]]) -> list[list[Verdict]]:
    """For each claim and text that was asked about more than once: what was said each time.

    A claim that only one replicate made, and a verdict that did not come back, say nothing about flipping.
    """
    said: dict[tuple[str, Side, str, str], list[Verdict]] = {}
    for judgements in replicates:
        for judgement in judgements:
            for key, verdict in _verdicts(judgement).items():
                if verdict is not None:
                    said.setdefault((judgement.query_id, *key), []).append(verdict)
    return [verdicts for verdicts in said.values() if len(verdicts) > 1]


def _gold(result: QueryResult) -> dict[str, GoldDiagnosis]:
    """The labelled gold that counts: eligible, of this id space, and no proxy."""
    if result.diagnosis.basis is Basis.JUDGE:
        return {}
    out = (Outcome.LABEL_ISSUE, Outcome.NOT_APPLICABLE)
    return {g.id: g for g in result.diagnosis.gold if g.eligible is not False and g.outcome not in out and g.grade >= 1}


def _packed(gold: GoldDiagnosis) -> bool:
    seen = (Checkpoint.PACKED, Checkpoint.PROMPTED)
    return any(step.checkpoint in seen and step.state is State.PRESENT for step in gold.journey)


def _supports(judgement: Judgement, packed: Collection[str]) -> dict[str, tuple[str, ...] | None]:
    """For each packed chunk the reference claims it supports; None = some verdict is missing and none supports."""
    reference = {claim.id for claim in judgement.claims if claim.side is Side.REFERENCE}
    found: dict[str, list[Verdict | None]] = {}
    claims: dict[str, list[str]] = {}
    for cell in judgement.cells:
        if cell.claim_id in reference and cell.chunk_id in packed:
            found.setdefault(cell.chunk_id, []).append(cell.verdict)
            if cell.verdict is Verdict.SUPPORTED:
                claims.setdefault(cell.chunk_id, []).append(cell.claim_id)
    return {
        chunk_id: tuple(claims[chunk_id]) if chunk_id in claims else None if None in verdicts else ()
        for chunk_id, verdicts in found.items()
    }


def _listed(
    query_id: str,
    gold: Mapping[str, GoldDiagnosis],
    supports: Mapping[str, tuple[str, ...] | None],
    judgement: Judgement,
) -> Iterator[Difference]:
    for chunk_id, claims in supports.items():
        if claims == () and chunk_id in gold:
            yield Difference(query_id, Kind.GOLD_UNSUPPORTED, chunk_id)
        elif claims and chunk_id not in gold:
            yield Difference(query_id, Kind.JUDGE_ONLY, chunk_id, claims)
    elsewhere: dict[str, list[str]] = {}
    for found in judgement.found:
        elsewhere.setdefault(found.chunk_id, []).append(found.claim_id)
    where = {found.chunk_id: found.where for found in judgement.found}
    for chunk_id, claim_ids in elsewhere.items():
        if chunk_id not in gold:
            yield Difference(query_id, Kind.FOUND_ELSEWHERE, chunk_id, tuple(claim_ids), where[chunk_id])


def _verdicts(judgement: Judgement) -> dict[tuple[Side, str, str], Verdict | None]:
    claims: dict[str, Claim] = {claim.id: claim for claim in judgement.claims}
    return {
        (claim.side, claim.text, cell.chunk_id): cell.verdict
        for cell in judgement.cells
        if (claim := claims.get(cell.claim_id)) is not None
    }


def _scored(judgement: Judgement, metric: str) -> float | None:
    return judgement.metrics.get(metric) if judgement.states.get(metric) is JudgeState.SCORED else None


def _compared(about: str, pairs: Sequence[tuple[float, float]], left_out: Mapping[str, int]) -> Compared:
    return Compared(
        about=about,
        human=tuple(a for a, _ in pairs),
        judged=tuple(b for _, b in pairs),
        left_out=dict(sorted(left_out.items())),
    )
