"""The tape: replies recorded in a committed cassette and this machine's cache, and what may be asked anew."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ragaudit.errors import TapeMissError
from ragaudit.judge.cassette import Cassette, part_of
from ragaudit.judge.nearest import first_difference, nearest
from ragaudit.judge.recording import asked, request_key
from ragaudit.judge.redact import shown
from ragaudit.model.judgement import JudgeSample, Reply, Request

if TYPE_CHECKING:
    from ragaudit.judge.cache import ReplyCache

_LOOKED_AT = 20_000
"""Recordings compared with a request that is missing; more would only delay the message."""


class TapeMode(StrEnum):
    """What may be asked and recorded; the words are those of vcrpy."""

    NONE = "none"
    """Replay only: a missing reply is an error, nothing is written."""
    ONCE = "once"
    """Record when there is no recording yet; afterwards as `none`."""
    NEW = "new"
    """Replay what is there, ask for and record what is not."""
    ALL = "all"
    """Ask everything again, once, and record it."""


class Tape:
    """Recorded replies. The cassette is looked at first, then the cache; what is new goes to both."""

    def __init__(self, mode: TapeMode, cassette: Cassette | None, cache: "ReplyCache | None", *, records: bool) -> None:
        self.mode = mode
        self.records = records
        """Whether a reply that is not there may be asked for: never in `none`, and in `once` only the first time."""
        self._cassette = cassette
        self._cache = cache
        self._fresh: set[str] = set()
        """Keys that were asked again in this run, in mode `all`."""

    @classmethod
    def open(
        cls, mode: TapeMode, *, cassette: Path | None, cache: Path | None, size_limit: int | None = None
    ) -> "Tape":
        """Open what there is. Only a mode that records makes or changes a file.

        Args:
            mode: What may be asked and recorded.
            cassette: The cassette file, or None.
            cache: The folder of the reply cache, or None.
            size_limit: Bytes that the cache may hold; None = no limit.

        Raises:
            InputError: A file is damaged, of another format, or cannot be written.
        """
        recorded_before = cassette.exists() if cassette else bool(cache and any(cache.glob("*.db")))
        records = mode in (TapeMode.NEW, TapeMode.ALL) or (mode is TapeMode.ONCE and not recorded_before)
        reply_cache = None
        if cache is not None:
            from ragaudit.judge.cache import ReplyCache

            reply_cache = ReplyCache.open(cache, records=records, size_limit=size_limit)
        opened = Cassette.open(cassette, records=records) if cassette else None
        return cls(mode, opened, reply_cache, records=records)

    @property
    def only_cache(self) -> "ReplyCache | None":
        """The cache where it alone replays; None = there is a cassette, or everything is asked again."""
        return None if self._cassette is not None or self.mode is TapeMode.ALL else self._cache

    def find(self, request: Request, *, key: str | None = None, about: JudgeSample | None = None) -> Reply | None:
        """The recorded reply to a request, or None when it is to be asked for.

        Args:
            request: The request.
            key: Its key, when it is known already.
            about: Which query it is for.

        Raises:
            TapeMissError: There is none and nothing may be recorded.
            InputError: The cache is damaged.
        """
        key = key or request_key(request)
        if self.mode is TapeMode.ALL and key not in self._fresh:
            return None
        reply = self._cassette.find(key) if self._cassette is not None else None
        if reply is None and self._cache is not None:
            reply = self._cache.find(key)
            if reply is not None and self._cassette is not None and self.records:
                self._cassette.record(request, reply, key=key)
        if reply is None and not self.records:
            raise TapeMissError(self._miss(request, about))
        return reply

    def record(self, request: Request, reply: Reply, *, key: str | None = None) -> None:
        """Keep a reply, on disk before this returns."""
        if not self.records:
            raise AssertionError(f"nothing is recorded in mode {self.mode}")
        key = key or request_key(request)
        if self._cache is not None:
            self._cache.record(request, reply, key=key)
        if self._cassette is not None:
            self._cassette.record(request, reply, key=key)
        self._fresh.add(key)

    def release(self) -> None:
        """Let go of what the current thread holds open. For a thread that used the tape and ends."""
        if self._cache is not None:
            self._cache.release()

    def close(self) -> None:
        """Write the cassette, sorted, and let go of the files."""
        self.release()
        if self._cassette is not None:
            self._cassette.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _miss(self, request: Request, about: JudgeSample | None) -> str:
        wanted = asked(request)
        place: object = self._cassette.path if self._cassette is not None else "tape"
        if self._cassette is None and self._cache is not None:
            place = self._cache.folder
        whose = f" on {shown(about.query_id)} {shown(about.query)}" if about is not None else ""
        parts = [f"{place}: no reply for {request.prompt}@{request.version}{whose}."]
        near = nearest(wanted, islice(self._questions(), _LOOKED_AT))
        if near is None:
            has_file = self._cassette is not None or self._cache is not None
            parts.append("Nothing is recorded there." if has_file else "No cassette or cache is set.")
        else:
            name = f"{near.get('prompt')}@{near.get('version')}"
            parts.append(f"Nearest: {name}; first difference: {first_difference(wanted, near)}.")
        if self._cassette is not None and self._cassette.cut_off:
            parts.append("Its last line is cut off.")
        if self._cassette is not None and part_of(self._cassette.path).exists():
            parts.append(f"A recording was interrupted ({part_of(self._cassette.path).name} is there).")
        parts.append("Record it: run the same command with --tape new, where the judge model can be reached.")
        return " ".join(parts)

    def _questions(self) -> Iterator[dict[str, Any]]:
        from_cassette = self._cassette.questions() if self._cassette is not None else ()
        from_cache = (question for _, question, _ in self._cache.entries()) if self._cache is not None else ()
        return iter(chain(from_cassette, from_cache))


__all__ = ["Tape", "TapeMode", "request_key"]
