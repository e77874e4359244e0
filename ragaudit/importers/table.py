"""Home-made logs: any CSV, JSONL, JSON or Parquet whose columns the user names (`--map query_text=question`)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.importers.cells import id_text, ids_in, joined_texts, listing, plain
from ragaudit.importers.contexts import documents_of, set_context
from ragaudit.importers.draft import MAX_K, Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import objects
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import documents_in, hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.stage import LISTS

IDS = ("final_context_ids", "prompt_ids")
TEXTS = ("query_text", "query_id", "index_revision", "embedding_model", "session_id", "timestamp", "reference", "notes")
TYPED: Mapping[str, tuple[type, ...]] = {
    "k_final": (int,),
    "filters_applied": (dict,),
    "query_rewrite": (str, list, dict),
    "slices": (dict,),
    "prompt_tokens": (int,),
    "final_context_chars": (int,),
    "answerable": (bool,),
}
"""Fields of other types, with what they may hold."""
OWN = ("user_acl", "arms", "gold_ids", "gold_texts", "final_context", "context_texts", "answer")
FIELDS = (*TEXTS, *TYPED, *(stage.value for stage in LISTS), *IDS, *OWN)
"""What `--map` may name, beside `arms.NAME`. `gold_texts` are looked up with `--chunks`; `final_context` is a list of
documents (ids, texts or both), `context_texts` the texts beside `final_context_ids`, `answer` the answer's text."""
COLUMNS_SHOWN = 30


def sniff(sample: Sample) -> str | None:
    """Records whose columns are fields of ours."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    return "records with query_text" if isinstance(first.get("query_text"), str) else None


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a record.

    Raises:
        ConfigError: `--map` names a field that there is none of, or a column that no record has; the message lists
            the columns that were seen.
    """
    columns = _columns(options.columns)
    wanted = set(options.columns.values()) | {columns["query_text"]}
    seen: dict[str, None] = {}
    for number, (place, value) in enumerate(_records(path, columns["query_text"], report), start=1):
        if len(seen) < COLUMNS_SHOWN:
            seen |= dict.fromkeys(map(str, value))
        wanted -= {column for column in wanted if _has(value, column)}
        row = {field: found for field, column in columns.items() if (found := at(value, column)) not in (None, "")}
        question = row.get("query_text")
        if not isinstance(question, str) or not question.strip():
            report.skip(f"no text in the column {columns['query_text']} (query_text)", place)
            continue
        yield Table.TRACES, _trace(row, question, number, place, options, report)
    if wanted and seen:
        raise ConfigError(_unknown(path, columns, wanted, seen))


def _records(path: Path, column: str, report: ImportReport) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of a file; an object without a query that holds one list of objects is that list."""
    for place, value in objects(path, report):
        lists = [(key, each) for key, each in value.items() if isinstance(each, list) and each]
        if len(lists) == 1 and not _has(value, column) and all(isinstance(each, dict) for each in lists[0][1]):
            key, items = lists[0]
            report.note(f"records: those of the list {key[:60]}", place)
            yield from ((f"{place}: {key[:60]}[{n}]", item) for n, item in enumerate(items))
        else:
            yield place, value


def at(record: Mapping[str, Any], column: str) -> Any:
    """The value of a column. `meta.user.id` and `hits.0.id` look into objects and lists, and into JSON in a cell.

    A column of that whole name comes first.
    """
    if column in record:
        return record[column]
    if "." not in column:
        return None
    value: Any = record
    for part in column.split("."):
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = plain(value)
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _has(record: Mapping[str, Any], column: str) -> bool:
    return column in record or at(record, column) is not None


def _columns(given: Mapping[str, str]) -> dict[str, str]:
    for field in given:
        if field not in FIELDS and not (field.startswith("arms.") and field != "arms."):
            raise ConfigError(f"--map {field}: no such field. Use arms.NAME, or one of: {', '.join(FIELDS)}.")
    return {field: field for field in FIELDS} | dict(given)


def _unknown(path: Path, columns: Mapping[str, str], wanted: set[str], seen: Mapping[str, None]) -> str:
    field = next(field for field, column in columns.items() if column in wanted)
    names = ", ".join(name[:60] for name in list(seen)[:COLUMNS_SHOWN])
    more = ", ..." if len(seen) > COLUMNS_SHOWN else ""
    return (
        f"{path.name}: no record has the column {columns[field]} ({field}). Columns: {names}{more}."
        f" Say which it is: --map {field}=COLUMN."
    )


def _trace(
    row: dict[str, Any], question: str, number: int, place: str, options: Options, report: ImportReport
) -> dict[str, Any]:
    draft = Draft(id_text(row.get("query_id")) or line_id(number, question), question)
    for name in TEXTS[2:]:
        draft.observed(name, str(row[name]) if isinstance(row.get(name), str | int) else None)
    for name, kinds in TYPED.items():
        if name in row:
            _typed(draft, name, row[name], kinds, place, report)
    draft.observed("user_acl", ids_in(row.get("user_acl")))
    draft.observed("arms", _arms(row, place, options, report))
    for name in (stage.value for stage in LISTS):
        draft.observed(name, _hits(row.get(name), place, options, report))
    for name in IDS:
        ids = ids_in(row.get(name))
        if ids is None and name in row:
            report.note(f"{name}: holds what can be no id (a decimal number, an object); not read", place)
        draft.observed(name, ids)
    _final_context(draft, row, place, options, report)
    gold = listing(row.get("gold_ids"))
    set_gold(draft, gold, joined_texts(row.get("gold_texts")), options.texts, report, place)
    if isinstance(answer := row.get("answer"), str):
        draft.observed("answer", {"text": answer})
    elif isinstance(answer, dict):
        draft.observed("answer", answer)
    draft.settle(options.k)
    return draft.row()


def _typed(draft: Draft, name: str, value: Any, kinds: tuple[type, ...], place: str, report: ImportReport) -> None:
    found = plain(value)
    if isinstance(found, float) and found.is_integer() and kinds == (int,):
        found = int(found)
    fits = isinstance(found, kinds) and isinstance(found, bool) == (kinds == (bool,))
    if not fits or (name == "k_final" and isinstance(found, int) and not 0 < found <= MAX_K):
        report.note(f"{name}: holds no {' or '.join(kind.__name__ for kind in kinds)}; not read", place)
        return
    draft.observed(name, found)


def _arms(
    row: Mapping[str, Any], place: str, options: Options, report: ImportReport
) -> dict[str, list[dict[str, Any]]] | None:
    """The column of an object {arm: list}, and the columns that --map calls arms.NAME."""
    whole = plain(row.get("arms"))
    named = dict(whole) if isinstance(whole, dict) else {}
    named |= {field.removeprefix("arms."): value for field, value in row.items() if field.startswith("arms.")}
    arms = {str(name): _hits(value, place, options, report) for name, value in named.items()}
    return {name: hits for name, hits in arms.items() if hits is not None} or None


def _final_context(draft: Draft, row: Mapping[str, Any], place: str, options: Options, report: ImportReport) -> None:
    hits = _documents(row.get("final_context"), place, report)
    if hits is not None:
        set_context(draft, hits, report, place, options.texts)
    texts = plain(row.get("context_texts"))
    if isinstance(texts, dict):
        draft.observed("context_texts", {str(key): text for key, text in texts.items() if isinstance(text, str)})
        return
    ids, found = draft.get("final_context_ids"), joined_texts(texts)
    if found is None:
        return
    set_context(draft, documents_of(ids, found, report, place), report, place, options.texts)


def _hits(value: Any, place: str, options: Options, report: ImportReport) -> list[dict[str, Any]] | None:
    documents = _documents(value, place, report)
    return None if documents is None else hits_of(documents, report, place, texts=options.texts)


def _documents(value: Any, place: str, report: ImportReport) -> list[Any] | None:
    """Documents out of a cell: objects, [id, score] pairs, ids or texts; an object {id: score} is ordered by score."""
    if value is None:
        return None
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = plain(value)
    if isinstance(value, Mapping) and value and all(_is_score(each) for each in value.values()):
        report.note("hits as an object of {id: score}: ordered by score, the highest first", place)
        return [{"id": key, "score": value[key]} for key in sorted(value, key=lambda key: -value[key])]
    items = value if isinstance(value, list) else documents_in(value)
    if items is None:
        items = listing(value)
    return None if items is None else [item if isinstance(item, Mapping) else _bare(item) for item in items]


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bare(item: Any) -> dict[str, Any]:
    """A bare value: a text with blanks in it is a text, everything else an id; [id, score] is both."""
    if isinstance(item, list | tuple) and len(item) == 2:
        return {"id": item[0], "score": item[1]}
    return {"text": item} if isinstance(item, str) and " " in item.strip() else {"id": item}


FORMAT = Format(
    name="table",
    title="Your own log",
    reads="CSV, TSV, JSONL, JSON or Parquet with one query a record; --map FIELD=COLUMN names the columns",
    sniff=sniff,
    read=read,
    maps=True,
    logs={
        "gold": "label queries with a column of ids, and name it: --map gold_ids=COLUMN",
        "arms": "log what each arm returned, and name it: --map arms.dense=COLUMN --map arms.bm25=COLUMN",
        "fused": "log the merged list before the reranker: --map fused=COLUMN",
        "after_rerank": "log the reranker's list: --map after_rerank=COLUMN",
        "final_context_ids": "log the ids in the prompt: --map final_context_ids=COLUMN",
        "user_acl": "log the user's principals: --map user_acl=COLUMN",
        "filters_applied": "log the filter as sent, as JSON: --map filters_applied=COLUMN",
        "index_revision": "log it: --map index_revision=COLUMN",
        "embedding_model": "log it: --map embedding_model=COLUMN",
    },
)
