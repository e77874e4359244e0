"""A file that whole lines are appended to: mode 0600, rotated by size, safe for several processes and crashes."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class LineFile:
    """Appends whole lines in one write (O_APPEND). Opened at the first line, again when it was moved away."""

    def __init__(self, path: Path, rotate_bytes: int | None = None, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._rotate_bytes = rotate_bytes
        self._clock = clock
        self._descriptor: int | None = None
        self._is_open_line = False

    def append(self, lines: Sequence[str]) -> None:
        """Write the lines, each ended by a newline. Lone surrogates must have been escaped.

        Raises:
            OSError: Nothing, or only a part, could be written. What follows begins on a new line.
        """
        payload = "".join(f"{line}\n" for line in lines).encode("utf-8")
        descriptor = self._ready(len(payload))
        if self._is_open_line:
            payload = b"\n" + payload
        self._is_open_line = True
        written = os.write(descriptor, payload)
        while written < len(payload):  # a full disk or a signal; a second write is the best that is left
            written += os.write(descriptor, payload[written:])
        self._is_open_line = False

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        self._is_open_line = False
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _ready(self, coming: int) -> int:
        if self._descriptor is not None and not self._is_current(self._descriptor):
            self.close()
        if self._descriptor is None:
            self._descriptor = self._opened()
        size = os.fstat(self._descriptor).st_size
        if self._rotate_bytes is not None and size and size + coming > self._rotate_bytes:
            self.close()
            os.rename(self.path, self._aside())
            self._descriptor = self._opened()
        return self._descriptor

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, flags, 0o600)
        self._is_open_line = False
        if os.fstat(descriptor).st_size:
            os.lseek(descriptor, -1, os.SEEK_END)
            # Seen while another process writes, a whole line looks open: a blank line results, which readers skip.
            self._is_open_line = os.read(descriptor, 1) != b"\n"
        return descriptor

    def _is_current(self, descriptor: int) -> bool:
        """False when another process rotated the file, or somebody moved or deleted it."""
        mine = os.fstat(descriptor)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)

    def _aside(self) -> Path:
        """A name that is free: `traces.20261130T105319Z-412.jsonl` (time, process id)."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
        for n in range(10_000):
            tail = f"{stamp}-{os.getpid()}" + (f"-{n}" if n else "")
            name = self.path.with_name(f"{self.path.stem}.{tail}{self.path.suffix}")
            if not name.exists():
                return name
        raise FileExistsError(name)
