"""The 2x2 of a judged run: good or poor context across faithful or unfaithful answers."""

from collections.abc import Iterator, Mapping

from ragaudit.model.counting import queries
from ragaudit.report.clean import Html
from ragaudit.report.judged import DANGEROUS
from ragaudit.report.svg.draw import bar, lost, picture, text

NAMES = (
    ("good context, faithful", "good context, unfaithful"),
    (DANGEROUS, "poor context, unfaithful"),
)
HEIGHT, TOP = 92, 4


def quadrants_plot(name: str, counts: Mapping[str, int]) -> Html:
    """Four fields with their queries; the dangerous one is hatched."""
    said = ", ".join(f"{quadrant}: {queries(counts.get(quadrant, 0))}" for row in NAMES for quadrant in row)
    return picture(name, "Context and answer", f"{said}.", 2 * HEIGHT + 2 * TOP, _marks(name, counts))


def _marks(name: str, counts: Mapping[str, int]) -> Iterator[Html]:
    for down, row in enumerate(NAMES):
        for across, quadrant in enumerate(row):
            y = TOP + down * HEIGHT
            n = counts.get(quadrant, 0)
            dangerous = quadrant == DANGEROUS
            x, inside = ("0.5%", "3%") if not across else ("50.5%", "53%")
            yield bar(x, y, "49%", HEIGHT - 6, "none", "axis")
            if dangerous:
                yield bar(x, y, "49%", 12, lost(name), "lost")
            context, answer = quadrant.removesuffix(" (dangerous)").split(", ")
            yield text(inside, y + 42, f"{n:,}", css="big lost" if dangerous else "big")
            yield text(inside, y + 60, context)
            yield text(inside, y + 77, answer + ("!" if dangerous else ""), css="strong" if dangerous else "")
