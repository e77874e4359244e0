"""A copy of a Chroma folder. Its client writes when it opens one: a lock row, vector files, newer tables."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ragaudit.errors import InputError

_DATABASE = "chroma.sqlite3"


@contextmanager
def copied(folder: Path, *, with_vectors: bool) -> Iterator[Path]:
    """A temporary folder with what the client needs; gone afterwards.

    The database is copied first, as one state of it: vector files that are newer do no harm, older ones would.

    Raises:
        InputError: There is no store in the folder, it cannot be read, or there is no room for the copy.
    """
    database = folder / _DATABASE
    if not database.is_file():
        raise InputError(f"{folder}: no {_DATABASE} in it. Name the folder that PersistentClient was given.")
    with TemporaryDirectory(prefix="ragaudit-chroma-") as name:
        target = Path(name)
        parts = [path for path in folder.iterdir() if path.is_dir()] if with_vectors else []
        size = database.stat().st_size + sum(p.stat().st_size for part in parts for p in part.rglob("*") if p.is_file())
        if shutil.disk_usage(target).free < size:
            raise InputError(
                f"{folder}: its client writes to what it opens, so a copy is read, and {target.parent} has no room for "
                f"its {size / 1e9:.1f} GB. Set TMPDIR to a larger disk, or serve it (chroma run) and pass --url."
            )
        try:
            uri = f"{database.resolve().as_uri()}?mode=ro"
            with (
                closing(sqlite3.connect(uri, uri=True)) as source,
                closing(sqlite3.connect(target / _DATABASE)) as copy,
            ):
                source.backup(copy)
            for part in parts:
                shutil.copytree(part, target / part.name)
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"{folder}: cannot be copied for reading ({error}). Check that it is readable.") from None
        yield target
