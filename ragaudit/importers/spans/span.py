"""A span, whatever file it came from: its ids, its place in the tree, its attributes by name."""

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_NO_PARENT = frozenset({"", "0" * 16, "None", "nan"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct, frozen=True):
    """Something that happened during a span, with attributes of its own."""

    name: str
    attributes: dict[str, Any]
    time: int = 0


class Span(msgspec.Struct, frozen=True):
    """One step of one trace. Times in nanoseconds since 1970, 0 = not logged."""

    trace_id: str
    span_id: str
    name: str
    parent_id: str | None = None
    start: int = 0
    end: int = 0
    attributes: dict[str, Any] = {}
    events: tuple[Event, ...] = ()
    dropped: int = 0
    """Attributes that the SDK threw away, oldest first."""
    scope: str = ""
    """The instrumentation that made it."""
    error: str | None = None


def span_id_of(value: Any) -> str | None:
    """An id as lower-case hex where it is hex or base64, else as it is written; None = there is none."""
    text = str(value) if value is not None else ""
    if text.startswith("0x"):
        text = text[2:]
    if len(text) in (12, 24) and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return None if text in _NO_PARENT else text.lower()


def items_of(value: Any) -> list[Any]:
    """The items of a list; of everything else none."""
    return value if isinstance(value, list) else []


def nanoseconds(value: Any) -> int:
    """A time as nanoseconds since 1970: a count as number or text, or ISO 8601 (without a zone: UTC). 0 = no time."""
    if isinstance(value, bool) or value is None:
        return 0
    if isinstance(value, int | float):
        return int(value) if 0 <= value < 1 << 63 else 0
    text = str(value)
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 20 else 0
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return 0
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return max(0, (time - _EPOCH) // timedelta(microseconds=1)) * 1000


def iso_time(nanos: int) -> str | None:
    """The time as ISO 8601 in UTC, to the microsecond; None for 0 and for what no calendar holds."""
    try:
        time = _EPOCH + timedelta(microseconds=nanos // 1000)
    except OverflowError:
        return None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z") if nanos else None
