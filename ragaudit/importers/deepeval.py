"""DeepEval: goldens and test cases as JSON, JSONL or CSV, and test runs. `context` is gold, not what was retrieved."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.importers.cells import joined_texts, listed, plain
from ragaudit.importers.contexts import documents_of, set_context
from ragaudit.importers.conventions import gold_ids_in, query_id_in, retrieved_ids_in, set_by_convention
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import objects
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport

_JOINED = "lists joined by | (so save_as writes CSV and JSONL): a text that holds a | itself is cut there"


def sniff(sample: Sample) -> str | None:
    """By the names of a test case, in either spelling, or of a test run."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    names = {_snake(str(key)) for key in first}
    if "testCases" in first or "conversationalTestCases" in first:
        return "a test run with testCases"
    return "records with input and retrieval_context" if {"input", "retrieval_context"} <= names else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a golden or test case."""
    for number, (place, record) in enumerate(_cases(path, report), start=1):
        case = {_snake(str(key)): item for key, item in record.items() if item not in (None, "")}
        question = case.get("input")
        if not isinstance(question, str) or not question.strip():
            report.skip("no input as text (a conversation is not read)", place)
            continue
        yield Table.TRACES, _trace(case, question, number, place, options, report)


def _cases(path: Path, report: ImportReport) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, value in objects(path, report):
        if isinstance(value.get("testCases"), list):
            cases = enumerate(value["testCases"])
            yield from ((f"{place}: testCases[{n}]", case) for n, case in cases if isinstance(case, dict))
            for n, _ in enumerate(listed(value.get("conversationalTestCases")) or ()):
                report.skip("a conversation is not read", f"{place}: conversationalTestCases[{n}]")
        else:
            yield place, value


def _trace(
    case: Mapping[str, Any], question: str, number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    meta = plain(case.get("additional_metadata", case.get("metadata")))
    meta = meta if isinstance(meta, dict) else {}
    draft = Draft(query_id_in(meta) or line_id(number, question), question)
    set_by_convention(draft, meta, report, place)
    retrieved, gold = case.get("retrieval_context"), case.get("context")
    for value in (retrieved, gold):
        if isinstance(value, str) and "|" in value and not value.startswith("["):
            report.note(_JOINED, place)
    texts = joined_texts(retrieved)
    documents = None if texts is None else [_document(each) for each in texts]
    if documents is not None and (ids := retrieved_ids_in(meta)) is not None:
        documents = documents_of(ids, [each["text"] for each in documents], report, place)
    set_context(draft, documents, report, place, options.texts)
    if documents is None:
        _from_spans(draft, case.get("trace"), place, options, report)
    set_gold(draft, gold_ids_in(meta), joined_texts(gold), options.texts, report, place)
    if isinstance(case.get("expected_output"), str):
        draft.observed("reference", case["expected_output"])
    if isinstance(case.get("actual_output"), str):
        draft.observed("answer", {"text": case["actual_output"]})
    draft.settle(options.k)
    return draft.row()


def _from_spans(draft: Draft, trace: Any, place: str, options: Options, report: ImportReport) -> None:
    """The lists of a test run's retriever spans, one arm for each name. Several of one name stay apart, numbered."""
    spans = trace.get("retrieverSpans") if isinstance(trace, dict) else None
    arms: dict[str, list[dict[str, Any]]] = {}
    seen: Counter[str] = Counter()
    for span in listed(spans) or ():
        if not isinstance(span, dict):
            continue
        output, texts = span.get("output"), span.get("retrievalContext")
        documents = output if isinstance(output, list) and _are_documents(output) else texts
        if not isinstance(documents, list):
            continue
        name = str(span.get("name") or "retriever")
        seen[name] += 1
        arms[name if seen[name] == 1 else f"{name} {seen[name]}"] = hits_of(
            [_document(each) for each in documents], report, place, texts=options.texts
        )
        if isinstance(span.get("embedder"), str):
            draft.observed("embedding_model", span["embedder"])
        if isinstance(query := span.get("input"), str) and query != draft.get("query_text"):
            draft.observed("query_rewrite", query)
    if arms:
        draft.derived("arms", arms)
        report.note("arms: taken from the retriever spans of the trace, by their names", place)


def _are_documents(output: list[Any]) -> bool:
    return all(isinstance(each, dict) and isinstance(each.get("text", each.get("content")), str) for each in output)


def _document(item: Any) -> dict[str, Any]:
    """A text, or since 4.x `{context, source}`."""
    if not isinstance(item, dict):
        return {"text": str(item)}
    if "context" in item:
        return {"text": str(item["context"])} | ({"source_id": item["source"]} if item.get("source") else {})
    return {"text": "", **item}


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), name)


FORMAT = Format(
    name="deepeval",
    title="DeepEval",
    reads="goldens or test cases (JSON, JSONL, CSV) and test runs (JSON)",
    sniff=sniff,
    read=read,
    logs={
        "gold": "Golden(additional_metadata={'gold_ids': [...]}), or pass --chunks to find the ids of context",
        "arms": "DeepEval keeps the final context only: log the lists of each arm with ragaudit.record",
        "user_acl": "Golden(additional_metadata={'user_acl': [...]})",
        "index_revision": "Golden(additional_metadata={'index_revision': ...})",
        "filters_applied": "Golden(additional_metadata={'filters_applied': {...}})",
        "embedding_model": "Golden(additional_metadata={'embedding_model': ...})",
    },
)
