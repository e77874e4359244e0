"""What was wrong with the input: the first messages in full, all of them counted, each reported once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ragaudit.errors import InputError

KEPT = 100
"""Messages kept in full; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong at one place (`traces.jsonl:412`): what is wrong, and what to do about it."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(slots=True)
class Tally:
    """How far a file was read: rows seen, rows set aside, and whether the end was reached."""

    rows: int = 0
    set_aside: int = 0
    lost: int = 0
    """Of those set aside, the ones that held something nobody could read (a duplicate is no loss)."""
    line: int = 0
    """The last line that was dealt with; a second pass reports nothing up to here."""
    complete: bool = False
    first: str = ""
    """What was wrong with the first row set aside."""


@dataclass(slots=True)
class Problems:
    """A collector that several readers share.

    An audit reads its traces twice. A line that was dealt with before is not reported or counted again, so that
    the second pass changes nothing.
    """

    messages: list[Problem] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    tallies: dict[str, Tally] = field(default_factory=dict)

    def tally(self, file: str) -> Tally:
        """The tally of one file; a new one on first use."""
        found = self.tallies.get(file)
        if found is None:
            found = self.tallies[file] = Tally()
        return found

    def is_new(self, file: str, line: int) -> bool:
        """Whether this line was not dealt with by an earlier pass."""
        return line > self.tally(file).line

    def add(self, kind: str, place: str, message: str, times: int = 1) -> None:
        """Count a problem and keep its message while there is room."""
        self.kinds[kind] += times
        if len(self.messages) < KEPT:
            self.messages.append(Problem(place, _printable(message)))

    def note(self, kind: str, file: str, line: int, message: str, times: int = 1) -> None:
        """Report something odd in a line that is used all the same."""
        if self.is_new(file, line):
            self.add(kind, f"{file}:{line}", message, times)

    def set_aside(self, kind: str, file: str, line: int, message: str) -> None:
        """Report a line that is not used, and close it."""
        if self.is_new(file, line):
            tally = self.tally(file)
            tally.set_aside += 1
            tally.lost += not kind.startswith("duplicate")
            tally.first = tally.first or _printable(f"line {line}: {message}")
            self.add(kind, f"{file}:{line}", message)
            self.done(file, line)

    def done(self, file: str, line: int) -> None:
        """Close a line: it counts as one row, and no later pass reports it again."""
        tally = self.tally(file)
        if line > tally.line:
            tally.line = line
            tally.rows += 1

    def refuse_if_all_lost(self, file: str) -> None:
        """Stop when rows were set aside, to be called when none was usable.

        Raises:
            InputError: Every row was set aside.
        """
        tally = self.tally(file)
        if tally.set_aside:
            rows = "row was" if tally.rows == 1 else "rows were"
            of = f"{tally.set_aside} of {tally.rows} {rows} set aside; first: {tally.first}"
            raise InputError(f"{file}: nothing usable: {of}")

    def counts(self) -> Mapping[str, int]:
        """How often each kind of problem occurred, most frequent first."""
        return dict(self.kinds.most_common())

    def texts(self) -> tuple[str, ...]:
        """The kept messages as text, in the order of reading."""
        return tuple(str(problem) for problem in self.messages)


def _printable(message: str) -> str:
    """Names of arms and fields come from outside: no control characters, and no end of text."""
    return "".join(c if c.isprintable() else "\ufffd" for c in message[:600])
