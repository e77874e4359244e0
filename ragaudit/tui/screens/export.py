"""The export dialog: which queries, as what, to which file, with texts or without."""

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Checkbox, Input, RadioButton, RadioSet

from ragaudit.report.export import ExportFormat, file_name
from ragaudit.tui.exporting import ExportRequest, selections
from ragaudit.tui.lines import Line, Role, flowed, line
from ragaudit.tui.panes import Pane, in_frame
from ragaudit.tui.screens.dialogs import Dialog, Field
from ragaudit.tui.session import Session

WORDS = {"query": "this query", "queue": "the queue", "all": "all"}


class Option(RadioButton):
    """`(x) html` or `( ) html`: Textual's own says by colour alone which one holds."""

    def render(self) -> Content:
        """Mark and label."""
        return _marked("(x)" if self.value else "( )", self)


class Tick(Checkbox):
    """`[x] texts too` or `[ ] texts too`."""

    def render(self) -> Content:
        """Mark and label."""
        return _marked("[x]" if self.value else "[ ]", self)


def _marked(mark: str, button: RadioButton | Checkbox) -> Content:
    return Content.assemble(mark, button.label.pad(1, 1).stylize_before(button.get_visual_style("toggle--label")))


class Choices(RadioSet):
    """Options of which one holds; moving chooses."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,right", "choose(1)", "Next", show=False),
        Binding("up,left", "choose(-1)", "Before", show=False),
    ]

    def action_choose(self, by: int) -> None:
        """Choose the option after or before."""
        if by > 0:
            self.action_next_button()
        else:
            self.action_previous_button()
        self.action_toggle_button()


class ExportDialog(Dialog[ExportRequest]):
    """Answers with what is to be written; a file that is there is named, and only a second enter writes over it."""

    BINDINGS = [Binding("enter", "write", "write", show=False, priority=True)]  # noqa: RUF012 - as Textual declares it

    def __init__(self, session: Session, here: str | None) -> None:
        """Offers the current query, the queue and everything."""
        super().__init__()
        self._selections = selections(session, here)
        self._what = next(iter(self._selections))
        self._form = ExportFormat.MARKDOWN
        self._offered = ""
        self._confirmed = ""
        """The name of the file that enter has been warned about."""

    def compose(self) -> ComposeResult:
        """A line a choice."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = in_frame("Export")
            offered = (
                Option(WORDS[name] + (f": {n:,}" if name != "query" else ""), name == self._what, name=name)
                for name, (_, _, n) in self._selections.items()
            )
            yield Field("what", Choices(*offered, id="what", compact=True))
            forms = (Option(form.value, form is self._form, name=form.value) for form in ExportFormat)
            yield Field("as", Choices(*forms, id="as", compact=True))
            yield Field("to", Input(id="to", select_on_focus=False))
            yield Field("", Tick("texts too, as far as each query's user may read them", id="texts", compact=True))
            yield Pane(id="hint", title="", help="")

    def on_mount(self) -> None:
        """Offer a name."""
        self.query_one("#hint", Pane).can_focus = False
        self._offer(self._form)
        self.query_one("#what", Choices).focus()

    @on(RadioSet.Changed, "#what")
    def _what_chosen(self, event: RadioSet.Changed) -> None:
        self._what = event.pressed.name or self._what
        self._offer(self._form)

    @on(RadioSet.Changed, "#as")
    def _form_chosen(self, event: RadioSet.Changed) -> None:
        self._offer(ExportFormat(event.pressed.name or self._form))

    @on(Input.Changed)
    def _renamed(self) -> None:
        self._hint("")

    def action_write(self) -> None:
        """Answer, unless something is in the way."""
        typed = self.query_one("#to", Input).value.strip()
        path = Path(typed).expanduser() if typed else Path()
        if not path.name:
            self._hint("Write the name of a file.")
        elif path.is_dir():
            self._hint(f"{typed} is a folder. Write the name of a file in it.")
        elif not path.parent.is_dir():
            self._hint(f"{path.parent}: no such folder.")
        elif path.exists() and self._confirmed != typed:
            self._confirmed = typed
            self._hint(f"{typed} is there already: enter again writes over it, or write another name.")
        else:
            form, selection = self._form, self._selections[self._what][1]
            with_text = self.query_one("#texts", Tick).value
            self.dismiss(ExportRequest(path, form, selection, with_text, replace=self._confirmed == typed))

    def _offer(self, form: ExportFormat) -> None:
        """The name that fits what is chosen, unless the person wrote one; of that the format's end alone."""
        to, before, self._form = self.query_one("#to", Input), self._form, form
        offered = file_name(self._selections[self._what][0], form)
        if to.value in ("", self._offered):
            to.value = offered
        elif to.value.endswith(before.suffix):
            to.value = to.value.removesuffix(before.suffix) + form.suffix
        self._offered = offered
        self._hint("")

    def _hint(self, trouble: str) -> None:
        lines: list[Line] = flowed(trouble, 72, Role.LOST) if trouble else []
        lines += flowed(f"{self._form.value}: {self._form.what}", 72, Role.DIM)
        lines.append(line(("enter writes, tab next field, arrows and space choose, esc cancels", Role.DIM)))
        self.query_one("#hint", Pane).show(lines)
