"""AutoRAG: qa.parquet, corpus.parquet and the results of nodes, which together are arms, fused and reranked lists."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError
from ragaudit.importers.cells import id_text
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Format, Options, Row, Sample, Table, alone
from ragaudit.importers.inputs import first_records, objects
from ragaudit.importers.prompt import packed
from ragaudit.importers.report import ImportReport

ARMS = ("lexical", "semantic")
NODES = {
    "passage_reranker": "after_rerank",
    "passage_filter": "after_threshold",
    "passage_augmenter": "",
    "passage_compressor": "",
}
"""Node -> the list that it leaves in `retrieved_ids`; empty = ids may then stand for other texts, so it is left out."""
RESULTS = "*/*/best_*.parquet"
"""Where a trial keeps the best result of each node: line / node / file."""
RESULT = ("retrieved_ids", *(f"retrieved_ids_{arm}" for arm in ARMS))


def sniff(sample: Sample) -> str | None:
    """By the column names of the three kinds of table, or a folder with results in it."""
    if sample.path.is_dir():
        best = next(sample.path.glob(RESULTS), None)
        return "a folder with results of nodes" if best else None
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    if {"qid", "query", "retrieval_gt"} <= set(first):
        return "rows with qid and retrieval_gt"
    return "rows with doc_id and contents" if {"doc_id", "contents"} <= set(first) else None


def read_all(paths: Sequence[Path], options: Options, report: ImportReport) -> Iterator[Row]:
    """Chunks of the corpus, then one trace for each query that a node has results for.

    Raises:
        InputError: A file is none of the kinds.
    """
    drafts: dict[str, Draft] = {}
    labelled: dict[str, str] = {}
    for path in sorted(_files(paths), key=_is_qa):
        first = _first(path)
        if {"doc_id", "contents"} <= set(first):
            yield from _chunks(path, report)
        elif "qid" not in first or "query" not in first:
            raise InputError(f"{path.name}: is no qa, corpus or node result (it has neither qid nor doc_id). Check it.")
        else:
            node, last = _node(first)
            for place, row in objects(path, report):
                query = id_text(row.get("qid"))
                if query is None or not isinstance(row.get("query"), str):
                    report.skip("the row has no qid and query", place)
                    continue
                if not any(name in row for name in RESULT):
                    labelled[query] = place
                draft = drafts.setdefault(query, Draft(query, row["query"]))
                _take(draft, row, node, last, place, report)
    for query, draft in drafts.items():
        if draft.get("arms") is None and draft.get("fused") is None and not _was_overwritten(draft):
            report.skip("labels without results: pass the result of a node too", labelled.get(query, query))
            continue
        if draft.get("fused") is None and len(draft.get("arms") or ()) > 1 and _was_overwritten(draft):
            report.note("a later node wrote over the fused list: pass the result of hybrid_retrieval too", query)
        draft.settle(options.k)
        yield Table.TRACES, draft.row()


def _was_overwritten(draft: Draft) -> bool:
    return any(draft.get(name) is not None for name in NODES.values() if name)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(_results_in(path))
        else:
            yield path


def _results_in(folder: Path) -> Iterator[Path]:
    """The best result of each node of a trial, and the tables of its project."""
    for pattern in (RESULTS, "data/*.parquet", "*.parquet"):
        yield from folder.glob(pattern)


def _is_qa(path: Path) -> int:
    """Results before labels, so that a query without a result is known as such."""
    return 0 if any(name in _first(path) for name in RESULT) else 1


def _first(path: Path) -> dict[str, Any]:
    return next((row for row in first_records(path, 1) if isinstance(row, dict)), {})


def _chunks(path: Path, report: ImportReport) -> Iterator[Row]:
    for place, row in objects(path, report):
        key = id_text(row.get("doc_id"))
        if key is None or not isinstance(row.get("contents"), str):
            report.skip("the document has no doc_id and contents", place)
            continue
        chunk: dict[str, Any] = {"chunk_id": key, "text": row["contents"]}
        if isinstance(row.get("path"), str) and row["path"]:
            chunk["source_id"] = row["path"]
        if isinstance(row.get("metadata"), dict) and row["metadata"]:
            chunk["metadata"] = row["metadata"]
        yield Table.CHUNKS, chunk


def _node(first: dict[str, Any]) -> tuple[str, str]:
    """(the list that `retrieved_ids` is, the node that wrote it last), by the metric columns that each node adds."""
    last = next((node for name in reversed(first) for node in NODES if name.startswith(f"{node}_retrieval_")), "")
    if last:
        return NODES[last], last
    both = all(f"retrieved_ids_{arm}" in first for arm in ARMS)
    return ("fused", "hybrid_retrieval") if both else ("arms", "retrieval")


def _take(draft: Draft, row: dict[str, Any], node: str, last: str, place: str, report: ImportReport) -> None:
    arms = {arm: hits for arm in ARMS if (hits := _hits(row, f"_{arm}", place, report)) is not None}
    made = _hits(row, "", place, report)
    if made is not None and node == "arms":
        arms["retrieval"] = made
        report.note("one retrieval without an arm's name: called retrieval", place)
    elif made is not None and node:
        draft.observed(node, made)
    elif made is not None:
        report.note(f"retrieved_ids after a {last}: not read, its texts are no longer those of the ids", place)
    draft.observed("arms", arms or None)
    _gold(draft, row.get("retrieval_gt"), place, report)
    answers = row.get("generation_gt")
    if isinstance(answers, list) and answers:
        draft.observed("reference", str(answers[0]))
        if len(answers) > 1:
            report.note("several reference answers: the first is kept", place)
    queries = row.get("queries")
    if isinstance(queries, list) and queries and queries != [row["query"]]:
        draft.observed("query_rewrite", [str(each) for each in queries])
    if isinstance(row.get("generated_texts"), str):
        draft.observed("answer", {"text": row["generated_texts"]})
    if isinstance(row.get("prompts"), str) and made is not None:
        found = packed([(hit["id"], hit.get("text", "")) for hit in made], row["prompts"])
        draft.derived("final_context_ids", found)


def _hits(row: dict[str, Any], which: str, place: str, report: ImportReport) -> list[dict[str, Any]] | None:
    """One list, each id once: query expansion searches several times and repeats what it finds."""
    ids = row.get(f"retrieved_ids{which}")
    if not isinstance(ids, list):
        return None
    texts, scores = row.get(f"retrieved_contents{which}"), row.get(f"retrieve_scores{which}")
    found: dict[str, dict[str, Any]] = {}
    for n, each in enumerate(ids):
        key = id_text(each)
        if key is None or key in found:
            if key is not None:
                report.note("an id more than once in a list (query expansion): the first place counts", place)
            continue
        hit: dict[str, Any] = {"id": key, "rank": len(found) + 1}
        if isinstance(scores, list) and len(scores) == len(ids) and isinstance(scores[n], float | int):
            hit["score"] = float(scores[n])
        if isinstance(texts, list) and len(texts) == len(ids) and isinstance(texts[n], str):
            hit["text"] = texts[n]
        found[key] = hit
    return list(found.values())


def _gold(draft: Draft, value: Any, place: str, report: ImportReport) -> None:
    """`retrieval_gt`: one id of every inner list is needed; in one dimension every id. `[[]]` = no label."""
    if not isinstance(value, list):
        return
    groups = [each if isinstance(each, list) else [each] for each in value]
    found = [ids for group in groups if (ids := [key for each in group if (key := id_text(each)) is not None])]
    if found:
        draft.observed("gold_groups", found)
    else:
        report.note("retrieval_gt is empty ([[]]): read as no label", place)


FORMAT = Format(
    name="autorag",
    title="AutoRAG",
    reads="results of nodes (best_0.parquet), qa.parquet and corpus.parquet, one INPUT each, or a trial's folder",
    sniff=sniff,
    read=alone(read_all),
    read_all=read_all,
    logs={
        "fused": "pass the result of the hybrid_retrieval node as a further INPUT",
        "after_rerank": "pass the result of the passage_reranker node as a further INPUT",
        "gold": "pass qa.parquet as a further INPUT",
        "user_acl": "AutoRAG knows no users: log traces of the deployed pipeline with ragaudit.record",
        "index_revision": "AutoRAG knows no index revision: log traces with ragaudit.record",
        "filters_applied": "AutoRAG sends no filters: log traces of the deployed pipeline with ragaudit.record",
    },
)
