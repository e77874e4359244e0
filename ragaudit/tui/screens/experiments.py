"""Experiments: the proposals, one of them in full, and the journal of what was planned and what came of it."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from ragaudit.errors import RagauditError
from ragaudit.model.counting import counted
from ragaudit.model.experiment import Experiment
from ragaudit.report.clean import for_terminal
from ragaudit.tui.experiments_view import detail_lines, journal_lines
from ragaudit.tui.keys import EXPERIMENTS, bindings
from ragaudit.tui.lines import flowed
from ragaudit.tui.overview_view import REFUTED, experiment_rows
from ragaudit.tui.panes import Pane
from ragaudit.tui.screens.base import PanedScreen
from ragaudit.tui.screens.choosing import ChooseDialog

PANES = ("ranked", "details", "journal")
TITLES = {
    "ranked": (
        "Experiments, best first",
        "One variable each. A number is given only where the recorded lists could be replayed under the change. "
        "`enter` marks the queries that it answers and shows them on the review screen; `t` writes it into the "
        "journal. What the journal refuted stays in the list and is marked.",
    ),
    "details": (
        "Details",
        "The change, what it would do, why it stands behind the first, what must stay frozen, what may get worse, how "
        "it is done, and whether it was tried.",
    ),
    "journal": (
        "Journal",
        "What was planned, what was expected, what came out. `ragaudit experiment start` and `finish` go on from "
        "here; a plan is taken back by deleting its line in the file.",
    ),
}


class ExperimentsScreen(PanedScreen):
    """What to change next, one variable at a time."""

    NAME = "experiments"
    KEYS = EXPERIMENTS
    PANES = PANES
    BINDINGS = bindings(EXPERIMENTS)

    def body(self) -> ComposeResult:
        """The list above, details and journal below."""
        with Container(id="experiments"):
            for name in PANES:
                yield Pane(id=name, title=TITLES[name][0], help=TITLES[name][1], cursor=name == "ranked")

    def on_mount(self) -> None:
        """Start on the list."""
        self.show_pane(PANES[0])

    def on_screen_resume(self) -> None:
        """The journal may have been written to meanwhile."""
        self.review_app.trials.read()
        super().on_screen_resume()

    @property
    def current(self) -> Experiment | None:
        """The one under the cursor."""
        experiments, place = self.review_app.trials.experiments, self.pane("ranked").cursor
        return experiments[place] if place < len(experiments) else None

    def redraw(self) -> None:
        """Everything anew."""
        trials, ranked, journal = self.review_app.trials, self.pane("ranked"), self.pane("journal")
        states = trials.states()
        refuted = sum(state.startswith(REFUTED) for state in states)
        tried = f"   {refuted} refuted" if refuted else ""
        names = " ".join(f"[{p.capitalize()}]" if p == self.pane_shown else p.capitalize() for p in PANES)
        self.draw_top(f"{counted(len(states), 'experiment')}{tried}", narrow=names)
        rows = experiment_rows(trials.experiments, ranked.room, states)
        ranked.show([row.text for row in rows], cursor=ranked.cursor, keep=True)
        ranked.frame(note="enter: the queries it answers   t: plan it")
        journal.show(journal_lines(trials.journal, trials.trouble, journal.room), keep=True)
        journal.frame(f"Journal {for_terminal(str(trials.path), 40)}")
        self._draw_details()

    def _draw_details(self) -> None:
        details, experiment = self.pane("details"), self.current
        if experiment is None:
            details.show(flowed("Nothing to show: the audit proposes no experiment.", details.room))
        else:
            details.show(detail_lines(experiment, self.review_app.trials.about(experiment), details.room))

    @on(Pane.Moved, "#ranked")
    def _ranked_moved(self) -> None:
        self.say("")
        self._draw_details()

    @on(Pane.Chosen, "#ranked")
    def _ranked_chosen(self) -> None:
        experiment = self.current
        if experiment is None or not experiment.queries:
            self.say("there are no queries to show")
            return
        self.session.mark(experiment.queries)
        self.review_app.action_show_screen("review")
        self.review_app.say(f"{counted(self.session.count, 'query', 'queries')} marked; esc shows all queries again")

    def back(self) -> None:
        """To the overview."""
        self.review_app.action_show_screen("overview")

    def action_plan(self) -> None:
        """Write it into the journal; where it fits several keys, ask which."""
        experiment = self.current
        if experiment is None:
            self.say("there is no experiment to plan")
            return
        keys = self.review_app.trials.keys(experiment)
        if keys:
            title = f"{experiment.lever} fits {len(keys)} keys: which one?"
            self.app.push_screen(ChooseDialog(title, keys), lambda key: self._chosen(experiment, key))
        else:
            self._plan(experiment, None)

    def _chosen(self, experiment: Experiment, key: str | None) -> None:
        if key is None:
            self.say("nothing was planned")
        else:
            self._plan(experiment, key)

    def _plan(self, experiment: Experiment, key: str | None) -> None:
        try:
            said = self.review_app.trials.plan(experiment, key)
        except RagauditError as error:
            self.say(str(error), trouble=True)
        else:
            self.say(said)
        self.redraw()
