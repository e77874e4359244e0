"""promptfoo: results as JSON, JSONL or CSV. What was retrieved and what is gold stand in variables and metadata."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.importers.cells import joined_texts, listing
from ragaudit.importers.contexts import documents_of, set_context
from ragaudit.importers.conventions import gold_ids_in, query_id_in, retrieved_ids_in, set_by_convention
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import objects
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import documents_in
from ragaudit.importers.report import ImportReport

QUERY = ("query", "question", "user_query", "input", "prompt", "q")
"""Variables that hold the query, unless `--map query_text=NAME` says which does."""
CONTEXTS = ("documents", "retrieved_documents", "chunks", "retrieved_contexts", "contexts", "context")
_CSV = frozenset({"Status", "Score", "Named Scores", "Grader Reason", "Comment"})


def sniff(sample: Sample) -> str | None:
    """By the names of a result, of a whole evaluation, or of the columns of the CSV."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    if "evalId" in first and "results" in first:
        return "an evaluation with evalId and results"
    if {"promptIdx", "testIdx", "vars"} <= set(first):
        return "results with promptIdx, testIdx and vars"
    return "columns Status, Score and Grader Reason" if {"Status", "Score", "Grader Reason"} <= set(first) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace for each test and prompt: one test with two prompts or providers is two traces."""
    made: dict[str, int] = {}
    for place, result in _results(path, report):
        values = _mapping(result.get("vars")) or _mapping(_mapping(result.get("testCase")).get("vars"))
        question = _question(values, options)
        if question is None:
            names = ", ".join(list(values)[:12]) or "none"
            report.skip(f"no variable holds the query (variables: {names}): --map query_text=NAME", place)
            continue
        test, prompt = result.get("testIdx", len(made)), result.get("promptIdx", 0)
        meta = _mapping(_mapping(result.get("testCase")).get("metadata"))
        base = query_id_in({**values, **meta}) or f"test-{test}"
        query = base if not prompt else f"{base}@prompt-{prompt}"
        made[query] = made.get(query, 0) + 1
        if made[query] > 1:
            query = f"{query}#{made[query]}"
        if prompt:
            report.note("several prompts or providers: from the second on, query ids are QUERY@prompt-N", place)
        yield Table.TRACES, _trace(query, question, values, result, place, options, report)


def _results(path: Path, report: ImportReport) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, value in objects(path, report):
        inner = value.get("results")
        if isinstance(inner, dict):
            inner = inner.get("results")
        if isinstance(inner, list):
            yield from ((f"{place}: results[{n}]", each) for n, each in enumerate(inner) if isinstance(each, dict))
        elif _CSV & set(value) and "vars" not in value:
            report.note("the CSV drops what the provider returned as metadata: export JSON to keep it", place)
            yield from _from_csv(place, value)
        else:
            yield place, value


def _from_csv(place: str, row: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A row of the CSV as results: columns named `[provider] prompt` are outputs, the ones before them variables."""
    outputs = [name for name in row if name.startswith("[") and "]" in name]
    names = [name for name in row if name not in outputs and name not in _CSV]
    values = {name: row[name] for name in names if row[name] not in (None, "")}
    test = place.rpartition(":")[2]
    for n, name in enumerate(outputs or [""]):
        yield (
            place,
            {
                "vars": values,
                "testIdx": test,
                "promptIdx": n,
                "provider": {"id": name[1:].partition("]")[0]},
                "prompt": {"label": name.partition("]")[2].strip()},
                "response": {"output": row.get(name)},
            },
        )


def _trace(
    query: str,
    question: str,
    values: Mapping[str, Any],
    result: Mapping[str, Any],
    place: str,
    options: Options,
    report: ImportReport,
) -> dict[str, Any]:
    draft = Draft(query, question)
    response = _mapping(result.get("response"))
    returned = _mapping(response.get("metadata")) or _mapping(result.get("metadata"))
    case = _mapping(_mapping(result.get("testCase")).get("metadata"))
    for named in (returned, case, values):
        set_by_convention(draft, named, report, place)
    _context(draft, returned, values, place, options, report)
    gold = gold_ids_in({**values, **case})
    texts = values.get("reference_contexts", case.get("reference_contexts"))
    set_gold(draft, gold, joined_texts(texts), options.texts, report, place)
    output = response.get("output")
    if output is not None and output != "":
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        draft.observed("answer", {"text": text})
    slices = {
        "provider": _mapping(result.get("provider")).get("id"),
        "prompt": _mapping(result.get("prompt")).get("label"),
    }
    draft.observed("slices", {name: value for name, value in slices.items() if value} or None)
    draft.settle(options.k)
    return draft.row()


def _context(
    draft: Draft,
    returned: Mapping[str, Any],
    values: Mapping[str, Any],
    place: str,
    options: Options,
    report: ImportReport,
) -> None:
    """The context, from what the provider returned, else from the variables. One text for all of it is one chunk."""
    ids = retrieved_ids_in(returned)
    for where, named in (("metadata", returned), ("vars", values)):
        for name in CONTEXTS:
            value = named.get(name)
            if value in (None, ""):
                continue
            report.note(f"context: taken from {where}.{name}", place)
            documents = documents_in(value) if not isinstance(value, str) else None
            if documents is not None:
                set_context(draft, documents, report, place, options.texts)
                return
            if isinstance(value, str):
                texts = listing(value) if value.lstrip().startswith("[") else [value]
                if texts is not None and len(texts) == 1:
                    report.note("the context is one text: it may be several chunks in one", place)
                found = documents_of(ids, texts, report, place) if ids is not None else texts
                set_context(draft, found, report, place, options.texts, is_sure=where == "metadata")
                return
    set_context(draft, documents_of(ids, None, report, place), report, place, options.texts)


def _question(values: Mapping[str, Any], options: Options) -> str | None:
    told = options.columns.get("query_text")
    names = (told,) if told is not None else QUERY
    return next((values[name] for name in names if isinstance(values.get(name), str) and values[name].strip()), None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


FORMAT = Format(
    name="promptfoo",
    title="promptfoo",
    reads="results as JSON (promptfoo eval -o out.json) or JSONL; CSV without what the provider returned",
    sniff=sniff,
    read=read,
    maps=True,
    logs={
        "gold": "tests: [{vars: {query: ..., expected_ids: [...]}}]",
        "arms": "let the provider return metadata: {documents: [...]}; arms need ragaudit.record",
        "user_acl": "tests: [{vars: {user_acl: [...]}}]",
        "index_revision": "let the provider return metadata: {index_revision: ...}",
        "embedding_model": "let the provider return metadata: {embedding_model: ...}",
        "filters_applied": "let the provider return metadata: {filters_applied: {...}}",
    },
)
