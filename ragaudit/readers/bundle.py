"""A bundle: the folder or the files of one run, found, opened and read."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path

from ragaudit.config import Settings
from ragaudit.errors import InputError
from ragaudit.model.feedback import Feedback
from ragaudit.model.inventory import Inventory
from ragaudit.model.result import InputFile
from ragaudit.model.trace import Trace
from ragaudit.readers.feedback import read_feedback
from ragaudit.readers.lines import sha256_of
from ragaudit.readers.objects import read_objects
from ragaudit.readers.parquet import is_parquet, parquet_rows
from ragaudit.readers.problems import Problems
from ragaudit.readers.qrels import read_qrels
from ragaudit.readers.tables import read_inventory
from ragaudit.readers.traces import TraceContext, traces_from_lines, traces_from_rows

_ROWS = (".jsonl", ".jsonl.gz", ".parquet")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "traces": tuple(f"traces{end}" for end in _ROWS),
    "sources": tuple(f"sources{end}" for end in _ROWS),
    "chunks": tuple(f"chunks{end}" for end in _ROWS),
    "index": ("index.json",),
    "config": ("ragaudit.toml",),
    "qrels": ("qrels.tsv", "qrels.tsv.gz", "qrels.txt", "qrels.txt.gz"),
    "feedback": tuple(f"feedback{end}" for end in _ROWS),
}


@dataclass(frozen=True)
class BundlePaths:
    """Where the files of a bundle are. None = not given."""

    traces: Path
    sources: Path | None = None
    chunks: Path | None = None
    index: Path | None = None
    config: Path | None = None
    qrels: Path | None = None
    feedback: Path | None = None

    def names(self) -> Mapping[Path, str]:
        """What each file is called in messages: its name, or its whole path when two have the same name."""
        paths = [path for one in fields(self) if (path := getattr(self, one.name)) is not None]
        plain = [path.name for path in paths]
        return {path: _readable(path.name if plain.count(path.name) == 1 else str(path)) for path in paths}


@dataclass(frozen=True)
class Bundle:
    """A run that is open: everything but the traces is read, and the traces can be read any number of times."""

    name: str
    paths: BundlePaths
    settings: Settings
    inventory: Inventory
    qrels: Mapping[str, Mapping[str, float]] | None
    problems: Problems
    digests: Mapping[str, str]
    """File name -> digest of its bytes."""
    feedback: tuple[Feedback, ...] = ()
    matched: set[str] = field(default_factory=set)
    """Query ids of the qrels that a trace was found for, as far as the traces have been read."""

    def inputs(self) -> dict[str, InputFile]:
        """Each file with its digest and how many rows were read and set aside so far."""
        return {
            name: InputFile(
                sha256=digest,
                rows=self.problems.tally(name).rows,
                set_aside=self.problems.tally(name).set_aside,
            )
            for name, digest in self.digests.items()
        }


def locate(
    folder: Path | None,
    *,
    traces: Path | None = None,
    sources: Path | None = None,
    chunks: Path | None = None,
    index: Path | None = None,
    config: Path | None = None,
    qrels: Path | None = None,
    feedback: Path | None = None,
) -> BundlePaths:
    """Find the files of a bundle: by their names in the folder, unless a file is given itself.

    Raises:
        InputError: There are no traces, a given file does not exist, or a folder holds the same table twice.
    """
    given = {
        "traces": traces,
        "sources": sources,
        "chunks": chunks,
        "index": index,
        "config": config,
        "qrels": qrels,
        "feedback": feedback,
    }
    for part, path in given.items():
        if path is not None and not path.is_file():
            raise InputError(f"{path}: {why_no_file(path, part)}")
    if folder is not None and not folder.is_dir():
        hint = f"Pass a file as --traces {folder}." if folder.is_file() else "Check the path."
        raise InputError(f"{folder}: no such folder. {hint}")
    found = {part: path or (_in_folder(folder, part) if folder else None) for part, path in given.items()}
    chosen = found.pop("traces")
    if chosen is None:
        raise InputError(f"{folder or 'bundle'}: no traces.jsonl{_listing(folder)}. Name the file with --traces.")
    return BundlePaths(chosen, **found)


def open_bundle(paths: BundlePaths, settings: Settings) -> Bundle:
    """Read everything but the traces.

    Raises:
        InputError: A file cannot be opened, or is not what its name says.
    """
    problems = Problems()
    names = paths.names()
    qrels = None if paths.qrels is None else read_qrels(paths.qrels, names[paths.qrels], problems)
    inventory = read_inventory(paths.sources, paths.chunks, paths.index, names, problems)
    feedback = () if paths.feedback is None else read_feedback(paths.feedback, names[paths.feedback], problems)
    return Bundle(
        name=settings.name or _readable(paths.traces.resolve().parent.name),
        paths=paths,
        settings=settings,
        inventory=inventory,
        qrels=qrels,
        problems=problems,
        digests={name: sha256_of(path) for path, name in names.items()},
        feedback=tuple(feedback),
    )


def read_traces(bundle: Bundle, *, limit: int | None = None) -> Iterator[Trace]:
    """Stream the usable traces in file order. Reading them again reports and counts nothing a second time."""
    path = bundle.paths.traces
    name = bundle.paths.names()[path]
    context = TraceContext(name, bundle.problems, bundle.qrels, bundle.settings.pipeline.k_final, bundle.matched)
    if is_parquet(path):
        traces = traces_from_rows(parquet_rows(path, name), context)
    else:
        traces = traces_from_lines(read_objects(path, name, bundle.problems), context)
    if limit is None:
        yield from traces
        bundle.problems.tally(name).complete = True
    else:
        yield from islice(traces, limit)


def check_consistency(bundle: Bundle) -> None:
    """Judge what the traces were, after they have been read.

    Qrels that lack some queries of the run are a problem to report; only a whole pass can tell.

    Raises:
        InputError: No trace was usable, or the qrels are about none of the queries.
    """
    name = bundle.paths.names()[bundle.paths.traces]
    tally = bundle.problems.tally(name)
    if not tally.rows:
        raise InputError(f"{name}: no traces in it. Log one JSON object for each query.")
    if tally.rows == tally.set_aside:
        bundle.problems.refuse_if_all_lost(name)
    if not bundle.qrels or bundle.paths.qrels is None or not tally.complete:
        return
    missing = [query for query in bundle.qrels if query not in bundle.matched]
    if not missing:
        return
    place = bundle.paths.names()[bundle.paths.qrels]
    ids = "id is" if len(bundle.qrels) == 1 else "ids are"
    of = f"{len(missing)} of {len(bundle.qrels)} query {ids} not in the run (first: {missing[0]!r})"
    if not bundle.matched:
        raise InputError(f"{place}: {of}. Is this the gold of another run?")
    if "qrels_without_trace" not in bundle.problems.kinds:
        bundle.problems.add("qrels_without_trace", place, f"{of}. Is this the gold of another run?", len(missing))


def why_no_file(path: Path, part: str) -> str:
    """What is wrong with a path that is no file, and what to pass as `--part` instead."""
    if not path.exists():
        return f"no such file. Check what was passed as --{part}."
    if path.is_dir():
        return f"a folder, not a file. Pass the file as --{part}."
    return "a device or a pipe, and an audit reads its files more than once. Save it to a file, and pass that."


def _readable(name: str) -> str:
    """A name of the file system as text: bytes that are not UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")


def _in_folder(folder: Path, part: str) -> Path | None:
    found = [folder / name for name in _NAMES[part] if (folder / name).is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise InputError(f"{folder}: holds {names}. Say which to read: --{part} {found[0]}.")
    return found[0] if found else None


def _listing(folder: Path | None) -> str:
    if folder is None:
        return " was given"
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        return " in it; the folder is empty"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f" in it; found {', '.join(names[:8])}{more}"
