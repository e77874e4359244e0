"""The dialog that asks which of a few is meant."""

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from ragaudit.tui.lines import line
from ragaudit.tui.panes import Pane, in_frame
from ragaudit.tui.screens.dialogs import Dialog


class ChooseDialog(Dialog[str]):
    """Enter answers with the row under the cursor."""

    def __init__(self, title: str, rows: Sequence[str]) -> None:
        """`rows` are shown as they are answered."""
        super().__init__()
        self._title, self._rows = title, rows

    def compose(self) -> ComposeResult:
        """The rows in a frame."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = in_frame(self._title)
            dialog.border_subtitle = in_frame("enter chooses, esc leaves everything as it is")
            yield Pane(id="rows", title="", help="", cursor=True)

    def on_mount(self) -> None:
        """The first row."""
        pane = self.query_one(Pane)
        pane.show([line(row) for row in self._rows], cursor=0)
        pane.focus()

    @on(Pane.Chosen)
    def _chosen(self, event: Pane.Chosen) -> None:
        self.dismiss(self._rows[event.index])
