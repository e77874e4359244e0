"""Lists of hits in the forms that logs use: objects, bare ids, [id, score] pairs."""

import math
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from ragaudit.model.trace import Hit
from ragaudit.readers.fields import Odd, finite, id_of, items_of, name_of, number_of, rank_of, shown, table_of
from ragaudit.readers.lines import LineError

_T = TypeVar("_T")
_KNOWN = frozenset(Hit.__struct_fields__) - {"extra"}


def ranking_of(value: Any, path: str, odd: Odd) -> tuple[Hit, ...]:
    """One list, in the order given. Repeated ids, odd ranks and ties stay: they are findings, not errors."""
    return tuple([_hit(item, path, n, odd) for n, item in enumerate(items_of(value, path, "hits"))])


def per_arm_of(value: Any, path: str, odd: Odd) -> dict[str, tuple[Hit, ...]]:
    """One list for each arm; an arm whose list is null was not observed and is left out."""
    return {
        str(arm): ranking_of(hits, f"{path}.{arm}", odd)
        for arm, hits in table_of(value, path).items()
        if hits is not None
    }


def arms_of(value: Any, path: str, odd: Odd) -> dict[str, tuple[Hit, ...]] | None:
    """One list for each arm. Where every arm is null, no arm was observed; `{}` says that none ran."""
    return per_arm_of(value, path, odd) or (None if value else {})


def ranking_or_per_arm(value: Any, path: str, odd: Odd) -> tuple[Hit, ...] | dict[str, tuple[Hit, ...]]:
    """The merged list, or one for each arm."""
    return per_arm_of(value, path, odd) if isinstance(value, dict) else ranking_of(value, path, odd)


def _hit(value: Any, path: str, n: int, odd: Odd) -> Hit:
    if isinstance(value, dict):
        return _from_object(value, path, n, odd)
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise LineError(f"{path}[{n}]: a list of {len(value)} is no hit. Log an object, an id, or [id, score].")
        key = id_of(value[0], f"{path}[{n}][0]")
        return Hit(key, score=_or_none(number_of, value[1], f"{path}[{n}][1]", odd))
    if isinstance(value, str | int | UUID):
        return Hit(id_of(value, f"{path}[{n}]"))
    raise LineError(f'{path}[{n}]: {shown(value)} is no hit. Log {{"id": ..., "rank": ..., "score": ...}}.')


def _from_object(value: dict[str, Any], path: str, n: int, odd: Odd) -> Hit:
    """Paths are spelled out only where something is odd: a file of integer ids has hundreds of these a line."""
    get = value.get
    key, rank, score, rrf = get("id"), get("rank"), get("score"), get("rrf")
    if type(key) is not str:
        if key is None:
            raise LineError(f"{path}[{n}].id: missing. Log the chunk's id with every hit.")
        key = str(key) if type(key) is int else id_of(key, f"{path}[{n}].id")
    elif not key:
        raise LineError(f"{path}[{n}].id: is empty. Log the chunk's id with every hit.")
    if rank is not None and type(rank) is not int:
        rank = rank_of(rank, f"{path}[{n}].rank", odd)
    if score is not None and (type(score) is not float or not math.isfinite(score)):
        score = _or_none(number_of, score, f"{path}[{n}].score", odd)
    if rrf is not None and (type(rrf) is not float or not math.isfinite(rrf)):
        rrf = _or_none(number_of, rrf, f"{path}[{n}].rrf", odd)
    sources, text, source_id, metadata = get("sources"), get("text"), get("source_id"), get("metadata")
    if sources is not None:
        sources = _or_none(_names, sources, f"{path}[{n}].sources", odd)
    if text is not None and type(text) is not str:
        text = _or_none(_text, text, f"{path}[{n}].text", odd)
    if source_id is not None:
        source_id = _or_none(_source, source_id, f"{path}[{n}].source_id", odd)
    if metadata is not None:
        metadata = _or_none(_metadata, metadata, f"{path}[{n}].metadata", odd)
    extra = None if _KNOWN.issuperset(value) else _extra(value, path, n, odd)
    return Hit(key, rank, score, rrf, sources, text, source_id, metadata, extra)


def _or_none(read: Callable[[Any, str, Odd], _T], value: Any, path: str, odd: Odd) -> _T | None:
    """A part that a hit can do without: when it cannot be read it is absent, which is no observation, and counted."""
    try:
        return read(value, path, odd)
    except LineError as error:
        odd.add("field_dropped", f"{error} The hit is used without it.")
        return None


def _names(value: Any, path: str, odd: Odd) -> tuple[str, ...]:
    return tuple(map(str, items_of(value, path, "arms")))


def _text(value: Any, path: str, odd: Odd) -> str:
    raise LineError(f"{path}: {shown(value)} is no text. Log the chunk's text, or null.")


def _source(value: Any, path: str, odd: Odd) -> str:
    return name_of(value, path)


def _metadata(value: Any, path: str, odd: Odd) -> Any:
    return finite(dict(table_of(value, path)), path, odd)


def _extra(value: dict[str, Any], path: str, n: int, odd: Odd) -> dict[str, Any] | None:
    """The unknown keys. A key `extra` that holds an object is what an earlier export of ours wrote: merged."""
    unknown = {}
    for key, item in value.items():
        if key not in _KNOWN:
            is_plain = type(item) is str or (type(item) is float and math.isfinite(item))
            unknown[key] = item if is_plain else finite(item, f"{path}[{n}].{key}", odd)
    nested = unknown.pop("extra", None)
    if isinstance(nested, dict):
        unknown = {**nested, **unknown}
    elif nested is not None:
        unknown["extra"] = nested
    return unknown or None
