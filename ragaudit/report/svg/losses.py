"""Losses by stage: one hatched bar a stage, in the order of the pipeline."""

from collections.abc import Iterator, Sequence

from ragaudit.model.counting import queries
from ragaudit.model.diagnosis import Stage
from ragaudit.report.clean import Html
from ragaudit.report.figures import share
from ragaudit.report.svg.draw import bar, line, lost, percent, picture, text

ROW = 26
LEFT, ROOM = 0.31, 0.42
"""Where bars start, and how long the longest is."""


def losses_plot(name: str, rows: Sequence[tuple[Stage, int]], undecided: int, total: int) -> Html:
    """Failing queries by the stage that lost the evidence.

    Args:
        name: For ids.
        rows: The stages in order, each with its failing queries.
        undecided: Queries without a stage.
        total: Queries of the run.
    """
    said = ", ".join(f"{stage.label} {n:,}" for stage, n in rows)
    desc = f"Of {queries(total)}: {said}; stage not decided {undecided:,}."
    height = ROW * (len(rows) + 1) + 4
    return picture(name, "Losses by stage", desc, height, _marks(name, rows, undecided, total))


def _marks(name: str, rows: Sequence[tuple[Stage, int]], undecided: int, total: int) -> Iterator[Html]:
    most = max([n for _, n in rows] + [undecided, 1])
    labelled = [(stage.label, n, lost(name), "lost") for stage, n in rows]
    for place, (label, n, fill, css) in enumerate([*labelled, ("Not decided", undecided, "none", "open")]):
        y = place * ROW
        yield text(0, y + 18, label, css="" if n else "faint")
        yield line(percent(LEFT), y + 3, percent(LEFT), y + ROW + 3, css="axis")
        if n:
            yield bar(percent(LEFT), y + 6, percent(ROOM * n / most), 16, fill, css)
        end = percent(LEFT + ROOM * n / most)
        yield text(end, y + 18, f"{n:,} ({share(n, total)})" if n else "0", css="" if n else "faint", after=7)
