"""Files of retrieval experiments: what each of them is, told by its shape, and only then by its name."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.inputs import document, first_records, head
from ragaudit.readers.lines import read_lines
from ragaudit.readers.parquet import is_parquet
from ragaudit.readers.problems import Problems


class Kind(StrEnum):
    """What a file holds."""

    RUN = "a run"
    QRELS = "qrels"
    QUERIES = "queries"
    CORPUS = "a collection"
    PREDICTIONS = "predictions of MTEB"
    SCORES = "a run as a table of scores"
    GRADES = "qrels as a table of grades"
    CANDIDATES = "candidates in no order"


@dataclass(frozen=True)
class Part:
    """One file of an experiment. `columns` are those of a text file, 0 for the others."""

    path: Path
    kind: Kind
    columns: int = 0


PAIRS = (("q_id", "doc_id"), ("query-id", "corpus-id"))
"""Columns of query and id in a Parquet table, as ranx and as MTEB call them."""
GRADES = ("score", "rel", "relevance", "label", "grade")
"""What the last column of qrels with a header is called."""
IDS = ("id", "_id", "qid", "pid", "docid", "doc_id", "query_id", "query-id", "corpus-id", "chunk_id")
"""What the first column of queries or of a collection with a header is called."""
SPLIT = "test"
"""The qrels that a BEIR folder is read with, where it holds several."""


def parts_of(path: Path, three: Kind | None) -> list[Part]:
    """What an input is: one part for a file, several for a folder in the layout of BEIR.

    Args:
        path: A file or a folder.
        three: What three columns without a header are, in the format that was named; None = that is not known.

    Raises:
        InputError: It is none of the kinds; the message says which there are.
    """
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".lz4":
        raise InputError(f"{path.name}: is compressed CBOR of ranx. Save the run as JSON, Parquet or TREC: .save().")
    found = _kind(path, three)
    if found is None:
        raise InputError(
            f"{path.name}: is no run (6 columns), qrels (3 or 4), queries, collection, or JSON of"
            " {query: {id: score}}. Check the format."
        )
    return [found]


def looks_like(path: Path, three: Kind | None) -> Part | None:
    """The same for a look at one file: None where nothing fits."""
    try:
        return _kind(path, three)
    except InputError:
        return None


def is_beir(names: frozenset[str]) -> bool:
    """Whether a folder with these names is in the layout of BEIR."""
    return bool({"corpus.jsonl", "corpus.jsonl.gz"} & names) and bool({"queries.jsonl", "queries.jsonl.gz"} & names)


def _folder(path: Path) -> list[Part]:
    if not is_beir(frozenset(each.name for each in path.iterdir())):
        raise InputError(f"{path}: is no BEIR folder: corpus.jsonl and queries.jsonl are not in it. Pass its files.")
    found = []
    for name, kind in (("queries", Kind.QUERIES), ("corpus", Kind.CORPUS)):
        found += [Part(each, kind) for each in (path / f"{name}.jsonl", path / f"{name}.jsonl.gz") if each.is_file()]
    splits = sorted(each for each in (path / "qrels").glob("*.tsv*") if each.is_file())
    chosen = [each for each in splits if each.name.split(".")[0] == SPLIT] or splits[:1]
    return [*found, *(Part(each, Kind.QRELS, 3) for each in chosen)]


def _kind(path: Path, three: Kind | None) -> Part | None:
    name = path.name.lower()
    if is_parquet(path):
        first: dict[str, Any] = next(iter(first_records(path, 1)), {})
        if any(set(pair) | {"score"} <= set(first) for pair in PAIRS):
            return Part(path, Kind.GRADES if _by_name(name, first["score"]) else Kind.SCORES)
        return _texts(path, name, first)
    start = head(path)
    if start.lstrip()[:1] in ("{", "["):
        return _json(path, name, start)
    lines = [line for line in start.split("\n")[:20] if line.strip()]
    return None if not lines else _columns(path, name, lines, three)


def _json(path: Path, name: str, start: str) -> Part | None:
    first = next(iter(first_records(path, 1)), None)
    if not isinstance(first, dict):
        return None
    if (found := _texts(path, name, first)) is not None:
        return found
    if '"mteb_model_meta"' in start:
        return Part(path, Kind.PREDICTIONS)
    inner = list(first.values())[:20]
    if not inner or not all(isinstance(each, dict) and all(map(_is_number, each.values())) for each in inner):
        return None
    score = next((value for each in inner for value in each.values()), None)
    if score is None:
        return None
    return Part(path, Kind.GRADES if _by_name(name, score) else Kind.SCORES)


def _texts(path: Path, name: str, first: Mapping[str, Any]) -> Part | None:
    """Queries or a corpus: records with a text and an `_id`; with an `id` only where the name says which it is."""
    is_named = any(word in name for word in ("quer", "corpus", "collection"))
    if "text" not in first or not ("_id" in first or ("id" in first and is_named)):
        return None
    return Part(path, Kind.QUERIES if "quer" in name and "corpus" not in name else Kind.CORPUS)


def _columns(path: Path, name: str, lines: list[str], three: Kind | None) -> Part | None:
    words, cells = [line.split() for line in lines], [line.rstrip("\r").split("\t") for line in lines]
    if _most(len(each) >= 5 and _is_digit(each[3]) and _is_number(each[4]) for each in words):
        return Part(path, Kind.RUN, 6)
    if _most(len(each) == 4 and _is_number(each[3]) for each in words):
        return Part(path, Kind.QRELS, 4)
    if _most(len(each) == 4 and _is_digit(each[0]) and _is_digit(each[1]) for each in cells):
        return Part(path, Kind.CANDIDATES, 4)
    split = cells if len(cells[0]) == 3 else words
    titled = split[0][-1].lower() in GRADES
    if _most(len(each) == 3 and _is_number(each[-1]) for each in split[titled:]):
        kind = Kind.QRELS if titled or "qrel" in name else three
        if kind is None:
            raise InputError(
                f"{path.name}: three columns may be qrels without a header or a run of MS MARCO."
                " Call qrels qrels.tsv; read a run with: ragaudit import msmarco."
            )
        return Part(path, kind, 3)
    if _most(len(each) == 2 and not re.search(r"\s", each[0]) for each in cells):
        if "quer" in name or "topic" in name:
            return Part(path, Kind.QUERIES, 2)
        if any(word in name for word in ("collection", "corpus", "passage", "doc")):
            return Part(path, Kind.CORPUS, 2)
        raise InputError(f"{path.name}: two columns may be queries or a collection. Call it queries.tsv or corpus.tsv.")
    return None


def _most(fits: Iterable[bool]) -> bool:
    """Whether more than half of the lines fit: damaged ones do not hide what a file is."""
    every = list(fits)
    return 2 * sum(every) > len(every)


def _by_name(name: str, score: Any) -> bool:
    """Whether `{query: {id: number}}` are grades: by the file's name, else because the numbers are whole."""
    if "qrel" in name or re.search(r"(?<![a-z])run(?![a-z])", name):
        return "qrel" in name
    return isinstance(score, int) and not isinstance(score, bool)


def _is_digit(text: str) -> bool:
    return text.lstrip("-+").isdecimal()


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def texts_by_id(part: Part) -> Iterator[tuple[str, str]]:
    """(id, text) of a file of two columns; the text may hold anything but a tab and a line end."""
    for number, line in read_lines(part.path, part.path.name, Problems()):
        key, tab, text = line.decode("utf-8", errors="replace").rstrip("\r\n").partition("\t")
        if tab and not (number == 1 and key.lower() in IDS):
            yield key, text


def nested(part: Part) -> dict[str, Any]:
    """The JSON object of a file.

    Raises:
        InputError: It cannot be read, or is no object.
    """
    value = document(part.path)
    if not isinstance(value, dict):
        raise InputError(f"{part.path.name}: is no JSON object. Check the format.")
    return value
