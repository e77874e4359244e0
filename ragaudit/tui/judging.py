"""Judging while people review, without a screen: where its parts come from, how far it is, pausing and stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from ragaudit.model.counting import queries
from ragaudit.tui.lines import Line, line

if TYPE_CHECKING:  # the app starts without any of it
    from ragaudit.audit.judging import Judge
    from ragaudit.audit.rejudge import Judged, Moment, Open
    from ragaudit.audit.reopen import Audited
    from ragaudit.judge.plan import Lookup, Plan
    from ragaudit.model.result import Summary
    from ragaudit.readers.bundle import Bundle

TELL_SECONDS = 0.1
"""How often progress is told, at most."""


@dataclass(frozen=True)
class Source:
    """Where the app gets what judging needs. Each may raise an error that says what to do."""

    bundle: Callable[[Summary], Bundle]
    """The bundle of the audit, opened."""
    judge: Callable[[Bundle, bool], Judge]
    """Who is asked; True = only to plan, nothing is opened for writing."""
    lookup: Callable[[Bundle], Lookup]
    """What is on the tape."""


@dataclass(frozen=True)
class Planned:
    """What judging some queries would take."""

    open: Open
    plan: Plan
    api_base: str | None
    """Where the requests would go, when it is not the provider's own endpoint."""


class Judging:
    """The judging of one review. `plan` and `run` block and belong into a worker thread, the rest to the app's."""

    def __init__(self, path: Path, source: Source | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is opened before the first plan.

        Args:
            path: The audit file.
            source: Where its parts come from; None = this app cannot judge.
            clock: Seconds.
        """
        self.source = source
        self.moment: Moment | None = None
        """How far the last judging is, or was; None = there was none."""
        self.is_on = False
        self.max_cost: float | None = None
        self.model = ""
        self._path = path
        self._clock = clock
        self._stop, self._pause = Event(), Event()
        self._opening = Lock()
        self._audited: Audited | None = None
        self._summary: Summary | None = None

    @property
    def is_paused(self) -> bool:
        """Whether nothing new is asked for the time being."""
        return self.is_on and self._pause.is_set()

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop and has not ended yet."""
        return self.is_on and self._stop.is_set()

    @property
    def is_summing(self) -> bool:
        """Whether the queries are done and the figures of the run are made anew."""
        return self.is_on and self.moment is not None and self.moment.is_summing

    def lines(self, width: int) -> list[Line]:
        """For the panel."""
        if self.moment is None:
            return [line("the bundle is read")] if self.is_on else []
        from ragaudit.tui.judge_view import progress_lines

        return progress_lines(
            self.moment, width, max_cost=self.max_cost, is_on=self.is_on, is_stopping=self.is_stopping
        )

    def words(self, *, short: bool = False) -> str:
        """For the title bar: how far it is."""
        moment = self.moment
        if moment is None or not moment.total:
            return "judging"
        return f"judging {100 * moment.done // moment.total}%" if short else f"judging {moment.done:,}/{moment.total:,}"

    def begin(self, summary: Summary) -> None:
        """To be called before `run` or `catch_up` is given to a thread."""
        self.is_on = True
        self._summary = summary
        self.moment = None
        self._stop.clear()
        self._pause.clear()

    def end(self) -> None:
        """To be called when the thread is done."""
        self.is_on = False

    def stop(self) -> None:
        """Ask nothing more; what is done is kept."""
        self._stop.set()

    def toggle_pause(self) -> bool:
        """Pause, or go on; whether it is paused now."""
        if self._pause.is_set():
            self._pause.clear()
        else:
            self._pause.set()
        return self._pause.is_set()

    def plan(self, summary: Summary, query_ids: Collection[str], is_cancelled: Callable[[], bool]) -> Planned:
        """What judging these queries would take. Nothing is sent or written.

        Args:
            summary: The audit's.
            query_ids: The queries that were chosen.
            is_cancelled: Asked before each query; True = the plan is not wanted any more.

        Raises:
            RagauditError: There is no bundle, it is not the audited one, or no model is set.
        """
        from ragaudit.audit.rejudge import open_queries, plan, refuse_mixing
        from ragaudit.judge.redact import without_credentials
        from ragaudit.store import AuditReader

        audited = self._open(summary)
        assert self.source is not None
        judge = self.source.judge(audited.bundle, True)
        with judge.tape:
            refuse_mixing(audited, summary.judge, judge)
            with AuditReader.open(self._path) as reader:
                todo = open_queries(audited, query_ids, reader.judgement)
            found = plan(audited, judge, todo.ids, self.source.lookup(audited.bundle), is_cancelled)
        place = judge.how.api_base
        return Planned(todo, found, without_credentials(place) if place else None)

    def run(self, query_ids: Collection[str], tell: Callable[[], object], is_cancelled: Callable[[], bool]) -> str:
        """Judge these queries into the audit file, and say how it ended.

        Args:
            query_ids: The queries that were chosen.
            tell: Called from this thread when `moment` has changed, a few times a second.
            is_cancelled: Asked beside `stop`.

        Raises:
            RagauditError: As `rejudge`, and as `plan`.
        """
        from ragaudit.audit.rejudge import rejudge

        assert self.source is not None and self._summary is not None
        audited = self._open(self._summary)
        judge = self.source.judge(audited.bundle, False)
        self.max_cost, self.model = judge.limits.max_cost, judge.how.model
        told = float("-inf")

        def look(moment: Moment) -> None:
            nonlocal told
            self.moment = moment
            if self._clock() - told >= TELL_SECONDS or moment.is_summing:
                told = self._clock()
                tell()

        def stop() -> bool:
            return self._stop.is_set() or is_cancelled()

        with judge.tape:
            found = rejudge(audited, judge, query_ids, progress=look, stop=stop, pause=self._pause.is_set)
        self.moment = found.moment
        return outcome(found)

    def catch_up(self) -> str:
        """Bring figures up to date that an earlier judging left behind, and say so.

        Raises:
            AuditFileError: The file cannot be written.
        """
        from ragaudit.audit.summing import catch_up

        catch_up(self._path)
        return "the figures are up to date"

    def _open(self, summary: Summary) -> Audited:
        """The audit with its bundle; opened once, which may take a while."""
        from ragaudit.audit.reopen import reopen

        with self._opening:
            if self._audited is None:
                assert self.source is not None
                bundle = self.source.bundle(summary)
                with self.source.judge(bundle, True).tape:
                    pass  # said before the traces are read, and asked again the next time
                self._audited = reopen(self._path, summary, bundle)
            return self._audited


def outcome(found: Judged) -> str:
    """How judging ended, in words."""
    moment = found.moment
    unscored = f", {moment.unscored:,} unscored" if moment.unscored else ""
    if not found.left:
        return f"judged: {queries(moment.done)}{unscored}. The figures are up to date."
    why = "the budget is spent" if found.budget_spent else "stopped"
    return f"{why}: {queries(moment.done)} judged{unscored} and kept, {found.left:,} left. J goes on."
