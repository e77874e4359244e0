"""The one widget that shows outside text: a virtual list of lines, of which only those on the screen are made."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.theme import Theme

from ragaudit.report.clean import for_terminal
from ragaudit.tui.lines import Line, Role, as_text, width_of

RowSource = Callable[[int, int], Line]
"""(index from 0, width in cells) -> the line."""

CURSOR, FOCUSED = "cursor", "focused cursor"


class Pane(ScrollView, can_focus=True):
    """Lines in a frame. With a cursor it is a list: moving and choosing are told to the screen.

    Every character that reaches the terminal goes through `_strip`, which is the app's one door for outside text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "step(1)", "Down", show=False, id="pane.down"),
        Binding("k,up", "step(-1)", "Up", show=False, id="pane.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="pane.page_down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="pane.page_up"),
        Binding("g,home", "edge(-1)", "Top", show=False, id="pane.top"),
        Binding("G,end", "edge(1)", "Bottom", show=False, id="pane.bottom"),
        Binding("left", "sideways(-8)", "Left", show=False, id="pane.left"),
        Binding("right", "sideways(8)", "Right", show=False, id="pane.right"),
        Binding("enter", "choose", "Open", show=False, id="pane.open"),
    ]

    class AtLine(Message):
        """Something about a line. Not sent itself: a handler of one kind would get those below it too."""

        def __init__(self, pane: "Pane", index: int) -> None:
            super().__init__()
            self.pane = pane
            self.index = index

        @property
        def control(self) -> "Pane":
            """For `@on(Pane.Moved, "#id")`."""
            return self.pane

    class Moved(AtLine):
        """The cursor stands on another line."""

    class Chosen(AtLine):
        """Enter, or a click on the line under the cursor."""

    def __init__(self, *, id: str, title: str, help: str, cursor: bool = False) -> None:
        """An empty pane.

        Args:
            id: Of the widget.
            title: In the frame.
            help: Markdown that `?` shows.
            cursor: Whether one line is pointed at.
        """
        super().__init__(id=id)
        self.about = help
        self.frame(title)
        self.has_cursor = cursor
        self.cursor = 0
        self.count = 0
        self._source: RowSource | None = None
        self._lines: Sequence[Line] = ()

    def frame(self, title: str | None = None, note: str | None = None) -> None:
        """Write the title into the frame's upper edge, a note into the lower one; None leaves it as it is."""
        if title is not None:
            self.border_title = in_frame(title)
        if note is not None:
            self.border_subtitle = in_frame(note)

    @property
    def title(self) -> str:
        """What stands in the upper edge."""
        return self._border_title.plain if self._border_title is not None else ""

    @property
    def room(self) -> int:
        """Cells a line has; of a pane that is not on the screen, what it would have alone on it."""
        width = self.scrollable_content_region.width
        return width if width > 0 else max(self.app.size.width - 3, 1)

    def show(self, lines: Sequence[Line], *, cursor: int | None = None, keep: bool = False) -> None:
        """Show these lines, from the top unless `keep`."""
        self._lines, self._source = lines, None
        self._resize(len(lines), max((width_of(one) for one in lines), default=0))
        if not keep:
            self.scroll_to(0, 0, animate=False, force=True)
        if cursor is not None:
            self.point(cursor)

    def show_rows(self, count: int, source: RowSource, *, cursor: int) -> None:
        """Show rows that are made when they come into view."""
        self._lines, self._source = (), source
        self._resize(count, 0)
        self.point(cursor)

    def point(self, index: int) -> None:
        """Put the cursor on a line, without telling anybody."""
        self.cursor = max(0, min(index, self.count - 1))
        self._bring_into_view()
        self.refresh()

    def text(self) -> str:
        """All that the pane holds, as it is shown."""
        return as_text(self._clean(n) for n in range(self.count))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was dragged over."""
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else self.count - 1
        shown = as_text(self._clean(n) for n in range(first, min(last + 1, self.count)))
        return selection.extract("\n" * first + shown), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        scroll_x, scroll_y = self.scroll_offset
        return self._strip(scroll_y + y, scroll_x).apply_offsets(scroll_x, scroll_y + y)

    def action_step(self, by: int) -> None:
        """Move the cursor, or scroll where there is none."""
        if self.has_cursor:
            self._go(self.cursor + by)
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """Move by what the pane shows."""
        self.action_step(by * max(1, self.scrollable_content_region.height - 1))

    def action_edge(self, way: int) -> None:
        """Go to the first or the last line."""
        if self.has_cursor:
            self._go(0 if way < 0 else self.count - 1)
        else:
            self.scroll_to(y=0 if way < 0 else self.max_scroll_y, animate=False)

    def action_sideways(self, by: int) -> None:
        """Scroll lines that are not wrapped."""
        self.scroll_relative(x=by, animate=False)

    def action_choose(self) -> None:
        """Tell the screen that this line was chosen."""
        if self.count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """A click points at a line; on the line under the cursor it chooses."""
        if not self.has_cursor or not self.count:
            return
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = self.scroll_offset.y + offset.y
        if index == self.cursor and event.chain > 1:
            self.action_choose()
        elif 0 <= index < self.count:
            self._go(index)

    def _go(self, index: int) -> None:
        wanted = max(0, min(index, self.count - 1))
        if wanted != self.cursor:
            self.point(wanted)
            self.post_message(self.Moved(self, wanted))

    def _bring_into_view(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True, x_axis=False)

    def _resize(self, count: int, width: int) -> None:
        self.count = count
        self.cursor = max(0, min(self.cursor, count - 1))
        self.virtual_size = Size(width, count)
        self.refresh()

    def _clean(self, index: int) -> Line:
        line = self._source(index, self.room) if self._source is not None else self._lines[index]
        return tuple(piece._replace(text=for_terminal(piece.text, lines=True).replace("\n", " ")) for piece in line)

    def _strip(self, index: int, scroll_x: int) -> Strip:
        width = self.room
        style = self.rich_style
        if index >= self.count:
            return Strip.blank(width, style)
        roles = role_styles(self.app.current_theme)
        if self.has_cursor and index == self.cursor:
            style += roles[FOCUSED if self.has_focus else CURSOR]
        strip = Strip([Segment(piece.text, style + roles[piece.role]) for piece in self._clean(index)])
        selected = self.text_selection
        span = selected.get_span(index) if selected is not None else None
        if span is not None:
            strip = _with_selection(strip, span, self.screen.get_component_rich_style("screen--selection"))
        return strip.crop_extend(scroll_x, scroll_x + width, style)


def role_styles(theme: Theme) -> Mapping[str, Style]:
    """How each role, the cursor and the focused cursor look under a theme."""
    said = theme.variables
    return _styles(
        said.get("lost") or theme.error or theme.primary,
        said.get("kept") or theme.primary,  # not the theme's success: that is a green, beside a red
        said.get("unscored") or theme.warning or theme.primary,
        said.get("dimmed"),
        said.get("cursor") or theme.panel,
        theme.panel,
    )


@cache
def _styles(
    lost: str, kept: str, unscored: str, dimmed: str | None, focused: str | None, cursor: str | None
) -> Mapping[str, Style]:
    dim = Style(dim=True) if dimmed is None else Style(color=dimmed)
    return {
        Role.PLAIN: Style(),
        Role.DIM: dim,
        Role.STRONG: Style(bold=True),
        Role.HEAD: dim + Style(bold=True),
        Role.LOST: Style(color=_colour(lost), bold=True),
        Role.KEPT: Style(color=_colour(kept)),
        Role.UNSCORED: Style(color=_colour(unscored)),
        Role.GOLD: Style(bold=True, underline=True),
        Role.LEAK: Style(color=_colour(lost), bold=True, reverse=True),
        CURSOR: _row(cursor),
        FOCUSED: _row(focused) + Style(bold=True),
    }


def _row(colour: str | None) -> Style:
    return Style(reverse=True) if colour is None or colour.startswith("ansi_") else Style(bgcolor=colour)


def _colour(name: str) -> str:
    """As Rich calls it: the terminal's own colours have a prefix in Textual."""
    return name.removeprefix("ansi_")


def in_frame(text: str) -> Content | None:
    """A title for a frame: Textual would read a `str` as markup."""
    return Content(for_terminal(text)) if text else None


def _with_selection(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    start, end = span[0], strip.cell_length if span[1] == -1 else span[1]
    before, within, after = strip.crop(0, start), strip.crop(start, end), strip.crop(end)
    return Strip.join([before, within.apply_style(style), after])
