"""Review: the queue, and of one query the funnel, the hits, a chunk, the answer, the diagnosis."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from ragaudit.diagnosis.registry import CAUSES
from ragaudit.errors import RagauditError
from ragaudit.model.review import ReviewVerdict
from ragaudit.report.clean import for_terminal
from ragaudit.report.review_text import review_word
from ragaudit.store.filters import EVERYTHING, Sort
from ragaudit.tui.answer_view import answer_lines
from ragaudit.tui.chunk_view import chunk_lines
from ragaudit.tui.diagnosis_view import diagnosis_lines, standing_line
from ragaudit.tui.funnel_view import funnel_lines, list_label
from ragaudit.tui.hits_view import HitRow, first_of_interest, hit_rows
from ragaudit.tui.keys import REVIEW, bindings
from ragaudit.tui.lines import Role, line
from ragaudit.tui.panes import Pane
from ragaudit.tui.query_view import QueryView
from ragaudit.tui.queue_view import LEGEND, queue_row
from ragaudit.tui.screens.base import PanedScreen, bar
from ragaudit.tui.screens.dialogs import NoteDialog, ReadDialog

PANES = ("queue", "funnel", "hits", "chunk", "answer", "diagnosis")
TITLES = {
    "queue": (
        "Queue",
        "One line a query: its state, id and text. `n` and `p` step through it from any pane; `f` filters, `s` sorts, "
        "`m` marks.\n\n" + LEGEND,
    ),
    "funnel": (
        "Funnel",
        "Each gold id at each stage: `#3` rank 3, `-` absent, `?` not logged, `v` fell, `v!` fell far, `CUT !` lost "
        "here. `>` points at the list that the hits pane shows; `[` and `]` move it, `(` and `)` choose the gold id.",
    ),
    "hits": (
        "Hits",
        "The list at the chosen stage: rank, rank in the list before, score, id, `G` = gold, `!!` = not readable for "
        "the query's user. Below the rule: gold that this list does not hold. `enter` opens the chunk.",
    ),
    "chunk": (
        "Chunk",
        "The chosen chunk, the gold span between >> and <<, and for lost gold what took its place. "
        "`w` wraps, `enter` opens it full size.",
    ),
    "answer": ("Answer", "The answer, the reference, and the judge's verdict on each claim, where a judge was asked."),
    "diagnosis": (
        "Diagnosis",
        "What was concluded, the proof, what to log where it is undecided, the change to try, and your own verdict.",
    ),
}


class ReviewScreen(PanedScreen):
    """One query at a time."""

    NAME = "review"
    KEYS = REVIEW
    PANES = PANES
    BINDINGS = bindings(REVIEW)

    def __init__(self) -> None:
        """Nothing is read before the screen is shown."""
        super().__init__()
        self.view: QueryView | None = None
        self.gold_id: str | None = None
        self.list_name: str | None = None
        self.chunk_id: str | None = None
        self.wrapped = True
        self._rows: list[HitRow] = []

    def body(self) -> ComposeResult:
        """All panes; the size decides which are seen."""
        yield bar("query")
        yield bar("standing")
        with Container(id="body"):
            for name in ("queue", "funnel", "chunk", "hits", "answer"):
                title, help_text = TITLES[name]
                yield Pane(id=name, title=title, help=help_text, cursor=name in ("queue", "hits"))
        yield Pane(id="diagnosis", title=TITLES["diagnosis"][0], help=TITLES["diagnosis"][1])

    def on_mount(self) -> None:
        """Start on the pane that was left, else on the one that says most."""
        self.pane_shown = self.session.layout.get("pane", "")
        if self.pane_shown not in PANES:
            self.pane_shown = "funnel" if self.app.size.width < 110 else "queue"
        self._load()
        self.call_after_refresh(self.show_pane, self.pane_shown)

    def show_pane(self, name: str) -> None:
        """Give a pane the floor, also the next time."""
        self.session.layout["pane"] = name
        super().show_pane(name)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        """The queue and everything about the current query."""
        self._load()
        self._top()
        self._draw_queue()
        self._draw_panes()

    def show_judging(self) -> None:
        """In the title bar."""
        self._top()

    def _load(self) -> None:
        before = self.view.query_id if self.view is not None else None
        self.view = self.session.view()
        if self.view is None or self.view.query_id != before:
            self.gold_id = self.view.primary_gold() if self.view is not None else None
            self._follow_gold()

    def _follow_gold(self) -> None:
        """Look at the chosen gold id where it was lost."""
        view = self.view
        self.list_name = view.lost_in(self.gold_id) if view is not None else None
        self.chunk_id = self.gold_id
        if view is not None and self.chunk_id is None:
            self.chunk_id = next(iter(view.diagnosis.final_context_ids or ()), None)

    def _top(self) -> None:
        session = self.session
        place = f"{session.index + 1:,} of {session.count:,}" if session.count else "0 of 0"
        here, yours = "-", ""
        if self.view is not None:
            here, yours = for_terminal(self.view.query_id, 24), review_word(self.view.review)
        said = [f"{here} [{place}]{yours and ' ' + yours}"]
        said.append(f"{session.reviewed:,} reviewed")
        if session.marks:
            said.append(f"{len(session.marks):,} marked")
        said.append(for_terminal(session.filter.text, 60) or "all queries")
        panes = " ".join(f"[{TITLES[p][0]}]" if p == self.pane_shown else TITLES[p][0] for p in PANES[:-1])
        self.draw_top("   ".join(said), narrow=panes)
        query, stands = self.query_one("#query", Pane), self.query_one("#standing", Pane)
        if self.view is None:
            query.show([line(("The filter matches no query. esc clears it, f changes it.", Role.UNSCORED))])
            stands.show([])
            return
        query.show([line(f" {for_terminal(self.view.result.query_text, 400)}")])
        stands.show([line(" ", *standing_line(self.view, stands.room - 1))])

    def _draw_queue(self) -> None:
        session = self.session
        queue = self.pane("queue")
        queue.show_rows(
            session.count, lambda n, width: queue_row(session.row(n), width, session.marks), cursor=session.index
        )
        order = "" if session.sort is Sort.TRACES else f"by {session.sort.value}   "
        queue.frame(note=f"{order}{session.count:,}")

    def _draw_panes(self) -> None:
        view = self.view
        for name in PANES[1:]:
            if view is None:
                self.pane(name).show([])
        if view is None:
            return
        funnel, hits, answer = self.pane("funnel"), self.pane("hits"), self.pane("answer")
        funnel.show(funnel_lines(view, funnel.room, gold=self.gold_id, list_name=self.list_name), keep=True)
        self._rows = hit_rows(view, self.list_name, hits.room)
        hits.show([row.text for row in self._rows], cursor=first_of_interest(self._rows, self.chunk_id), keep=True)
        hits.frame("Hits" if self.list_name is None else f"Hits: {list_label(self.list_name)}")
        self._draw_chunk()
        answer.show(answer_lines(view, answer.room), keep=True)
        diagnosis = self.pane("diagnosis")
        diagnosis.show(diagnosis_lines(view, CAUSES, diagnosis.room), keep=True)

    def _draw_chunk(self) -> None:
        chunk = self.pane("chunk")
        if self.view is None:
            return
        chunk.show(chunk_lines(self.view, self.chunk_id, chunk.room, wrapped=self.wrapped))
        chunk.frame("Chunk" if self.chunk_id is None else f"Chunk {for_terminal(self.chunk_id, 24)}")

    # --- moving -------------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """Another query."""
        if self.session.move(by):
            self.say("")
            self.redraw()
        else:
            self.say("the last query of the queue" if by > 0 else "the first query of the queue")

    def back(self) -> None:
        """Without the filter."""
        if self.session.filter is not EVERYTHING:
            self.session.narrow("")
            self.redraw()
            self.say("all queries are shown; f filters them again")

    def action_stage(self, by: int) -> None:
        """The hits of the list before or after."""
        if self.view is None or not (names := list(self.view.lists)):
            self.say("no list of hits was logged for this query")
            return
        place = names.index(self.list_name) if self.list_name in names else 0
        self.list_name = names[max(0, min(place + by, len(names) - 1))]
        self._draw_panes()

    def action_gold(self, by: int) -> None:
        """Another gold id."""
        ids = self.view.gold_ids if self.view is not None else ()
        if not ids:
            self.say("this query has no gold ids")
            return
        place = ids.index(self.gold_id) if self.gold_id in ids else 0
        self.gold_id = ids[(place + by) % len(ids)]
        self._follow_gold()
        self._draw_panes()
        self.say(f"gold {ids.index(self.gold_id) + 1} of {len(ids)}: {self.gold_id}")

    def action_sort(self) -> None:
        """The next order."""
        self.say(f"sorted by {self.session.next_sort().value}")
        self.redraw()

    def action_wrap(self) -> None:
        """Long lines, or wrapped ones."""
        self.wrapped = not self.wrapped
        self._draw_chunk()
        self.say("lines are wrapped" if self.wrapped else "lines are not wrapped: left and right scroll")

    def action_mark(self) -> None:
        """Mark, and go on."""
        if self.session.current is None:
            return
        marked = self.session.toggle_mark()
        self.say(f"{'marked' if marked else 'not marked any more'}: {len(self.session.marks)} in all")
        self.session.move(1)
        self.redraw()

    def action_mark_all(self) -> None:
        """Mark the queue."""
        n = self.session.mark_all()
        self.say(f"{n:,} marked: 1 to 4 and a are about all of them" if n else "no marks")
        self.redraw()

    @on(Pane.Moved, "#queue")
    def _queue_moved(self, event: Pane.Moved) -> None:
        self.session.go(event.index)
        self._load()
        self._top()
        self._draw_panes()

    @on(Pane.Chosen, "#queue")
    def _queue_chosen(self) -> None:
        self.show_pane("funnel")

    @on(Pane.Moved, "#hits")
    def _hit_moved(self, event: Pane.Moved) -> None:
        chunk_id = self._rows[event.index].chunk_id
        if chunk_id is not None:
            self.chunk_id = chunk_id
            self._draw_chunk()

    @on(Pane.Chosen, "#hits")
    @on(Pane.Chosen, "#chunk")
    def _chunk_chosen(self) -> None:
        if self.view is not None and self.chunk_id is not None:
            view, chunk_id = self.view, self.chunk_id
            self.app.push_screen(ReadDialog(chunk_id, lambda width: chunk_lines(view, chunk_id, width)))

    # --- reviewing ----------------------------------------------------------------------------------------------------

    def action_verdict(self, verdict: str) -> None:
        """Say it, see it saved, go on."""
        if not self.session.targets():
            self.say("the queue is empty: there is nothing to give a verdict on")
            return
        before, several = self.session.here, bool(self.session.marks)
        try:
            said = self.session.judge(ReviewVerdict(verdict))
        except RagauditError as error:
            self.say(str(error), trouble=True)
            return
        self.redraw()
        ended = not several and self.session.here == before
        self.say(f"{said}. The last query of the queue: e exports, o shows the stages" if ended else said)

    def action_undo(self) -> None:
        """Take the last one back."""
        try:
            said = self.session.undo()
        except RagauditError as error:
            self.say(str(error), trouble=True)
            return
        self.redraw()
        self.say(said)

    def action_annotate(self) -> None:
        """Note, tags, stage, gold."""
        if self.session.reviews is None:
            self.say(self.session.read_only, trouble=True)
            return
        if not self.session.targets():
            self.say("the queue is empty: there is nothing to note")
            return
        self.app.push_screen(NoteDialog(self.session, self.view), self._annotated)

    def _annotated(self, said: str | None) -> None:
        if said:
            self.redraw()
            self.say(said)
