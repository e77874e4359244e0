"""The only writer of stdout (data) and stderr (narration and progress), and what each exit code means."""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TextIO

from ragaudit.report.clean import for_terminal


class ExitCode(IntEnum):
    """What a script may rely on. Findings alone never fail a command."""

    DONE = 0
    """Done, whatever was found."""
    FIRED = 1
    """A gate or an alarm fired."""
    USAGE = 2
    """An option, an argument or ragaudit.toml is wrong. Nothing was written."""
    INPUT = 3
    """An input or an audit file cannot be read, is inconsistent, or is blocked by preflight."""
    JUDGE = 4
    """The judge failed, its budget is spent, or a reply is not on the tape."""
    BUG = 70
    """ragaudit itself failed (EX_SOFTWARE of sysexits.h)."""
    INTERRUPTED = 130
    """Ctrl+C. An interrupted audit resumes."""


@dataclass
class Streams:
    """Where a command writes. `--quiet` silences narration, never data and never an error."""

    quiet: bool = False

    def data(self, text: str) -> None:
        """Write a result to stdout."""
        sys.stdout.write(text)

    def text(self, text: str) -> None:
        """Write a text for people to stdout, with headings and alarms in bold where a terminal shows it."""
        self.data(emphasised(text) if _styles(sys.stdout) else text)

    def json(self, value: Any) -> None:
        """Write a result to stdout as JSON."""
        self.data(json.dumps(value, indent=2, allow_nan=False) + "\n")

    @property
    def out(self) -> TextIO:
        """Stdout, for results that are written piece by piece."""
        return sys.stdout

    def say(self, text: str) -> None:
        """Tell people on stderr what is happening."""
        if not self.quiet:
            _tell(for_terminal(text, lines=True))

    def complain(self, text: str) -> None:
        """Tell people on stderr what went wrong."""
        _tell(f"ragaudit: {for_terminal(text, lines=True)}")

    def progress(self, noun: str, total: int | None = None) -> "Progress":
        """Progress on stderr: a line that is rewritten on a terminal, a few lines otherwise, nothing when quiet."""
        return Progress(noun, total, sys.stderr, quiet=self.quiet)


class Progress:
    """Shows how many of something are done. Call it with the number so far; use it as a context manager."""

    EVERY_SECONDS = 0.1
    FIRST_LINE_SECONDS = 2.0

    def __init__(
        self,
        noun: str,
        total: int | None,
        stream: TextIO,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start counting time.

        Args:
            noun: What is counted, in the plural.
            total: How many there are, when that is known.
            stream: Where to write.
            quiet: Write nothing.
            clock: Seconds.
        """
        self._noun = noun
        self._total = total
        self._stream = stream
        self._quiet = quiet
        self._clock = clock
        self._first: tuple[int, float] | None = None
        self._live = stream.isatty()
        self._wait = self.EVERY_SECONDS if self._live else self.FIRST_LINE_SECONDS
        self._due = clock() + self._wait

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._live and not self._quiet:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, done: int) -> None:
        """Show that this many are done, if it is time to."""
        now = self._clock()
        self._first = self._first or (done, now)  # what a resumed run starts with is not part of its speed
        if self._quiet or now < self._due or not done:
            return
        new, seconds = done - self._first[0], now - self._first[1]
        speed = f"   {new / seconds:,.0f} a second" if new and seconds else ""
        of = f" of {self._total:,}" if self._total else ""
        line = f"{done:,}{of} {self._noun}{speed}"
        if self._live:
            self._stream.write(f"\r\x1b[K{line}")
        else:
            self._stream.write(line + "\n")
            self._wait *= 2  # a log gets a dozen lines of an hour, not thousands
        self._stream.flush()
        self._due = now + self._wait


def emphasised(text: str) -> str:
    """Headings and alarms in bold. Bold says nothing that the text does not."""
    return re.sub(r"^(-- .*|!! .*)$", "\x1b[1m\\1\x1b[0m", text, flags=re.MULTILINE)


def _tell(text: str) -> None:
    """A stderr that takes nothing more (a log on a full disk) must not hide the result, nor the exit code."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        let_go_of(sys.stderr)


def let_go_of(stream: TextIO) -> None:
    """Write no more to a standard stream: Python would complain once more when it flushes at exit."""
    with suppress(OSError, ValueError):  # a stream of a test has no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _styles(stream: TextIO) -> bool:
    """https://no-color.org: any value but the empty one turns styles off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
