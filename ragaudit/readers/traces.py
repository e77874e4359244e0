"""Lines of traces.jsonl -> Trace: a fast path for well-formed lines, a patient one with full messages for the rest."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any

import msgspec
from pydantic import ValidationError

from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Hit, Probe, Trace
from ragaudit.readers.dropping import can_drop, drop
from ragaudit.readers.fields import (
    Odd,
    explained,
    finite,
    id_of,
    ids_of,
    items_of,
    name_of,
    number_of,
    quoted,
    revision_of,
    shown,
    table_of,
    time_of,
)
from ragaudit.readers.gold import SettledGold, gold_mode_of, settle_gold
from ragaudit.readers.hits import arms_of, ranking_of, ranking_or_per_arm
from ragaudit.readers.lines import LineError, parse_json
from ragaudit.readers.problems import Problems

_MAX_K = 1_000_000
_MAX_NAMES, _LONGEST_NAME = 1000, 60
_ALIKE = 0.88
"""`after_rerankk` is like a field, `timestamp_ms` is not."""

_Ranking = tuple[Hit, ...]
_Id = Annotated[str, msgspec.Meta(min_length=1)]
_Ids = tuple[_Id, ...]


@dataclass(frozen=True)
class TraceContext:
    """What a trace is read against: its file, the qrels, and the K of the configuration."""

    name: str
    problems: Problems
    qrels: Mapping[str, Mapping[str, float]] | None = None
    k_final: int | None = None
    matched: set[str] = field(default_factory=set)
    """Query ids of the qrels that a trace was found for."""
    hints: dict[str, str] = field(default_factory=dict)
    """Unknown field -> the field it may be meant for; "" = none, or said before."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """One well-formed line. Fields typed Any are judged by pydantic; all others are final when msgspec is done."""

    query_id: _Id
    query_text: str
    k_final: int | None = None
    user_acl: tuple[str, ...] | None = None
    index_revision: str | None = None
    embedding_model: str | None = None
    query_rewrite: str | list[Any] | dict[str, Any] | None = None
    filters_applied: dict[str, Any] | None = None
    arms: dict[str, _Ranking] | None = None
    fused: _Ranking | None = None
    after_rerank: _Ranking | None = None
    final_context_ids: _Ids | None = None
    final_context_chars: int | None = None
    gold_ids: _Ids | None = None
    notes: str | None = None
    session_id: _Id | None = None
    timestamp: str | None = None
    slices: dict[str, Any] | None = None
    after_filter: _Ranking | dict[str, _Ranking] | None = None
    after_threshold: _Ranking | dict[str, _Ranking] | None = None
    conversation: Any = None
    rerank_input: _Ranking | None = None
    prompt_ids: _Ids | None = None
    context_texts: dict[str, str] | None = None
    context_hashes: dict[str, str] | None = None
    arm_status: Any = None
    gold: Any = None
    gold_mode: Any = None
    gold_groups: tuple[_Ids, ...] | None = None
    provenance: Any = None
    answerable: bool | None = None
    answer: Any = None
    reference: str | None = None
    prompt_tokens: int | None = None
    id_map: dict[str, _Id] | None = None
    probes: Any = None
    config: dict[str, Any] | None = None


_HEADER = ("query_id", "query_text", "k_final", "conversation", "arm_status", "provenance", "answer", "probes")
_decode = msgspec.json.Decoder(_Line).decode


def traces_from_lines(lines: Iterable[tuple[int, bytes]], context: TraceContext) -> Iterator[Trace]:
    """Read numbered lines; a line that cannot be used is set aside, and the rest go on."""

    def read(number: int, line: bytes) -> Trace:
        try:
            return _from_typed(_decode(line), number, context)
        except (msgspec.DecodeError, ValidationError, LineError, RecursionError):
            pass  # the patient path says what is wrong, or reads the line after all
        return _from_value(parse_json(line, context.name, number, context.problems), number, context)

    yield from _usable(lines, read, context)


def traces_from_rows(rows: Iterable[tuple[int, dict[str, Any]]], context: TraceContext) -> Iterator[Trace]:
    """Read numbered rows of a table, given as Python values."""
    yield from _usable(rows, lambda number, row: _from_value(row, number, context), context)


def _usable(
    records: Iterable[tuple[int, Any]], read: Callable[[int, Any], Trace], context: TraceContext
) -> Iterator[Trace]:
    problems, name = context.problems, context.name
    first_seen: dict[str, int] = {}
    for number, record in records:
        try:
            trace = read(number, record)
        except RecursionError:
            problems.set_aside("unreadable", name, number, "is nested too deeply to read. Log flat records.")
            continue
        except LineError as error:
            problems.set_aside(error.kind, name, number, str(error))
            continue
        first = first_seen.setdefault(trace.query_id, number)
        if first != number:
            text = f"query_id {quoted(trace.query_id)} was already on line {first}, which counts. Log one line a query."
            problems.set_aside("duplicate_query_id", name, number, text)
            continue
        if context.qrels is not None and trace.query_id in context.qrels:
            context.matched.add(trace.query_id)
        problems.done(name, number)
        yield trace


def _from_typed(line: _Line, number: int, context: TraceContext) -> Trace:
    values = {key: value for key, value in msgspec.structs.asdict(line).items() if value is not None}
    settled = _complete(values, context)
    header = {key: values.pop(key) for key in _HEADER if key in values}
    trace = Trace.model_validate(header).model_copy(update=values)
    _remark(settled, number, context)
    return trace


def _from_value(value: Any, number: int, context: TraceContext) -> Trace:
    if not isinstance(value, dict):
        raise LineError(f"holds {shown(value)}, not an object. Write one JSON object on one line for each query.")
    odd = Odd()
    values: dict[str, Any] = {}
    for key, item in value.items():
        if item is None and key in Trace.model_fields:
            continue
        reader = _READERS.get(key, finite)
        try:
            values[key] = reader(item, key, odd)
        except LineError as error:
            if not can_drop((key,)):
                raise
            odd.add("field_dropped", f"{error} The trace is used without it.")
    settled = _complete(values, context)
    trace = _validated(values, odd)
    odd.report(context.problems, context.name, number)
    _remark(settled, number, context)
    _misnamed(value, number, context)
    return trace


def _validated(values: dict[str, Any], odd: Odd) -> Trace:
    """The trace without the optional fields that cannot be read."""
    while True:
        try:
            return Trace.model_validate(values)
        except ValidationError as error:
            what = explained(error, values)
            dropped = drop(error, values)
            if dropped is None:
                raise LineError(what) from None
            odd.add("field_dropped", f"{what} The trace is used without {dropped}.")


def _misnamed(value: Mapping[str, Any], number: int, context: TraceContext) -> None:
    """Hint once at an unknown field that is spelled almost like one which this line lacks."""
    for name in value.keys() - Trace.model_fields.keys():
        near = context.hints.get(name)
        if near is None:
            is_name = len(name) <= _LONGEST_NAME and len(context.hints) < _MAX_NAMES
            close = get_close_matches(name, Trace.model_fields, n=1, cutoff=_ALIKE) if is_name else []
            near = close[0] if close else ""
            if is_name:
                context.hints[name] = near
        if near and value[name] is not None and value.get(near) is None:
            context.hints[name] = ""
            what = f"{name}: not a field that is read, and kept as it is. Did you mean {near}?"
            context.problems.note("field_misnamed", context.name, number, what)


def _complete(values: dict[str, Any], context: TraceContext) -> SettledGold:
    """Check what is mandatory and settle K and gold, in place."""
    for key in ("query_id", "query_text"):
        if key not in values:
            raise LineError(f"{key}: missing. {_MANDATORY[key]}", "missing_field")
    if "arms" not in values and "final_context_ids" not in values:
        raise LineError(f"arms, final_context_ids: both missing. {_MANDATORY['arms']}", "missing_field")
    if "k_final" not in values:
        if context.k_final is None:
            raise LineError(f"k_final: missing. {_MANDATORY['k_final']}", "missing_field")
        values["k_final"] = context.k_final
        values["provenance"] = {**table_of(values.get("provenance", {}), "provenance"), "k_final": "assumed"}
    else:
        values["k_final"] = _k(values["k_final"])
    row = None if context.qrels is None else context.qrels.get(values["query_id"])
    if "config" in values:
        _check_config(values["config"])
    settled = settle_gold(values.get("gold_ids"), values.get("gold"), values.get("gold_groups"), row)
    values.pop("gold_groups", None)
    if settled.gold_groups is not None:
        values["gold_groups"] = settled.gold_groups
    values |= {
        "gold": settled.gold,
        "gold_labelled": settled.gold_labelled,
        "gold_mode": gold_mode_of(values.get("gold_mode")),
    }
    return settled


def _k(value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= _MAX_K and value == int(value):
        return int(value)
    raise LineError(f"k_final: {shown(value)} is no K. {_MANDATORY['k_final']}")


def _check_config(config: Any) -> None:
    """A departure that cannot be read costs the line: without it the query is judged by settings that it had not."""
    try:
        Pipeline.model_validate(config)
    except ValidationError as error:
        raise LineError(explained(error, config, "config")) from None


def _remark(settled: SettledGold, number: int, context: TraceContext) -> None:
    for kind, message in settled.remarks:
        context.problems.note(kind, context.name, number, message)


_MANDATORY = {
    "query_id": "Log an id that is stable and unique for each query.",
    "query_text": "Log the text that the user asked.",
    "k_final": "Log how many chunks the prompt may hold, from 1 (an old field `k` is not read: rename it to k_final),"
    " or set k_final under [pipeline] in ragaudit.toml.",
    "arms": 'Log what each arm returned, {"dense": [{"id": ..., "rank": 1, "score": ...}]}, or the ids in the context.',
}


def _as_id(value: Any, path: str, odd: Odd) -> str:
    return id_of(value, path)


def _asked(value: Any, path: str, odd: Odd) -> str:
    if isinstance(value, str):
        return value
    raise LineError(f"{path}: {shown(value)} is no text. {_MANDATORY['query_text']}")


def _principals(value: Any, path: str, odd: Odd) -> tuple[str, ...]:
    return tuple(name_of(item, f"{path}[{n}]") for n, item in enumerate(items_of(value, path, "principals")))


def _ids(value: Any, path: str, odd: Odd) -> tuple[str, ...]:
    return ids_of(value, path)


def _id_groups(value: Any, path: str, odd: Odd) -> tuple[tuple[str, ...], ...]:
    return tuple(ids_of(group, f"{path}[{n}]") for n, group in enumerate(items_of(value, path, "lists of ids")))


def _id_keys(value: Any, path: str, odd: Odd) -> dict[str, Any]:
    return {name_of(key, path): item for key, item in table_of(value, path).items() if item is not None}


def _id_pairs(value: Any, path: str, odd: Odd) -> dict[str, str]:
    return {key: id_of(item, f"{path}.{key}") for key, item in _id_keys(value, path, odd).items()}


def _count(value: Any, path: str, odd: Odd) -> int | None:
    number = number_of(value, path, odd)
    if number is not None and not number.is_integer():
        raise LineError(f"{path}: {shown(value)} is no count. Log a whole number, or null.")
    return None if number is None else int(value)


def _as_given(value: Any, path: str, odd: Odd) -> Any:
    return value


def _probes(value: Any, path: str, odd: Odd) -> list[Any]:
    """Probes without those that cannot be read, and those whose value is NaN: null means "not found", as measured."""
    kept = []
    for n, probe in enumerate(items_of(value, path, "probes")):
        measured = probe.get("value") if isinstance(probe, dict) else None
        if isinstance(measured, float) and finite(measured, f"{path}[{n}].value", odd) is None:
            continue
        probe = finite(probe, f"{path}[{n}]", odd)
        try:
            kept.append(Probe.model_validate(probe))
        except ValidationError as error:
            odd.add("field_dropped", f"{explained(error, probe, f'{path}[{n}]')} The trace is used without this probe.")
    return kept


_READERS: Mapping[str, Callable[[Any, str, Odd], Any]] = {
    "query_id": _as_id,
    "query_text": _asked,
    "k_final": _as_given,
    "session_id": _as_id,
    "index_revision": revision_of,
    "timestamp": time_of,
    "user_acl": _principals,
    "arms": arms_of,
    "fused": ranking_of,
    "after_rerank": ranking_of,
    "rerank_input": ranking_of,
    "after_filter": ranking_or_per_arm,
    "after_threshold": ranking_or_per_arm,
    "final_context_ids": _ids,
    "prompt_ids": _ids,
    "gold_ids": _ids,
    "gold_groups": _id_groups,
    "gold": _as_given,
    "context_texts": _id_keys,
    "context_hashes": _id_keys,
    "id_map": _id_pairs,
    "final_context_chars": _count,
    "prompt_tokens": _count,
    "probes": _probes,
}
