"""The dialogs of judging: what and at what price, before it starts; and whether to leave while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.worker import Worker, WorkerState, get_current_worker

from ragaudit.errors import RagauditError
from ragaudit.model.counting import queries
from ragaudit.report.clean import for_terminal
from ragaudit.tui.lines import BLANK, Line, Role, flowed, line
from ragaudit.tui.panes import Pane
from ragaudit.tui.screens.dialogs import Dialog

if TYPE_CHECKING:
    from ragaudit.model.result import Summary
    from ragaudit.tui.judging import Judging, Planned
    from ragaudit.tui.session import Session

ROOM = 72


@dataclass(frozen=True)
class Scope:
    """Some queries that may be judged together."""

    name: str
    ids: Callable[[], list[str]]


def scopes(session: Session) -> list[Scope]:
    """The marked queries or the current one, then the queue."""
    targets = session.targets()
    about = for_terminal(targets[0], 40) if targets and not session.marks else f"{queries(len(targets))}"
    first = [Scope(f"{'marked' if session.marks else 'this query'}: {about}", lambda: list(targets))]
    words = for_terminal(session.filter.text, 40) or "no filter"
    queue = Scope(f"the queue: {queries(session.count)} ({words})", session.queue_ids)
    return [*(first if targets else []), queue]


class JudgeDialog(Dialog[list[str]]):
    """Choose what is judged and see the plan; the answer is the ids of the queries to judge."""

    def __init__(self, session: Session, judging: Judging) -> None:
        """Nothing is read before it is shown."""
        super().__init__()
        self._session, self._judging = session, judging
        self._scopes = scopes(session)
        self._planned: Planned | None = None
        self._ids: list[str] = []

    def compose(self) -> ComposeResult:
        """The choice, and the plan below it."""
        with Vertical(classes="dialog", id="judge") as dialog:
            dialog.border_title = "Judge"
            yield Pane(id="scope", title="", help="", cursor=True)
            yield Pane(id="plan", title="", help="")

    def on_mount(self) -> None:
        """Plan for the first choice."""
        self.query_one("#scope", Pane).focus()
        self.query_one("#plan", Pane).can_focus = False
        self._plan(0)

    @on(Pane.Moved, "#scope")
    def _moved(self, event: Pane.Moved) -> None:
        self._plan(event.index)

    @on(Pane.Chosen, "#scope")
    def _chosen(self) -> None:
        planned = self._planned
        if planned is not None and planned.open.ids:
            self.dismiss([query_id for query_id in self._ids if query_id in planned.open.ids])

    def _plan(self, index: int) -> None:
        rows = [line(f"{'>' if n == index else ' '} {each.name}") for n, each in enumerate(self._scopes)]
        self.query_one("#scope", Pane).show(rows, cursor=index, keep=True)
        self._planned = None
        self._ids = self._scopes[index].ids()
        self._say([line(("reading the bundle, working out the plan ...", Role.DIM))])
        work = partial(self._worked_out, self._session.summary, self._ids)
        self.run_worker(work, thread=True, exclusive=True, group="plan", exit_on_error=False)

    def _worked_out(self, summary: Summary, ids: list[str]) -> Planned:
        worker = get_current_worker()
        return self._judging.plan(summary, ids, lambda: worker.is_cancelled)

    @on(Worker.StateChanged)
    def _planning_ended(self, event: Worker.StateChanged) -> None:
        event.stop()
        if event.state is WorkerState.ERROR:
            trouble = flowed(trouble_of(event.worker.error), ROOM, Role.LOST)
            self._say([*trouble, BLANK, line(("esc leaves. Nothing was sent.", Role.DIM))])
        elif event.state is WorkerState.SUCCESS:
            from ragaudit.tui.judge_view import plan_lines

            self._planned = event.worker.result
            if self._planned is not None:
                self._say(plan_lines(self._planned, ROOM))

    def _say(self, lines: list[Line]) -> None:
        self.query_one("#plan", Pane).show([BLANK, *lines])


def trouble_of(error: BaseException | None) -> str:
    """What to tell of an error in a thread; one that is not ragaudit's own is a bug, and says so."""
    if isinstance(error, RagauditError):
        return str(error)
    return f"this is a bug in ragaudit: {type(error).__name__}: {error}"


class LeaveDialog(Dialog[bool]):
    """Leave while judging runs? Only enter says yes."""

    BINDINGS = [Binding("enter", "leave", "leave", id="dialog.leave")]  # noqa: RUF012

    def __init__(self, progress: str) -> None:
        """`progress` says how far it is."""
        super().__init__()
        self._progress = progress

    def compose(self) -> ComposeResult:
        """One pane in a frame."""
        with Vertical(classes="dialog"):
            yield Pane(id="leave", title="", help="")

    def on_mount(self) -> None:
        """Ask."""
        lines = [line((f"{self._progress} goes on.", Role.STRONG))]
        lines += flowed("Leave it? What is done is kept, and J goes on from there the next time.", ROOM)
        pane = self.query_one("#leave", Pane)
        pane.show([*lines, BLANK, line(("enter stops it and leaves, esc stays", Role.DIM))])

    @on(Pane.Chosen)
    def _chosen(self) -> None:
        self.action_leave()

    def action_leave(self) -> None:
        """Stop and leave."""
        self.dismiss(True)
