"""Records of span files -> spans: OTLP JSON (both spellings), an SDK's own JSON, Phoenix's rows and REST answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans.span import Event, Span, items_of, nanoseconds, span_id_of

_COLUMN = "attributes."


def spans_in(record: Any, report: ImportReport, place: str) -> Iterator[Span]:
    """The spans of one record: of one export request, one page of an answer, or the record itself.

    One that cannot be read is skipped and counted.
    """
    if not isinstance(record, Mapping):
        report.skip("the record is no object", place)
        return
    groups = record.get("resourceSpans") or record.get("resource_spans")
    if isinstance(groups, list):
        for raw, scope in _of_request(groups):
            yield from _usable(raw, scope, report, place)
    elif isinstance(page := record.get("data"), list):
        for raw in page:
            yield from _usable(raw, "", report, place)
    else:
        yield from _usable(record, "", report, place)


def holds_spans(record: Any) -> str | None:
    """Why a record holds spans, for `auto`: `OTLP`, `an SDK's spans`, `Phoenix's spans`; None = it does not."""
    if not isinstance(record, Mapping):
        return None
    if isinstance(record.get("resourceSpans") or record.get("resource_spans"), list):
        return "OTLP"
    if isinstance(page := record.get("data"), list) and page and isinstance(page[0], Mapping):
        record = page[0]
    if "context.span_id" in record or ("span_kind" in record and isinstance(record.get("context"), Mapping)):
        return "Phoenix's spans"
    if isinstance(context := record.get("context"), Mapping) and "span_id" in context and "attributes" in record:
        return "an SDK's spans"
    if _first(record, "spanId", "span_id") is not None and isinstance(record.get("attributes"), list):
        return "OTLP"
    return None


def _of_request(groups: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    for group in groups:
        if not isinstance(group, Mapping):
            continue
        for scoped in items_of(_first(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")):
            if not isinstance(scoped, Mapping):
                continue
            scope = scoped.get("scope")
            name = str(scope.get("name") or "") if isinstance(scope, Mapping) else ""
            for raw in items_of(scoped.get("spans")):
                yield raw, name


def _usable(raw: Any, scope: str, report: ImportReport, place: str) -> Iterator[Span]:
    try:
        span = _span(raw, scope) if isinstance(raw, Mapping) else None
    except RecursionError:
        report.skip("a span is nested too deeply to read", place)
        return
    if span is None:
        report.skip("no span: it has no trace id and span id", place)
    else:
        yield span


def _span(raw: Mapping[str, Any], scope: str) -> Span | None:
    inside = raw.get("context")
    context: Mapping[str, Any] = inside if isinstance(inside, Mapping) else {}
    trace_id = span_id_of(
        _first(raw, "traceId", "trace_id", "context.trace_id") or _first(context, "trace_id", "traceId")
    )
    span_id = span_id_of(_first(raw, "spanId", "span_id", "context.span_id") or _first(context, "span_id", "spanId"))
    if trace_id is None or span_id is None:
        return None
    attributes = _attributes(raw)
    if (kind := raw.get("span_kind")) is not None:  # Phoenix keeps it beside the attributes
        attributes.setdefault("openinference.span.kind", str(kind))
    return Span(
        trace_id,
        span_id,
        str(raw.get("name") or ""),
        span_id_of(_first(raw, "parentSpanId", "parent_span_id", "parent_id")),
        nanoseconds(_first(raw, "startTimeUnixNano", "start_time_unix_nano", "start_time")),
        nanoseconds(_first(raw, "endTimeUnixNano", "end_time_unix_nano", "end_time")),
        attributes,
        tuple(_event(event) for event in items_of(raw.get("events")) if isinstance(event, Mapping)),
        _count(_first(raw, "droppedAttributesCount", "dropped_attributes_count", "dropped_attributes")),
        scope or _scope_of(raw),
        _error(raw),
    )


def _attributes(raw: Mapping[str, Any]) -> dict[str, Any]:
    found = raw.get("attributes")
    if isinstance(found, list):
        return _pairs(found)
    if isinstance(found, Mapping):
        return {str(key): value for key, value in found.items() if value is not None and not _is_vector(str(key))}
    return {
        key.removeprefix(_COLUMN): value
        for key, value in raw.items()
        if key.startswith(_COLUMN) and value is not None and not _is_vector(key)
    }


def _pairs(items: Iterable[Any]) -> dict[str, Any]:
    """OTLP's `[{"key", "value"}]`. A key that comes twice keeps its last value, as the SDK does."""
    return {
        key: value
        for item in items
        if isinstance(item, dict)
        and isinstance(key := item.get("key"), str)
        and not _is_vector(key)
        and (value := _value(item.get("value"))) is not None
    }


def _value(value: Any) -> Any:
    """OTLP's AnyValue: the one kind that is not null, under either spelling; 64-bit integers come as text."""
    if not isinstance(value, dict):
        return None
    if (text := value.get("stringValue")) is not None:
        return text
    for kind, item in value.items():
        if item is None:
            continue
        match kind.replace("_", "").lower():
            case "intvalue":
                return _integer(item)
            case "arrayvalue":
                return [_value(each) for each in items_of(item.get("values"))] if isinstance(item, Mapping) else None
            case "kvlistvalue":
                return _pairs(items_of(item.get("values"))) if isinstance(item, Mapping) else None
            case "stringvalue" | "doublevalue" | "boolvalue" | "bytesvalue":
                return item
    return None


def _integer(value: Any) -> Any:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return value
    return number if -(1 << 63) <= number < 1 << 63 else str(number)


def _event(raw: Mapping[str, Any]) -> Event:
    return Event(
        str(raw.get("name") or ""),
        _attributes(raw),
        nanoseconds(_first(raw, "timeUnixNano", "time_unix_nano", "timestamp")),
    )


def _error(raw: Mapping[str, Any]) -> str | None:
    status = raw.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, Mapping) else raw.get("status_code")
    if code not in (2, "STATUS_CODE_ERROR", "ERROR"):
        return None
    said = _first(status, "message", "description") if isinstance(status, Mapping) else raw.get("status_message")
    return str(said or "error")


def _scope_of(raw: Mapping[str, Any]) -> str:
    scope = raw.get("scope") or raw.get("instrumentation_scope")
    return str(scope.get("name") or "") if isinstance(scope, Mapping) else ""


def _count(value: Any) -> int:
    found = _integer(value)
    return found if isinstance(found, int) else 0


def _is_vector(key: str) -> bool:
    """Embedding vectors are the bulk of a span and say nothing that an audit reads."""
    return key.endswith(".vector") or key.endswith("embedding.embeddings")


def _first(values: Mapping[str, Any], *keys: str) -> Any:
    return next((values[key] for key in keys if values.get(key) is not None), None)
