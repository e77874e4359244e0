"""How numbers are written in every text: shares, means with their intervals, counts, bars of ASCII."""

from collections.abc import Iterable, Mapping, Sequence

from ragaudit.model.diagnosis import STAGES, Stage
from ragaudit.model.result import JUDGED, METRICS, Estimate, Summary

LABELS = {
    "hit@k": "Hit-rate",
    "recall@k": "Recall",
    "precision@k": "Precision (by K)",
    "precision@returned": "Precision (returned)",
    "mrr@k": "MRR",
    "ndcg@k": "nDCG",
    "ap@k": "AP",
    "context_recall": "Context recall",
    "context_precision": "Context precision",
    "context_relevance": "Context relevance",
    "faithfulness": "Faithfulness",
    "hallucination": "Hallucination",
    "utilisation": "Utilisation",
    "answer_recall": "Answer recall",
}
"""Metrics by the names people know; a name that is not here stands for itself."""


def number(value: float | None) -> str:
    """A metric to three decimals, `-` for undefined."""
    return "-" if value is None else f"{value:.3f}"


def interval(estimate: Estimate) -> str:
    """`[0.780, 0.840]`, empty when there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def share(part: int, whole: int) -> str:
    """`19%`; under one in a hundred it says so."""
    if not part or not whole:
        return "0%"
    percent = 100 * part / whole
    return "<1%" if percent < 1 else f"{percent:.0f}%"


def bar(value: float, most: float, width: int) -> str:
    """A bar of `#`, as long as `width` for the largest value; anything above nothing shows at least one mark."""
    if value <= 0 or most <= 0:
        return ""
    return "#" * max(1, round(width * value / most))


def k_named(k: int | None) -> str:
    """`K = 5`; None = it varies."""
    return "K varies from query to query" if k is None else f"K = {k}"


def listed(words: Sequence[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {joint} {words[-1]}" if words else ""


def reasons(counts: Mapping[str, int]) -> str:
    """`unlabelled 6, no eligible gold 4`: why a value is undefined. A single reason needs no count."""
    if len(counts) == 1:
        return next(iter(counts)).replace("_", " ")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason.replace('_', ' ')} {n:,}" for reason, n in ordered)


def in_order(metrics: Iterable[str]) -> list[str]:
    """The known metrics in our order, then any others by name."""
    present = set(metrics)
    known = [name for name in (*METRICS, *JUDGED) if name in present]
    return known + sorted(present.difference(known))


def losses(summary: Summary) -> list[tuple[Stage, int]]:
    """The nine stages in order, each with the number of failing queries whose evidence it lost."""
    return [(stage, summary.stages.get(stage.value, 0)) for stage in STAGES]


def without_stage(summary: Summary) -> list[tuple[str, int]]:
    """Queries without a stage by what it could be: `Rerank/pack or Generate`, most frequent first."""
    ordered = sorted(summary.undetermined.items(), key=lambda item: (-item[1], item[0]))
    return [(stages_named(key.split("|")), n) for key, n in ordered]


def stages_named(values: Iterable[str]) -> str:
    """`Rerank/pack or Generate`; a name that is no stage stands for itself."""
    known = {stage.value: stage.label for stage in Stage}
    return listed([known.get(value, value or "not known") for value in values], "or")
