"""The part of the app that judges while people review: its dialogs, its one worker thread, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import on
from textual.app import App
from textual.message import Message
from textual.worker import Worker, get_current_worker

from ragaudit.model.counting import queries
from ragaudit.tui.judging import Judging
from ragaudit.tui.screens.base import AppScreen
from ragaudit.tui.screens.judge import JudgeDialog, LeaveDialog, trouble_of
from ragaudit.tui.session import Session

JUDGE = "judge"
"""The group of the worker."""


class JudgingApp(App[int]):
    """Subclasses say which screen is shown and how it is drawn."""

    session: Session
    judging: Judging
    is_leaving = False

    class Moved(Message):
        """Judging has gone on. Sent from the thread that judges; how far it is stands in `judging.moment`."""

    @property
    def main_screen(self) -> AppScreen | None:
        """The screen below any dialog."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, AppScreen)), None)

    def say(self, text: str, *, trouble: bool = False) -> None:
        """Put a sentence in the status line of the screen."""
        if self.main_screen is not None:
            self.main_screen.say(text, trouble=trouble)

    def redraw(self) -> None:
        """Show the session as it is now."""
        if self.main_screen is not None:
            self.main_screen.redraw()

    def catch_up(self) -> None:
        """Make the figures anew when an earlier judging was cut off before it could."""
        if self.session.summary.behind and self.session.reviews is not None:
            self._work(self.judging.catch_up)
            self.say("an earlier judging was cut off: the figures are made anew")

    def action_judge(self) -> None:
        """Choose what is judged, see the plan, start."""
        if self.judging.is_on:
            self.say("judging goes on: o shows how far it is, space there pauses it, esc there stops it")
        elif self.session.reviews is None:
            self.say(self.session.read_only, trouble=True)
        elif self.judging.source is None:
            self.say("this app was opened without anything to judge with")
        else:
            self.push_screen(JudgeDialog(self.session, self.judging), self._judge)

    def _judge(self, query_ids: list[str] | None) -> None:
        if query_ids is None:
            return
        self._work(partial(self._run_judge, query_ids))
        self.say(f"judging {queries(len(query_ids))}: o shows how far it is; reviewing goes on")

    def _run_judge(self, query_ids: list[str]) -> str:
        worker = get_current_worker()
        tell = partial(self.post_message, self.Moved())
        return self.judging.run(query_ids, tell, lambda: worker.is_cancelled)

    def _work(self, work: Callable[[], str]) -> None:
        self.judging.begin(self.session.summary)
        self.run_worker(work, thread=True, exclusive=True, group=JUDGE, exit_on_error=False)
        self._judging_moved()

    @on(Moved)
    def _judging_moved(self) -> None:
        if self.main_screen is not None:
            self.main_screen.show_judging()

    @on(Worker.StateChanged)
    def _judging_ended(self, event: Worker.StateChanged) -> None:
        if event.worker.group != JUDGE or not event.worker.is_finished:
            return
        self.judging.end()
        if self.is_leaving:
            self.exit(0)
            return
        self.session.refresh()
        self.redraw()
        if event.worker.error is not None:
            self.say(trouble_of(event.worker.error), trouble=True)
        else:
            self.say(str(event.worker.result))

    async def action_quit(self) -> None:
        """As `q`: Textual's own key for it must not cut judging off."""
        self.action_leave()

    def action_leave(self) -> None:
        """Quit; asks while judging."""
        if not self.judging.is_on:
            self.exit(0)
        elif self.is_leaving:
            self.say("leaving as soon as what is done is written")
        else:
            self.push_screen(LeaveDialog(self.judging.words()), self._leave)

    def _leave(self, is_sure: bool | None) -> None:
        if not is_sure:
            return
        if not self.judging.is_on:
            self.exit(0)
            return
        self.is_leaving = True
        self.judging.stop()
        self.say("leaving as soon as what is done is written")

    def on_unmount(self) -> None:
        """Whatever ends the app: what is judged is written, and no thread goes on asking."""
        self.judging.stop()
