"""Frozen runs on disk: where they are kept, how they are written so that a diff reads well, and how they are read."""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragaudit.compare.freeze import Progress, freeze, silent
from ragaudit.errors import ConfigError, InputError
from ragaudit.model.comparison import BASELINE_SCHEMA, Baseline
from ragaudit.model.json_line import json_line
from ragaudit.store import AuditReader
from ragaudit.store.whole_file import whole_file

FOLDER = Path(".ragaudit") / "baselines"
MAX_BYTES = 1 << 30
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a file may be named for somebody."""


def place_of(name: str, folder: Path = FOLDER) -> Path:
    """Where the baseline of this name is kept.

    Raises:
        ConfigError: The name cannot be a file name.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(f"baseline name {name!r}: is no file name. Use letters, digits, '.', '_' and '-'.")
    return folder / f"{name}.json"


def name_from(run: str) -> str:
    """A baseline name made from the name of a run: what cannot stand in a file name becomes a dash."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", run).strip("-._")[:100] or "run"


def stored(folder: Path = FOLDER) -> list[Path]:
    """The baseline files of a folder, by name."""
    return sorted(folder.glob("*.json")) if folder.is_dir() else []


def load_side(given: str, folder: Path = FOLDER, *, progress: Progress = silent) -> tuple[Baseline, bool]:
    """One side of a comparison, and whether it was frozen: an audit file, a baseline file, or a baseline's name.

    Raises:
        InputError: There is no such file or baseline, or it is damaged.
        AuditFileError: The audit file cannot be read.
    """
    path = side_path(given, folder)
    if is_baseline_file(path):
        return read_baseline(path), True
    with AuditReader.open(path) as reader:
        return freeze(reader, progress=progress), False


def side_path(given: str, folder: Path = FOLDER) -> Path:
    """The file that is meant: an audit file or a baseline file by its path, or a baseline by its name.

    Raises:
        InputError: There is none.
    """
    path = Path(given)
    if not path.is_file() and NAME.fullmatch(given) and place_of(given, folder).is_file():
        path = place_of(given, folder)
    if not path.is_file():
        known = ", ".join(each.stem for each in stored(folder)[:5])
        hint = f"Baselines here: {known}." if known else "Freeze one with `ragaudit baseline freeze RUN.audit`."
        raise InputError(f"{given}: no such audit file and no baseline of that name. {hint}")
    return path


def is_baseline_file(path: Path) -> bool:
    """Whether a file is written as a baseline is, and not as an audit is.

    Raises:
        InputError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] in (b"{", b"[")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file; every value is checked.

    Raises:
        InputError: It cannot be read, is none, is of another version, or holds a query twice.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: too large for a baseline. {_AGAIN}")
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({str(error).splitlines()[0]}). {_AGAIN}") from None
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != BASELINE_SCHEMA:
        said = f"its schema is {schema!r}, this ragaudit reads {BASELINE_SCHEMA!r}" if schema else "not a baseline file"
        raise InputError(f"{path}: {said}. {_AGAIN}")
    try:
        baseline = Baseline.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {place}: {first['msg']}. {_AGAIN}") from None
    ids = [query.query_id for query in baseline.queries]
    if len(set(ids)) != len(ids):
        twice = next(query_id for n, query_id in enumerate(ids) if query_id in ids[:n])
        raise InputError(f"{path}: query {twice!r} stands there twice. {_AGAIN}")
    return baseline


def write_baseline(baseline: Baseline, path: Path, *, replace: bool = False) -> None:
    """Write the file: keys sorted, one query a line that begins with its id and how it came out, so that a diff reads.

    Raises:
        ConfigError: Another baseline is there and `replace` is not given, something else is there, or the folder
            cannot be written.
    """
    if path.exists():
        if not path.is_file() or not _is_baseline(path):
            raise ConfigError(f"{path}: exists and is not a baseline. Choose another name with -o.")
        if not replace:
            raise ConfigError(f"{path}: exists. Pass --replace to freeze over it, or choose another --name.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    with whole_file(path, replace=True) as file:
        file.write(baseline_text(baseline))


def baseline_text(baseline: Baseline) -> str:
    """The file's text."""
    plain = baseline.model_dump(mode="json", by_alias=True)
    blocks = []
    for key in sorted(plain):
        if key == "queries":
            rows = [query.model_dump(mode="json", exclude_defaults=True) for query in baseline.queries]
            lines = ",\n".join("  " + _query_line(row) for row in rows)
            blocks.append(f' "queries": [\n{lines}\n ]' if rows else ' "queries": []')
        elif isinstance(plain[key], dict) and plain[key]:
            lines = ",\n".join(
                f"  {json_line(name)}: {json_line(value, sort_keys=True)}" for name, value in sorted(plain[key].items())
            )
            blocks.append(f" {json_line(key)}: {{\n{lines}\n }}")
        else:
            blocks.append(f" {json_line(key)}: {json_line(plain[key], sort_keys=True)}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _query_line(row: dict[str, Any]) -> str:
    """What a reviewer looks for first, then the other keys sorted."""
    first = [key for key in ("query_id", "outcome", "stage", "leaks") if key in row]
    keys = [*first, *sorted(row.keys() - set(first))]
    return "{" + ", ".join(f"{json_line(key)}: {json_line(row[key], sort_keys=True)}" for key in keys) + "}"


_AGAIN = "Freeze it again with `ragaudit baseline freeze RUN.audit`."


def _is_baseline(path: Path) -> bool:
    try:
        read_baseline(path)
    except InputError as error:
        return "its schema is" in str(error)
    return True
