"""The dialog that keeps B as a baseline: it says where it would be written, and asks."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from ragaudit.errors import RagauditError
from ragaudit.report.clean import for_terminal
from ragaudit.tui.comparing import Comparing
from ragaudit.tui.lines import Role, flowed, line
from ragaudit.tui.panes import Pane, in_frame
from ragaudit.tui.screens.dialogs import Dialog, Field


class FreezeDialog(Dialog[str]):
    """A name, and enter. A baseline that is there already is replaced on the second enter. Answers what was done."""

    def __init__(self, comparing: Comparing) -> None:
        """Starts from the name of the run."""
        super().__init__()
        self._comparing = comparing
        self._replaces: Path | None = None
        """The file that the next enter would replace."""

    def compose(self) -> ComposeResult:
        """The name and what would happen."""
        found = self._comparing.found
        with Vertical(classes="dialog") as dialog:
            name = "" if found is None else for_terminal(found.candidate.name, 40)
            dialog.border_title = in_frame(f"Keep B ({name}) as a baseline")
            yield Field("name", Input(self._comparing.baseline_name(), id="name", select_on_focus=False))
            yield Pane(id="place", title="", help="")

    def on_mount(self) -> None:
        """Say where it would be written."""
        self.query_one("#place", Pane).can_focus = False
        self._say()

    @on(Input.Changed)
    def _changed(self) -> None:
        self._replaces = None
        self._say()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        name = self.query_one(Input).value
        try:
            path = self._comparing.baseline_path(name)
            if path.exists() and path != self._replaces:
                self._replaces = path
                self._say()
                return
            self.dismiss(self._comparing.freeze(name, replace=path == self._replaces))
        except RagauditError as error:
            self._say(str(error))

    def _say(self, trouble: str = "") -> None:
        name = self.query_one(Input).value
        try:
            path = self._comparing.baseline_path(name)
        except RagauditError as error:
            lines = flowed(str(error), 72, Role.LOST)
        else:
            lines = flowed(f"writes {path}: figures of each query and the configuration, no text", 72)
            if path == self._replaces:
                lines += flowed("that baseline is there already: enter once more replaces it", 72, Role.LOST)
        if trouble:
            lines = flowed(trouble, 72, Role.LOST)
        self.query_one("#place", Pane).show([*lines, line(("enter writes, esc leaves everything as it is", Role.DIM))])
