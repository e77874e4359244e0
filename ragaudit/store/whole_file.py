"""Writes a text file whole or not at all: under another name first, then one rename."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ragaudit.errors import ConfigError


@contextmanager
def whole_file(path: Path, *, replace: bool) -> Iterator[TextIO]:
    """A file to write to, in place only when the block ends well; after an error what was there before is still there.

    Raises:
        ConfigError: A file is there and `replace` is not given, or it cannot be written.
    """
    if not path.name:
        raise ConfigError(f"{path}: names no file. Write the name of a file.")
    refuse(path, replace)
    unfinished = path.with_name(f".{path.name}.partial")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        refuse(path, replace)  # somebody may have been faster
        os.replace(unfinished, path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    finally:
        if unfinished.is_file():
            unfinished.unlink()


def refuse(path: Path, replace: bool) -> None:
    """Say before long work that a file is in the way.

    Raises:
        ConfigError: It is there, and `replace` is not given.
    """
    if not replace and os.path.lexists(path):
        raise ConfigError(f"{path}: exists. Pass --replace to write over it, or choose another name.")
