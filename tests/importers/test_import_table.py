import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from import_helpers import ids, read, write

from ragaudit.errors import ConfigError
from ragaudit.importers.registry import guess

MAP = {"query_text": "question", "gold_ids": "relevant", "arms.dense": "vector_hits", "final_context_ids": "used"}


def sheet(path, *rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


ROW = {
    "question": "how long?",
    "relevant": "0012|c9",
    "vector_hits": '[{"id": "c1", "score": 0.7}, {"id": 12}]',
    "used": "c1,0012",
}


@pytest.mark.parametrize(("ending", "delimiter"), [("csv", ","), ("csv", ";"), ("tsv", "\t")])
def test_columns_by_name_from_csv_and_tsv(tmp_path, ending, delimiter):
    rows = [ROW | {"used": "c1|0012"}]
    (row,), _ = read("table", sheet(tmp_path / f"log.{ending}", *rows, delimiter=delimiter), columns=MAP)
    assert row == {
        "query_id": "1-a8cd7a0a",
        "query_text": "how long?",
        "arms": {"dense": [{"id": "c1", "rank": 1, "score": 0.7}, {"id": "12", "rank": 2}]},
        "final_context_ids": ["c1", "0012"],
        "gold_ids": ["0012", "c9"],
        "k_final": 2,
        "provenance": {"k_final": "derived"},
    }


def test_the_same_from_jsonl_and_parquet(tmp_path):
    value = {"question": "q?", "relevant": ["c9"], "vector_hits": [{"id": "c1", "score": 0.5}], "used": ["c1"]}
    (first,), _ = read("table", write(tmp_path / "log.jsonl", json.dumps(value) + "\n"), columns=MAP)
    pq.write_table(pa.Table.from_pylist([value]), tmp_path / "log.parquet")
    (second,), _ = read("table", tmp_path / "log.parquet", columns=MAP)
    assert first == second
    assert ids(first["arms"]["dense"]) == ["c1"]


def test_a_column_inside_an_object_is_named_with_dots(tmp_path):
    value = {"request": {"q": "q?"}, "stages": [{"hits": [["c1", 0.5], ["c2", 0.4]]}], "meta": '{"user": ["a"]}'}
    columns = {"query_text": "request.q", "arms.dense": "stages.0.hits", "user_acl": "meta.user"}
    (row,), _ = read("table", write(tmp_path / "x.jsonl", json.dumps(value) + "\n"), columns=columns, k=2)
    assert row["arms"] == {"dense": [{"id": "c1", "rank": 1, "score": 0.5}, {"id": "c2", "rank": 2, "score": 0.4}]}
    assert row["user_acl"] == ["a"]


def test_a_column_with_a_dot_in_its_name_comes_before_a_look_inside(tmp_path):
    value = {"a.q": "whole", "a": {"q": "inside"}, "final_context_ids": ["c1"]}
    (row,), _ = read("table", write(tmp_path / "x.jsonl", json.dumps(value) + "\n"), columns={"query_text": "a.q"})
    assert row["query_text"] == "whole"


def test_columns_that_have_our_names_need_no_map(tmp_path):
    value = {
        "query_id": 7,
        "query_text": "q?",
        "arms": {"dense": ["c1", "c2"], "bm25": {"c1": 1.5, "c3": 9.0}},
        "fused": ["c3", "c1"],
        "filters_applied": {"tenant": "a"},
        "k_final": "2",
        "answerable": "False",
        "user_acl": "a|b",
        "answer": "yes",
    }
    (row,), report = read("table", write(tmp_path / "x.jsonl", json.dumps(value) + "\n"))
    assert (row["query_id"], row["k_final"], row["answerable"], row["user_acl"]) == ("7", 2, False, ["a", "b"])
    assert {name: ids(hits) for name, hits in row["arms"].items()} == {"dense": ["c1", "c2"], "bm25": ["c3", "c1"]}
    assert (ids(row["fused"]), row["filters_applied"], row["answer"]) == (
        ["c3", "c1"],
        {"tenant": "a"},
        {"text": "yes"},
    )
    assert "hits as an object of {id: score}: ordered by score, the highest first" in report.notes


def test_absent_is_not_empty(tmp_path):
    lines = (
        '{"query_text": "a", "fused": [], "k_final": 1, "final_context_ids": []}\n{"query_text": "b", "fused": null}\n'
    )
    rows, _ = read("table", write(tmp_path / "x.jsonl", lines))
    assert [row.get("fused") for row in rows] == [[], None]


def test_texts_beside_ids_are_kept_as_packed(tmp_path):
    value = {"query_text": "q?", "final_context_ids": ["c1", "c2"], "context_texts": ["one", "two"]}
    (row,), _ = read("table", write(tmp_path / "x.jsonl", json.dumps(value) + "\n"))
    assert row["context_texts"] == {"c1": "one", "c2": "two"}


@pytest.mark.parametrize(
    ("field", "value", "read_as", "note"),
    [
        ("k_final", "eight", 1, "k_final: holds no int; not read"),
        ("k_final", 0, 1, "k_final: holds no int; not read"),
        ("answerable", "perhaps", None, "answerable: holds no bool; not read"),
        ("filters_applied", "tenant=a", None, "filters_applied: holds no dict; not read"),
        (
            "final_context_ids",
            [12.0],
            ["c1"],
            "final_context_ids: holds what can be no id (a decimal number, an object); not read",
        ),
        ("gold_ids", [12.5], None, "gold ids that are no text and no whole number: not read, export ids as text"),
        ("fused", [{"id": 12.0}], [], "hits whose id is no text and no whole number: left out"),
    ],
)
def test_a_value_that_is_none_is_left_out_and_said(tmp_path, field, value, read_as, note):
    record = {"query_text": "q?", "arms": {"dense": ["c1"]}, field: value}
    (row,), report = read("table", write(tmp_path / "x.jsonl", json.dumps(record) + "\n"), k=1)
    assert note in report.notes
    assert row.get(field) == read_as


def test_a_column_that_no_record_has_is_an_error_that_lists_the_columns(tmp_path):
    path = sheet(tmp_path / "log.csv", ROW)
    with pytest.raises(ConfigError) as raised:
        read("table", path, columns=MAP | {"gold_ids": "gold"})
    assert str(raised.value) == (
        "log.csv: no record has the column gold (gold_ids). Columns: question, relevant, vector_hits, used."
        " Say which it is: --map gold_ids=COLUMN."
    )


def test_so_is_a_log_whose_query_text_nobody_named(tmp_path):
    with pytest.raises(ConfigError, match=r"no record has the column query_text \(query_text\). Columns: question, "):
        read("table", sheet(tmp_path / "log.csv", ROW))


def test_a_field_that_there_is_not_is_an_error_that_lists_the_fields(tmp_path):
    with pytest.raises(
        ConfigError, match=r"--map golds: no such field\. Use arms.NAME, or one of: query_text, query_id"
    ):
        read("table", sheet(tmp_path / "log.csv", ROW), columns={"golds": "relevant"})


def test_bytes_that_are_not_utf_8_are_said(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes("query_text,final_context_ids\nq\xe9?,c1\n".encode("latin-1"))
    (row,), report = read("table", path)
    assert row["query_text"] == "q\ufffd?"
    assert "bytes that are not UTF-8 were read as U+FFFD: save the file as UTF-8" in report.notes


def test_auto_takes_it_only_with_our_names_and_after_all_others(tmp_path):
    found = guess(write(tmp_path / "x.csv", "query_text,final_context_ids\nq,c1\n"))
    assert (found.format.name, found.why) == ("table", "records with query_text")


@pytest.mark.parametrize("name", ["traces.jsonl", "x.jsonl.gz"])
def test_our_own_traces_need_no_import(tmp_path, name):
    line = '{"query_id": "q1", "query_text": "q?", "k_final": 1, "final_context_ids": ["c1"]}\n'
    with pytest.raises(
        ConfigError, match=r"is in our own format already and needs no import\. Run: ragaudit audit --tr"
    ):
        guess(write(tmp_path / name, line))


def test_neither_does_a_bundle(tmp_path):
    write(tmp_path / "traces.jsonl", "{}\n")
    with pytest.raises(ConfigError, match=rf"needs no import\. Run: ragaudit audit {tmp_path}"):
        guess(tmp_path)


def test_a_list_inside_one_object_is_the_records(tmp_path):
    value = {"run": "r1", "results": [{"question": "q?", "used": ["c1"]}, {"question": "r?", "used": ["c2"]}]}
    columns = {"query_text": "question", "final_context_ids": "used"}
    rows, report = read("table", write(tmp_path / "x.json", json.dumps(value)), columns=columns)
    assert [row["query_text"] for row in rows] == ["q?", "r?"]
    assert list(report.notes) == ["records: those of the list results"]


def test_a_record_with_a_query_stays_one_record_whatever_lists_it_holds(tmp_path):
    value = {"query_text": "q?", "fused": [{"id": "c1"}]}
    rows, _ = read("table", write(tmp_path / "x.json", json.dumps(value)), k=1)
    assert [ids(row["fused"]) for row in rows] == [["c1"]]
