"""What an importer is: the format it reads, what it may be told, and the rows it gives."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from ragaudit.importers.matching import Texts
from ragaudit.importers.report import ImportReport


class Table(StrEnum):
    """The file of a bundle that a row belongs to."""

    TRACES = "traces"
    CHUNKS = "chunks"
    SOURCES = "sources"
    FEEDBACK = "feedback"
    QRELS = "qrels"
    """Rows `{query_id, id, grade}`: labels that came without a run."""

    @property
    def file(self) -> str:
        """Its name in a bundle."""
        return "qrels.tsv" if self is Table.QRELS else f"{self.value}.jsonl"


Row = tuple[Table, dict[str, Any]]
"""One row of one file, with the field names of DATA.md."""


@dataclass(frozen=True)
class Options:
    """What the user said about the input, because no file says it."""

    k: int | None = None
    """How many chunks the prompt may hold; wins over what the input says."""
    stages: Mapping[str, str] = field(default_factory=dict)
    """Name of a span -> the list it made: `arm`, `arm:NAME`, `fused`, `after_filter`, `after_threshold`,
    `rerank_input`, `after_rerank`, `final`, `answer`, `ignore`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Field of DATA.md -> column of the input (`query_text` -> `question`)."""
    texts: Texts | None = None
    """Chunks of an inventory: where gold or hits are texts, their ids are looked up here."""
    order: str = "score"
    """Which of score and rank orders a run file of TREC: `score`, as trec_eval does, or `rank`."""


@dataclass(frozen=True)
class Sample:
    """What `auto` may look at: a path and the start of it."""

    path: Path
    names: frozenset[str]
    """File names in the folder, or the name of the file."""
    values: tuple[Any, ...]
    """The first records of a JSON, JSONL, CSV or Parquet file; empty for a folder and for other files."""
    head: str
    """The first 64 kB as text; empty for a folder and for binary files."""


Sniff = Callable[[Sample], str | None]
"""Why the sample is of this format, as a sentence part (`spans with openinference.span.kind`), or None."""
Read = Callable[[Path, Options, ImportReport], Iterator[Row]]
"""Reads a file or folder row by row. What cannot be used is told to the report and left out.

Raises:
    InputError: Nothing of it can be used.
"""
ReadAll = Callable[[Sequence[Path], Options, ImportReport], Iterator[Row]]
"""The same for several files that only together make traces, as runs and their qrels."""


def alone(read_all: ReadAll) -> Read:
    """How a format of several files reads one of them."""

    def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
        return read_all((path,), options, report)

    return read


@dataclass(frozen=True)
class Format:
    """One importer. `logs` says for a field that is absent which line of code would log it, in this tool."""

    name: str
    title: str
    reads: str
    """Which files, for people: `spans.jsonl of a Collector's file exporter`."""
    sniff: Sniff
    read: Read
    logs: Mapping[str, str] = field(default_factory=dict)
    maps: bool = False
    """Whether `--map` means something to it."""
    read_all: ReadAll | None = None
    """Only where files belong together; otherwise each INPUT is read on its own, one after the other."""

    def rows(self, paths: Sequence[Path], options: Options, report: ImportReport) -> Iterator[Row]:
        """Every row of the inputs."""
        if self.read_all is not None:
            yield from self.read_all(paths, options, report)
            return
        for path in paths:
            yield from self.read(path, options, report)
