"""The funnel of gold from index to prompt: how many gold ids each checkpoint still holds."""

from collections.abc import Iterator, Mapping

from ragaudit.model.diagnosis import Checkpoint, State
from ragaudit.report.clean import Html
from ragaudit.report.figures import share
from ragaudit.report.svg.draw import bar, percent, picture, text, unknown

ROW = 30
LEFT, ROOM = 0.25, 0.5
MANY = 1_000
"""From so many gold ids on, shares stand beside the bars; the figures are in the description."""


def way_plot(name: str, way: Mapping[Checkpoint, Mapping[State, int]], total: int) -> Html:
    """One bar a checkpoint: present, then absent, then not logged; together they are all gold ids that count."""
    said = "; ".join(f"{place.value} {_figures(counts, total)}" for place, counts in way.items())
    marks = _marks(name, way, total)
    title = "Gold from index to prompt"
    return picture(name, title, f"Of {total:,} gold ids: {said}.", ROW * len(way), marks)


def _marks(name: str, way: Mapping[Checkpoint, Mapping[State, int]], total: int) -> Iterator[Html]:
    for place, (checkpoint, counts) in enumerate(way.items()):
        y = place * ROW
        yield text(0, y + 19, checkpoint.value.capitalize())
        start = LEFT
        for state, fill, css in (
            (State.PRESENT, "currentColor", "kept"),
            (State.ABSENT, "none", "lost"),
            (State.UNOBSERVED, unknown(name), "open"),
        ):
            n = counts.get(state, 0)
            if n and total:
                yield bar(percent(start), y + 5, percent(ROOM * n / total), 20, fill, css)
                start += ROOM * n / total
        yield text("100%", y + 19, _beside(counts, total), anchor="end", css="figures")


def _beside(counts: Mapping[State, int], total: int) -> str:
    seen = total - counts.get(State.UNOBSERVED, 0)
    return share(counts.get(State.PRESENT, 0), seen) if seen and total >= MANY else _short(counts, total)


def _short(counts: Mapping[State, int], total: int) -> str:
    seen = total - counts.get(State.UNOBSERVED, 0)
    return f"{counts.get(State.PRESENT, 0):,} of {seen:,}" if seen else "not logged"


def _figures(counts: Mapping[State, int], total: int) -> str:
    unlogged = counts.get(State.UNOBSERVED, 0)
    return _short(counts, total) + (f", not logged {unlogged:,}" if unlogged and unlogged != total else "")
