"""Each screen as it looks, at both sizes. A change to a picture is read in review.

RAGAUDIT_UPDATE_SNAPSHOTS=1 pytest tests/tui/test_snapshots.py   writes them anew
"""

import os
import re
from pathlib import Path

import pytest
import textual

from tests.tui.compare_audits import drive_both, pair
from tests.tui.conftest import NARROW, WIDE, drive, until

FOLDER = Path(__file__).parent / "snapshots"
MADE_WITH = "8.2.8"
"""Another Textual may draw a frame otherwise; `requirements.lock` pins this one."""

pytestmark = pytest.mark.skipif(
    textual.__version__ != MADE_WITH, reason=f"the pictures were made with Textual {MADE_WITH}"
)

SCREENS = {
    "review-queue": ("queue", ("n", "n")),
    "review-funnel": ("funnel", ("n", "n", "n")),
    "review-hits": ("hits", ("n", "n", "n")),
    "review-chunk": ("chunk", ("n", "n", "n", "n", "n", "n", "n")),
    "review-answer": ("answer", ("n", "n", "n")),
    "review-diagnosis": ("diagnosis", ("n", "n", "n")),
    "review-leak": ("funnel", ()),
    "review-zoom": ("hits", ("z",)),
    "overview": (None, ("o",)),
    "experiments": (None, ("x",)),
    "note": (None, ("a",)),
    "filter": (None, ("f",)),
    "export": (None, ("e",)),
    "find": (None, ("slash",)),
    "help": (None, ("question_mark",)),
}


COMPARED = ("changes", "b", "verdict")


def picture(path, size, pane, keys, against=None):
    """The screen as SVG after these keys."""
    made = []

    async def steps(app, pilot):
        if pane is not None:
            app.screen.show_pane(pane)
            await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        for field in app.screen.query("Input"):
            field.cursor_blink = False
        await until(pilot, lambda: app.main_screen.query("FooterKey"))
        await pilot.pause(0.05)
        made.append(app.export_screenshot())

    if against is not None:
        drive_both(path, against, size, steps)
    else:
        drive(path, size, steps, filter_text="is:failing")
    # Rich names styles after a checksum of the picture; it says nothing and moves every line of a diff.
    plain = re.sub(r"terminal-\d+", "terminal", made[0])
    return re.sub(r"@font-face \{.*?\}", "", plain, flags=re.DOTALL)  # fonts on a server


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_looks_as_it_did(demo, name, size):
    pane, keys = SCREENS[name]
    compare(f"{name}-{size[0]}x{size[1]}.svg", picture(demo, size, pane, keys))


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
@pytest.mark.parametrize("name", COMPARED)
def test_two_audits_look_as_they_did(tmp_path, name, size):
    a, b = pair(tmp_path)
    compare(f"compare-{name}-{size[0]}x{size[1]}.svg", picture(b, size, name, (), a))


def test_without_colour_marks_and_weight_still_tell_states_apart(demo, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    made = picture(demo, WIDE, "chunk", ("n", "n", "n"))
    colours = set(re.findall(r"#[0-9a-f]{6}", made.lower()))
    # The window around the picture and its title are Rich's; what the app draws is grey.
    assert {c for c in colours if not c[1:3] == c[3:5] == c[5:7]} <= {"#ff5f57", "#febc2e", "#28c840", "#c5c8c6"}
    compare("no-colour-120x36.svg", made)


def compare(name: str, made: str) -> None:
    path = FOLDER / name
    if os.environ.get("RAGAUDIT_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(made, encoding="utf-8")
    assert path.is_file(), f"{name} is missing: run with RAGAUDIT_UPDATE_SNAPSHOTS=1"
    if made != path.read_text(encoding="utf-8"):
        told = path.with_suffix(".new.svg")
        told.write_text(made, encoding="utf-8")
        pytest.fail(f"{name} looks otherwise: see {told.name} beside it; RAGAUDIT_UPDATE_SNAPSHOTS=1 accepts it")
