"""Two audits beside each other, without a screen: which is A, which queries changed, where one stands among them."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

from ragaudit.compare.admission import admitted
from ragaudit.compare.baselines import (
    FOLDER,
    is_baseline_file,
    load_side,
    name_from,
    place_of,
    side_path,
    write_baseline,
)
from ragaudit.compare.changes import Came, Way, came, transitions
from ragaudit.compare.pairing import MIN_QUERIES, compare, paired_queries
from ragaudit.compare.variables import conditions
from ragaudit.errors import InputError
from ragaudit.model.comparison import Baseline, Comparison, FrozenQuery, Transition
from ragaudit.store import AuditReader
from ragaudit.tui.query_view import QueryView
from ragaudit.tui.session import PAGE, PAGES_KEPT, Session

Told = Callable[[str], None]
"""Told what is being done, in words. What it raises ends the work."""


@dataclass(frozen=True)
class Compared:
    """What came of A against B. `found` None = the two may not be compared, and `refusal` holds every reason."""

    base: Baseline
    candidate: Baseline
    changes: tuple[Came, ...]
    """Every query of both, worse first, the same last."""
    found: Comparison | None = None
    refusal: str = ""

    @cached_property
    def counts(self) -> Mapping[Way, int]:
        """How many queries came out how."""
        return Counter(one.way for one in self.changes)

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """From which state to which other one, most frequent first."""
        return transitions(one.change for one in self.changes)


@dataclass(frozen=True)
class Shown:
    """One side of one query. `view` None = only its figures are known, and `why` says why."""

    name: str
    view: QueryView | None
    frozen: FrozenQuery | None = None
    """The figures, where there is no view."""
    why: str = ""


@dataclass
class Comparing:
    """The open audit and the one it is compared with. A is the other one and B the open one, until they are swapped."""

    session: Session
    path: Path
    """Of the other run."""
    other: Session | None
    """None = the other run is a frozen baseline, which has figures and no traces."""
    allow: Collection[str] = ()
    folder: Path = FOLDER
    """Where baselines are kept."""
    min_queries: int = MIN_QUERIES
    swapped: bool = False
    only_changed: bool = True
    index: int = 0
    """The place of the current query among `rows`."""
    _sides: tuple[Baseline, Baseline] | None = None
    """(the other run, the open one), as read."""
    _found: dict[bool, Compared] = field(default_factory=dict)
    """By `swapped`."""
    _texts: OrderedDict[int, dict[str, str]] = field(default_factory=OrderedDict)

    @classmethod
    def open(cls, session: Session, given: str, *, folder: Path = FOLDER, allow: Collection[str] = ()) -> Self:
        """Open the other run: an audit file, a baseline file, or a baseline's name. Nothing is compared yet.

        Raises:
            InputError: There is no such file or baseline.
            AuditFileError: The audit file cannot be read.
        """
        path = side_path(given, folder)
        other = None
        if not is_baseline_file(path):
            other = Session(AuditReader.open(path), None, "the other audit is only read")
        return cls(session, path, other, allow=allow, folder=folder)

    def close(self) -> None:
        """Let go of the other file."""
        if self.other is not None:
            self.other.close()

    # --- the work, which may be done in a thread ----------------------------------------------------------------------

    def work(self, *, swapped: bool, told: Told) -> tuple[tuple[Baseline, Baseline], Compared]:
        """Read both runs, unless that was done, and compare them. Touches no connection that is open elsewhere.

        Raises:
            InputError: The other run is damaged, or gone.
            AuditFileError: One of the audits is damaged, or gone.
        """
        sides = self._sides or (self._read(self.path, "A", told), self._read(self.session.reader.path, "B", told))
        told("pairing the queries")
        base, candidate = reversed(sides) if swapped else sides
        frozen = self.other is None and not swapped
        return sides, compared(
            base, candidate, allow=self.allow, frozen=frozen, min_queries=self.min_queries, told=told
        )

    def take(self, sides: tuple[Baseline, Baseline], found: Compared, *, swapped: bool) -> None:
        """Keep what `work` made, and stand on the first query."""
        self._sides = sides
        self._found[swapped] = found
        self._texts.clear()
        self.index = 0

    def forget(self) -> None:
        """The open audit is another one now: everything has to be read again."""
        self._sides = None
        self._found.clear()

    @property
    def found(self) -> Compared | None:
        """What came of it, as the sides stand now; None = not worked out yet."""
        return self._found.get(self.swapped)

    def _read(self, path: Path, name: str, told: Told) -> Baseline:
        told(f"reading {name}")
        return load_side(str(path), self.folder, progress=lambda n: told(f"reading {name}: {n:,} queries"))[0]

    # --- the list -----------------------------------------------------------------------------------------------------

    @property
    def n_changed(self) -> int:
        """Queries that came out otherwise; they stand before all others."""
        return 0 if self.found is None else len(self.found.changes) - self.found.counts[Way.SAME]

    @property
    def count(self) -> int:
        """Queries in the list."""
        if self.found is None:
            return 0
        return self.n_changed if self.only_changed else len(self.found.changes)

    def row(self, index: int) -> Came | None:
        """One query of the list."""
        return self.found.changes[index] if self.found is not None and 0 <= index < self.count else None

    @property
    def here(self) -> str | None:
        """The id of the query one stands on."""
        row = self.row(self.index)
        return None if row is None else row.change.query_id

    def text(self, index: int) -> str:
        """The text of a query of the list; pages are fetched as they are needed and forgotten again."""
        if self.found is None:
            return ""
        page = index // PAGE
        if page not in self._texts:
            ids = [one.change.query_id for one in self.found.changes[page * PAGE : (page + 1) * PAGE]]
            self._texts[page] = self.session.reader.query_texts(ids)
            if len(self._texts) > PAGES_KEPT:
                self._texts.popitem(last=False)
        self._texts.move_to_end(page)
        return self._texts[page].get(self.found.changes[index].change.query_id, "")

    def go(self, index: int) -> bool:
        """Stand on a row; False when that changes nothing."""
        wanted = max(0, min(index, self.count - 1))
        moved, self.index = wanted != self.index, wanted
        return moved

    def move(self, by: int) -> bool:
        """Go on by some changed queries; False when there is none that way. From an unchanged one, `1` is the worst."""
        if not self.n_changed:
            return False
        if self.index >= self.n_changed:
            return self.go(0 if by > 0 else self.n_changed - 1)
        return self.go(min(self.index + by, self.n_changed - 1))

    def show(self, query_id: str | None) -> bool:
        """Stand on a query, among all of them if it did not change; False when it is not in both runs."""
        if self.found is None or query_id is None:
            return False
        place = next((n for n, one in enumerate(self.found.changes) if one.change.query_id == query_id), None)
        if place is None:
            return False
        self.only_changed = self.only_changed and place < self.n_changed
        self.index = place
        return True

    def toggle_changed(self) -> bool:
        """Only what changed, or every query; True = only what changed. One stays on the query, if it is there."""
        self.only_changed = not self.only_changed
        self.go(self.index)
        return self.only_changed

    # --- the current query --------------------------------------------------------------------------------------------

    def shown(self) -> tuple[Shown, Shown] | None:
        """Both sides of the current query: A, B."""
        row, found = self.row(self.index), self.found
        if row is None or found is None:
            return None
        sessions = (self.session, self.other) if self.swapped else (self.other, self.session)
        query_id = row.change.query_id
        a, b = (
            _shown(side, session, query_id)
            for side, session in zip((found.base, found.candidate), sessions, strict=True)
        )
        return a, b

    # --- keeping B ----------------------------------------------------------------------------------------------------

    def baseline_name(self) -> str:
        """What B would be called as a baseline; empty when nothing is worked out yet."""
        return "" if self.found is None else name_from(self.found.candidate.run)

    def baseline_path(self, name: str) -> Path:
        """Where B would be kept.

        Raises:
            ConfigError: The name cannot be a file name.
        """
        return place_of(name, self.folder)

    def freeze(self, name: str, *, replace: bool = False) -> str:
        """Keep B as a baseline. What was done, in words.

        Raises:
            ConfigError: The name cannot be a file name, the file is there, or cannot be written.
        """
        assert self.found is not None
        path = place_of(name, self.folder)
        write_baseline(self.found.candidate.model_copy(update={"name": name}), path, replace=replace)
        return f"wrote {path}: compare with it by --against {name}"


def compared(
    base: Baseline,
    candidate: Baseline,
    *,
    allow: Collection[str] = (),
    frozen: bool = False,
    min_queries: int = MIN_QUERIES,
    told: Told = lambda text: None,
) -> Compared:
    """Compare, and where that is refused keep the reasons and show each query all the same."""
    try:
        pairs = paired_queries(base, candidate)
    except InputError as error:
        return Compared(base, candidate, (), refusal=str(error))
    try:
        admitted(base, candidate, (), conditions(base, candidate, pairs), allow)
        comparable = True
    except InputError:
        comparable = False
    changes = came(pairs, comparable=comparable)
    try:
        found = compare(
            base,
            candidate,
            allow=allow,
            frozen=frozen,
            min_queries=min_queries,
            progress=lambda n: told(f"comparing: {n} metrics and slices done"),
        )
    except InputError as error:
        return Compared(base, candidate, changes, refusal=str(error))
    return Compared(base, candidate, changes, found)


def _shown(side: Baseline, session: Session | None, query_id: str) -> Shown:
    view = None if session is None else session.view_of(query_id)
    if view is not None:
        return Shown(side.name, view)
    why = "this audit no longer has the query"
    if session is None:
        why = "a frozen baseline holds no lists, answers or texts: to see them, start with --against its audit file"
    return Shown(side.name, None, next((query for query in side.queries if query.query_id == query_id), None), why)
