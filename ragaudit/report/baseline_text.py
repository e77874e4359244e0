"""A frozen run for the terminal: what it was, how it was measured, and what gates may be chosen from."""

from collections.abc import Iterator, Mapping
from typing import Any

from ragaudit.model.comparison import Baseline
from ragaudit.model.counting import queries
from ragaudit.report.clean import for_terminal
from ragaudit.report.compare_text import value_text
from ragaudit.report.gate_text import measured_text
from ragaudit.report.layout import WIDTH, heading, wrap


def baseline_summary(baseline: Baseline, width: int = WIDTH) -> str:
    """All but the queries."""
    return "\n".join(line.rstrip() for line in _lines(baseline, width)) + "\n"


def baseline_line(baseline: Baseline, path: str) -> str:
    """One line of a list."""
    recall = baseline.metrics.get("recall@k")
    figure = "" if recall is None or recall.mean is None else f"   recall@k {recall.mean:.3f}"
    name = for_terminal(baseline.name, 30)
    mark = for_terminal(baseline.fingerprint, 20)
    return f"{name:<30} {queries(len(baseline.queries)):>14}   {mark}{figure}   {for_terminal(path)}\n"


def _lines(baseline: Baseline, width: int) -> Iterator[str]:
    k = "K varies" if baseline.k_final is None else f"K = {baseline.k_final}"
    judge = "off"
    if baseline.judge is not None:
        prompts = ", ".join(f"{name} v{version}" for name, version in sorted(baseline.judge.prompts.items()))
        judge = f"{for_terminal(baseline.judge.model)} ({for_terminal(prompts)})"
    everyone = f", everyone holds {', '.join(baseline.acl.everyone)}" if baseline.acl.everyone else ""
    size = queries(len(baseline.queries))
    yield f"{for_terminal(baseline.name)}   {size}   {k}   {for_terminal(baseline.fingerprint, 20)}"
    yield from wrap(for_terminal(f"run {baseline.run}, gold {baseline.gold_version}"), width)
    yield from wrap(for_terminal(f"ACL rule {baseline.acl.rule}{everyone}; judge {judge}"), width)
    yield ""
    yield heading("Measured: mean and 95% interval", width)
    yield measured_text(baseline.metrics) or "  No metric is defined."
    failing = [f"{stage} {n:,}" for stage, n in sorted(baseline.stages.items()) if n]
    if failing:
        yield ""
        yield from wrap(f"lost at: {for_terminal(', '.join(failing))}", width)
    leaking = sum(bool(query.leaks) for query in baseline.queries)
    if leaking:
        yield from wrap(f"{queries(leaking)} leak: repair the access filter before anything else.", width, first="!! ")
    yield ""
    yield heading("Pipeline", width)
    if not baseline.pipeline:
        yield "  nothing was said about it"
    for name, value in _leaves(baseline.pipeline):
        yield from wrap(f"{for_terminal(name)} = {value_text(value)}", width, first="  ", rest="    ")


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in sorted(table.items()):
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
