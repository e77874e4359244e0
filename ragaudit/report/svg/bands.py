"""Score bands of one arm: where the scores of gold stand and where the rest. Every arm has a scale of its own."""

from collections.abc import Iterator

from ragaudit.report.clean import Html
from ragaudit.report.scores import ArmScores, Band
from ragaudit.report.svg.draw import bar, line, lost, percent, picture, text

START, ROOM = 0.02, 0.96


def bands_plot(name: str, scores: ArmScores) -> Html:
    """Two bands, gold above the rest: a line from 5 to 95 %, a box from 25 to 75 %, a mark at the median."""
    model = f", {scores.model}" if scores.model else ""
    title = f"Scores of {scores.arm}{model}"
    desc = f"Gold: {_words(scores.gold)}. Not gold: {_words(scores.others)}."
    return picture(name, title, desc, 114, _marks(name, scores))


def _marks(name: str, scores: ArmScores) -> Iterator[Html]:
    bands = [band for band in (scores.gold, scores.others) if band is not None]
    low = min(band.low for band in bands)
    high = max(band.high for band in bands)
    rows = ((scores.gold, "gold", "currentColor", "kept"), (scores.others, "not gold", lost(name), "lost"))
    for place, (band, word, fill, css) in enumerate(rows):
        y = place * 46
        n = 0 if band is None else band.n
        median = "" if band is None else f", median {band.median:.4g}"
        yield text(0, y + 14, f"{word}: {n:,}{median}")
        if band is None:
            continue
        start, end = _x(band.lower, low, high), _x(band.upper, low, high)
        yield line(percent(_x(band.low, low, high)), y + 30, percent(_x(band.high, low, high)), y + 30, css=css)
        yield bar(percent(start), y + 22, percent(max(end - start, 0.004)), 16, fill, css)
        middle = percent(_x(band.median, low, high))
        yield line(middle, y + 18, middle, y + 42, width=3, css="ink")
    yield line("2%", 94, "98%", 94, css="axis")
    yield text("2%", 108, f"{low:.4g}", css="faint small")
    yield text("98%", 108, f"{high:.4g}", css="faint small", anchor="end")


def _x(value: float, low: float, high: float) -> float:
    return START + ROOM * ((value - low) / (high - low) if high > low else 0.5)


def _words(band: Band | None) -> str:
    if band is None:
        return "no score"
    return (
        f"{band.n:,} scores, median {band.median:.4g}, middle half {band.lower:.4g} to {band.upper:.4g}, "
        f"5 to 95% {band.low:.4g} to {band.high:.4g}"
    )
