"""The review of one audit, without a screen: the queue, where one stands in it, what is marked, what was said."""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from ragaudit.errors import AuditFileError, ConfigError
from ragaudit.model.diagnosis import Outcome
from ragaudit.model.result import Summary
from ragaudit.model.review import Patch, Place, Review, ReviewVerdict
from ragaudit.store import AuditReader, Reviews, Row
from ragaudit.store.filters import EVERYTHING, FAILING, Filter, Sort, parse_filter
from ragaudit.store.texts import ReadableTexts
from ragaudit.tui.query_view import QueryView

PAGE = 200
PAGES_KEPT = 20


@dataclass
class Session:
    """An open audit with its reviews. Use it as a context manager.

    Every method that changes what a person did writes it to the audit file before it returns.
    """

    reader: AuditReader
    reviews: Reviews | None
    """None = the file may not be written; `read_only` says why."""
    read_only: str = ""
    summary: Summary = field(init=False)
    filter: Filter = EVERYTHING
    sort: Sort = Sort.TRACES
    marks: set[str] = field(default_factory=set)
    index: int = 0
    """The place of the current query in the queue, from 0."""
    count: int = 0
    """Queries in the queue."""
    layout: dict[str, str] = field(default_factory=dict)
    _pages: OrderedDict[int, list[Row]] = field(default_factory=OrderedDict)
    _version: int = 0
    _is_behind: bool = False
    """The queue is as it was before another's write took the current query out of it."""

    def __post_init__(self) -> None:
        self.summary = self.reader.summary()

    @classmethod
    def open(cls, path: Path, *, query_id: str | None = None, filter_text: str | None = None) -> Self:
        """Open an audit where it was left: its filter, its order, its query; else its first failing query.

        Args:
            path: The audit file.
            query_id: Start on this query, whatever the filter.
            filter_text: Start with this filter.

        Raises:
            AuditFileError: It is no audit, or is damaged.
            ConfigError: The filter is not understood, or the query is not there.
        """
        with ExitStack() as opened:
            reader = opened.enter_context(AuditReader.open(path))
            reviews, why = _reviews(path)
            if reviews is not None:
                opened.enter_context(reviews)
            session = cls(reader, reviews, why)
            session._start(query_id, filter_text)
            opened.pop_all()  # nothing failed: it is the session's to close from here on
        return session

    def _start(self, query_id: str | None, filter_text: str | None) -> None:
        place = self.reviews.place() if self.reviews is not None else Place()
        self._version = self.reviews.version() if self.reviews is not None else 0
        self.layout = dict(place.layout)
        if place.sort in list(Sort):
            self.sort = Sort(place.sort)
        wanted = FAILING if place.filter is None else place.filter
        if filter_text is not None or query_id is not None:
            wanted = filter_text or ""
        try:
            self.filter = parse_filter(wanted)
        except ConfigError:
            if filter_text is not None:
                raise
            self.filter = parse_filter(FAILING)
        self._recount()
        if filter_text is None and query_id is None and not self.count and wanted == FAILING:
            self.filter = EVERYTHING  # nothing fails: show what there is
            self._recount()
        start = query_id or place.query_id
        found = None if start is None else self._index_of(start)
        if query_id is not None and found is None:
            raise ConfigError(
                f"{self.reader.path}: no query {query_id!r} there. `ragaudit review` without --query lists them."
            )
        self.index = found or 0

    def close(self) -> None:
        """Remember the place and let go of the file."""
        if self.reviews is not None:
            with suppress(AuditFileError):  # replaced or gone: there is nothing to come back to
                self.reviews.keep_place(self._place())
            self.reviews.close()
            self.reviews = None
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the queue ----------------------------------------------------------------------------------------------------

    def row(self, index: int) -> Row | None:
        """One row of the queue; pages are fetched as they are needed and forgotten again."""
        if not 0 <= index < self.count:
            return None
        page, place = divmod(index, PAGE)
        if page not in self._pages:
            self._pages[page] = self.reader.page(
                self.filter, sort=self.sort, marks=self.marks, offset=page * PAGE, limit=PAGE
            )
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        self._pages.move_to_end(page)
        rows = self._pages[page]
        return rows[place] if place < len(rows) else None

    @property
    def current(self) -> Row | None:
        """The row one stands on; None when the queue is empty."""
        return self.row(self.index)

    @property
    def here(self) -> str | None:
        """The id of the current query."""
        row = self.current
        return None if row is None else row.query_id

    def move(self, by: int) -> bool:
        """Go on by some rows, as far as there are any; False at the end."""
        if self._is_behind:  # the current query has left the queue: the next one moves up to its place
            here = self.here
            self._recount()
            self.go(self._place_left(here) + by - (by > 0))
            return True
        return self.go(self.index + by)

    def go(self, index: int) -> bool:
        """Stand on a row; False when that changes nothing."""
        wanted = max(0, min(index, self.count - 1))
        moved, self.index = wanted != self.index, wanted
        return moved

    def queue_ids(self) -> list[str]:
        """The queries of the queue."""
        return self.reader.ids(self.filter, marks=self.marks)

    def show(self, query_id: str) -> bool:
        """Stand on a query, without the filter if the filter hides it; False when the audit does not have it."""
        if self._is_behind:
            self._recount()
        found = self._index_of(query_id)
        if found is None:
            if self.reader.index_of(query_id) is None:
                return False
            self.filter = EVERYTHING
            self._recount()
            found = self._index_of(query_id)
        self.index = found or 0
        return True

    def narrow(self, text: str) -> None:
        """Filter the queue; one stays on the same query where it still matches.

        Raises:
            ConfigError: The filter is not understood; the queue stays as it was.
        """
        wanted, here = parse_filter(text), self.here
        self.filter = wanted
        self._stay_on(here)

    def next_sort(self) -> Sort:
        """Order the queue by the next thing; one stays on the same query."""
        orders, here = list(Sort), self.here
        self.sort = orders[(orders.index(self.sort) + 1) % len(orders)]
        self._stay_on(here)
        return self.sort

    def toggle_mark(self) -> bool:
        """Mark the current query, or take the mark off; whether it is marked now."""
        row = self.current
        if row is None:
            return False
        self.marks ^= {row.query_id}
        if self.filter.marked is not None:
            self._stay_on(row.query_id)
        return row.query_id in self.marks

    def mark(self, query_ids: Sequence[str]) -> None:
        """Mark exactly these, and show them alone."""
        self.marks = set(query_ids)
        self.narrow("is:marked")
        self.index = 0

    def mark_all(self) -> int:
        """Mark every query of the queue, or take every mark off when all of them are; how many are marked now."""
        ids, here = self.queue_ids(), self.here
        self.marks = set() if self.marks.issuperset(ids) else self.marks | set(ids)
        self._stay_on(here)
        return len(self.marks)

    def view(self) -> QueryView | None:
        """The current query in full."""
        row = self.current
        return None if row is None else self.view_of(row.query_id)

    def view_of(self, query_id: str) -> QueryView | None:
        """One query in full; None when the audit does not have it."""
        result = self.reader.query(query_id)
        if result is None:
            return None
        return QueryView(
            result=result,
            texts=ReadableTexts(self.reader, self.summary.run, result),
            judgement=self.reader.judgement(query_id),
            review=self.review(query_id),
            experiments=[e for e in self.summary.experiments if query_id in e.queries],
        )

    # --- what a person says -------------------------------------------------------------------------------------------

    def review(self, query_id: str) -> Review | None:
        """What was said about a query."""
        return None if self.reviews is None else self.reviews.of(query_id)

    @property
    def reviewed(self) -> int:
        """Queries with a verdict."""
        return 0 if self.reviews is None else self.reviews.count()

    def targets(self) -> tuple[str, ...]:
        """What a verdict is about: the marked queries, else the current one."""
        if self.marks:
            return tuple(sorted(self.marks))
        row = self.current
        return () if row is None else (row.query_id,)

    def judge(self, verdict: ReviewVerdict, note: str | None = None) -> str:
        """Give a verdict on the marked queries, else on the current one, and go on. What was done, in words.

        A note, where one is given, takes the place of the one that was there.

        Raises:
            AuditFileError: It could not be saved; nothing was changed.
        """
        return self._apply(Patch(verdict=verdict, note=note), verdict.value.replace("_", " "), step=1)

    def annotate(self, patch: Patch) -> str:
        """Keep a note, tags, the right stage or the right gold, and stay for a verdict. What was done, in words.

        Raises:
            AuditFileError: It could not be saved; nothing was changed.
        """
        return self._apply(patch, "noted", step=0)

    def undo(self) -> str:
        """Take back the last thing that was said in this terminal, and stand on its query."""
        ids = self._writable().undo()
        if not ids:
            return "nothing to undo: this terminal has said nothing yet"
        self._recount()
        self.show(ids[0])
        return f"undone: {ids[0]}" + (f" and {len(ids) - 1} more" if len(ids) > 1 else "")

    def refresh(self) -> bool:
        """Take in what another terminal, or the judge, wrote; whether there was anything. One's place is kept."""
        if self.reviews is None or (version := self.reviews.version()) == self._version:
            return False
        here = self.here
        self._version = version
        self.summary = self.reader.summary()
        if here is None or self._index_of(here) is not None:
            self._stay_on(here)
        else:
            self._is_behind = True  # its row stays until one moves on: a verdict must not land on another query
        return True

    def _apply(self, patch: Patch, said: str, *, step: int) -> str:
        targets = self.targets()
        row = self.current
        n = self._writable().apply(targets, patch)
        marked, self.marks = bool(self.marks), set()
        self._recount()
        if row is not None:
            place = self._index_of(row.query_id)
            if place is None:  # it no longer matches the filter: the next one has moved up to its place
                self.go(self._place_left(row.query_id))
            else:
                self.go(place if marked else place + step)
        what = targets[0] if n == 1 else f"{n} queries"
        return f"saved: {what} {said}. {self.reviewed} reviewed"

    def _writable(self) -> Reviews:
        if self.reviews is None:
            raise AuditFileError(self.read_only)
        return self.reviews

    def _stay_on(self, query_id: str | None) -> None:
        """Count again, and stand on this query where it still is, else at the top."""
        self._recount()
        self.index = (self._index_of(query_id) if query_id is not None else None) or 0

    def _index_of(self, query_id: str) -> int | None:
        return self.reader.index_of(query_id, self.filter, sort=self.sort, marks=self.marks)

    def _place_left(self, query_id: str | None) -> int:
        """Where in the queue the query that follows this one stands, when this one is not in it."""
        if query_id is None:
            return self.index
        return self.reader.place_of(query_id, self.filter, sort=self.sort, marks=self.marks)

    def _recount(self) -> None:
        self._is_behind = False
        self._pages.clear()
        self.count = self.reader.count(self.filter, marks=self.marks)
        self.index = max(0, min(self.index, self.count - 1))

    def _place(self) -> Place:
        # Marks are not kept, so that a filter on them would find nothing the next time.
        kept = None if self.filter.marked is not None else self.filter.text
        return Place(query_id=self.here, filter=kept, sort=self.sort.value, layout=self.layout)


def failing(summary: Summary) -> int:
    """Failing queries of the run."""
    return summary.outcomes.get(Outcome.FAIL.value, 0)


def _reviews(path: Path) -> tuple[Reviews | None, str]:
    try:
        return Reviews.open(path), ""
    except AuditFileError as error:
        return None, str(error)
