"""The head of a FAISS index file, and the vectors of a flat one; read without the library, which need not be there."""

import struct
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ragaudit.errors import InputError
from ragaudit.inventories.records import Held, measured

_HEAD = struct.Struct("<iqqq?i")
_SIZE = struct.Struct("<Q")
_FLAT = ("IxFI", "IxF2", "IxFl")
_MAPS = ("IxMp", "IxM2")
_METRICS = {0: "dot", 1: "l2"}


@dataclass(frozen=True)
class FaissIndex:
    """What the head of the file says, and where the vectors of a flat index stand."""

    path: Path
    kind: str
    """`flat`, or FAISS's four letters for another kind."""
    dim: int
    rows: int
    metric: str | None
    vectors_at: int | None
    """Byte at which the vectors begin; None for a kind that does not keep them one after the other."""

    def held(self, stream: BinaryIO, position: int, *, with_vectors: bool) -> Held | None:
        """The row at a position, None when the index has no such row."""
        if not 0 <= position < self.rows:
            return None
        if self.vectors_at is None or not with_vectors:
            return Held(dim=self.dim)
        stream.seek(self.vectors_at + position * self.dim * 4)
        values = array("f")
        values.frombytes(stream.read(self.dim * 4))
        return measured(values)


def read_head(path: Path) -> FaissIndex:
    """Raises InputError when the file is not there, or no FAISS index."""
    try:
        with path.open("rb") as stream:
            return _read(path, stream)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    except struct.error:
        raise InputError(f"{path}: is no FAISS index, or cut short. Write it again with faiss.write_index.") from None


def _read(path: Path, stream: BinaryIO) -> FaissIndex:
    letters = stream.read(4).decode("latin-1")
    if not letters.startswith("I") or not letters.isalnum():
        raise InputError(f"{path}: is no FAISS index. Write it with faiss.write_index.")
    if letters in _MAPS:
        _head(stream)
        letters = stream.read(4).decode("latin-1")
    dim, rows, metric = _head(stream)
    at = None
    if letters in _FLAT:
        (floats,) = _SIZE.unpack(stream.read(_SIZE.size))
        if floats == dim * rows:
            at = stream.tell()
    kind = (
        "flat"
        if letters in _FLAT
        else "hnsw"
        if letters.startswith("IH")
        else "ivf"
        if letters[:2] == "Iw"
        else letters
    )
    return FaissIndex(path, kind, dim, rows, _METRICS.get(metric), at)


def _head(stream: BinaryIO) -> tuple[int, int, int]:
    dim, rows, _, _, _, metric = _HEAD.unpack(stream.read(_HEAD.size))
    if metric > 1:
        stream.read(4)  # the metric's argument
    return dim, rows, metric
