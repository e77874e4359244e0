"""Phoenix: REST spans, the dataframe as Parquet, annotations, and the exports that lost too much."""

import csv
import json
import shutil

import pytest
from span_builders import DATA, ids, imported

from ragaudit.errors import InputError
from ragaudit.importers.formats import Options
from ragaudit.importers.registry import format_named, guess
from ragaudit.importers.report import ImportReport

ARMS = {
    "BM25Retriever": ["kb-005#0", "kb-004#0", "kb-003#0", "kb-008#0", "kb-006#0"],
    "VectorStoreRetriever": ["kb-005#0", "kb-003#1", "kb-001#1", "kb-002#1", "kb-003#0"],
}


def test_rest_spans_have_flat_metadata_and_another_id_outside():
    (row,), _ = imported("phoenix", DATA / "phoenix_spans.json")
    assert {name: ids(hits) for name, hits in row["arms"].items()} == ARMS
    assert ids(row["after_rerank"]) == ["kb-005#0", "kb-004#0", "kb-003#0"]
    assert row["after_rerank"][0]["metadata"]["tenant"] == "acme"
    assert row["after_rerank"][0]["score"] == 0.436436
    assert (row["query_id"], row["session_id"], row["k_final"]) == ("q-3", "s-q-3", 3)


def as_columns(found):
    """A span of the REST interface as a row of the dataframe, whose documents are dicts with dotted keys."""
    documents: dict[int, dict] = {}
    columns = {}
    for name, value in found["attributes"].items():
        if name.startswith("retrieval.documents."):
            number, _, rest = name.removeprefix("retrieval.documents.").partition(".")
            document = documents.setdefault(int(number), {"document.metadata": {}})
            if rest.startswith("document.metadata."):
                document["document.metadata"][rest.removeprefix("document.metadata.")] = value
            else:
                document[rest] = value
        elif name.startswith("llm.input_messages"):
            continue
        else:
            columns[f"attributes.{name}"] = value
    if documents:
        columns["attributes.retrieval.documents"] = [documents[n] for n in sorted(documents)]
    top = {name: found[name] for name in ("name", "span_kind", "parent_id", "start_time", "end_time")}
    return top | {f"context.{name}": value for name, value in found["context"].items()} | columns


def test_parquet_fills_keys_that_a_document_never_had_with_nulls(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    spans = json.loads((DATA / "phoenix_spans.json").read_text())["data"]
    path = tmp_path / "spans.parquet"
    rows = [as_columns(each) for each in spans]
    empty = dict.fromkeys(name for each in rows for name in each)
    parquet.write_table(pyarrow.Table.from_pylist([empty | each for each in rows]), path)
    (row,), _ = imported("phoenix", path)
    assert {name: ids(hits) for name, hits in row["arms"].items()} == ARMS
    assert set(row["arms"]["BM25Retriever"][0]["metadata"]) == {
        "source_id",
        "tenant",
        "content_hash",
        "embedding_model",
        "index_revision",
        "chunk_id",
    }
    assert guess(path).why == "columns of its spans"


def test_a_folder_joins_the_annotations_of_people_by_span(tmp_path):
    shutil.copy(DATA / "phoenix_spans.json", tmp_path / "a.rest_spans.json")
    notes = json.loads((DATA / "phoenix_annotations.json").read_text())
    by_model = {"name": "relevance", "annotator_kind": "LLM", "result": {"score": 1.0}, "span_id": "8c1dd3df4afd78be"}
    on_document = {
        "name": "relevant",
        "annotator_kind": "HUMAN",
        "result": {"label": "no"},
        "span_id": "68b76e7426f61694",
        "document_position": 1,
    }
    notes["data"] += [by_model, on_document]
    (tmp_path / "span_annotations.json").write_text(json.dumps(notes))
    assert guess(tmp_path).format.name == "phoenix"
    report = ImportReport()
    rows = list(format_named("phoenix").read(tmp_path, Options(), report))
    about = {"session_id": "s-q-3", "query_id": "q-3"}
    assert [row for table, row in rows if table == "feedback"] == [
        about | {"rating": 1.0, "ts": "2026-11-29T23:04:35.627567Z", "name": "user_feedback"},
        about | {"rating": "no", "name": "relevant", "chunk_ids": ["kb-004#0"]},
    ]
    assert report.notes["annotations by models or code: not read as feedback"].count == 1
    assert report.skipped["an annotation of a span that is not in the folder"].count == 2


def test_annotations_alone_name_no_query():
    rows, report = imported("phoenix", DATA / "phoenix_annotations.json")
    assert rows == []
    (why,) = report.skipped
    assert why.startswith("an annotation names a span only: put it and the export of the spans into one folder")


def test_what_cannot_be_read_is_counted_once(tmp_path):
    path = tmp_path / "spans.json"
    path.write_text('[1, {"name": "x"}]')
    _, report = imported("phoenix", path)
    assert report.skipped["the record is no object"].count == 1


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (("context.span_id", "document_position", "input", "document"), "keeps no id and no span name"),
        (("context.span_id", "input", "output", "context"), "joins the documents of all retriever spans"),
        (("context.span_id", "name", "attributes.retrieval.documents"), "as Python prints them"),
    ],
)
def test_csv_exports_that_lost_too_much_are_refused_with_the_one_that_did_not(tmp_path, columns, why):
    path = tmp_path / "export.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, ["[{'id': array([1])}]"] * len(columns)])
    with pytest.raises(InputError) as error:
        imported("phoenix", path)
    assert why in str(error.value)
    assert str(error.value).endswith("client.spans.get_spans_dataframe(project_identifier=...).to_parquet(...)")
