"""Spans for tests, as the files of tools hold them; and what an importer makes of a file."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragaudit.importers.formats import Options, Table
from ragaudit.importers.registry import format_named
from ragaudit.importers.report import ImportReport

DATA = Path(__file__).parent / "data"
TRACE = "3bbea84be30dd2447b1412aea4ea33e0"
TEXTS = {f"c{n}": f"the text of chunk number {n}, long enough to be found" for n in range(10)}


def span(
    name: str, kind: str = "", parent: str = "root", at: int = 1, trace: str = TRACE, **attributes: Any
) -> dict[str, Any]:
    """A span as an SDK writes it; its id is made of its name and time. `__` in a keyword is a dot."""
    found = {key.replace("__", "."): value for key, value in attributes.items()}
    if kind:
        found["openinference.span.kind"] = kind
    return {
        "name": name,
        "context": {"trace_id": f"0x{trace}", "span_id": f"0x{span_id(name, at)}"},
        "parent_id": None if parent == "" else f"0x{parent if parent != 'root' else span_id('root', 0)}",
        "start_time": f"2026-11-29T22:59:{at:02}.000000Z",
        "end_time": f"2026-11-29T22:59:{at:02}.900000Z",
        "attributes": found,
    }


def span_id(name: str, at: int) -> str:
    return (name.encode().hex() + "0" * 14)[:14] + f"{at:02}"


def root(question: str = "how long?", at: int = 0, **attributes: Any) -> dict[str, Any]:
    trace = attributes.pop("trace", TRACE)
    found = span("root", "CHAIN", "", at, trace, **attributes)
    if question:
        found["attributes"]["input.value"] = question
    return found


def documents(*ids: str, prefix: str = "retrieval.documents", scores: Sequence[float] = ()) -> dict[str, Any]:
    """The attributes of a list of documents."""
    found: dict[str, Any] = {}
    for n, chunk_id in enumerate(ids):
        found[f"{prefix}.{n}.document.id"] = chunk_id
        found[f"{prefix}.{n}.document.content"] = TEXTS.get(chunk_id, f"a text of {chunk_id} and nothing more")
        if scores:
            found[f"{prefix}.{n}.document.score"] = scores[n]
    return found


def retriever(
    name: str, *ids: str, at: int = 1, parent: str = "root", query: str = "how long?", **more: Any
) -> dict[str, Any]:
    scores = more.pop("scores", ())
    found = span(name, "RETRIEVER", parent, at, **more)
    found["attributes"] |= {"input.value": query, **documents(*ids, scores=scores)}
    return found


def reranker(*ids: str, given: Sequence[str] = (), at: int = 5, **more: Any) -> dict[str, Any]:
    found = span("Ranker.run", "RERANKER", "root", at, **more)
    found["attributes"] |= documents(*ids, prefix="reranker.output_documents")
    found["attributes"] |= documents(*given, prefix="reranker.input_documents")
    return found


def llm(*ids: str, at: int = 9, **more: Any) -> dict[str, Any]:
    """A call of a model whose prompt holds the texts of the chunks."""
    found = span("Chat", "LLM", "root", at, **more)
    prompt = "Answer from this.\n" + "\n".join(TEXTS[chunk_id] for chunk_id in ids)
    found["attributes"] |= {
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": prompt,
        "llm.output_messages.0.message.content": "Four hours.",
    }
    return found


def otlp(*spans: dict[str, Any], snake: bool = False, as_base64: bool = False, dropped: int = 0) -> dict[str, Any]:
    """The same spans as one export request of OTLP."""
    made = [_otlp(each, as_base64, dropped) for each in spans]
    if snake:
        made = [_snake(each) for each in made]
        return {"resource_spans": [{"scope_spans": [{"scope": {"name": "app"}, "spans": made}]}]}
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "app"}, "spans": made}]}]}


def imported(name: str, path: Path, **options: Any) -> tuple[list[dict[str, Any]], ImportReport]:
    """The traces of a file, and the report."""
    report = ImportReport()
    rows = list(format_named(name).read(path, Options(**options), report))
    return [row for table, row in rows if table is Table.TRACES], report


def spans_of(tmp_path: Path, *spans: dict[str, Any], **options: Any) -> tuple[list[dict[str, Any]], ImportReport]:
    """What the importer of spans makes of these."""
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in spans))
    return imported("spans", path, **options)


def ids(hits: list[dict[str, Any]] | None) -> list[str] | None:
    return None if hits is None else [hit["id"] for hit in hits]


def _otlp(found: dict[str, Any], as_base64: bool, dropped: int) -> dict[str, Any]:
    def key(value: str | None) -> str | None:
        if value is None:
            return ""
        plain = value.removeprefix("0x")
        return base64.b64encode(bytes.fromhex(plain)).decode() if as_base64 else plain

    made = {
        "traceId": key(found["context"]["trace_id"]),
        "spanId": key(found["context"]["span_id"]),
        "parentSpanId": key(found["parent_id"]),
        "name": found["name"],
        "startTimeUnixNano": str(1795993174000000000 + int(found["start_time"][17:19]) * 10**9),
        "endTimeUnixNano": str(1795993174900000000 + int(found["start_time"][17:19]) * 10**9),
        "attributes": [{"key": name, "value": _value(value)} for name, value in found["attributes"].items()],
    }
    return made | ({"droppedAttributesCount": dropped} if dropped else {})


def _value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": value}


_SNAKE = {
    "traceId": "trace_id",
    "spanId": "span_id",
    "parentSpanId": "parent_span_id",
    "startTimeUnixNano": "start_time_unix_nano",
    "endTimeUnixNano": "end_time_unix_nano",
}
_KINDS = ("array_value", "bool_value", "bytes_value", "double_value", "int_value", "kvlist_value", "string_value")


def _snake(found: dict[str, Any]) -> dict[str, Any]:
    """Every key of a value stands there, null but for one."""
    made = {_SNAKE.get(name, name): value for name, value in found.items()}
    made["attributes"] = [
        {"key": each["key"], "value": dict.fromkeys(_KINDS) | {_snaked(k): v for k, v in each["value"].items()}}
        for each in made["attributes"]
    ]
    return made | {"dropped_attributes_count": None, "events": None}


def _snaked(kind: str) -> str:
    return kind.replace("Value", "_value")
