"""The dialogs: read a chunk full size, note, find, filter, help. Esc closes each without saving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Label

from ragaudit.errors import RagauditError
from ragaudit.model.diagnosis import STAGES, Stage
from ragaudit.model.review import Patch
from ragaudit.report.clean import for_terminal
from ragaudit.store.filters import IS, KEYS, parse_filter
from ragaudit.tui.keys import Key, shown
from ragaudit.tui.lines import Line, Role, flowed, line
from ragaudit.tui.panes import Pane, in_frame

if TYPE_CHECKING:
    from ragaudit.tui.query_view import QueryView
    from ragaudit.tui.session import Session

Answer = TypeVar("Answer")
CLOSE = Binding("escape", "close", "close", id="dialog.close")
SOON = 0.15
"""Seconds after the last key before the queue is searched."""


class Dialog(ModalScreen[Answer], Generic[Answer]):
    """Esc answers None."""

    BINDINGS = [CLOSE]  # noqa: RUF012 - as Textual declares it

    def action_close(self) -> None:
        """Leave without saving."""
        self.dismiss(None)


class Field(Horizontal):
    """A line of a dialog: its name, with `>` before it while one types there, and what holds the value."""

    def __init__(self, name: str, value: Widget) -> None:
        """`value` is the widget."""
        super().__init__()
        self._label, self._value = name, value

    def compose(self) -> ComposeResult:
        """Name and value."""
        yield Label(f"  {self._label}")
        yield self._value

    def on_descendant_focus(self) -> None:
        """Point at it: colour alone would not tell."""
        self.query_one(Label).update(f"> {self._label}")

    def on_descendant_blur(self) -> None:
        """It is another's turn."""
        self.query_one(Label).update(f"  {self._label}")


class ReadDialog(Dialog[None]):
    """A text over the whole screen."""

    BINDINGS = [Binding("q,enter", "close", "close", show=False)]  # noqa: RUF012

    def __init__(self, title: str, lines: Callable[[int], Sequence[Line]]) -> None:
        """`lines` gives the text for a width."""
        super().__init__()
        self._title = title
        self._made = lines

    def compose(self) -> ComposeResult:
        """One pane."""
        yield Pane(id="read", title=for_terminal(self._title, 60), help="")

    def on_mount(self) -> None:
        """Fill it once its size is known."""
        self.query_one(Pane).focus()
        self.call_after_refresh(self._fill)

    def on_resize(self) -> None:
        """Wrap it again."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        pane = self.query_one("#read", Pane)
        pane.show(self._made(pane.room), keep=True)
        pane.frame(note="esc back")


class HelpDialog(Dialog[None]):
    """What the keys do here."""

    BINDINGS = [Binding("q,question_mark,enter", "close", "close", show=False)]  # noqa: RUF012

    def __init__(self, about: str, text: str, keys: Sequence[Key], keymap: dict[str, str]) -> None:
        """`text` is about the pane; `keys` are those of the screen and of the app."""
        super().__init__()
        self._about, self._text, self._keys, self._keymap = about, text, keys, keymap

    def compose(self) -> ComposeResult:
        """One pane in a frame."""
        with Vertical(classes="dialog"):
            yield Pane(id="help", title=f"Help: {self._about}", help="")

    def on_mount(self) -> None:
        """Fill it."""
        pane = self.query_one(Pane)
        lines: list[Line] = []
        for part in self._text.split("\n\n"):
            lines += [*flowed(part.replace("`", ""), 72), line()]
        for key in self._keys:
            name = shown(self._keymap.get(key.id, key.keys))
            lines.append(line((f"  {name:<10}", Role.STRONG), key.does))
        lines += [line((f"  {'j k g G':<10}", Role.STRONG), "Down, up, top, bottom; page up and page down")]
        lines += [line((f"  {'ctrl+p':<10}", Role.STRONG), "Every command by name, every query by id")]
        pane.show(lines)
        pane.focus()


class FilterDialog(Dialog[str]):
    """The filter, with how many queries match while it is typed."""

    def __init__(self, session: Session) -> None:
        """Starts from the filter in force."""
        super().__init__()
        self._session = session

    def compose(self) -> ComposeResult:
        """The filter and what it may hold."""
        with Vertical(classes="dialog"):
            yield Field("filter", Input(self._session.filter.text, id="filter", select_on_focus=False))
            yield Pane(id="matches", title="", help="")

    def on_mount(self) -> None:
        """Say what matches now."""
        self.query_one("#matches", Pane).can_focus = False
        self._count()

    @on(Input.Changed)
    def _changed(self) -> None:
        self.set_timer(SOON, self._count)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        text = self.query_one(Input).value
        try:
            parse_filter(text)
        except RagauditError:
            self._count()  # what is wrong stays on the screen, and so does the dialog
            return
        self.dismiss(text)

    def _count(self) -> None:
        session, pane = self._session, self.query_one("#matches", Pane)
        try:
            wanted = parse_filter(self.query_one(Input).value)
        except RagauditError as error:
            lines = flowed(str(error), 72, Role.LOST)
        else:
            n = session.reader.count(wanted, marks=session.marks)
            total = sum(session.summary.outcomes.values())
            lines = [line((f"{n:,} of {total:,} match", Role.STRONG))]
        stages = " ".join(stage.value for stage in STAGES)
        lines += [line(), *flowed(f"stage: {stages} undetermined", 72, first="  ", rest="         ")]
        lines += flowed(f"is: {' '.join(IS)}", 72, first="  ", rest="      ")
        lines += flowed(f"also {' '.join(f'{key}:' for key in KEYS if key not in ('stage', 'is'))}", 72, first="  ")
        lines += flowed("recall<0.5 faithfulness>=0.9 (any metric)   - before a term inverts it", 72, first="  ")
        lines += flowed("any other word is looked for in id and query text", 72, first="  ")
        lines += [line(), line(("enter filters, esc leaves it as it was", Role.DIM))]
        pane.show(lines)


class FindDialog(Dialog[str]):
    """One line at the bottom; the queue narrows as it is typed. The answer is the filter to keep."""

    def __init__(self, session: Session, preview: Callable[[], None]) -> None:
        """`preview` shows the queue as it is."""
        super().__init__(id="finder")
        self._session = session
        self._before = session.filter.text
        self._preview = preview

    def compose(self) -> ComposeResult:
        """The line."""
        with Vertical(classes="dialog"):
            hint = "words of the query, or its id; enter keeps, esc clears"
            yield Field("find /", Input(id="find", placeholder=hint))

    @on(Input.Changed)
    def _changed(self) -> None:
        self.set_timer(SOON, self._narrow)

    def _narrow(self) -> None:
        if self.is_mounted:
            self._session.narrow(self._wanted())
            self._preview()

    def _wanted(self) -> str:
        typed = self.query_one(Input).value.replace('"', " ").strip()
        return f'{self._before} "{typed}"'.strip() if typed else self._before

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.dismiss(self._wanted())

    def action_close(self) -> None:
        """Back to the filter that was."""
        self._session.narrow(self._before)
        self.dismiss(None)


class NoteDialog(Dialog[str]):
    """A note, tags, the right stage, the right gold; enter saves all of it and answers with what was done."""

    FIELDS = ("note", "tags", "stage", "gold")

    def __init__(self, session: Session, view: QueryView | None) -> None:
        """Starts from what was said before, unless it is about several queries."""
        super().__init__()
        self._session, self._view = session, view

    def compose(self) -> ComposeResult:
        """A line a field."""
        targets = self._session.targets()
        review = self._view.review if self._view is not None and len(targets) == 1 else None
        values = dict.fromkeys(self.FIELDS, "")
        if review is not None:
            values = {
                "tags": " ".join(review.tags),
                "note": review.note,
                "stage": "" if review.stage is None else review.stage.value,
                "gold": "" if review.gold is None else " ".join(review.gold) or "-",
            }
        with Vertical(classes="dialog") as dialog:
            about = for_terminal(targets[0], 40) if len(targets) == 1 else f"{len(targets)} queries"
            dialog.border_title = in_frame(f"Note on {about}")
            for name in self.FIELDS:
                yield Field(name, Input(for_terminal(values[name]), id=name))
            yield Pane(id="hint", title="", help="")

    def on_mount(self) -> None:
        """What the fields may hold."""
        self.query_one("#hint", Pane).can_focus = False
        self._hint("")

    def _hint(self, trouble: str) -> None:
        tags = self._session.reviews.tags() if self._session.reviews is not None else []
        used = "  ".join(f"{for_terminal(tag, 20)} {n}" for tag, n in tags[:8]) or "none yet"
        lines = flowed(trouble, 72, Role.LOST) if trouble else []
        lines += flowed(f"tags in use: {used}", 72, Role.DIM)
        lines += flowed(f"stage: {' '.join(s.value for s in STAGES)} none", 72, Role.DIM)
        if self._view is not None:
            golds = " ".join(for_terminal(i, 30) for i in self._view.gold_ids[:6])
            lines += flowed(f"gold now: {golds or '(none)'}; ids side by side, - for none", 72, Role.DIM)
        lines += [line(("enter saves, tab next field, esc cancels", Role.DIM))]
        self.query_one("#hint", Pane).show(lines)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        typed = {name: self.query_one(f"#{name}", Input).value.strip() for name in self.FIELDS}
        stage: Stage | None = None
        if typed["stage"]:
            known = {s.value: s for s in (*STAGES, Stage.NONE)}
            near = [s for name, s in known.items() if name.startswith(typed["stage"].lower())]
            if len(near) != 1 and typed["stage"].lower() not in known:
                self._hint(f"stage: {typed['stage']!r} is not one of the nine, nor none.")
                return
            stage = known.get(typed["stage"].lower(), near[0])
        gold = None
        if typed["gold"]:
            gold = () if typed["gold"] == "-" else tuple(dict.fromkeys(typed["gold"].split()))
        tags = tuple(dict.fromkeys(typed["tags"].replace(",", " ").split()))
        if len(self._session.targets()) > 1:  # what a field leaves out stays as each of them has it
            patch = Patch(more_tags=tags, note=typed["note"] or None, stage=stage, gold=gold)
        else:
            emptied = tuple(name for name in ("stage", "gold") if not typed[name])
            patch = Patch(tags=tags, note=typed["note"], stage=stage, gold=gold, clear=emptied)
        try:
            self.dismiss(self._session.annotate(patch))
        except RagauditError as error:
            self._hint(str(error))


def about_help(pane: Pane | None) -> tuple[str, str]:
    """Title and text of the help of a pane."""
    if pane is None:
        return "keys", ""
    return pane.title or pane.id or "", pane.about
