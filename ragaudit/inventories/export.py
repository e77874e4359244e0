"""Reads a store page by page into the unfinished export; going on where an earlier run stopped."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.inventories.payloads import Fields, chunk_row
from ragaudit.inventories.records import Contents, Reader
from ragaudit.inventories.work import Work

PAGE = 500
REPEATED = "rows that came twice: the store was written to meanwhile"


@dataclass(frozen=True)
class Asked:
    """What is exported, and how. An unfinished export goes on only for the same."""

    store: str
    place: str
    """Without secrets."""
    collection: str | None
    fields: Fields = field(default_factory=Fields)
    only: tuple[tuple[str, str], ...] = ()
    """Keep rows whose metadata field has this value."""
    limit: int | None = None
    with_text: bool = True
    with_vectors: bool = True
    arms: tuple[tuple[str, str], ...] = ()

    def as_state(self) -> dict[str, Any]:
        """As kept in the unfinished export."""
        found = asdict(self)
        return {**found, "only": [list(pair) for pair in self.only], "arms": [list(pair) for pair in self.arms]}


@dataclass(frozen=True)
class Seen:
    """What the store said when the export began and when it ended."""

    first: Contents
    last: Contents
    snapshot_at: str
    resumed: bool
    cut: bool
    """The limit ended it before the store did."""


def prepare(work: Work, asked: Asked) -> None:
    """Make sure that the unfinished export is of what is asked.

    Raises:
        ConfigError: It is the export of something else.
    """
    before = work.get("asked")
    if before is None:
        work.put("asked", asked.as_state())
    elif before != asked.as_state():
        raise ConfigError(
            f"{work.path}: an unfinished export of something else ({before['store']} {before['place']}). "
            "Run that one again to finish it, pass --restart to throw it away, or name another folder."
        )


def export(
    reader: Reader,
    now: Contents,
    work: Work,
    asked: Asked,
    progress: Callable[[int], None],
    say: Callable[[str], None],
) -> Seen:
    """Read all that is left of the store.

    Args:
        reader: The store.
        now: What it just said of itself.
        work: The unfinished export.
        asked: What is exported.
        progress: Called with the rows so far.
        say: Tells people.

    Raises:
        InputError: The store failed; what was read is kept.
    """
    resumed = work.get("after") is not None or bool(work.get("ended"))
    if resumed and not reader.resumes:
        say(f"{asked.store} cannot go on in the middle: starting again.")
        work.clear()
        resumed = False
    if resumed:
        say(f"Going on after {work.count():,} rows.")
    else:
        work.put("snapshot_at", datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))
        work.put("first", {"rows": now.rows, "mark": now.mark})
    if not work.get("ended"):
        _read(reader, work, asked, now.embedding_model, progress)
    last = reader.contents()
    lost = dict.fromkeys([*(work.get("restricted") or ()), *last.restricted])
    work.put("restricted", list(lost))
    last = replace(last, restricted=tuple(lost))
    first = work.get("first")
    return Seen(
        first=Contents(now.collection, first["rows"], mark=first["mark"]),
        last=last,
        snapshot_at=work.get("snapshot_at"),
        resumed=resumed,
        cut=bool(work.get("cut")),
    )


def _read(reader: Reader, work: Work, asked: Asked, model: str | None, progress: Callable[[int], None]) -> None:
    done = work.count()
    fields = replace(asked.fields, embedding_model=asked.fields.embedding_model or model)
    for page in reader.pages(work.get("after"), PAGE if asked.limit is None else min(PAGE, asked.limit)):
        notes: dict[str, tuple[int, str]] = {}

        def note(what: str, key: str, notes: dict[str, tuple[int, str]] = notes) -> None:
            count, first = notes.get(what, (0, key))
            notes[what] = (count + 1, first)

        rows = [(record, chunk_row(record, fields, note, with_text=asked.with_text)) for record in page.records]
        rows = [pair for pair in rows if _wanted(pair[1], asked)]
        if asked.limit is not None and done + len(rows) > asked.limit:
            work.add(rows[: asked.limit - done], notes, {"after": page.after, "cut": True, "ended": True})
            return
        new = work.add(rows, notes, {"after": page.after, "ended": page.after is None})
        if new < len(rows):
            work.add((), {REPEATED: (len(rows) - new, rows[0][0].key)}, {})
        done += new
        progress(done)
    work.put("ended", True)


def _wanted(row: dict[str, Any], asked: Asked) -> bool:
    metadata = row.get("metadata") or {}
    return all(_text(metadata.get(name)) == value for name, value in asked.only)


def _text(value: Any) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
