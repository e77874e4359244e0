"""The report of an import for a terminal: what was read, left out and why, and how each field was come by."""

from collections.abc import Mapping

from ragaudit.importers.formats import Format
from ragaudit.importers.report import ImportReport, Reason
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, heading, wrap

WAYS = ("observed", "derived", "assumed", "absent")


def import_text(report: ImportReport, chosen: Format, width: int = WIDTH) -> str:
    """What `ragaudit import` prints."""
    rows = ", ".join(f"{n:,} {name}" for name, n in report.rows.items()) or "nothing"
    lines = [heading(f"Import: {chosen.title}", width), f"  read      {rows}"]
    lines += _reasons("left out", report.skipped, width)
    lines += _reasons("noted", report.notes, width)
    if report.fields:
        lines += ["", f"  {'field':<20}{''.join(f'{way:>10}' for way in WAYS)}"]
        for name, counts in report.fields.items():
            cells = "".join(f"{counts[way] or '-':>10}" for way in WAYS)
            lines.append(f"  {name:<20}{cells}")
        lines += _to_log(report, chosen, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _reasons(word: str, reasons: Mapping[str, Reason], width: int) -> list[str]:
    lines: list[str] = []
    for why, reason in sorted(reasons.items(), key=lambda item: -item[1].count):
        where = f" ({', '.join(p for p in reason.places[:2] if p)})" if any(reason.places) else ""
        lines += wrap(for_terminal(f"{reason.count:,} x {why}{where}"), width, first=f"  {word:<10}", rest=" " * 12)
        word = ""
    return lines


def _to_log(report: ImportReport, chosen: Format, width: int) -> list[str]:
    """For each field that every trace lacks, the line of code that would log it."""
    absent = [name for name, n in report.fields.items() if set(n) == {"absent"} and name in chosen.logs]
    lines = ["", "  to log what is absent:"] if absent else []
    for name in absent:
        lines += wrap(for_terminal(f"{name}: {chosen.logs[name]}"), width, first="  - ", rest="    ")
    return lines
