import gzip
import os
from pathlib import Path

import pytest
from reader_builders import as_line, bundle_of, read, record, write

from ragaudit.config import load_settings
from ragaudit.errors import InputError
from ragaudit.readers.bundle import Bundle, BundlePaths, check_consistency, locate, open_bundle, read_traces
from ragaudit.readers.problems import Problems

NO_SETTINGS = load_settings(None, env={}, flags={})


def test_a_folder_is_searched_for_the_names_of_the_format(tmp_path: Path) -> None:
    for name in ("traces.jsonl.gz", "sources.jsonl", "chunks.parquet", "index.json", "ragaudit.toml", "qrels.tsv"):
        write(tmp_path / name, b"x")
    assert locate(tmp_path) == BundlePaths(
        traces=tmp_path / "traces.jsonl.gz",
        sources=tmp_path / "sources.jsonl",
        chunks=tmp_path / "chunks.parquet",
        index=tmp_path / "index.json",
        config=tmp_path / "ragaudit.toml",
        qrels=tmp_path / "qrels.tsv",
        feedback=None,
    )


def test_a_file_that_is_named_wins_over_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "traces.jsonl", b"x")
    other = write(tmp_path / "other.jsonl", b"x")
    assert locate(tmp_path, traces=other).traces == other
    assert locate(None, traces=other) == BundlePaths(other)


def test_a_folder_without_traces_lists_what_was_found(tmp_path: Path) -> None:
    write(tmp_path / "trace.json", b"x")
    write(tmp_path / "readme.md", b"x")
    expected = f"{tmp_path}: no traces.jsonl in it; found readme.md, trace.json. Name the file with --traces."
    with pytest.raises(InputError) as caught:
        locate(tmp_path)
    assert str(caught.value) == expected


@pytest.mark.parametrize("second", ["traces.parquet", "traces.jsonl.gz"])
def test_the_same_table_twice_is_refused_until_one_is_named(tmp_path: Path, second: str) -> None:
    write(tmp_path / "traces.jsonl", b"x")
    other = write(tmp_path / second, b"x")
    with pytest.raises(InputError, match=rf"holds traces\.jsonl and {second}\. Say which to read: --traces "):
        locate(tmp_path)
    assert locate(tmp_path, traces=other).traces == other


def test_what_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: no such folder\. Check the path\.$"):
        locate(tmp_path / "none")
    with pytest.raises(InputError, match=r"q\.tsv: no such file\. Check what was passed as --qrels\.$"):
        locate(None, traces=write(tmp_path / "t", b""), qrels=tmp_path / "q.tsv")
    with pytest.raises(InputError, match=r"t: no such folder\. Pass a file as --traces "):
        locate(tmp_path / "t")
    with pytest.raises(InputError, match=r"^bundle: no traces\.jsonl was given\."):
        locate(None)


def test_a_path_that_is_no_regular_file_is_named_as_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    why = "a device or a pipe, and an audit reads its files more than once. Save it to a file, and pass that."
    for path in (Path("/dev/null"), tmp_path / "pipe"):
        with pytest.raises(InputError) as caught:
            locate(None, traces=path)
        assert str(caught.value) == f"{path}: {why}"
    with pytest.raises(InputError) as caught:
        locate(None, traces=tmp_path)
    assert str(caught.value) == f"{tmp_path}: a folder, not a file. Pass the file as --traces."


def test_names_that_are_not_utf8_are_written_as_escapes(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"b\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    traces = write(folder / os.fsdecode(b"t\xfe.jsonl"), record(), b"{\n")
    bundle = open_bundle(locate(None, traces=traces), NO_SETTINGS)
    assert [trace.query_id for trace in read_traces(bundle)] == ["q1"]
    assert bundle.name == r"b\xff"
    assert list(bundle.inputs()) == [r"t\xfe.jsonl"]
    assert bundle.problems.messages[0].place == r"t\xfe.jsonl:2"


def test_the_name_is_the_folder_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    folder = tmp_path / "october"
    folder.mkdir()
    assert bundle_of(folder, record()).name == "october"
    assert bundle_of(folder, record(), toml='name = "support bot"').name == "support bot"


def test_inputs_hold_digest_rows_and_rows_set_aside_of_each_file(tmp_path: Path) -> None:
    _, bundle = read(
        tmp_path, record(), b"{\n", chunks_jsonl=b'{"chunk_id": "c1"}\n', qrels_tsv=b"q1\tc1\t1\n", toml="[audit]\n"
    )
    inputs = bundle.inputs()
    assert {name: (one.rows, one.set_aside) for name, one in inputs.items()} == {
        "traces.jsonl": (2, 1),
        "chunks.jsonl": (1, 0),
        "ragaudit.toml": (0, 0),
        "qrels.tsv": (1, 0),
    }
    assert inputs["ragaudit.toml"].sha256.startswith("sha256:")
    assert len(inputs["ragaudit.toml"].sha256) == 71


def test_reading_the_traces_again_reports_and_counts_nothing_twice(tmp_path: Path) -> None:
    lines = [record(), b"{broken\n", record(), record(query_id="q2", fused=[{"id": "a", "rank": "x"}])]
    bundle = bundle_of(tmp_path, *lines, qrels_tsv=b"q2\tother\t1\n")
    first = list(read_traces(bundle))
    said, counted, inputs = bundle.problems.texts(), bundle.problems.counts(), bundle.inputs()
    assert len(said) == 4
    assert list(read_traces(bundle)) == first
    assert list(read_traces(bundle, limit=1)) == first[:1]
    assert (bundle.problems.texts(), bundle.problems.counts(), bundle.inputs()) == (said, counted, inputs)


def test_a_partial_pass_is_completed_by_the_next(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, record(), b"{1\n", record(query_id="q2"), b"{2\n", record(query_id="q3"))
    assert [trace.query_id for trace in read_traces(bundle, limit=2)] == ["q1", "q2"]
    assert bundle.inputs()["traces.jsonl"].set_aside == 1
    assert [trace.query_id for trace in read_traces(bundle)] == ["q1", "q2", "q3"]
    assert (bundle.inputs()["traces.jsonl"].rows, bundle.inputs()["traces.jsonl"].set_aside) == (5, 2)


def test_two_passes_at_once_report_each_line_once(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, b"{1\n", record(), b"{2\n", record(query_id="q2"))
    for left, right in zip(read_traces(bundle), read_traces(bundle), strict=True):
        assert left == right
    assert bundle.problems.counts() == {"not_json": 2}


def test_only_the_first_hundred_messages_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    _, bundle = read(tmp_path, *[b"{%d\n" % n for n in range(150)], record())
    assert len(bundle.problems.texts()) == 100
    assert bundle.problems.counts() == {"not_json": 150}


def test_gzip_traces_are_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl.gz"
    path.write_bytes(gzip.compress(as_line(record()) + as_line(record(query_id="q2"))))
    bundle = open_bundle(locate(tmp_path), NO_SETTINGS)
    assert [trace.query_id for trace in read_traces(bundle)] == ["q1", "q2"]


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    traces = write(tmp_path / "a" / "rows.jsonl", record())
    chunks = write(tmp_path / "b" / "rows.jsonl", {"chunk_id": "c1"})
    bundle = open_bundle(locate(None, traces=traces, chunks=chunks), NO_SETTINGS)
    assert set(bundle.inputs()) == {str(traces), str(chunks)}
    assert bundle.inputs()[str(chunks)].rows == 1


# --- consistency ----------------------------------------------------------------------------------------------


def refusal(bundle: Bundle) -> str:
    list(read_traces(bundle))
    with pytest.raises(InputError) as caught:
        check_consistency(bundle)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_nothing_usable_is_refused_with_the_first_reason(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, *[{"query_id": n} for n in range(3)])
    assert refusal(bundle) == (
        "traces.jsonl: nothing usable: 3 of 3 rows were set aside; first: line 1: query_text: missing."
        " Log the text that the user asked."
    )


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert refusal(bundle_of(tmp_path, b"\n\n")) == (
        "traces.jsonl: no traces in it. Log one JSON object for each query."
    )


def test_qrels_of_another_run_are_refused(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, record(), qrels_tsv=b"x1\tc1\t1\nx2\tc1\t1\n")
    assert refusal(bundle_of(tmp_path, record(), qrels_tsv=b"x1\tc1\t1\n")) == (
        "qrels.tsv: 1 of 1 query id is not in the run (first: 'x1'). Is this the gold of another run?"
    )
    assert refusal(bundle) == (
        "qrels.tsv: 2 of 2 query ids are not in the run (first: 'x1'). Is this the gold of another run?"
    )


def test_qrels_that_match_in_part_are_a_problem_reported_once(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, record(), qrels_tsv=b"q1\tc1\t1\nx2\tc1\t1\nx3\tc1\t1\n")
    check_consistency(bundle)
    check_consistency(bundle)
    assert len(traces) == 1
    assert bundle.problems.counts() == {"qrels_without_trace": 2}
    assert bundle.problems.texts() == (
        "qrels.tsv: 2 of 3 query ids are not in the run (first: 'x2'). Is this the gold of another run?",
    )


def test_a_limited_pass_says_nothing_about_the_qrels(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path, record(), record(query_id="q2"), qrels_tsv=b"q2\tc1\t1\n")
    assert len(list(read_traces(bundle, limit=1))) == 1
    check_consistency(bundle)
    assert bundle.problems.texts() == ()


def test_a_good_run_is_consistent(tmp_path: Path) -> None:
    _, bundle = read(tmp_path, record(), qrels_tsv=b"q1\tc1\t1\n")
    check_consistency(bundle)
    assert bundle.problems == Problems(tallies=bundle.problems.tallies)
