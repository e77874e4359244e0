"""Preflight findings as text: what the data cannot tell, and what to do about each, by weight."""

from collections.abc import Iterator, Sequence

from ragaudit.model.counting import counted
from ragaudit.model.result import Finding, Level
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, heading, wrap

MARKS = {Level.BLOCK: "X", Level.WARN: "!", Level.INFO: "."}
INDENT = " " * 10
MESSAGES_SHOWN = 10


def by_weight(findings: Sequence[Finding]) -> list[Finding]:
    """The blocking ones first; within a weight in the order found."""
    return sorted(findings, key=lambda finding: list(Level).index(finding.severity))


def finding_lines(finding: Finding, width: int = WIDTH) -> Iterator[str]:
    """One finding and its fix."""
    first = f"  {MARKS[finding.severity]} {finding.severity.value:<6}"
    yield from wrap(for_terminal(finding.message), width, first=first, rest=INDENT)
    yield from wrap(for_terminal(finding.fix), width, first=f"{INDENT}> ", rest=f"{INDENT}  ")


def messages_text(messages: Sequence[str], kept: int, width: int = WIDTH) -> str:
    """The first messages about single places of the input; empty when there is none.

    Args:
        messages: Each with file, line and field.
        kept: At this many the readers kept no more.
        width: Columns.
    """
    if not messages:
        return ""
    lines = [heading("Left out or repaired while reading", width)]
    for message in messages[:MESSAGES_SHOWN]:
        lines += wrap(for_terminal(message), width, first="  - ", rest="    ")
    more = len(messages) - MESSAGES_SHOWN
    if more > 0:
        at_least = "at least " if len(messages) >= kept else ""
        lines.append(f"  and {at_least}{more} more: `ragaudit check BUNDLE --json` lists up to {kept}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def findings_text(name: str, findings: Sequence[Finding], width: int = WIDTH) -> str:
    """Every finding, after a line that counts them."""
    if not findings:
        return f"{for_terminal(name)}: nothing is missing that an audit needs.\n"
    counts = [f"{sum(f.severity is level for f in findings)} {level.value}" for level in Level]
    lines = [f"{for_terminal(name)}: {counted(len(findings), 'finding')} ({', '.join(counts)})", ""]
    for finding in by_weight(findings):
        lines += finding_lines(finding, width)
    if any(finding.severity is Level.BLOCK for finding in findings):
        lines += ["", *wrap("X block: an audit of this would not be sound; repair these first.", width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"
