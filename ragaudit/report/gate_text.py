"""What the gates said, for a terminal or a build log: the ones that fired first, with the queries that made them."""

from collections.abc import Iterator, Mapping

from ragaudit.model.comparison import GateReport, GateResult
from ragaudit.model.result import Estimate
from ragaudit.report.clean import for_terminal
from ragaudit.report.compare_text import value_text
from ragaudit.report.figures import in_order, interval, number
from ragaudit.report.layout import WIDTH, wrap

SHOWN = 10


def gate_text(report: GateReport, width: int = WIDTH, *, shown: int = SHOWN) -> str:
    """One line a gate, and under each that fired its queries, worst first."""
    fired = report.fired
    against = f" against {for_terminal(report.baseline)}" if report.baseline else ""
    how = f"{len(fired)} of {len(report.gates)} gates fired" if fired else f"all {len(report.gates)} gates hold"
    lines = [f"{for_terminal(report.run)}{against}: {how}", ""]
    for gate in (*fired, *(gate for gate in report.gates if not gate.fired)):
        lines += _gate(gate, width, shown)
    for difference in report.exceptions:
        said = f"{for_terminal(difference.name)} {value_text(difference.before)} -> {value_text(difference.after)}"
        lines += wrap(f"allowed by --allow: {said}", width, first="  - ", rest="    ")
    for warning in report.warnings:
        lines += wrap(for_terminal(warning), width, first="  - ", rest="    ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def measured_text(metrics: Mapping[str, Estimate]) -> str:
    """The measured means with their intervals, one a line: what thresholds may be chosen from."""
    return "\n".join(
        f"  {name:<20} {number(metrics[name].mean)}  {interval(metrics[name])}"
        for name in in_order(metrics)
        if metrics[name].mean is not None
    )


def _gate(gate: GateResult, width: int, shown: int) -> Iterator[str]:
    mark = "X FIRED" if gate.fired else "  holds"
    said = f"{gate.gate}: {gate.asks}; it is {gate.says}"
    yield from wrap(for_terminal(said), width, first=f"{mark}  ", rest=" " * 11)
    if gate.queries:
        more = f" and {len(gate.queries) - shown:,} more" if len(gate.queries) > shown else ""
        named = ", ".join(for_terminal(query_id, 60) for query_id in gate.queries[:shown])
        yield from wrap(f"queries: {named}{more}", width, first=" " * 9, rest=" " * 11)
