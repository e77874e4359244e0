"""Draws the README's cast: the app over the demo, a picture after each step, in one SVG that shows them in turn."""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from ragaudit.cli.main import execute
from ragaudit.tui.app import ReviewApp
from ragaudit.tui.session import Session

ROOT = Path(__file__).resolve().parent.parent
SIZE = (120, 36)
SECONDS = 2.5
"""Each picture is shown this long."""
STEPS: tuple[tuple[str, ...], ...] = (
    ("o",),
    ("r",),
    ("n", "n", "n", "n", "n"),
    ("left_square_bracket",),
    ("1",),
    ("slash", *"refund"),
    ("escape", "question_mark"),
)
STYLE = """
.picture { visibility: hidden; animation: turn %(all).1fs step-end infinite; }
@keyframes turn { 0%% { visibility: visible; } %(share).3f%% { visibility: hidden; } }
@media (prefers-reduced-motion: reduce) {
  .picture { animation: none; }
  .picture:first-of-type { visibility: visible; }
}
"""


def main() -> None:
    """Audit the demo, run the app, write docs/review.svg."""
    with tempfile.TemporaryDirectory() as folder:
        audit = Path(folder) / "demo.audit"
        if code := execute(["audit", str(ROOT / "examples" / "demo"), "-q", "-o", str(audit)]):
            sys.exit(code)
        pictures = asyncio.run(_pictures(audit))
    (ROOT / "docs" / "review.svg").write_text(in_turn(pictures), encoding="utf-8")


async def _pictures(audit: Path) -> list[str]:
    made = []
    with Session.open(audit) as session:
        app = ReviewApp(session)
        async with app.run_test(size=SIZE) as pilot:
            await pilot.pause()
            for keys in STEPS:
                await pilot.press(*keys)
                await pilot.pause(0.4)
                made.append(app.export_screenshot())
    return made


def in_turn(pictures: list[str]) -> str:
    """One SVG of several of one size, without the font on a server that the exporter names."""
    parts = []
    for n, picture in enumerate(pictures):
        own = re.sub(r"terminal-\d+", f"picture-{n}", picture)
        own = re.sub(r"@font-face \{.*?\}", "", own, flags=re.DOTALL)
        parts.append(f'<g class="picture" style="animation-delay: {n * SECONDS:.1f}s">{own}</g>')
    box = re.search(r'viewBox="([^"]*)"', pictures[0])
    assert box is not None
    style = STYLE % {"all": SECONDS * len(pictures), "share": 100 / len(pictures)}
    title = "<title>ragaudit review: stepping through the failing queries of the demo</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box[1]}">{title}<style>{style}</style>'
    return f"{head}{''.join(parts)}</svg>\n"


if __name__ == "__main__":
    main()
