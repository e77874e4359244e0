"""Parquet files with the columns of the JSONL files, as plain Python values."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from ragaudit.errors import InputError, MissingExtraError

_MAGIC = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Whether the file is Parquet by its name or its first bytes.

    Raises:
        InputError: The file cannot be opened.
    """
    if path.suffix in (".parquet", ".pq"):
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


def parquet_rows(path: Path, name: str, batch_rows: int = 512) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each row with its number, from 1, one batch in memory at a time.

    A null in a struct is an absent key: all rows of a Parquet file share one struct type, so that keys which a row
    never had come back as null.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InputError: The file is no Parquet, or is damaged.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(f"{name}: Parquet needs pyarrow. Run: pip install 'ragaudit[parquet]'.") from None
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=batch_rows):
                names = batch.schema.names
                columns = [_values(column, pa) for column in batch.columns]
                for row in zip(*columns, strict=True):
                    number += 1
                    yield number, {key: value for key, value in zip(names, row, strict=True) if value is not None}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        place = f"{name}:{number + 1}" if number else name
        raise InputError(f"{place}: cannot be read as Parquet ({error}). Write the file again.") from None


def _values(column: Any, pa: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # Python's datetime ends at microseconds, and pyarrow refuses to cut silently
        kind = pa.timestamp("us", tz=kind.tz)
        column = column.cast(kind, safe=False)
    return [_plain(value, kind, pa) for value in column.to_pylist()]


def _plain(value: Any, kind: Any, pa: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _plain(value[f.name], f.type, pa) for f in kind if value[f.name] is not None}
    if pa.types.is_map(kind):
        return {key: _plain(item, kind.item_type, pa) for key, item in value}
    if isinstance(value, list):
        return [_plain(item, kind.value_type, pa) for item in value]
    if isinstance(value, Decimal):
        return int(value) if kind.scale <= 0 else float(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value
