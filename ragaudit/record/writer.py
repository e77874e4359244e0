"""The background thread: a bounded queue in front of a file. A full queue drops and counts, and never waits."""

import atexit
import functools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ragaudit.record.files import LineFile
from ragaudit.record.guard import Faults, shielded

BATCH = 64
"""Lines that are written at once at most."""
CLOSE_SECONDS = 5.0


class Writer:
    """Takes rows, turns them into lines in a thread of its own, and appends them to the file.

    The thread starts with the first row, and again in a process that was forked; what was waiting at the fork is the
    parent's to write.
    """

    def __init__(self, file: LineFile, encode: Callable[[Any], str], faults: Faults, max_queue: int) -> None:
        self.faults = faults
        self._file = file
        self._encode = encode
        self._max_queue = max_queue
        self._thread: threading.Thread | None = None
        self.written = 0
        self.dropped = 0
        self._reset()
        _ALL.add(self)
        _hook_process()

    def put(self, row: Any) -> bool:
        """Queue a row; False when the queue is full or closed, and the row is dropped."""
        with self._changed:
            if self._closed or len(self._waiting) >= self._max_queue:
                self.dropped += 1
                problem = "closed" if self._closed else f"the queue of {self._max_queue} is full"
                self.faults.add("queue", f"{problem}: records are dropped")
                return False
            self._waiting.append(row)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ragaudit-record", daemon=True)
                thread.start()
                self._thread = thread
            self._changed.notify_all()
            return True

    @property
    def waiting(self) -> int:
        """Rows that are not written yet."""
        return len(self._waiting)

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all that was queued is written; False when that took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._is_busy, timeout=seconds)

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Write what is queued and end. Rows that come later are dropped and counted."""
        with self._changed:
            self._closed = True
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
            return not thread.is_alive()
        return True

    def forked(self) -> None:
        """Begin afresh in a new process; the file is opened again, for the parent may be in the middle of a write."""
        self.faults.renew()
        self._file.close()
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._thread = None
        self._is_busy = False
        self._closed = False
        self.written = 0
        self.dropped = 0

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
                if not self._waiting:
                    self._file.close()
                    return
                rows = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                self._is_busy = True
            shielded(self.faults, "writer", functools.partial(self._write, rows))

    def _write(self, rows: list[Any]) -> None:
        made = [shielded(self.faults, "row", functools.partial(self._encode, row)) for row in rows]
        lines = [line for line in made if line is not None]
        self.dropped += len(rows) - len(lines)
        if not lines:
            return
        try:
            self._file.append(lines)
        except OSError as error:
            self.dropped += len(lines)
            self._file.close()
            self.faults.add(self._file.path.name, f"cannot be written ({error.strerror})", error=error)
        else:
            self.written += len(lines)


_ALL: weakref.WeakSet[Writer] = weakref.WeakSet()


@functools.cache
def _hook_process() -> None:
    """Once a process that records: write what is queued at exit; begin afresh in a fork."""
    atexit.register(_close_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _close_all() -> None:
    for writer in list(_ALL):
        writer.close()


def _after_fork() -> None:
    for writer in list(_ALL):
        writer.forked()
