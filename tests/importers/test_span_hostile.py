"""Span files from anywhere: nothing in them stops the import of the rest, and nothing is run."""

import json

import pytest
from span_builders import DATA, ids, imported, otlp, retriever, root, span, span_id, spans_of

from ragaudit.cli.main import execute
from ragaudit.importers.registry import format_named
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans.decoding import spans_in
from ragaudit.importers.spans.span import Span, iso_time, nanoseconds, span_id_of
from ragaudit.importers.spans.tree import Tree
from ragaudit.model.texts import text_id
from ragaudit.report.import_text import import_text

NAME = "dense\x1b[31m\u202e<script>alert(1)</script>"


def test_markup_and_escape_codes_in_names_stay_in_the_row_and_not_in_the_report(tmp_path):
    bad = retriever(NAME, "c1", "c2", at=1)
    bad["attributes"]["retrieval.documents.0.document.metadata"] = json.dumps({"stage\x1b[2J": "\u202ex"})
    silent = span(NAME, "RETRIEVER", at=3, **{"retrieval.documents.5.document.id": "c9"})
    (row,), report = spans_of(tmp_path, root("\x1b[31mhow long?"), bad, silent)
    assert list(row["arms"]) == [NAME]
    assert row["query_text"] == "\x1b[31mhow long?"
    text = import_text(report, format_named("spans"))
    assert not {"\x1b", "\u202e"} & set(text)


def test_a_circle_of_parents_ends(tmp_path):
    one = retriever("one", "c1", at=1, parent=span_id("two", 2))
    two = retriever("two", "c2", at=2, parent=span_id("one", 1))
    own = retriever("own", "c3", at=3, parent=span_id("own", 3))
    (row,), _ = spans_of(tmp_path, one, two, own)
    assert {name: ids(hits) for name, hits in row["arms"].items()} == {"own": ["c3"]}
    assert ids(row["fused"]) == ["c2"]


def test_parents_that_are_nowhere_leave_every_span_at_the_top(tmp_path):
    (row,), _ = spans_of(tmp_path, retriever("dense", "c1", parent="ab" * 8), root())
    assert ids(row["arms"]["dense"]) == ["c1"]


def test_a_chain_of_thousands_of_spans_is_climbed_once(tmp_path):
    chain = [span(f"{n:07}", "CHAIN", "" if n == 0 else span_id(f"{n - 1:07}", 0), 0) for n in range(5_000)]
    chain[0]["attributes"]["input.value"] = "how long?"
    (row,), _ = spans_of(tmp_path, *chain, retriever("dense", "c1", parent=span_id("0004999", 0)))
    assert (row["query_text"], ids(row["arms"]["dense"])) == ("how long?", ["c1"])


def test_deep_values_do_not_stop_the_rest(tmp_path):
    deep = '{"arrayValue": {"values": [' * 400 + "]}}" * 400
    bad = json.dumps(otlp(span("deep", "CHAIN", at=3, a="DEEP"))).replace('{"stringValue": "DEEP"}', deep)
    nested = span("dense", "RETRIEVER", at=1, metadata="[" * 5000)
    nested["attributes"]["input.value"] = "{" * 5000
    nested["attributes"]["retrieval.documents.0.document.id"] = "c1"
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (root(), nested)) + bad + "\n")
    (row,), _ = imported("spans", path)
    assert ids(row["arms"]["dense"]) == ["c1"]


def test_a_huge_index_makes_no_huge_list(tmp_path):
    bad = retriever("dense", "c1", at=1)
    bad["attributes"]["retrieval.documents.999999.document.id"] = "c2"
    bad["attributes"]["retrieval.documents.99999999999.document.id"] = "c3"
    rows, report = spans_of(tmp_path, root(), bad)
    assert rows == []
    assert list(report.skipped) == ["no list that can be ranked: its list has too many holes"]


def test_a_huge_attribute_is_read(tmp_path):
    text = "the same text. " * 200_000
    found = span("dense", "RETRIEVER", **{"retrieval.documents.0.document.content": text})
    (row,), _ = spans_of(tmp_path, root(), found)
    assert row["arms"]["dense"][0]["text"] == text


@pytest.mark.parametrize(
    "record",
    [
        7,
        None,
        {"resourceSpans": [None, {"scopeSpans": [3, {"spans": [None, {}, {"traceId": "ab"}]}]}]},
        {"data": [[], {"context": []}]},
        {"context": {"trace_id": "", "span_id": "0x" + "0" * 16}, "attributes": []},
    ],
)
def test_records_that_are_no_spans_are_counted_and_left_out(record):
    report = ImportReport()
    assert list(spans_in(record, report, "a.jsonl:1")) == []
    assert sum(reason.count for reason in report.skipped.values()) >= 1


def test_odd_values_of_every_field_do_not_stop_the_rest(tmp_path):
    odd = span("odd", "RETRIEVER", at=2, metadata="{'a': __import__('os')}", session__id=10**30)
    odd["attributes"] |= {
        "retrieval.documents": "not a list",
        "input.value": ["a", {"b": 1}],
        "reranker.top_k": -3,
        "embedding.model_name": {"x": 1},
    }
    odd["start_time"] = "never"
    odd["events"] = [None, {"name": None, "attributes": None}, 3]
    good = root(), retriever("dense", "c1", at=1)
    (row,), report = spans_of(tmp_path, *good, odd)
    assert list(row["arms"]) == ["dense"]
    assert set(report.skipped) <= {"a span holds a value that no span can hold"}


def test_documents_that_are_none_are_left_out_and_keep_the_ranks_of_the_others(tmp_path):
    found = span("VectorRetriever.task", at=1, **{"traceloop.span.kind": "task"})
    found["attributes"]["traceloop.entity.name"] = "VectorRetriever.task"
    found["attributes"]["traceloop.entity.output"] = json.dumps(["[1, 2]", '{"id": "c1"}', "7", "[[[]]]"])
    (row,), _ = spans_of(tmp_path, root(), found)
    assert [(hit["id"], hit["rank"]) for hit in row["arms"]["VectorRetriever"]] == [("c1", 2), (text_id("7"), 3)]


def test_ids_are_hex_where_they_are_hex_or_base64_and_else_as_written():
    assert span_id_of("0xBC402F13655056DA") == "bc402f13655056da"
    assert span_id_of("vEAvE2VQVto=") == "bc402f13655056da"
    assert span_id_of("not base64!=") == "not base64!="
    assert span_id_of(38285552113882235753580066402372722435) == "38285552113882235753580066402372722435"
    assert [span_id_of(each) for each in (None, "", "0" * 16)] == [None, None, None]


def test_times_are_counts_or_iso_and_anything_else_is_none():
    assert nanoseconds("1795993174132007000") == nanoseconds(1795993174132007000) == 1795993174132007000
    assert nanoseconds("2026-11-29T22:59:34.132007Z") == 1795993174132007000
    assert nanoseconds("2026-11-29 23:59:34.132007+01:00") == 1795993174132007000
    assert [nanoseconds(each) for each in ("soon", True, None, -5, "9" * 30, 1e40)] == [0] * 6
    assert iso_time(1795993174132007000) == "2026-11-29T22:59:34.132007Z"
    assert [iso_time(0), iso_time(1 << 62)] == [None, "2116-02-20T23:53:38.427387Z"]


def test_a_file_of_another_kind_is_not_claimed(tmp_path):
    spans = format_named("spans")
    from ragaudit.importers.registry import sample_of

    for name in ("mlflow_traces.json", "haystack_outputs.json", "haystack_store.json", "phoenix_annotations.json"):
        assert spans.sniff(sample_of(DATA / name)) is None, name
    path = tmp_path / "traces.jsonl"
    path.write_text('{"query_text": "q", "trace_id": "t", "data": {"spans": 3}}\n')
    for name in ("spans", "phoenix", "mlflow", "trulens", "haystack"):
        assert format_named(name).sniff(sample_of(path)) is None, name


def test_numbers_that_are_none_and_half_characters_are_left_out_of_what_is_written(tmp_path, capsys):
    bad = retriever("dense", "c1", at=1)
    bad["attributes"]["retrieval.documents.0.document.metadata"] = '{"a": NaN, "b": "x\\ud800"}'
    bad["attributes"]["retrieval.documents.0.document.score"] = float("inf")
    path, out = tmp_path / "spans.jsonl", tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (root(), bad)))
    assert execute(["import", "spans", str(path), "-o", str(out), "--k", "3", "--quiet"]) == 0
    (row,) = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    (hit,) = row["arms"]["dense"]
    assert (hit["score"], hit["metadata"]) == (None, {"a": None, "b": "x\ufffd"})
    assert "read as null" in " ".join(capsys.readouterr().out.split())


def test_a_row_that_is_nested_too_deeply_to_write_is_left_out_and_the_rest_is_written(tmp_path, capsys):
    deep = retriever("dense", "c1", at=1)
    deep["attributes"]["retrieval.documents.0.document.metadata"] = '{"a": ' + "[" * 900 + "]" * 900 + "}"
    other = "12" * 16
    good = root(at=3, trace=other), retriever("dense", "c2", at=2, trace=other, parent="ab" * 8)
    path, out = tmp_path / "spans.jsonl", tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (root(), deep, *good)))
    assert execute(["import", "spans", str(path), "-o", str(out), "--k", "3", "--quiet"]) == 0
    written = [json.loads(line)["query_id"] for line in out.read_text("utf-8").splitlines()]
    assert other in written
    capsys.readouterr()


def test_depth_counts_what_stands_above_in_any_order_of_asking():
    tree = Tree([Span("t", "a", ""), Span("t", "b", "", "a"), Span("t", "c", "", "b"), Span("t", "d", "", "gone")])
    assert [tree.depth(each) for each in ("c", "a", "b", "d")] == [2, 0, 1, 0]
    circle = Tree([Span("t", "x", "", "y"), Span("t", "y", "", "x")])
    assert sorted([circle.depth("x"), circle.depth("y")]) == [0, 1]


def test_below_is_what_has_one_of_them_above_it():
    tree = Tree([Span("t", "a", ""), Span("t", "b", "", "a"), Span("t", "c", "", "b"), Span("t", "d", "", "a")])
    assert tree.below({"b": None}) == {"c"}
    assert tree.below({"a": None}) == {"b", "c", "d"}
    assert Tree([Span("t", "x", "", "y"), Span("t", "y", "", "x")]).below({"x": None}) == {"y"}
