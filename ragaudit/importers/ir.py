"""Runs, qrels, queries and a collection -> traces, labels and chunks: TREC, BEIR, MTEB, MS MARCO and ranx together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError, InputError
from ragaudit.importers.cells import id_text
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Options, Read, ReadAll, Row, Table, alone
from ragaudit.importers.inputs import objects
from ragaudit.importers.ir_files import Kind, Part, nested, parts_of, texts_by_id
from ragaudit.importers.ir_runs import Run, ordered, rows_of, runs_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.stage import LISTS
from ragaudit.readers.problems import Problems
from ragaudit.readers.qrels import read_qrels

BY_NAME = {
    "rrf": "fused",
    "fused": "fused",
    "fusion": "fused",
    "hybrid": "fused",
    "rerank": "after_rerank",
    "reranked": "after_rerank",
    "reranker": "after_rerank",
}
"""What a run is taken for by its name, where there are several runs."""
LOGS = {
    "query_text": "pass queries.jsonl or queries.tsv as a further INPUT",
    "gold": "pass the qrels as a further INPUT",
    "fused": "pass the run of the merged list too: --stage TAG=fused",
    "after_rerank": "pass the run of the reranker too: --stage TAG=after_rerank",
    "user_acl": "no file of this kind knows users: log them with ragaudit.record",
    "filters_applied": "no file of this kind knows filters: log them with ragaudit.record",
}


@dataclass
class Experiment:
    """What several files said together."""

    queries: dict[str, str] = field(default_factory=dict)
    qrels: dict[str, dict[str, float]] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    corpora: list[Part] = field(default_factory=list)


def reader(three: Kind | None) -> tuple[Read, ReadAll]:
    """How a format of this family reads one file and several.

    Args:
        three: What three columns without a header are in this format; None = that is refused.
    """

    def read_all(paths: Sequence[Path], options: Options, report: ImportReport) -> Iterator[Row]:
        return rows(paths, three, options, report)

    return alone(read_all), read_all


def rows(paths: Sequence[Path], three: Kind | None, options: Options, report: ImportReport) -> Iterator[Row]:
    """Chunks, then one trace for each query of a run. Without a run the labels stand alone, as rows of qrels.tsv.

    Raises:
        InputError: A file is none of the kinds, or holds candidates in no order.
        ConfigError: There is a run and no `--k`, or `--stage` names a run that there is not.
    """
    found = Experiment()
    for path in paths:
        for part in parts_of(path, three):
            _take(part, found, report)
    if found.runs and options.k is None:
        raise ConfigError("--k: a run does not say how many of its chunks reach the prompt. Pass it, as in --k 10.")
    roles = _roles(found.runs, options.stages, report)
    for part in found.corpora:
        yield from _chunks(part, report)
    if not found.runs:
        yield from _labels(found, report)
        return
    queries = dict.fromkeys(query for run in found.runs for query in run.lists)
    for query in queries:
        yield Table.TRACES, _trace(query, found, roles, options, report)
    for query in found.qrels:
        if query not in queries:
            report.skip("queries of the qrels that no run answers: no trace", query[:80])


def _take(part: Part, found: Experiment, report: ImportReport) -> None:
    name = part.path.name
    match part.kind:
        case Kind.CANDIDATES:
            raise InputError(f"{name}: candidates in no order (top1000) are no ranking. Pass the run of your ranker.")
        case Kind.QRELS:
            _merge(found.qrels, _judged(part, report), name, report)
        case Kind.GRADES:
            _merge(found.qrels, _grades(part, report), name, report)
        case Kind.QUERIES:
            found.queries |= dict(texts_by_id(part) if part.columns else _texts(part, report))
        case Kind.CORPUS:
            found.corpora.append(part)
        case _:
            taken = {run.name for run in found.runs}
            for run in runs_of(part, report):
                if run.name in taken:  # two files with one tag: the files' names tell them apart
                    run.name = f"{run.name} ({name})"
                found.runs.append(run)


def _judged(part: Part, report: ImportReport) -> Mapping[str, Mapping[str, float]]:
    problems = Problems()
    judged = read_qrels(part.path, part.path.name, problems)
    for problem in problems.messages:
        report.note(problem.message, problem.place)
    return judged


def _grades(part: Part, report: ImportReport) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    if part.path.suffix.lower() in (".parquet", ".pq"):
        for query, key, grade in rows_of(part.path, report):
            found.setdefault(query, {})[key] = grade
        return found
    for query, graded in nested(part).items():
        if isinstance(graded, dict):
            found[query] = {str(key): float(grade) for key, grade in graded.items()}
    return found


def _merge(
    into: dict[str, dict[str, float]],
    qrels: Mapping[str, Mapping[str, float]],
    name: str,
    report: ImportReport,
) -> None:
    for query, graded in qrels.items():
        judged = {key: grade for key, grade in graded.items() if grade >= 0}
        if len(judged) < len(graded):
            report.note("a negative grade means not judged; the line is left out", f"{name}: {query[:60]}")
        into.setdefault(query, {}).update(judged)


def _texts(part: Part, report: ImportReport) -> Iterator[tuple[str, str]]:
    for place, record in objects(part.path, report):
        key = id_text(record.get("_id", record.get("id")))
        if key is None or not isinstance(record.get("text"), str):
            report.skip("the query has no _id and text", place)
            continue
        yield key, record["text"]


def _chunks(part: Part, report: ImportReport) -> Iterator[Row]:
    if part.columns:
        yield from ((Table.CHUNKS, {"chunk_id": pid, "text": text}) for pid, text in texts_by_id(part))
        return
    for place, record in objects(part.path, report):
        key = id_text(record.get("_id", record.get("id")))
        if key is None or not isinstance(record.get("text"), str):
            report.skip("the document has no _id and text", place)
            continue
        title = record.get("title")
        meta = record.get("metadata") if isinstance(record.get("metadata"), dict) else {}
        row: dict[str, Any] = {"chunk_id": key, "text": record["text"]}
        if isinstance(title, str) and title:
            row["text"] = f"{title} {record['text']}"
            meta = {"title": title, **(meta or {})}
            report.note("text of a chunk: its title, a blank and its text, as BEIR joins them", part.path.name)
        yield Table.CHUNKS, row | ({"metadata": meta} if meta else {})


def _labels(found: Experiment, report: ImportReport) -> Iterator[Row]:
    if found.qrels:
        report.note("labels and inventory only: pass a run as a further INPUT for traces", "")
    for query, graded in found.qrels.items():
        for key, grade in graded.items():
            if any(sign in query + key for sign in "\t\r\n"):
                report.skip("an id that holds a tab or a line end cannot stand in qrels.tsv", query[:80])
                continue
            yield Table.QRELS, {"query_id": query, "id": key, "grade": grade}
    if found.queries and not found.qrels and not found.corpora:
        report.skip("queries alone: pass a run, qrels or a corpus as a further INPUT", "")


def _roles(runs: Iterable[Run], stages: Mapping[str, str], report: ImportReport) -> dict[str, tuple[str, bool]]:
    """Name of a run -> (its list, whether that was only taken by its name)."""
    every = list(runs)
    by_name = {run.name: BY_NAME.get(run.name.casefold()) for run in every} if len(every) > 1 else {}
    roles: dict[str, tuple[str, bool]] = {}
    used = set()
    for run in every:
        stem = run.file.removesuffix(".gz").rsplit(".", 1)[0]
        told = next((stages[key] for key in (run.name, run.file, stem) if key in stages), None)
        used |= {run.name, run.file, stem}
        likely = by_name.get(run.name)
        if told is None and likely and list(by_name.values()).count(likely) == 1 and likely not in stages.values():
            report.note(f"taken for {likely} by its name: {run.name}. If not: --stage {run.name}=arm", run.file)
            roles[run.name] = (likely, True)
        else:
            roles[run.name] = (told or "arm", False)
    for key in stages:
        if key not in used:
            names = ", ".join(run.name for run in every) or "none"
            raise ConfigError(f"--stage {key}: no run has this tag or file. Runs: {names}.")
    return roles


def _trace(
    query: str, found: Experiment, roles: Mapping[str, tuple[str, bool]], options: Options, report: ImportReport
) -> dict[str, Any]:
    draft = Draft(query, found.queries.get(query, ""))
    if query not in found.queries:
        report.note("no query text: pass queries.jsonl or queries.tsv as a further INPUT", query[:80])
    arms: dict[str, list[dict[str, Any]]] = {}
    for run in found.runs:
        if query not in run.lists:
            continue
        entries = ordered(run.lists[query], options.order, report, f"{run.file}: {query[:60]}")
        hits = [
            {"id": each.id, "rank": rank} | ({} if each.score is None else {"score": each.score})
            for rank, each in enumerate(entries, start=1)
        ]
        role, is_guess = roles[run.name]
        if role == "arm" or role.startswith("arm:"):
            arms[role.partition(":")[2] or run.name] = hits
        elif role == "final":
            draft.observed("final_context_ids", [hit["id"] for hit in hits])
        elif role in LISTS:
            (draft.assumed if is_guess else draft.observed)(role, hits)
        elif role != "ignore":
            raise ConfigError(f"--stage {run.name}={role}: no such list. Use arm, arm:NAME, {', '.join(LISTS)}, final.")
        if query in run.slices:
            draft.observed("slices", run.slices[query])
    models = {run.model for run in found.runs if run.model is not None}
    if len(models) == 1 and len(found.runs) == 1:
        draft.observed("embedding_model", models.pop())
    draft.observed("arms", arms or None)
    if query in found.qrels:
        draft.observed("gold", [{"id": key, "grade": grade} for key, grade in found.qrels[query].items()])
    draft.settle(options.k)
    return draft.row()
