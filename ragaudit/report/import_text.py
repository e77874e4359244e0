"""The report of an import for a terminal: what was read and left out, how each field was come by, what is missing."""

from collections.abc import Mapping, Sequence

from ragaudit.importers.formats import Format
from ragaudit.importers.passages import HASHED
from ragaudit.importers.report import ImportReport, Reason
from ragaudit.model.counting import counted
from ragaudit.model.result import Finding, Level
from ragaudit.report.clean import for_terminal
from ragaudit.report.findings_text import finding_lines
from ragaudit.report.layout import WIDTH, heading, wrap

WAYS = ("observed", "derived", "assumed", "absent")
UNKNOWN_GOLD = ("gold_id_space", "unknown_gold")
"""Findings about gold ids that no list knows."""
ELSEWHERE = ("missing_pipeline", "missing_acl_rule")
"""Findings about ragaudit.toml, which no import can cure."""


def import_text(
    report: ImportReport, chosen: Format, findings: Sequence[Finding] = (), stop: str = "", width: int = WIDTH
) -> str:
    """What `ragaudit import` prints.

    Args:
        report: What was read.
        chosen: The format it was read as.
        findings: What preflight says of what was written, the weightiest first.
        stop: Why an audit of it would stop; empty = it would not.
        width: Cells a line.
    """
    rows = ", ".join(f"{n:,} {name}" for name, n in report.rows.items()) or "nothing"
    lines = [heading(f"Import: {chosen.title}", width), f"  read      {rows}"]
    lines += _reasons("left out", report.skipped, width)
    lines += _reasons("noted", report.notes, width)
    if report.fields:
        lines += ["", f"  {'field':<20}{''.join(f'{way:>10}' for way in WAYS)}"]
        for name, counts in report.fields.items():
            cells = "".join(f"{counts[way] or '-':>10}" for way in WAYS)
            lines.append(f"  {name:<20}{cells}")
    if stop:
        lines += ["", *wrap(for_terminal(f"!! an audit of this would stop: {stop}"), width)]
    lines += _undecided(report, chosen, findings, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _reasons(word: str, reasons: Mapping[str, Reason], width: int) -> list[str]:
    lines: list[str] = []
    for why, reason in sorted(reasons.items(), key=lambda item: -item[1].count):
        where = f" ({', '.join(p for p in reason.places[:2] if p)})" if any(reason.places) else ""
        lines += wrap(for_terminal(f"{reason.count:,} x {why}{where}"), width, first=f"  {word:<10}", rest=" " * 12)
        word = ""
    return lines


def _undecided(report: ImportReport, chosen: Format, findings: Sequence[Finding], width: int) -> list[str]:
    """What an audit will not be able to decide, each with the line of code that would log it, in this tool."""
    lines: list[str] = []
    told = set()
    weighty = [each for each in findings if each.severity is not Level.INFO and each.check not in ELSEWHERE]
    for finding in weighty:
        field = finding.check.removeprefix("missing_")
        told.add(field)
        fix = finding.fix
        if field != finding.check:
            fix = chosen.logs.get(field, fix)
        elif field in UNKNOWN_GOLD and HASHED in report.notes:
            fix = "Pass --chunks chunks.jsonl: hits were logged as texts only, and their ids are looked up there."
        lines += finding_lines(finding.model_copy(update={"fix": fix}), width)
    if lines:
        lines = ["", "  what an audit of this cannot decide, and how to log it:", *lines]
    absent = [name for name, n in report.fields.items() if set(n) == {"absent"} and name in chosen.logs]
    if rest := [name for name in absent if name not in told]:
        lines += ["", "  absent everywhere:"]
        for name in rest:
            lines += wrap(for_terminal(f"{name}: {chosen.logs[name]}"), width, first="  - ", rest="    ")
    if more := len(findings) - len(weighty):
        lines += ["", f"  and {counted(more, 'smaller finding')}: ragaudit check"]
    return lines
