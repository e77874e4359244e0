"""What the tapes hold, for the terminal and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ragaudit.judge.shelf import Shelf, Stats
from ragaudit.model.counting import counted
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, flow


def stats_text(found: Sequence[tuple[Shelf, Stats]], width: int = WIDTH) -> str:
    """One block for each place."""
    if not found:
        return "No cassette and no cache are set.\n"
    return "\n".join("\n".join(_block(shelf, stats, width)) + "\n" for shelf, stats in found)


def stats_document(found: Iterable[tuple[Shelf, Stats]]) -> dict[str, Any]:
    """`tape stats --json`."""
    rows = [{"kind": shelf.kind, "path": str(shelf.path), **asdict(stats)} for shelf, stats in found]
    return {"schema": "ragaudit.tape_stats/1", "places": rows}


def _block(shelf: Shelf, stats: Stats, width: int) -> list[str]:
    lines = [f"{shelf.kind} {for_terminal(str(shelf.path))}"]
    if not stats.replies:
        return [*lines, "  nothing recorded"]
    cost = f"${stats.usd:,.4f}" if stats.usd or not stats.unpriced else "price not known"
    if stats.usd and stats.unpriced:
        cost += f" and {counted(stats.unpriced, 'reply', 'replies')} of unknown price"
    lines.append(
        f"  {counted(stats.replies, 'reply', 'replies')}, {stats.bytes:,} bytes, {stats.input_tokens:,} tokens in, "
        f"{stats.output_tokens:,} out, {cost}"
    )
    if stats.unusable:
        lines.append(f"  {stats.unusable:,} of them cut off, refused or too long to ask: replayed, and no verdicts")
    for name, counts in (("prompts", stats.prompts), ("models", stats.models)):
        said = [f"{for_terminal(key)} {n:,}" for key, n in counts.items()]
        lines += flow(said, width, joint="   ", first=f"  {name:<8} ", rest=" " * 11)
    return lines
