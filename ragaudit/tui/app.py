"""The app: one audit, its screens, the keys that work everywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape
from textual.screen import Screen
from textual.worker import get_current_worker

from ragaudit.config import TuiSettings
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.errors import RagauditError
from ragaudit.report.as_json import query_row
from ragaudit.report.clean import for_terminal
from ragaudit.store.filters import containing
from ragaudit.tui.clipboard import copy
from ragaudit.tui.judging import Judging, Source
from ragaudit.tui.judging_app import JudgingApp
from ragaudit.tui.keys import EVERYWHERE, REVIEW, Key, bindings
from ragaudit.tui.panes import Pane
from ragaudit.tui.preferences import ANSI, checked_keymap, checked_theme
from ragaudit.tui.screens.dialogs import FilterDialog, FindDialog, HelpDialog, about_help
from ragaudit.tui.screens.overview import OverviewScreen
from ragaudit.tui.screens.review import ReviewScreen
from ragaudit.tui.session import Session
from ragaudit.tui.theme import DARK, LIGHT, THEMES

if TYPE_CHECKING:  # the app starts without them
    from ragaudit.tui.comparing import Comparing
    from ragaudit.tui.exporting import ExportRequest
    from ragaudit.tui.trials import Trials

LOOK_SECONDS = 1.0
"""How often the file is asked whether another terminal wrote to it."""

EXPORT = "export"
EXPORT_SAYS_EVERY = 1_000


class QueryCommands(Provider):
    """Every query in the command palette, by its id or its words."""

    SHOWN = 20

    async def discover(self) -> Hits:
        """The first queries, before anything is typed."""
        for hit in self._hits(""):
            yield DiscoveryHit(hit[0], hit[1], help=hit[2])

    async def search(self, query: str) -> Hits:
        """Queries that hold what was typed."""
        for score, (title, call, text) in enumerate(self._hits(query)):
            yield Hit(1.0 - score / 100, title, call, help=text)

    def _hits(self, typed: str) -> Iterable[tuple[Content, Callable[[], None], str]]:
        app = self.app
        assert isinstance(app, ReviewApp)
        for row in app.session.reader.page(containing(typed), limit=self.SHOWN):
            title = Content(f"Query {for_terminal(row.query_id, 30)}")
            # Textual reads a help text as markup
            yield title, partial(app.open_query, row.query_id), escape(for_terminal(row.query_text, 70))


class ReviewApp(JudgingApp):
    """`ragaudit review`."""

    TITLE = "ragaudit"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EVERYWHERE)]
    COMMANDS = JudgingApp.COMMANDS | {QueryCommands}
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        session: Session,
        *,
        comparing: Comparing | None = None,
        make_trials: Callable[[], Trials] | None = None,
        theme: str = DARK.name,
        keymap: Mapping[str, str] | None = None,
        first: str = "review",
        source: Source | None = None,
        no_color: bool = False,
    ) -> None:
        """The session and what it is compared with stay the caller's to close.

        Args:
            session: The open audit.
            comparing: The run that it is compared with, if any.
            make_trials: Gives its proposals and the journal once they are wanted; default: with the journal of the
                working directory.
            theme: Name of a theme, ours or one of Textual's, as `checked_theme` gives it.
            keymap: Id of a key (`review.agree`) -> the keys that take its place, as `checked_keymap` gives it.
            first: The screen to start on.
            source: Where judging gets its bundle and its judge; None = this app cannot judge.
            no_color: Offer no theme that cannot be read without colour.
        """
        super().__init__()
        self.session = session
        self.comparing = comparing
        self._make_trials = make_trials or partial(trials_of, session, None)
        self.judging = Judging(session.reader.path, source)
        self.keymap = dict(keymap or {})
        self._first = first
        for ours in THEMES:
            self.register_theme(ours)
        for unreadable in ANSI if no_color else ():
            self.unregister_theme(unreadable)
        self.theme = theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own hues, for the themes that do not name them: all of Textual's."""
        return dict((DARK if self.current_theme.dark else LIGHT).variables)

    def on_mount(self) -> None:
        """Show the first screen; look at the file now and then."""
        self.set_keymap(self.keymap)
        self.install_screen(OverviewScreen(), "overview")
        self.install_screen(ReviewScreen(), "review")
        self._install(self._first)
        self.push_screen(self._first)
        self.set_interval(LOOK_SECONDS, self._look)
        self.call_after_refresh(self.catch_up)

    def _install(self, name: str) -> None:
        """Make a screen that the app starts without."""
        if self.is_screen_installed(name):
            return
        if name == "experiments":
            from ragaudit.tui.screens.experiments import ExperimentsScreen

            self.install_screen(ExperimentsScreen(), name)
        elif name == "compare" and self.comparing is not None:
            from ragaudit.tui.screens.compare import CompareScreen

            self.install_screen(CompareScreen(self.comparing), name)

    @cached_property
    def trials(self) -> Trials:
        """The proposals of the audit and the journal."""
        return self._make_trials()

    @property
    def _here(self) -> str | None:
        """The query that the screen shows."""
        return self.main_screen.here if self.main_screen is not None else None

    def open_query(self, query_id: str) -> None:
        """Go to a query, whatever the filter."""
        self.session.show(query_id)
        self.action_show_screen("review")

    def action_show_screen(self, name: str) -> None:
        """Another screen."""
        if self.main_screen is not None and name == self.main_screen.NAME:
            return
        if name == "compare" and self.comparing is None:
            self.say("nothing to compare with: start with --against BASE.audit")
            return
        self._install(name)
        self.switch_screen(name)

    def action_find(self) -> None:
        """Narrow the queue while typing."""
        self.action_show_screen("review")
        self.push_screen(FindDialog(self.session, self.redraw), self._narrowed)

    def action_filter(self) -> None:
        """Filter the queue."""
        self.push_screen(FilterDialog(self.session), self._narrowed)

    def _narrowed(self, text: str | None) -> None:
        if text is not None:
            self.session.narrow(text)
            self.action_show_screen("review")
            self.say(f"{self.session.count:,} match")
        self.redraw()

    def action_export(self) -> None:
        """Write queries to a file."""
        if any(worker.group == EXPORT and worker.is_running for worker in self.workers):
            self.say("an export is still being written: wait for it")
            return
        from ragaudit.tui.screens.export import ExportDialog  # not needed to open the app

        self.push_screen(ExportDialog(self.session, self._here), self._export)

    def _export(self, wanted: ExportRequest | None) -> None:
        if wanted is not None:
            self.say(f"writing {wanted.path}")
            self._write(wanted)

    @work(thread=True, group=EXPORT)
    def _write(self, wanted: ExportRequest) -> None:
        """Beside the screen: 100,000 queries take a while."""
        from ragaudit.tui.exporting import Stopped, write

        worker = get_current_worker()

        def progress(n: int) -> None:
            if worker.is_cancelled:
                raise Stopped
            if n % EXPORT_SAYS_EVERY == 0:
                self.call_from_thread(self.say, f"writing {wanted.path}: {n:,} queries so far")

        try:
            said, trouble = write(self.session.reader.path, wanted, progress), False
        except RagauditError as error:
            said, trouble = str(error), True
        except Stopped:
            return
        self.call_from_thread(self.say, said, trouble=trouble)

    def action_copy(self) -> None:
        """The selected text, else the id."""
        selected = self.screen.get_selected_text()
        text = selected or self._here
        if text is None:
            self.say("nothing to copy: the queue is empty")
            return
        what = "the selected text" if selected else text
        self.say(f"copied {what} {copy(text, self.copy_to_clipboard)}")

    def action_copy_json(self) -> None:
        """The query's row of the JSON report, without text."""
        import json

        view = None if self._here is None else self.session.view_of(self._here)
        if view is None:
            self.say("nothing to copy: the queue is empty")
            return
        text = json.dumps(query_row(view.result), indent=2)
        self.say(f"copied {view.query_id} as JSON, without text, {copy(text, self.copy_to_clipboard)}")

    def action_help(self) -> None:
        """Keys of this pane and screen."""
        focused = self.focused if isinstance(self.focused, Pane) else None
        about, text = about_help(focused)
        self.push_screen(HelpDialog(about, text, (*self._screen_keys(), *EVERYWHERE), self.keymap))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key's action by name, beside Textual's own."""
        for key in (*self._screen_keys(), *EVERYWHERE):
            yield SystemCommand(key.does, f"key {key.keys}", partial(self._do, key))
        yield SystemCommand("Change the theme", "light, dark, or one of Textual's", self.action_change_theme)

    def _screen_keys(self) -> tuple[Key, ...]:
        return self.main_screen.KEYS if self.main_screen is not None else REVIEW

    async def _do(self, key: Key) -> None:
        await self.run_action(key.action, self.main_screen or self)

    def _look(self) -> None:
        """Take in what other terminals wrote."""
        if self.screen_stack[-1:] != [self.main_screen]:  # at the end there is no screen left
            return  # a dialog is about the query that it was opened on
        if self.session.refresh():
            self.redraw()
            if not self.judging.is_on:
                self.say("another terminal wrote to this audit: shown as it is now")


def run(
    path: Path,
    *,
    query_id: str | None = None,
    filter_text: str | None = None,
    settings: TuiSettings,
    place: str,
    no_color: bool,
    against: str | None = None,
    allow: Collection[str] = (),
    journal: Path | None = None,
    source: Source | None = None,
) -> int:
    """Open an audit in the app, and return the exit code.

    Args:
        path: The audit file.
        query_id: Start on this query.
        filter_text: Start with this filter.
        settings: Theme and keys.
        place: Where they were said, for a message about them.
        no_color: NO_COLOR is set.
        against: An audit file, a baseline file or a baseline's name to compare with.
        allow: Differences that the comparison accepts.
        journal: The journal of experiments; None = that of the working directory.
        source: Where judging gets its bundle and its judge; None = this app cannot judge.

    Raises:
        AuditFileError: The audit, or the one to compare with, cannot be read.
        InputError: There is nothing of the name to compare with.
        ConfigError: The filter is not understood, the query is not there, or a setting is wrong.
    """
    theme = checked_theme(settings.theme, place, no_color=no_color)
    keymap = checked_keymap(settings.keymap, place)
    with ExitStack() as open_files:
        session = open_files.enter_context(Session.open(path, query_id=query_id, filter_text=filter_text))
        comparing = None
        if against is not None:
            from ragaudit.tui.comparing import Comparing

            comparing = Comparing.open(session, against, allow=allow)
            open_files.callback(comparing.close)
        app = ReviewApp(
            session,
            comparing=comparing,
            make_trials=partial(trials_of, session, journal),
            theme=theme,
            keymap=keymap,
            no_color=no_color,
            source=source,
        )
        return app.run() or 0


def trials_of(session: Session, journal: Path | None) -> Trials:
    """The proposals of an audit and what a journal says of them."""
    from ragaudit.experiments.journal import DEFAULT
    from ragaudit.tui.trials import Trials

    return Trials(session, journal or DEFAULT)
