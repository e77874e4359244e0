"""The marks that plots are made of. Text from outside enters through `for_html` here and nowhere else.

A plot has no viewBox: places along x are percentages and places along y are pixels, so that a bar grows with the page
and its label stays readable at 360 pixels and in print. Colour is `currentColor`, which the page's style sets by class;
without it, and without colour, pattern and label still say what is meant.
"""

from collections.abc import Iterable

from ragaudit.report.clean import Html, for_html, for_terminal
from ragaudit.report.layout import cut

Length = float | str
"""Pixels, or a share such as `12.5%`."""


def percent(share: float) -> str:
    """`12.5%` for 0.125; held between 0 and 100."""
    return f"{min(max(100 * share, 0), 100):.2f}".rstrip("0").rstrip(".") + "%"


def picture(name: str, title: str, desc: str, height: float, marks: Iterable[Html]) -> Html:
    """A whole plot.

    Args:
        name: Unique in the document, of our own making: ids are made from it.
        title: What it shows.
        desc: Everything it shows, in words: for people who do not see it.
        height: Pixels.
        marks: What is drawn.
    """
    return Html(
        f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" role="img" width="100%" height="{height:g}" '
        f'font-size="13" aria-labelledby="{name}-title {name}-desc">\n'
        f'<title id="{name}-title">{for_html(title)}</title>\n<desc id="{name}-desc">{for_html(desc)}</desc>\n'
        f"<defs>{_hatch(name)}{_dots(name)}</defs>\n" + "\n".join(marks) + "\n</svg>"
    )


def lost(name: str) -> str:
    """Hatched: evidence that was lost, or scores of what is no evidence."""
    return f"url(#{name}-hatch)"


def unknown(name: str) -> str:
    """Dotted: not logged."""
    return f"url(#{name}-dots)"


def text(
    x: Length,
    y: float,
    said: object,
    *,
    css: str = "",
    anchor: str = "start",
    most: int | None = None,
    after: float = 0,
) -> Html:
    """A label. `most` cuts it to that many characters; `after` moves it so many pixels to the right."""
    shown = said if most is None else cut(for_terminal(str(said)), most)
    moved = f' dx="{after:g}"' if after else ""
    place = f'x="{x}" y="{y:g}"{moved}{_css(css)}'
    return Html(f'<text {place} fill="currentColor" text-anchor="{anchor}">{for_html(shown)}</text>')


def bar(x: Length, y: float, width: Length, height: float, fill: str = "currentColor", css: str = "") -> Html:
    """A filled rectangle with a thin frame, so that a pattern has an edge."""
    return Html(
        f'<rect x="{x}" y="{y:g}" width="{width}" height="{height:g}"{_css(css)} fill="{fill}" stroke="currentColor"/>'
    )


def line(
    x1: Length, y1: float, x2: Length, y2: float, *, css: str = "", width: float = 1, dashed: bool = False
) -> Html:
    """A line."""
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return Html(
        f'<line x1="{x1}" y1="{y1:g}" x2="{x2}" y2="{y2:g}"{_css(css)} stroke="currentColor" '
        f'stroke-width="{width:g}"{dash}/>'
    )


def dot(x: Length, y: float, *, hollow: bool = False, css: str = "", radius: float = 5) -> Html:
    """A point, filled or hollow."""
    fill = "none" if hollow else "currentColor"
    return Html(
        f'<circle cx="{x}" cy="{y:g}" r="{radius:g}"{_css(css)} fill="{fill}" stroke="currentColor" stroke-width="2"/>'
    )


def _css(names: str) -> str:
    return f' class="{names}"' if names else ""


def _hatch(name: str) -> str:
    return (
        f'<pattern id="{name}-hatch" class="lost" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="currentColor" stroke-width="6"/>'
        "</pattern>"
    )


def _dots(name: str) -> str:
    return (
        f'<pattern id="{name}-dots" class="open" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<circle cx="2" cy="2" r="1.2" fill="currentColor"/></pattern>'
    )
