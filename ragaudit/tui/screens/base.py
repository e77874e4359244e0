"""What every screen has: a title bar, a status line, the keys that work everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer

from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import cells, cut
from ragaudit.tui.lines import Line, Role, line
from ragaudit.tui.panes import Pane

if TYPE_CHECKING:
    from ragaudit.tui.app import ReviewApp
    from ragaudit.tui.judging import Judging
    from ragaudit.tui.keys import Key
    from ragaudit.tui.session import Session

SCREENS = ("overview", "review", "experiments", "compare")


class AppScreen(Screen[None]):
    """A screen of the app. Subclasses give `NAME`, `body` and `redraw`."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as Textual declares it
    NAME = ""
    KEYS: ClassVar[tuple[Key, ...]] = ()

    @property
    def review_app(self) -> ReviewApp:
        """The app."""
        return cast("ReviewApp", self.app)

    @property
    def session(self) -> Session:
        """The audit that is open."""
        return self.review_app.session

    @property
    def here(self) -> str | None:
        """The id of the query that is shown: what is copied and exported."""
        return self.session.here

    @property
    def judging(self) -> Judging:
        """What is judged meanwhile."""
        return self.review_app.judging

    def compose(self) -> ComposeResult:
        """Bar, body, status, footer."""
        yield bar("top")
        yield from self.body()
        yield bar("status")
        yield Footer(compact=True, show_command_palette=False)

    def body(self) -> ComposeResult:
        """What stands between the bars."""
        yield from ()

    def redraw(self) -> None:
        """Show the session as it is now."""

    def show_judging(self) -> None:
        """Judging has gone on."""

    def on_screen_resume(self) -> None:
        """Another screen may have changed what is shown."""
        self.call_after_refresh(self.redraw)

    def on_resize(self) -> None:
        """Lines are cut and wrapped to the width."""
        self.call_after_refresh(self.redraw)

    def say(self, text: str, *, trouble: bool = False) -> None:
        """Put a sentence in the status line; it stays until the next one."""
        if not self.query("#status"):  # just switched to, for the first time
            self.call_after_refresh(self.say, text, trouble=trouble)
            return
        self.query_one("#status", Pane).show([line((text, Role.LOST if trouble else Role.DIM))])

    def draw_top(self, said: str, *, narrow: str = "") -> None:
        """The title bar: the run, what the screen says, and which screens there are, or where it is narrow `narrow`."""
        top = self.query_one("#top", Pane)
        if self.judging.is_on:
            said = f"{self.judging.words(short=not self.has_class('-wide'))}   {said}"
        if self.has_class("-wide"):
            names = [f"[{name.capitalize()}]" if name == self.NAME else name.capitalize() for name in SCREENS]
            run = for_terminal(self.session.summary.run.name, 20)
            top.show([_justified(f" {run}   {said}", " ".join(names) + " ", top.room)])
        else:
            top.show([_justified(f" {said}", narrow + " ", top.room)])


class PanedScreen(AppScreen):
    """A screen of several panes: all of them where there is room, else the one that has the floor. Give `PANES`."""

    PANES: ClassVar[tuple[str, ...]] = ()
    pane_shown = ""

    def pane(self, name: str) -> Pane:
        """A pane by its name."""
        return self.query_one(f"#{name}", Pane)

    def show_pane(self, name: str) -> None:
        """Give a pane the floor."""
        self.pane_shown = name
        for other in self.PANES:
            self.set_class(other == name, f"-show-{other}")
        self.pane(name).focus(scroll_visible=False)
        self.call_after_refresh(self.redraw)

    def action_pane(self, by: int) -> None:
        """Another pane."""
        self.show_pane(self.PANES[(self.PANES.index(self.pane_shown) + by) % len(self.PANES)])

    def action_zoom(self) -> None:
        """The pane alone, or all of them."""
        self.toggle_class("-zoom")
        self.call_after_refresh(self.redraw)

    def action_back(self) -> None:
        """Out of the zoom, else where `back` leads."""
        if self.has_class("-zoom"):
            self.action_zoom()
        else:
            self.back()

    def back(self) -> None:
        """Where esc leads when nothing is zoomed."""


def bar(id: str) -> Pane:
    """One line that cannot be focused."""
    pane = Pane(id=id, title="", help="")
    pane.can_focus = False
    pane.add_class("bar")
    return pane


def _justified(left: str, right: str, width: int) -> Line:
    left = cut(left, max(width - cells(right) - 1, 0))
    return line(left + " " * max(width - cells(left) - cells(right), 1) + right)
