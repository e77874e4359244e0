"""Means with their 95 % intervals on the line from 0 to 1: of one run, or of two, the earlier one hollow and dashed."""

from collections.abc import Iterator, Mapping, Sequence

from ragaudit.model.result import Estimate
from ragaudit.report.clean import Html
from ragaudit.report.figures import LABELS, interval, number
from ragaudit.report.svg.draw import dot, line, percent, picture, text

START, ROOM = 0.02, 0.96
SCALE = (0.0, 0.25, 0.5, 0.75, 1.0)


def intervals_plot(
    name: str, metrics: Sequence[str], after: Mapping[str, Estimate], before: Mapping[str, Estimate] | None = None
) -> Html:
    """One row a metric that has a mean.

    Args:
        name: For ids.
        metrics: Which, in order.
        after: The run.
        before: The run that it is compared with, each over its own queries.
    """
    shown = [metric for metric in metrics if _known(after, metric) or _known(before or {}, metric)]
    row = 44 if before is None else 78
    said = "; ".join(_words(metric, after, before) for metric in shown)
    title = "Means with 95% intervals" + (" before and after" if before is not None else "")
    return picture(name, title, f"{said}.", row * len(shown) + 22, _marks(shown, row, after, before))


def _marks(
    metrics: Sequence[str], row: int, after: Mapping[str, Estimate], before: Mapping[str, Estimate] | None
) -> Iterator[Html]:
    bottom = row * len(metrics)
    for value in SCALE:
        anchor = "start" if value == 0 else "end" if value == 1 else "middle"
        yield line(_x(value), 0, _x(value), bottom + 4, css="grid")
        yield text(_x(value), bottom + 18, f"{value:g}", css="faint small", anchor=anchor)
    for place, metric in enumerate(metrics):
        y = place * row
        yield text(0, y + 16, LABELS.get(metric, metric), most=30, css="halo")
        if before is not None:
            yield from _one(y + 16, before.get(metric), "before", earlier=True)
            yield from _one(y + 47, after.get(metric), "after")
        else:
            yield text("100%", y + 16, _figures(after.get(metric)), anchor="end", css="figures halo")
            yield from _range(y + 30, after.get(metric))


def _one(y: float, found: Estimate | None, word: str, *, earlier: bool = False) -> Iterator[Html]:
    yield text("100%", y, f"{word} {_figures(found)}", anchor="end", css="figures halo")
    yield from _range(y + 14, found, earlier=earlier)


def _range(y: float, found: Estimate | None, *, earlier: bool = False) -> Iterator[Html]:
    if found is None or found.mean is None:
        return
    css = "open" if earlier else "kept"
    if found.low is not None and found.high is not None:
        yield line(_x(found.low), y, _x(found.high), y, css=css, width=3, dashed=earlier)
        for end in (found.low, found.high):
            yield line(_x(end), y - 5, _x(end), y + 5, css=css, width=2)
    yield dot(_x(found.mean), y, hollow=earlier, css=css + " paper" * earlier)


def _x(value: float) -> str:
    return percent(START + ROOM * min(max(value, 0.0), 1.0))


def _known(found: Mapping[str, Estimate], metric: str) -> bool:
    return metric in found and found[metric].mean is not None


def _figures(found: Estimate | None) -> str:
    return "-" if found is None else f"{number(found.mean)} {interval(found)}".strip()


def _words(metric: str, after: Mapping[str, Estimate], before: Mapping[str, Estimate] | None) -> str:
    label = LABELS.get(metric, metric)
    if before is None:
        return f"{label} {_figures(after.get(metric))}"
    return f"{label} before {_figures(before.get(metric))}, after {_figures(after.get(metric))}"
