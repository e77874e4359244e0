"""Overview: where the run loses its evidence, how it scores, what to try next, how judging goes."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from ragaudit.report.clean import for_terminal
from ragaudit.report.review_text import agreement_sentence
from ragaudit.tui.keys import OVERVIEW, bindings
from ragaudit.tui.lines import Line, flowed
from ragaudit.tui.overview_view import Choice, experiment_rows, loss_rows, score_lines
from ragaudit.tui.panes import Pane
from ragaudit.tui.screens.base import AppScreen
from ragaudit.tui.session import failing

NOTHING = "nothing is being judged: J judges this query or the queue"
HELP = {
    "losses": "Failing queries by the stage that lost their evidence. `enter` reviews those of the line.",
    "scores": "Means over the queries that define them, with 95 % intervals; what is left out is counted beside each.",
    "judging": "How far judging is. Every query that counts as done is in the audit file. `space` pauses and goes on, "
    "`esc` stops and keeps what is done; reviewing goes on meanwhile.",
    "next": "The next experiments, each of one variable, with what the journal says of it. `enter` marks the queries "
    "that it answers and shows them; `x` shows all about each.",
}


class OverviewScreen(AppScreen):
    """The run as a whole."""

    NAME = "overview"
    KEYS = OVERVIEW
    BINDINGS = bindings(OVERVIEW)

    def body(self) -> ComposeResult:
        """Losses and scores, experiments below."""
        with Container(id="figures"):
            yield Pane(id="losses", title="Failing by stage", help=HELP["losses"], cursor=True)
            yield Pane(id="scores", title="Scores, mean [95% interval]", help=HELP["scores"])
            yield Pane(id="next", title="Next experiments: one variable each", help=HELP["next"], cursor=True)
        yield Pane(id="judging", title="Judging", help=HELP["judging"])

    def on_mount(self) -> None:
        """Start on the losses."""
        self._choices: dict[str, list[Choice]] = {}
        self.query_one("#losses", Pane).focus()

    def redraw(self) -> None:
        """Everything anew."""
        summary = self.session.summary
        self.show_judging()
        losses, scores, following = (self.query_one(f"#{name}", Pane) for name in ("losses", "scores", "next"))
        self._choices["losses"] = loss_rows(summary, losses.room)
        self._choices["next"] = experiment_rows(summary.experiments, following.room, self.review_app.trials.states())
        losses.show([choice.text for choice in self._choices["losses"]], cursor=losses.cursor, keep=True)
        scores.show(score_lines(summary, scores.room, self._agreement(scores.room)), keep=True)
        following.show([choice.text for choice in self._choices["next"]], cursor=following.cursor, keep=True)
        losses.frame(note="enter: review these")
        following.frame(note="enter: the queries it answers")

    def show_judging(self) -> None:
        """The title bar, and the panel once there is something to show in it."""
        session, judging = self.session, self.judging
        total = sum(session.summary.outcomes.values())
        self.draw_top(f"{total:,} queries   {failing(session.summary):,} failing   {session.reviewed:,} reviewed")
        panel = self.query_one("#judging", Pane)
        self.set_class(judging.is_on or judging.moment is not None, "-judging")
        note = "space: pause, go on   esc: stop, keep what is done" if judging.is_on else ""
        panel.frame(f"Judging  {for_terminal(judging.model, 40)}", note)
        panel.show(judging.lines(panel.room), keep=True)

    def action_pause(self) -> None:
        """Pause judging, or go on."""
        if not self.judging.is_on:
            self.say(NOTHING)
        elif self.judging.is_stopping or self.judging.is_summing:
            self.say("judging is about to end")
        else:
            self.say("judging is paused: space goes on" if self.judging.toggle_pause() else "judging goes on")
        self.show_judging()

    def action_stop(self) -> None:
        """Stop judging."""
        if self.judging.is_on:
            self.judging.stop()
            self.say("stopping: calls in flight are waited for, what is done is kept")
        else:
            self.say(NOTHING)
        self.show_judging()

    def _agreement(self, width: int) -> list[Line]:
        """How far the person agrees, once there is something to compare."""
        session = self.session
        if session.reviews is None or not session.reviewed:
            return []
        from ragaudit.metrics.review_agreement import review_agreement  # numpy is not needed before

        run = session.summary.run
        found = review_agreement(session.reviews.every(), seed=run.seed, resamples=run.resamples)
        return flowed(agreement_sentence(found), width, rest="  ")

    @on(Pane.Chosen)
    def _chosen(self, event: Pane.Chosen) -> None:
        if event.pane.id not in self._choices:
            return
        choice = self._choices[event.pane.id][event.index]
        if choice.filter is not None:
            self.session.narrow(choice.filter)
        elif choice.queries:
            self.session.mark(choice.queries)
        else:
            return
        self.review_app.action_show_screen("review")
