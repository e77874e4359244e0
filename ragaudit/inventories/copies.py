"""A copy of an embedded store. Its client writes when it opens one: locks, newer tables, missing index files."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ragaudit.errors import InputError

_SQLITE = b"SQLite format 3\x00"


@contextmanager
def copied(place: Path, *, leave_out: tuple[str, ...] = ()) -> Iterator[Path]:
    """The file or folder at another place, gone afterwards. Databases of SQLite are copied first, as one state each.

    Args:
        place: What to copy.
        leave_out: Names in the folder that are not needed.

    Raises:
        InputError: It cannot be read, or there is no room for the copy.
    """
    inside = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    files = [path for path in inside if not set(leave_out) & set(path.relative_to(place.parent).parts[1:])]
    with TemporaryDirectory(prefix="ragaudit-") as name:
        target = Path(name) / place.name
        try:
            _check_room(place, sum(path.stat().st_size for path in files), Path(name))
            databases = [path for path in files if _is_sqlite(path)]
            for path in (*databases, *(path for path in files if path not in databases)):
                copy = target / path.relative_to(place) if path != place else target
                copy.parent.mkdir(parents=True, exist_ok=True)
                _backup(path, copy) if path in databases else shutil.copyfile(path, copy)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{place}: cannot be copied for reading ({error}). Is it being written to?") from None
        yield target


def _check_room(place: Path, size: int, target: Path) -> None:
    if shutil.disk_usage(target).free < size:
        raise InputError(
            f"{place}: its client writes to what it opens, so a copy is read, and {target.parent} has no room for "
            f"its {size / 1e9:.1f} GB. Set TMPDIR to a larger disk, or serve the store and pass --url."
        )


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE)) == _SQLITE


def _backup(path: Path, copy: Path) -> None:
    with (
        closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
