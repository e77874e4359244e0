import gzip
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from import_helpers import DATA, ids, read, read_rows, write

from ragaudit.errors import ConfigError, InputError
from ragaudit.importers.registry import guess

TREC = DATA / "trec"
RUN = "q1 Q0 0012 1 0.9 dense\nq1 Q0 d2 2 0.5 dense\n"


# --- several runs --------------------------------------------------------------------------------------------------


def test_several_runs_are_several_lists_of_one_query(tmp_path):
    runs = [TREC / f"demo.{name}.run" for name in ("dense", "bm25", "rrf", "rerank")]
    (first, *rest), report = read("trec", *runs, TREC / "demo.qrels", DATA / "beir" / "queries.jsonl", k=3)
    assert len(rest) == 4
    assert first["query_id"] == "q-1"
    assert first["query_text"] == "how do I reset my password"
    assert list(first["arms"]) == ["dense", "bm25"]
    assert ids(first["arms"]["dense"]) == ["kb-001#0", "kb-001#1", "kb-007#0", "kb-002#1", "kb-005#0"]
    assert first["fused"][0] == {"id": "kb-001#0", "rank": 1, "score": 0.032787}
    assert len(first["after_rerank"]) == 3
    assert first["gold"] == [{"id": "kb-001#0", "grade": 1.0}]
    assert first["provenance"] == {"fused": "assumed", "after_rerank": "assumed", "final_context_ids": "assumed"}
    assert "taken for fused by its name: rrf. If not: --stage rrf=arm" in report.notes


def test_a_stage_on_the_command_line_is_no_assumption():
    stages = {"rrf": "fused", "demo.rerank": "final", "bm25": "arm:lexical", "dense": "ignore"}
    runs = [TREC / f"demo.{name}.run" for name in ("dense", "bm25", "rrf", "rerank")]
    rows, report = read("trec", *runs, k=3, stages=stages, order="rank")
    assert list(rows[0]["arms"]) == ["lexical"]
    assert rows[0]["final_context_ids"] == ["kb-001#0", "kb-001#1", "kb-007#0"]
    assert "provenance" not in rows[0]
    assert [note for note in report.notes if note.startswith("taken for")] == []


def test_one_run_called_rrf_stays_an_arm(tmp_path):
    rows, _ = read("trec", TREC / "demo.rrf.run", k=3)
    assert list(rows[0]["arms"]) == ["rrf"]
    assert "fused" not in rows[0]


def test_two_files_with_one_tag_are_told_apart_by_their_names(tmp_path):
    a, b = write(tmp_path / "a.run", RUN), write(tmp_path / "b.run", RUN)
    rows, _ = read("trec", a, b, k=2)
    assert list(rows[0]["arms"]) == ["dense", "dense (b.run)"]


def test_a_run_whose_tag_says_nothing_is_called_after_its_file(tmp_path):
    rows, _ = read("trec", write(tmp_path / "splade.v2.run", RUN.replace("dense", "None")), k=2)
    assert list(rows[0]["arms"]) == ["splade.v2"]


def test_a_query_that_one_run_lacks_is_absent_there_and_not_empty(tmp_path):
    a, b = write(tmp_path / "a.run", RUN), write(tmp_path / "b.run", "q2 Q0 d1 1 0.9 bm25\n")
    rows, _ = read("trec", a, b, k=2)
    assert [list(row["arms"]) for row in rows] == [["dense"], ["bm25"]]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"dens": "fused"}, "--stage dens: no run has this tag or file. Runs: dense."),
        ({"dense": "merged"}, "--stage dense=merged: no such list. Use arm, arm:NAME, fused, after_filter"),
    ],
)
def test_a_wrong_stage_is_refused(tmp_path, stages, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        read("trec", write(tmp_path / "a.run", RUN), k=2, stages=stages)


# --- K, query texts ------------------------------------------------------------------------------------------------


def test_a_run_needs_k(tmp_path):
    with pytest.raises(ConfigError, match=r"^--k: a run does not say how many of its chunks reach the prompt"):
        read("trec", write(tmp_path / "a.run", RUN))


def test_the_context_of_a_run_is_its_first_k_and_assumed(tmp_path):
    rows, _ = read("trec", write(tmp_path / "a.run", RUN), k=1)
    assert (rows[0]["final_context_ids"], rows[0]["provenance"]) == (["0012"], {"final_context_ids": "assumed"})


def test_a_query_without_a_text_has_an_empty_one_and_that_is_said(tmp_path):
    rows, report = read("trec", write(tmp_path / "a.run", RUN), k=1)
    assert rows[0]["query_text"] == ""
    assert "no query text: pass queries.jsonl or queries.tsv as a further INPUT" in report.notes


# --- order ---------------------------------------------------------------------------------------------------------


def order_of(tmp_path, lines, by="score"):
    text = "".join(f"q1 Q0 {name} {rank} {score} dense\n" for name, rank, score in lines)
    rows, report = read("trec", write(tmp_path / "a.run", text), k=9, order=by)
    notes = [note for note in report.notes if not note.startswith("no query text")]
    return [(hit["id"], hit["rank"]) for hit in rows[0]["arms"]["dense"]], notes


def test_score_orders_and_a_rank_that_disagrees_is_noted(tmp_path):
    hits, notes = order_of(tmp_path, [("a", 1, 0.1), ("b", 2, 0.9)])
    assert hits == [("b", 1), ("a", 2)]
    assert notes == ["score and rank disagree: ordered by score; --order rank takes the rank"]


def test_order_rank_takes_the_rank_and_notes_a_score_that_disagrees(tmp_path):
    hits, notes = order_of(tmp_path, [("b", 2, 0.9), ("a", 1, 0.1)], by="rank")
    assert hits == [("a", 1), ("b", 2)]
    assert notes == ["score and rank disagree: ordered by rank, as --order says"]


def test_equal_scores_are_ordered_by_id_descending_as_trec_eval_does(tmp_path):
    hits, notes = order_of(tmp_path, [("a", 1, 0.9), ("b", 2, 0.9), ("c", 3, 0.5)])
    assert [name for name, _ in hits] == ["b", "a", "c"]
    assert notes == ["equal scores: ordered by id as trec_eval does; --order rank keeps the file's order"]


def test_where_all_scores_are_equal_only_the_rank_says_anything(tmp_path):
    hits, notes = order_of(tmp_path, [("a", 2, 1), ("b", 1, 1)])
    assert hits == [("b", 1), ("a", 2)]
    assert notes == ["all scores of a list are equal: ordered by its ranks"]


def test_ranks_from_0_are_read_as_positions(tmp_path):
    hits, notes = order_of(tmp_path, [("a", 0, 0.9), ("b", 1, 0.8)])
    assert hits == [("a", 1), ("b", 2)]
    assert notes == ["ranks count from 0 in the file: read as positions"]


def test_an_id_twice_in_a_list_counts_once_at_its_first_place(tmp_path):
    hits, notes = order_of(tmp_path, [("a", 1, 0.9), ("b", 2, 0.8), ("a", 3, 0.1)])
    assert hits == [("a", 1), ("b", 2)]
    assert notes == ["an id stands in one list more than once: the first place counts"]


def test_a_line_that_is_none_is_skipped_with_its_place(tmp_path):
    path = write(tmp_path / "a.run", RUN + "q1 Q0 d3 3 nan dense\nq1 Q0 d3\n")
    rows, report = read("trec", path, k=2)
    assert len(rows) == 1
    (reason,) = report.skipped.values()
    assert (reason.count, reason.places) == (2, ("a.run:3", "a.run:4"))


# --- qrels ---------------------------------------------------------------------------------------------------------


def test_grades_are_kept_0_is_judged_and_a_negative_one_is_not(tmp_path):
    qrels = write(tmp_path / "qrels.txt", "q1 0 0012 2\nq1 0 d2 0\nq1 0 d3 -2\n")
    rows, report = read("trec", write(tmp_path / "a.run", RUN), qrels, k=2)
    assert rows[0]["gold"] == [{"id": "0012", "grade": 2.0}, {"id": "d2", "grade": 0.0}]
    assert "a negative grade means not judged; the line is left out. Nothing to do." in report.notes


def test_a_query_without_qrels_is_unlabelled(tmp_path):
    rows, _ = read("trec", write(tmp_path / "a.run", RUN), write(tmp_path / "qrels.txt", "q2 0 d1 1\n"), k=2)
    assert "gold" not in rows[0]


def test_a_judged_query_that_no_run_answers_gives_no_trace(tmp_path):
    qrels = write(tmp_path / "qrels.txt", "q1 0 d2 1\nq2 0 d1 1\n")
    rows, report = read("trec", write(tmp_path / "a.run", RUN), qrels, k=2)
    assert len(rows) == 1
    assert list(report.skipped) == ["queries of the qrels that no run answers: no trace"]


def test_qrels_alone_are_labels(tmp_path):
    tables, report = read_rows("trec", write(tmp_path / "qrels.txt", "q1 0 0012 2\n"))
    assert tables == {"qrels": [{"query_id": "q1", "id": "0012", "grade": 2.0}]}
    assert list(report.notes) == ["labels and inventory only: pass a run as a further INPUT for traces"]


def test_three_columns_without_a_header_are_ambiguous_in_trec(tmp_path):
    with pytest.raises(InputError, match="three columns may be qrels without a header or a run of MS MARCO"):
        read("trec", write(tmp_path / "x.tsv", "q1\td1\t1\n"), k=2)


# --- BEIR ----------------------------------------------------------------------------------------------------------


def test_a_beir_folder_alone_gives_labels_and_chunks_with_the_title_before_the_text():
    tables, report = read_rows("beir", DATA / "beir")
    assert {name: len(rows) for name, rows in tables.items()} == {"chunks": 12, "qrels": 6}
    assert tables["chunks"][0] == {
        "chunk_id": "kb-001#0",
        "text": "kb-001 To reset your password open Settings, choose Security and press Reset password."
        " A link is mailed to the account owner.",
        "metadata": {"title": "kb-001", "tenant": "acme"},
    }
    assert tables["qrels"][1] == {"query_id": "q-1", "id": "kb-001#1", "grade": 0.0}
    assert "labels and inventory only: pass a run as a further INPUT for traces" in report.notes


def test_a_beir_folder_with_a_run_gives_traces_with_texts_and_grades():
    tables, _ = read_rows("beir", DATA / "beir", TREC / "demo.dense.run", k=2)
    assert {name: len(rows) for name, rows in tables.items()} == {"chunks": 12, "traces": 5}
    first = tables["traces"][0]
    assert first["query_text"] == "how do I reset my password"
    assert first["gold"] == [{"id": "kb-001#0", "grade": 1.0}, {"id": "kb-001#1", "grade": 0.0}]


def test_qrels_without_a_header_lose_no_first_row(tmp_path):
    folder = tmp_path / "set"
    write(folder / "corpus.jsonl", '{"_id": "0012", "title": "", "text": "t"}\n')
    write(folder / "queries.jsonl", '{"_id": "1", "text": "q?"}\n')
    write(folder / "qrels" / "test.tsv", "1\t0012\t1\n")
    write(folder / "qrels" / "train.tsv", "2\t0012\t1\n")
    tables, _ = read_rows("beir", folder)
    assert tables["qrels"] == [{"query_id": "1", "id": "0012", "grade": 1.0}]
    assert tables["chunks"] == [{"chunk_id": "0012", "text": "t"}]


def test_a_folder_that_is_no_beir_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is no BEIR folder: corpus\.jsonl and queries\.jsonl are not in it"):
        read("beir", tmp_path)


# --- MTEB ----------------------------------------------------------------------------------------------------------


def test_mteb_predictions_are_an_arm_called_after_the_model():
    path = next((DATA / "mteb").iterdir())
    rows, _ = read("mteb", path, DATA / "beir", k=2)
    assert list(rows[0]["arms"]) == ["fake/fake-bow-64"]
    assert rows[0]["embedding_model"] == "fake/fake-bow-64"
    assert rows[0]["slices"] == {"subset": "default", "split": "test"}
    assert rows[0]["final_context_ids"] == ["kb-001#0", "kb-001#1"]


def test_queries_of_several_splits_are_told_apart(tmp_path):
    value = {"mteb_model_meta": {}, "de": {"test": {"1": {"a": 0.5}}}, "en": {"test": {"1": {"b": 0.5}}}}
    rows, report = read("mteb", write(tmp_path / "p.json", json.dumps(value)), k=1)
    assert [row["query_id"] for row in rows] == ["de/test/1", "en/test/1"]
    assert "several subsets or splits: query ids are SUBSET/SPLIT/ID, and qrels do not fit them" in report.notes


# --- MS MARCO ------------------------------------------------------------------------------------------------------


def test_ms_marco_files_make_traces_together():
    folder = DATA / "msmarco"
    files = [folder / name for name in ("run.dev.tsv", "qrels.dev.tsv", "queries.dev.tsv", "collection.tsv")]
    tables, _ = read_rows("msmarco", *files, k=2)
    assert {name: len(rows) for name, rows in tables.items()} == {"chunks": 12, "traces": 5}
    assert tables["traces"][0] == {
        "query_id": "1000",
        "query_text": "how do I reset my password",
        "arms": {"run.dev": [{"id": str(n), "rank": r} for r, n in enumerate([7000, 7001, 7010, 7003, 7002, 7007], 1)]},
        "gold": [{"id": "7000", "grade": 1.0}],
        "k_final": 2,
        "final_context_ids": ["7000", "7001"],
        "provenance": {"final_context_ids": "assumed"},
    }


def test_top1000_is_no_ranking():
    with pytest.raises(InputError, match="candidates in no order"):
        read("msmarco", DATA / "msmarco" / "top1000.dev.tsv", k=2)


# --- ranx ----------------------------------------------------------------------------------------------------------


def test_ranx_json_is_a_run_ordered_by_score_or_qrels_by_name_or_whole_numbers(tmp_path):
    run = write(tmp_path / "a.json", json.dumps({"1": {"0012": 0.1, "d2": 0.9}}))
    qrels = write(tmp_path / "b.json", json.dumps({"1": {"0012": 2}}))
    rows, _ = read("trec", run, qrels, k=1)
    assert ids(rows[0]["arms"]["a"]) == ["d2", "0012"]
    assert rows[0]["gold"] == [{"id": "0012", "grade": 2.0}]


def test_ranx_parquet_keeps_ids_as_text(tmp_path):
    table = pa.table({"q_id": ["1", "1"], "doc_id": ["0012", "d2"], "score": [0.1, 0.9]})
    pq.write_table(table, tmp_path / "bm25.parquet")
    rows, _ = read("trec", tmp_path / "bm25.parquet", k=1)
    assert ids(rows[0]["arms"]["bm25"]) == ["d2", "0012"]


def test_qrels_queries_and_corpus_of_mteb_as_parquet(tmp_path):
    pq.write_table(pa.table({"query-id": ["q1"], "corpus-id": ["0012"], "score": [1]}), tmp_path / "qrels.parquet")
    pq.write_table(pa.table({"id": ["q1"], "text": ["q?"]}), tmp_path / "queries.parquet")
    pq.write_table(pa.table({"id": ["0012"], "title": ["T"], "text": ["t"]}), tmp_path / "corpus.parquet")
    files = [tmp_path / f"{name}.parquet" for name in ("qrels", "queries", "corpus")]
    tables, _ = read_rows("mteb", write(tmp_path / "a.run", RUN), *files, k=2)
    assert tables["chunks"] == [{"chunk_id": "0012", "text": "T t", "metadata": {"title": "T"}}]
    found = [(row["query_text"], row["gold"]) for row in tables["traces"]]
    assert found == [("q?", [{"id": "0012", "grade": 1.0}])]


def test_lz4_of_ranx_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "run.lz4").write_bytes(b"\x04\x22\x4d\x18")
    with pytest.raises(InputError, match="Save the run as JSON, Parquet or TREC"):
        read("trec", tmp_path / "run.lz4", k=1)


# --- how files come ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(RUN.encode()),
        b"\xef\xbb\xbf" + RUN.encode(),
        RUN.replace("\n", "\r\n").encode(),
        RUN.replace(" ", "\t").encode(),
    ],
    ids=["gzip", "bom", "crlf", "tabs"],
)
def test_a_run_is_read_however_it_comes(tmp_path, data):
    path = tmp_path / "dense.run.gz"
    path.write_bytes(data)
    rows, report = read("trec", path, k=2)
    assert [hit["id"] for hit in rows[0]["arms"]["dense"]] == ["0012", "d2"]
    assert (rows[0]["query_id"], dict(report.skipped)) == ("q1", {})


@pytest.mark.parametrize(
    ("name", "text", "format_name", "why"),
    [
        ("a.run", RUN, "trec", "lines of `query Q0 id rank score tag`"),
        ("a.txt", "q1 0 d1 1\n", "trec", "lines of `query 0 id grade`"),
        ("a.tsv", "1000\t7000\t1\n", "msmarco", "lines of `query id rank`"),
        ("a.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "beir", "the header query-id, corpus-id, score"),
        ("corpus.jsonl", '{"_id": "1", "text": "t"}\n', "beir", "records with _id and text"),
    ],
)
def test_auto_says_why(tmp_path, name, text, format_name, why):
    found = guess(write(tmp_path / name, text))
    assert (found.format.name, found.why) == (format_name, why)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "three words here\nand some more words\n"),
        ("log.tsv", "query\tanswer\tdocs\tgold\nq?\ta\td1\td1\n"),
        ("x.json", '{"a": {}, "b": {}}'),
        ("x.csv", "a,b,c\n1,2,3\n"),
    ],
)
def test_auto_claims_no_file_that_only_looks_like_columns(tmp_path, name, text):
    with pytest.raises(InputError, match="no known format fits"):
        guess(write(tmp_path / name, text))


@pytest.mark.parametrize(("name", "is_run"), [("trunk.json", False), ("my_run.json", True), ("qrels.run.json", False)])
def test_whole_numbers_are_grades_unless_the_name_says_run(tmp_path, name, is_run):
    tables, _ = read_rows("trec", write(tmp_path / name, '{"1": {"d1": 2}}'), k=1)
    assert list(tables) == (["traces"] if is_run else ["qrels"])
