"""The query that a review opens on, on the terminal at once: the app needs some tenths of a second to load.

Written where the app will write it, on the screen that the app will use, so that nothing jumps when it takes over.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from ragaudit.errors import AuditFileError
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import cut
from ragaudit.store.glimpse import Glimpse, glimpse

ENTER, LEAVE, CLEAR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[2J\x1b[H"


@contextmanager
def first_look(path: Path, query_id: str | None, out: TextIO) -> Iterator[None]:
    """Show it while the block loads the app, which leaves the screen at its own end; an error leaves it here."""
    try:
        seen = glimpse(path, query_id) if out.isatty() else None
    except AuditFileError:
        seen = None  # opening it says what is wrong
    if seen is None:
        yield
        return
    columns = shutil.get_terminal_size().columns
    out.write(ENTER + CLEAR + "\r\n".join(cut(text, columns) for text in lines(seen)))
    out.flush()
    with ExitStack() as undo:
        undo.callback(out.flush)
        undo.callback(out.write, LEAVE)
        yield
        undo.pop_all()


def lines(seen: Glimpse) -> list[str]:
    """The three lines that the review screen starts with."""
    where = {"none": "", "undetermined": ", stage not decided"}.get(seen.stage, f" at {seen.stage}")
    stands = seen.outcome.replace("_", " ").upper() + where
    cause = f": {seen.cause.replace('_', ' ')}" if seen.cause else ""
    mark = "!! LEAK  " if seen.is_leak else ""
    return [
        f" {for_terminal(seen.query_id, 24)}",
        f" {for_terminal(seen.text, 400)}",
        f" {mark}{for_terminal(stands + cause)}",
    ]
