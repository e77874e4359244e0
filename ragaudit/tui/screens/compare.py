"""Compare: the queries that changed between two audits, each on both sides, and the verdict on the change."""

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.worker import get_current_worker

from ragaudit.errors import RagauditError
from ragaudit.model.comparison import Baseline
from ragaudit.model.result import Summary
from ragaudit.report.clean import for_terminal
from ragaudit.tui.compare_view import (
    LEGEND,
    change_line,
    change_row,
    counts_text,
    difference_lines,
    first_difference,
    headline,
    likeness,
    list_names,
    side_lines,
    side_title,
    transition_lines,
    verdict_lines,
)
from ragaudit.tui.comparing import Compared, Comparing, Shown
from ragaudit.tui.funnel_view import list_label
from ragaudit.tui.keys import COMPARE, bindings
from ragaudit.tui.lines import Line, Role, flowed, line
from ragaudit.tui.panes import Pane
from ragaudit.tui.screens.base import PanedScreen, bar
from ragaudit.tui.screens.freezing import FreezeDialog

PANES = ("changes", "a", "b", "difference", "verdict", "transitions")
GROUPS = {"List": ("changes", "transitions"), "Sides": ("a", "b", "difference"), "Verdict": ("verdict",)}
"""What stands together where there is no room for all."""

SIDE = (
    "The funnel of this side, as on the review screen. `[` and `]` move both sides to another list, `(` and `)` "
    "choose the gold id."
)
TITLES = {
    "changes": (
        "Changed",
        "Queries that came out otherwise, worst first. `n` and `p` step through them from any pane, `=` lists the "
        "unchanged ones too, `enter` opens the query on the review screen.\n\n" + LEGEND,
    ),
    "a": ("A", SIDE),
    "b": ("B", SIDE),
    "difference": (
        "Difference",
        "Both answers, and the first list that differs, side by side: `^2` B has it 2 ranks higher, `v2` lower, `new` "
        "A does not have it, `gone` B does not have it. overlap@K: share of the first K that both have. tau: 1 = those "
        "of both stand in the same order, -1 in the reverse.",
    ),
    "verdict": (
        "Verdict",
        "What changed, and every metric: before, after, difference, its 95 % interval; p, adjusted for the number of "
        "metrics; queries better, worse, same. Or why these two runs may not be compared.",
    ),
    "transitions": ("From stage to stage", "How many queries went from which stage, or verdict, to which other one."),
}


class Stopped(Exception):
    """Ends the work in its thread: nobody waits for it any more."""


class CompareScreen(PanedScreen):
    """Two runs, query by query."""

    NAME = "compare"
    KEYS = COMPARE
    PANES = PANES
    BINDINGS = bindings(COMPARE)

    class Told(Message):
        """How far the work is."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Failed(Message):
        """One of the files cannot be read."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Done(Message):
        """Both runs are read and compared."""

        def __init__(self, sides: tuple[Baseline, Baseline], found: Compared, *, swapped: bool) -> None:
            super().__init__()
            self.sides, self.found, self.swapped = sides, found, swapped

    def __init__(self, comparing: Comparing) -> None:
        """Nothing is read before the screen is shown."""
        super().__init__()
        self.comparing = comparing
        self.sides: tuple[Shown, Shown] | None = None
        self.gold_id: str | None = None
        self.list_name: str | None = None
        self.differs_at: str | None = None
        self._wanted: str | None = None
        """The query to stand on once everything is worked out."""
        self._came_from: str | None = None
        self._about: Summary | None = None
        self._working = False
        self._trouble = ""
        """Why one of the files cannot be read."""

    def body(self) -> ComposeResult:
        """All panes; the size decides which are seen."""
        for name in ("query", "change", "headline"):
            yield bar(name)
        with Container(id="compared"):
            for name in ("changes", "a", "b", "transitions", "difference"):
                title, about = TITLES[name]
                yield Pane(id=name, title=title, help=about, cursor=name == "changes")
        yield Pane(id="verdict", title=TITLES["verdict"][0], help=TITLES["verdict"][1])

    def on_mount(self) -> None:
        """Start on the list, or where there is room for one thing on both sides of the query."""
        self.pane_shown = "b" if self.app.size.width < 110 else "changes"
        self.call_after_refresh(self.show_pane, self.pane_shown)

    def on_screen_resume(self) -> None:
        """Compare, or compare anew when the open audit changed; stand on the query one comes from."""
        if self._about is not None and self._about != self.session.summary:
            self.comparing.forget()
            self._working = False
        self._about = self.session.summary
        here = self.session.here
        if here != self._came_from:
            self._came_from = self._wanted = here
        if self.comparing.found is None:
            if not self._working:
                self._start()
        elif self._wanted is not None:
            self._stand()
        super().on_screen_resume()

    @property
    def here(self) -> str | None:
        """The query that is shown."""
        return self.comparing.here

    # --- the work -----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._working, self._trouble = True, ""
        work = partial(self._work, swapped=self.comparing.swapped)
        self.run_worker(work, thread=True, exclusive=True, group="compare")

    def _work(self, *, swapped: bool) -> None:
        """In a thread: it shares no connection and touches no widget."""
        worker = get_current_worker()

        def told(text: str) -> None:
            if worker.is_cancelled:
                raise Stopped
            self.post_message(self.Told(text))

        try:
            sides, found = self.comparing.work(swapped=swapped, told=told)
            told("done")
            self.post_message(self.Done(sides, found, swapped=swapped))
        except Stopped:
            return
        except RagauditError as error:
            self.post_message(self.Failed(str(error)))

    @on(Told)
    def _told(self, event: Told) -> None:
        if self._working:
            self._say_above(event.text)

    @on(Failed)
    def _failed(self, event: Failed) -> None:
        self._working, self._trouble = False, event.text
        self.redraw()
        self.say(event.text, trouble=True)

    @on(Done)
    def _done(self, event: Done) -> None:
        if not self._working:
            return  # stopped in the same moment
        self._working = False
        self.comparing.take(event.sides, event.found, swapped=event.swapped)
        self._stand()
        self.redraw()

    def _stand(self) -> None:
        """On the query one comes from, if both runs have it."""
        if self._wanted is not None and not self.comparing.show(self._wanted):
            self.say(f"{self._wanted} is not in both runs")
        self._wanted = None
        self._load()

    def _say_above(self, text: str) -> None:
        self.query_one("#query", Pane).show([line((f" {text}", Role.STRONG), ("   esc stops it", Role.DIM))])

    # --- drawing ------------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Everything anew."""
        found = self.comparing.found
        self._top(found)
        if found is None:
            for name in (*PANES, "change", "headline"):
                self.pane(name).show([])
            if self._trouble:
                self.query_one("#query", Pane).show([line((" nothing is compared", Role.STRONG))])
                for name in ("b", "verdict"):
                    self.pane(name).show(flowed(self._trouble, self.pane(name).room, Role.LOST))
            return
        self.query_one("#headline", Pane).show(
            [line(" ", *headline(found, self.query_one("#headline", Pane).room - 1))]
        )
        self._draw_list(found)
        verdict, moved = self.pane("verdict"), self.pane("transitions")
        verdict.show(verdict_lines(found, verdict.room), keep=True)
        moved.show(transition_lines(found, moved.room), keep=True)
        self._draw_query()

    def _top(self, found: Compared | None) -> None:
        names = " ".join(
            f"[{group}]" if self.pane_shown in panes else group for group, panes in GROUPS.items()
        )  # one of them at a time
        if found is None:
            self.draw_top("comparing", narrow=names)
            return
        a, b = for_terminal(found.base.name, 14), for_terminal(found.candidate.name, 14)
        self.draw_top(f"A {a} -> B {b}   {counts_text(found)}", narrow=names)

    def _draw_list(self, found: Compared) -> None:
        comparing, changes = self.comparing, self.pane("changes")
        changes.show_rows(
            comparing.count,
            lambda n, width: change_row(comparing.row(n), comparing.text(n), width),
            cursor=comparing.index,
        )
        if not comparing.count:
            changes.show(flowed(self._nothing(found), changes.room))
        changes.frame("Changed" if comparing.only_changed else "All queries", f"{comparing.count:,}   enter: review it")

    def _nothing(self, found: Compared) -> str:
        if not found.changes:
            return "No query is in both runs."
        return "No query came out otherwise. = lists all of them."

    def _load(self) -> None:
        """The query one stands on, at its first difference."""
        self.sides = self.comparing.shown()
        if self.sides is None:
            self.gold_id = self.list_name = self.differs_at = None
            return
        a, b = (side.view for side in self.sides)
        known = b or a
        self.gold_id = known.primary_gold() if known is not None else None
        self.differs_at = first_difference(a, b)
        self.list_name = self.differs_at
        if known is not None and (a is None or b is None):
            self.list_name = known.lost_in(self.gold_id)

    def _draw_query(self) -> None:
        query, change = self.query_one("#query", Pane), self.query_one("#change", Pane)
        row, comparing = self.comparing.row(self.comparing.index), self.comparing
        if row is None or self.sides is None:
            query.show([line((" No query to show.", Role.UNSCORED))])
            for name in ("change", "a", "b", "difference"):
                self.pane(name).show([])
            return
        place = f"{comparing.index + 1:,} of {comparing.count:,}{' changed' if comparing.only_changed else ''}"
        text = for_terminal(comparing.text(comparing.index), 400)
        query.show([line((f" {for_terminal(row.change.query_id, 24)} [{place}]", Role.STRONG), f"  {text}")])
        change.show([line(" ", *change_line(row, change.room - 1))])
        self._draw_sides(*self.sides)

    def _draw_sides(self, a: Shown, b: Shown) -> None:
        for letter, side, pane in (("A", a, self.pane("a")), ("B", b, self.pane("b"))):
            pane.show(side_lines(side, pane.room, gold=self.gold_id, list_name=self.list_name), keep=True)
            pane.frame(side_title(letter, side))
        difference = self.pane("difference")
        difference.show(self._difference(a, b, difference.room))
        title = "No list differs"
        if self.list_name is not None:
            here = self.list_name == self.differs_at
            title = f"{'First difference' if here else 'List'}: {list_label(self.list_name)}"
        difference.frame(title, f"{likeness(a.view, b.view, self.list_name)}   [ ] another list".strip())

    def _difference(self, a: Shown, b: Shown, width: int) -> list[Line]:
        return difference_lines(a, b, self.list_name, width)

    # --- moving -------------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """Another changed query."""
        if self.comparing.move(by):
            self._moved()
        elif not self.comparing.n_changed:
            self.say(
                "no query changed; = lists all of them" if self.comparing.found is not None else "not compared yet"
            )
        else:
            self.say("the last changed query" if by > 0 else "the first changed query: the worst")

    @on(Pane.Moved, "#changes")
    def _list_moved(self, event: Pane.Moved) -> None:
        self.comparing.go(event.index)
        self._moved()

    @on(Pane.Chosen, "#changes")
    def _list_chosen(self) -> None:
        if self.here is not None:
            self.review_app.open_query(self.here)

    def _moved(self) -> None:
        self.say("")
        self._load()
        self.pane("changes").point(self.comparing.index)
        self._draw_query()

    def action_stage(self, by: int) -> None:
        """Both sides at the list before or after."""
        names = list_names(*(side.view for side in self.sides)) if self.sides is not None else []
        if self.sides is None or not names:
            self.say("no list of hits was logged for this query")
            return
        place = names.index(self.list_name) + by if self.list_name in names else (0 if by > 0 else len(names) - 1)
        self.list_name = names[max(0, min(place, len(names) - 1))]
        self._draw_sides(*self.sides)

    def action_gold(self, by: int) -> None:
        """Another gold id, on both sides."""
        views = [side.view for side in self.sides or () if side.view is not None]
        ids = list(dict.fromkeys(i for view in reversed(views) for i in view.gold_ids))
        if self.sides is None or not ids:
            self.say("this query has no gold ids")
            return
        place = ids.index(self.gold_id) if self.gold_id in ids else -by
        self.gold_id = ids[(place + by) % len(ids)]
        self._draw_sides(*self.sides)
        self.say(f"gold {ids.index(self.gold_id) + 1} of {len(ids)}: {self.gold_id}")

    def action_changed(self) -> None:
        """Only what changed, or every query."""
        if self.comparing.found is None:
            self.say("not compared yet")
            return
        only = self.comparing.toggle_changed()
        self._load()
        self.redraw()
        self.say("only the queries that changed" if only else "every query, those that changed first")

    def action_swap(self) -> None:
        """A becomes B, and B becomes A."""
        if self.comparing.found is None:
            self.say("not compared yet")
            return
        self._wanted = self.here
        self.comparing.swapped = not self.comparing.swapped
        if self.comparing.found is None:
            self._start()
        else:
            self._stand()
        self.redraw()
        self.say("swapped: the open audit is A now" if self.comparing.swapped else "swapped: the open audit is B again")

    def action_freeze(self) -> None:
        """Ask, then keep B as a baseline."""
        if self.comparing.found is None:
            self.say("not compared yet")
        else:
            self.app.push_screen(FreezeDialog(self.comparing), self._frozen)

    def _frozen(self, said: str | None) -> None:
        self.say(said or "nothing was written")

    def back(self) -> None:
        """To the review; what is not worked out by then is given up."""
        if self._working:
            self._working = False
            self.workers.cancel_group(self, "compare")
            self.review_app.action_show_screen("review")
            self.review_app.say("stopped comparing; c starts again")
            return
        self.review_app.action_show_screen("review")
