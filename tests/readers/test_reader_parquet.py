import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reader_builders import bundle_of, read, record

from ragaudit.config import load_settings
from ragaudit.errors import ConfigError, InputError, MissingExtraError
from ragaudit.model.trace import Hit, Trace
from ragaudit.readers.bundle import Bundle, locate, open_bundle, read_traces
from ragaudit.readers.parquet import is_parquet, parquet_rows

HEALTHY = [
    record(
        query_id="q1",
        user_acl=["tenant:acme"],
        filters_applied={"tenant": "acme"},
        fused=[{"id": "c1", "rank": 1, "rrf": 0.03, "sources": ["dense"]}],
        after_rerank=[],
        prompt_ids=None,
        answer={"text": "yes", "correct": True, "supported_by": ["c1"]},
        probes=[{"probe": "exact_rank", "gold_id": "c1", "value": 3}, {"probe": "lexical_rank", "value": None}],
        slices={"language": "de"},
        latency_ms=12,
    ),
    record(query_id="q2", arms={"dense": [], "bm25": [{"id": "c9", "rank": 1, "score": 12.4}]}, gold_ids=None),
    record(query_id="q3", fused=None, gold_ids=[], context_texts={"c1": "words"}),
]


def opened(folder: Path) -> Bundle:
    return open_bundle(locate(folder), load_settings(None, env={}, flags={}))


def from_table(folder: Path, table: pa.Table) -> tuple[list[Trace], Bundle]:
    pq.write_table(table, folder / "traces.parquet")
    bundle = opened(folder)
    return list(read_traces(bundle)), bundle


def said(trace: Trace) -> dict[str, Any]:
    """Everything the trace says; a key that holds null says nothing."""
    extra = {key: value for key, value in (trace.model_extra or {}).items() if value is not None}
    return {**{name: getattr(trace, name) for name in Trace.model_fields}, **extra}


def test_a_parquet_file_gives_the_same_traces_as_the_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lines, _ = read(tmp_path / "a", *HEALTHY)
    rows, bundle = from_table(tmp_path / "b", pa.Table.from_pylist(HEALTHY, schema=_schema(HEALTHY)))
    assert bundle.problems.texts() == ()
    assert [said(trace) for trace in rows] == [said(trace) for trace in lines]
    assert rows[0].after_rerank == () and rows[1].after_rerank is None
    assert rows[0].arms == {"dense": (Hit("c1", 1, 0.7), Hit("c2", 2, 0.6))}
    assert rows[1].arms == {"dense": (), "bm25": (Hit("c9", 1, 12.4),)}
    assert [trace.gold_labelled for trace in rows] == [True, False, True]
    assert bundle.inputs()["traces.parquet"].rows == 3


def test_arms_may_be_a_map_column(tmp_path: Path) -> None:
    hit = pa.struct([("id", pa.int64()), ("rank", pa.int32()), ("score", pa.float32()), ("vector", pa.string())])
    arms = pa.array([[("dense", [{"id": 1, "rank": 0, "score": 0.5}])]], pa.map_(pa.string(), pa.list_(hit)))
    table = pa.table({"query_id": pa.array([7]), "query_text": ["q"], "k_final": [3], "arms": arms})
    (trace,), bundle = from_table(tmp_path, table)
    assert bundle.problems.texts() == ()
    assert (trace.query_id, trace.arms) == ("7", {"dense": (Hit("1", 0, 0.5),)})


def test_nan_in_a_column_becomes_null_and_a_float_id_is_an_error(tmp_path: Path) -> None:
    table = pa.table(
        {
            "query_id": ["q1", "q2"],
            "query_text": ["q", "q"],
            "k_final": [3, 3],
            "fused": [[{"id": "a", "score": float("nan")}], []],
            "final_context_ids": pa.array([None, [12.0]], pa.list_(pa.float64())),
            "arms": [{"dense": ["a"]}, {"dense": ["a"]}],
        }
    )
    (trace,), bundle = from_table(tmp_path, table)
    assert trace.fused == (Hit("a"),)
    assert bundle.problems.counts() == {"not_a_number": 1, "unreadable": 1}
    assert bundle.problems.texts()[1].startswith("traces.parquet:2: final_context_ids[0]: the number 12.0 is no id.")


def test_timestamps_decimals_and_nanoseconds_are_plain_values(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    when = datetime.datetime(2026, 10, 1, 12, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "timestamp": pa.array([when], pa.timestamp("us", tz="UTC")),
            "precise": pa.array([1_000_000_001], pa.timestamp("ns")),
            "whole": pa.array([Decimal(12)], pa.decimal128(20, 0)),
            "score": pa.array([[Decimal("0.5")]], pa.list_(pa.decimal128(5, 2))),
        }
    )
    pq.write_table(table, path)
    assert list(parquet_rows(path, "t.parquet")) == [
        (
            1,
            {
                "timestamp": "2026-10-01T12:00:00+00:00",
                "precise": "1970-01-01T00:00:01",
                "whole": 12,
                "score": [0.5],
            },
        )
    ]


def test_rows_are_numbered_across_batches_and_duplicates_found(tmp_path: Path) -> None:
    rows = [record(query_id=f"q{n % 4}") for n in range(5)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "traces.parquet", row_group_size=2)
    bundle = opened(tmp_path)
    assert [trace.query_id for trace in read_traces(bundle)] == ["q0", "q1", "q2", "q3"]
    assert [problem.place for problem in bundle.problems.messages] == ["traces.parquet:5"]
    numbers = [number for number, _ in parquet_rows(tmp_path / "traces.parquet", "t", batch_rows=2)]
    assert numbers == [1, 2, 3, 4, 5]


def test_chunks_and_sources_may_be_parquet(tmp_path: Path) -> None:
    chunks = pa.Table.from_pylist([{"chunk_id": 1, "source_id": 2, "in": {"dense": True, "bm25": None}, "norm": None}])
    pq.write_table(chunks, tmp_path / "chunks.parquet")
    pq.write_table(pa.table({"source_id": [2], "status": ["ok"]}), tmp_path / "sources.parquet")
    bundle = bundle_of(tmp_path, record())
    chunk = bundle.inventory.chunk("1")
    assert chunk is not None and chunk.present_in == {"dense": True}
    assert bundle.inventory.source(chunk.source_id) is not None
    assert bundle.problems.texts() == ()


def test_a_file_is_known_as_parquet_by_its_first_bytes(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([record()]), tmp_path / "export")
    assert is_parquet(tmp_path / "export") is True
    (tmp_path / "lines").write_bytes(b"{}")
    assert is_parquet(tmp_path / "lines") is False


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "traces.parquet").write_bytes(b"PAR1 no parquet at all")
    with pytest.raises(InputError, match=r"^traces\.parquet: cannot be read as Parquet \("):
        list(read_traces(opened(tmp_path)))


def test_a_missing_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.Table.from_pylist([record()]), tmp_path / "traces.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as caught:
        list(read_traces(opened(tmp_path)))
    assert str(caught.value) == "traces.parquet: Parquet needs pyarrow. Run: pip install 'ragaudit[parquet]'."
    assert isinstance(caught.value, ConfigError)


def _schema(rows: list[dict[str, Any]]) -> pa.Schema:
    """The union of the rows' columns, with the struct keys of all rows, as a table writer would infer it."""
    merged: dict[str, list[Any]] = {}
    for row in rows:
        for key, value in row.items():
            merged.setdefault(key, []).append(json.loads(json.dumps(value)))
    return pa.schema([(key, pa.array(values).type) for key, values in merged.items()])
