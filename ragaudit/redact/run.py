"""Redacts a bundle, a folder of files, or one file, into a new place; all of it or nothing."""

import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError, InputError
from ragaudit.evidence.identity import Identities
from ragaudit.readers.parquet import is_parquet
from ragaudit.readers.problems import Problems
from ragaudit.readers.tables import read_inventory
from ragaudit.redact import lines
from ragaudit.redact.fields import TextMode, Walker
from ragaudit.redact.shadow import Form
from ragaudit.redact.spans import SpanStamp

Step = Callable[[int], None]


@dataclass
class Outcome:
    """What was redacted and what was not looked at."""

    files: list[tuple[str, str]] = field(default_factory=list)
    """(name, name in the output)."""
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """(name, why it was not looked at and not copied)."""
    problems: Problems = field(default_factory=Problems)


def redact_folder(folder: Path, out: Path | None, walker: Walker, step: Step) -> Outcome:
    """Every file of the folder that is known, into a folder that is in place only when all is written.

    Args:
        folder: A bundle; folders in it are not looked at.
        out: A folder that does not exist or is empty; None = only count.
        walker: What to look for and how to replace it.
        step: Called with the number of rows done in a file.

    Raises:
        ConfigError: `out` is taken, or it and `folder` stand in each other.
        InputError: A file cannot be read, or nothing in the folder is known.
    """
    outcome = Outcome()
    chosen = []
    for path in sorted(folder.iterdir()):
        why = _why_not(path, walker)
        if why is None:
            chosen.append(path)
        else:
            outcome.skipped.append((path.name, why))
    if not chosen:
        raise InputError(f"{folder}: holds no file that is known. Name a folder with traces.jsonl, or one file.")
    taken = [_out_name(path) for path in chosen]
    twice = next((name for name in taken if taken.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{folder}: two files would be written as {twice}. Keep one of them.")
    if out is not None:
        _apart(folder, out)
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ConfigError(f"{out}: exists and is not empty. Name a new folder.")
    prepare = _prepare(folder, walker)
    unfinished = None if out is None else out.with_name(f".{out.name}.partial")
    try:
        if unfinished is not None:
            _removed(unfinished)
            unfinished.mkdir(parents=True)
        for path in chosen:
            target = None if unfinished is None else unfinished / _out_name(path)
            _one(path, target, walker, outcome, prepare, step, packed=_out_name(path).endswith(".gz"))
        if out is not None and unfinished is not None:
            os.replace(unfinished, out)
    except OSError as error:
        raise ConfigError(f"{out or folder}: cannot be written ({error.strerror}). Choose another place.") from error
    finally:
        if unfinished is not None:
            _removed(unfinished)
    return outcome


def redact_file(path: Path, out: Path | None, walker: Walker, step: Step, *, replace: bool = False) -> Outcome:
    """One file, in place only when all of it is written.

    Raises:
        ConfigError: `out` is the input, a folder, or exists and `replace` is not given.
        InputError: The file cannot be read, or is of no known kind.
    """
    outcome = Outcome()
    why = _why_not(path, walker)
    if why is not None:
        raise InputError(f"{path}: {why}")
    unfinished = None if out is None else out.with_name(f".{out.name}.partial")
    try:
        if out is not None:
            if out.is_dir() or (out.exists() and not replace) or (out.exists() and out.samefile(path)):
                raise ConfigError(
                    f"{out}: exists, or is a folder or the input. Choose another name, or pass --replace."
                )
            if _kind(out) != _kind(path) and not (is_parquet(path) and _kind(out) == "rows"):
                raise ConfigError(f"{out}: would hold what {path.name} holds. Give it the same ending.")
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        packed = out is not None and out.suffix == ".gz"
        _one(path, unfinished, walker, outcome, lambda row: row, step, packed=packed)
        if out is not None and unfinished is not None:
            os.replace(unfinished, out)
    except OSError as error:
        raise ConfigError(f"{out or path}: cannot be written ({error.strerror}). Choose another place.") from error
    finally:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
    return outcome


_ENDINGS = {
    ".jsonl": "rows",
    ".jsonl.gz": "rows",
    ".parquet": "rows",
    ".pq": "rows",
    ".tsv": "qrels",
    ".tsv.gz": "qrels",
    ".txt": "qrels",
    ".txt.gz": "qrels",
    ".json": "document",
    ".toml": "config",
    ".md": "report",
    ".html": "report",
}


def _kind(path: Path) -> str | None:
    return next((kind for end, kind in _ENDINGS.items() if path.name.lower().endswith(end)), None)


def _out_name(path: Path) -> str:
    return f"{path.stem}.jsonl" if path.suffix in (".parquet", ".pq") else path.name


def _why_not(path: Path, walker: Walker) -> str | None:
    """Why a path is not looked at; None for one that is redacted."""
    kind = _kind(path)
    if path.is_dir():
        return "a folder. Redact it by itself."
    if not path.is_file():
        return "no file that can be read. Check the path."
    if path.suffix == ".audit":
        return "an audit file. Redact the bundle, and audit that."
    if kind is None or (kind == "qrels" and "qrels" not in path.name):
        return "not of a known kind. Remove by hand what is sensitive in it."
    if walker.redactor.redact(path.name) != path.name:
        return "its name holds something sensitive. Rename it."
    if walker.mode is TextMode.DROP and (kind == "report" or (kind == "document" and path.name != "index.json")):
        return "a report, in which texts cannot be told apart. Write it again without --with-text."
    return None


def _one(
    path: Path,
    target: Path | None,
    walker: Walker,
    outcome: Outcome,
    prepare: Callable[[Any], Any],
    step: Step,
    *,
    packed: bool,
) -> None:
    name, problems = path.name, outcome.problems
    outcome.files.append((name, _out_name(path)))
    with lines.written(target, packed=packed) if target is not None else nullcontext(_nowhere) as write:
        match _kind(path):
            case "rows":
                lines.json_lines(path, name, walker, problems, write, prepare, step)
            case "qrels":
                lines.qrels(path, name, walker, problems, write)
            case "document":
                lines.json_document(path, name, walker, problems, write)
            case "config":
                lines.text_file(path, name, walker, problems, write, Form.PLAIN)
            case _:
                form = Form.HTML if path.suffix.lower() == ".html" else Form.MARKDOWN
                lines.text_file(path, name, walker, problems, write, form)


def _nowhere(text: str) -> None:
    """What a dry run writes to."""


def _prepare(folder: Path, walker: Walker) -> Callable[[Any], Any]:
    """With texts dropped, what they would have said about the labels is written into the traces first."""
    if walker.mode is not TextMode.DROP:
        return lambda row: row
    sources, chunks = (_table(folder, name) for name in ("sources", "chunks"))
    index = folder / "index.json"
    names = {path: path.name for path in (sources, chunks, index) if path is not None}
    inventory = read_inventory(sources, chunks, index if index.is_file() else None, names, Problems())
    return SpanStamp(Identities.of(inventory)).stamped


def _table(folder: Path, name: str) -> Path | None:
    return next((p for end in (".jsonl", ".jsonl.gz", ".parquet") if (p := folder / f"{name}{end}").is_file()), None)


def _apart(folder: Path, out: Path) -> None:
    inside, outside = out.resolve(), folder.resolve()
    if inside.is_relative_to(outside) or outside.is_relative_to(inside):
        raise ConfigError(f"{out}: stands in {folder}, or the other way round. Name a folder beside it.")


def _removed(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
