"""Before and after: a comparison as a template prints it, or why the two runs may not be compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ragaudit.model.comparison import Comparison, MetricChange, QueryChange, Side, Verdict
from ragaudit.model.counting import queries
from ragaudit.model.result import Estimate, Summary
from ragaudit.report.clean import Ours
from ragaudit.report.compare_text import (
    details_text,
    difference_text,
    state_label,
    undefined_sentences,
    verdict_sentence,
)
from ragaudit.report.figures import LABELS, k_named, number

SHOWN = 20
"""Queries of one kind; the rest are counted."""


@dataclass(frozen=True)
class Against:
    """The run that an audit is compared with: what came out, or the refusal of a comparison that proves nothing."""

    name: str
    found: Comparison | None = None
    before: Mapping[str, Estimate] = field(default_factory=dict)
    """The earlier run's means, each over its own queries."""
    refusal: str = ""


def change_view(against: Against, summary: Summary) -> dict[str, Any]:
    """What a template may print of it. `refused` holds the lines of a refusal, and then nothing else is there."""
    found = against.found
    if found is None:
        lines = [line.strip().removeprefix("- ") for line in against.refusal.splitlines() if line.strip()]
        return {"name": against.name, "refused": lines}
    rule = k_named(found.candidate.k_final)
    return {
        "name": against.name,
        "refused": [],
        "verdict": verdict_sentence(found),
        "better": any(change.verdict is Verdict.BETTER for change in found.metrics),
        "worse": bool(found.newly_leaking) or any(change.verdict is Verdict.WORSE for change in found.metrics),
        "same": f"{rule}, access rule {summary.run.acl_rule}",
        "sides": [_side(word, side) for word, side in (("before", found.base), ("after", found.candidate))],
        "pairs": queries(found.pairs),
        "variables": [difference_text(each) for each in found.variables],
        "exceptions": [difference_text(each) for each in found.exceptions],
        "warnings": found.warnings,
        "leaks": [(each.query_id, each.leaks) for each in found.newly_leaking[:SHOWN]],
        "more_leaks": max(len(found.newly_leaking) - SHOWN, 0),
        "metrics": [_metric(change) for change in found.metrics],
        "undefined": list(undefined_sentences(found.metrics)),
        "transitions": [(state_label(each.before), state_label(each.after), each.n) for each in found.transitions],
        "unchanged": found.unchanged,
        "failing": _moved(found.newly_failing),
        "more_failing": max(len(found.newly_failing) - SHOWN, 0),
        "passing": _moved(found.newly_passing),
        "more_passing": max(len(found.newly_passing) - SHOWN, 0),
    }


def _side(word: str, side: Side) -> dict[str, Any]:
    return {
        "word": word,
        "name": side.name,
        "queries": side.queries,
        "fingerprint": side.fingerprint,
        "frozen": side.frozen,
        "leaking": side.leaking,
    }


def _metric(change: MetricChange) -> dict[str, Any]:
    result = change.paired
    known = result.low is not None and result.high is not None
    return {
        "name": change.metric,
        "label": LABELS.get(change.metric, change.metric),
        "before": number(result.before),
        "after": number(result.after),
        "difference": "-" if result.difference is None else f"{result.difference:+.3f}",
        "interval": Ours(f"[{result.low:+.3f}, {result.high:+.3f}]" if known else ""),
        "verdict": change.verdict.value if result.difference is not None else "undefined",
        "details": details_text(change) or result.reason or "",
    }


def _moved(changes: Iterable[QueryChange]) -> list[tuple[str, str, str]]:
    return [(each.query_id, state_label(each.before), state_label(each.after)) for each in islice(changes, SHOWN)]
