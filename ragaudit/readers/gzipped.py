"""A gzip file as a stream that gives everything in front of a damage before it says that there is one."""

import io
import zlib
from typing import Any, BinaryIO

_STEP = 1 << 18
"""Bytes asked for and given at once."""


class GzipStream(io.RawIOBase):
    """Decompresses as it is read, member after member, and closes the file under it.

    `gzip.GzipFile` throws away what it had already decompressed when the stream ends early.

    Raises:
        zlib.error, EOFError: On the read behind the last byte that could be decompressed.
    """

    def __init__(self, under: BinaryIO) -> None:
        self._under = under
        self._engine = _engine()
        self._input = b""
        self._ready = memoryview(b"")
        self._damage: zlib.error | EOFError | None = None

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer with what comes next; 0 at the end."""
        if not self._ready:
            self._ready = memoryview(self._more())
        target = memoryview(buffer).cast("B")
        n = min(len(target), len(self._ready))
        target[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        """Close this stream and the file."""
        super().close()
        self._under.close()

    def _more(self) -> bytes:
        while self._damage is None:
            if self._engine.eof:
                rest = (self._engine.unused_data or self._under.read(_STEP)).lstrip(b"\0")  # members may be padded
                if not rest and not (rest := self._under.read(_STEP).lstrip(b"\0")):
                    return b""
                self._engine, self._input = _engine(), rest
            given = self._input or self._under.read(_STEP)
            before = self._engine.copy()
            try:
                found = self._engine.decompress(given, _STEP)
                self._input = self._engine.unconsumed_tail
                if not found and not given and not self._engine.eof:
                    self._damage = EOFError("it ends early")
            except zlib.error as error:
                found, self._damage = _up_to_the_damage(before, given), error
            if found:
                return found
        raise self._damage


def _engine() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=31)


def _up_to_the_damage(engine: "zlib._Decompress", given: bytes) -> bytes:
    found = bytearray()
    try:
        for place in range(len(given)):
            found += engine.decompress(given[place : place + 1])
    except zlib.error:
        pass  # the caller has it
    return bytes(found)
