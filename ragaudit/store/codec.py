"""How records become columns of the audit file and back, exactly: absent, empty and unknown keys are kept apart."""

import json
import zlib
from functools import cache
from typing import Any

import msgspec
from pydantic import BaseModel

from ragaudit.model.judgement import Judgement
from ragaudit.model.result import QueryResult
from ragaudit.model.trace import Hit, Trace

MAX_TRACE_BYTES = 64 << 20
"""A trace that unpacks to more than this is damage or an attack: a trace of 10,000 hits is a hundredth of it."""

_LISTS = ("fused", "after_filter", "after_threshold", "rerank_input", "after_rerank")
_ARMS = ("arms", "after_filter", "after_threshold")


def pack_trace(trace: Trace) -> bytes:
    """The trace as compressed JSON without its default values."""
    row = filled(trace)
    try:
        packed = msgspec.json.encode(row, enc_hook=_plain)
    except (OverflowError, UnicodeEncodeError, TypeError):  # integers beyond 64 bits, half surrogates: logs hold them
        packed = b"null"
    if b"null" in packed:
        # msgspec writes NaN and infinity as null. None is rare here, defaults being left out, so that any null is
        # reason enough for the standard encoder, five times as slow, which keeps all of these apart.
        packed = to_json(row).encode("ascii")
    return zlib.compress(packed, 1)


def unpack_trace(packed: bytes) -> Trace:
    """The trace that was packed.

    Raises:
        ValueError: it is not what `pack_trace` writes.
    """
    try:
        unpacker = zlib.decompressobj()
        row = json.loads(unpacker.decompress(packed, MAX_TRACE_BYTES))
        if not unpacker.eof:
            raise ValueError("a trace is cut off or too large")
        for name in _LISTS:
            if isinstance(row.get(name), list):
                row[name] = _hits(row[name])
        for name in _ARMS:
            if isinstance(row.get(name), dict):
                row[name] = {arm: _hits(hits) for arm, hits in row[name].items()}
        return Trace.model_validate(row)
    except (zlib.error, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"a trace does not unpack: {error}") from error


def pack_judgement(judgement: Judgement) -> str:
    """The judgement as JSON without its default values."""
    return msgspec.json.encode(judgement).decode()


def unpack_judgement(packed: str) -> Judgement:
    """The judgement that was packed.

    Raises:
        ValueError: it is not what `pack_judgement` writes.
    """
    try:
        return msgspec.json.decode(packed, type=Judgement)
    except (msgspec.DecodeError, TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"a judgement does not unpack: {error}") from error


def query_columns(result: QueryResult) -> tuple[str, str, str | None, str, int, str]:
    """What lists and pages show of a query: outcome, stage, gap, causes, number of gold ids, text."""
    diagnosis = result.diagnosis
    return (
        diagnosis.outcome.value,
        diagnosis.stage.value,
        diagnosis.gap,
        to_json(diagnosis.causes),
        len(diagnosis.gold),
        result.query_text,
    )


def filled(record: BaseModel) -> dict[str, Any]:
    """The fields of a record that differ from their defaults, under their names in files, and its unknown keys."""
    values = record.__dict__
    row = {key: values[name] for name, key, default in _fields(type(record)) if values[name] != default}
    row.update(record.model_extra or {})
    return row


def to_json(value: Any) -> str:
    """Compact ASCII JSON of a value that may hold records."""
    return json.dumps(value, separators=(",", ":"), default=_plain)


def _hits(rows: list[Any]) -> tuple[Hit, ...]:
    return msgspec.convert(rows, tuple[Hit, ...])


@cache
def _fields(kind: type[BaseModel]) -> tuple[tuple[str, str, Any], ...]:
    """Attribute, name in files, default. A required field's default is a thing that no value equals."""
    return tuple(
        (name, field.alias or name, field.get_default(call_default_factory=True))
        for name, field in kind.model_fields.items()
    )


def _plain(value: Any) -> Any:
    """What an encoder cannot write itself: records as their filled fields, anything else (dates, ids) as text."""
    if isinstance(value, BaseModel):
        return filled(value)
    if isinstance(value, Hit):
        return {name: getattr(value, name) for name in Hit.__struct_fields__ if getattr(value, name) is not None}
    return str(value)
