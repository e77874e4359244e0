import gzip
import tracemalloc
import zlib
from pathlib import Path

import pytest
from reader_builders import as_line, read, record, write

from ragaudit.errors import InputError
from ragaudit.readers.lines import read_lines, sha256_of
from ragaudit.readers.problems import Problems


def test_a_byte_order_mark_is_dropped_at_the_start_and_where_files_were_joined(tmp_path: Path) -> None:
    bom = b"\xef\xbb\xbf"
    traces, bundle = read(tmp_path, bom + as_line(record()), bom + as_line(record(query_id="q2")))
    assert [trace.query_id for trace in traces] == ["q1", "q2"]
    assert bundle.problems.texts() == ()


def test_crlf_and_blank_lines_are_read_and_line_numbers_still_count_them(tmp_path: Path) -> None:
    crlf = as_line(record()).replace(b"\n", b"\r\n")
    traces, bundle = read(tmp_path, b"\r\n", crlf, b"  \t\n", b"{broken\r\n", as_line(record(query_id="q2")))
    assert [trace.query_id for trace in traces] == ["q1", "q2"]
    assert [problem.place for problem in bundle.problems.messages] == ["traces.jsonl:4"]
    assert bundle.inputs()["traces.jsonl"].rows == 3


def test_a_last_line_without_a_line_end_is_read(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, as_line(record()).rstrip())
    assert [trace.query_id for trace in traces] == ["q1"]
    assert bundle.problems.texts() == ()


def test_a_truncated_last_line_says_that_the_file_ends_in_mid_line(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, record(), as_line(record(query_id="q2"))[:60])
    assert [trace.query_id for trace in traces] == ["q1"]
    assert bundle.problems.texts() == (
        "traces.jsonl:2: the file ends in mid-line: was the writer stopped? Write this line again, whole.",
    )
    assert bundle.problems.counts() == {"cut": 1}


def test_invalid_utf8_becomes_a_replacement_character_and_is_reported(tmp_path: Path) -> None:
    line = as_line(record(query_text="cafe")).replace(b"cafe", b"caf\xe9")
    traces, bundle = read(tmp_path, line, record(query_id="q2"))
    assert [trace.query_text for trace in traces] == ["caf\ufffd", "how do I reset my password"]
    assert bundle.problems.counts() == {"invalid_utf8": 1}
    assert bundle.problems.messages[0].place == "traces.jsonl:1"
    assert bundle.inputs()["traces.jsonl"].set_aside == 0


def test_a_surrogate_without_partner_becomes_a_replacement_character(tmp_path: Path) -> None:
    line = as_line(record(notes="NOTE")).replace(b"NOTE", rb"a\ud800b")
    traces, bundle = read(tmp_path, line)
    assert traces[0].notes == "a\ufffdb"
    assert bundle.problems.counts() == {"lone_surrogate": 1}


def test_an_escaped_pair_of_surrogates_is_one_character(tmp_path: Path) -> None:
    line = as_line(record(notes="NOTE", prompt_tokens=float("nan"))).replace(b"NOTE", rb"\ud83d\ude00")
    traces, bundle = read(tmp_path, line)
    assert traces[0].notes == "\U0001f600"
    assert "lone_surrogate" not in bundle.problems.counts()


def test_a_line_of_fifty_megabytes_is_read(tmp_path: Path) -> None:
    text = "x" * 50_000_000
    traces, bundle = read(tmp_path, record(context_texts={"c1": text}), record(query_id="q2"))
    assert len((traces[0].context_texts or {})["c1"]) == 50_000_000
    assert traces[1].query_id == "q2"
    assert bundle.problems.texts() == ()


def test_a_line_over_the_limit_is_set_aside_without_being_loaded(tmp_path: Path) -> None:
    path = write(tmp_path / "traces.jsonl", b'"' + b"x" * 30_000_000 + b'"\n', b'"short"\n')
    problems = Problems()
    tracemalloc.start()
    lines = list(read_lines(path, "traces.jsonl", problems, max_line=100_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == [(2, b'"short"\n')]
    assert problems.texts() == (
        "traces.jsonl:1: the line has 30,000,003 bytes, more than 100,000."
        " Write one object on one line (from a list: jq -c '.[]'), and texts in chunks.jsonl.",
    )
    assert peak < 6_000_000


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n \n"])
def test_a_file_without_content_has_no_lines(tmp_path: Path, content: bytes) -> None:
    assert list(read_lines(write(tmp_path / "f", content), "f", Problems())) == []


def test_gzip_is_recognised_by_its_first_bytes_whatever_the_name(tmp_path: Path) -> None:
    path = tmp_path / "plain.jsonl"
    path.write_bytes(gzip.compress(b"1\n\n2\n"))
    assert list(read_lines(path, "plain.jsonl", Problems())) == [(1, b"1\n"), (3, b"2\n")]


def test_a_gzip_stream_that_ends_early_keeps_the_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    whole = gzip.compress(b"".join(b"%d\n" % n for n in range(200_000)))
    path.write_bytes(whole[: len(whole) // 2])
    problems = Problems()
    lines = list(read_lines(path, "f.gz", problems))
    before = zlib.decompressobj(wbits=31).decompress(path.read_bytes()).count(b"\n")
    assert len(lines) == before > 50_000
    assert lines[-1] == (before, b"%d\n" % (before - 1))
    assert problems.counts() == {"damaged_gzip": 1}
    assert problems.texts() == (
        f"f.gz:{before + 1}: the gzip stream is damaged (it ends early); nothing after this line was read."
        " Compress it again.",
    )


def test_a_small_gzip_file_that_is_cut_keeps_every_whole_line(tmp_path: Path) -> None:
    whole = gzip.compress(b"first\nsecond\nthird\n", compresslevel=0)
    (tmp_path / "f.gz").write_bytes(whole[: whole.index(b"third") + 2])
    problems = Problems()
    assert list(read_lines(tmp_path / "f.gz", "f.gz", problems)) == [(1, b"first\n"), (2, b"second\n")]
    assert problems.messages[0].place == "f.gz:3"


def test_a_gzip_file_with_a_wrong_checksum_is_read_and_reported(tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(b"1\n2\n"))
    damaged[-8] ^= 1
    (tmp_path / "f.gz").write_bytes(damaged)
    problems = Problems()
    assert list(read_lines(tmp_path / "f.gz", "f.gz", problems)) == [(1, b"1\n"), (2, b"2\n")]
    assert problems.texts() == (
        "f.gz:3: the gzip stream is damaged (Error -3 while decompressing data: incorrect data check);"
        " nothing after this line was read. Compress it again.",
    )


def test_gzip_files_that_were_joined_and_padded_are_read_as_one(tmp_path: Path) -> None:
    joined = gzip.compress(b"1\n2") + gzip.compress(b"3\n") + b"\0" * 500
    (tmp_path / "f.gz").write_bytes(joined)
    problems = Problems()
    assert list(read_lines(tmp_path / "f.gz", "f.gz", problems)) == [(1, b"1\n"), (2, b"23\n")]
    assert problems.texts() == ()


def test_a_file_with_cr_alone_as_line_end_is_named_as_that(tmp_path: Path) -> None:
    lines = b"\r".join(as_line(record(query_id=f"q{n}")).rstrip() for n in range(3))
    traces, bundle = read(tmp_path, lines)
    assert traces == []
    assert bundle.problems.texts() == ("traces.jsonl:1: lines end in CR alone. Save the file with LF line ends.",)


def test_utf16_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes("{}".encode("utf-16"))
    with pytest.raises(InputError, match=r"^traces\.jsonl: the file is UTF-16\. Save it as UTF-8\.$"):
        list(read_lines(path, "traces.jsonl", Problems()))


def test_a_line_nested_too_deeply_is_set_aside(tmp_path: Path) -> None:
    deep = b'{"query_id": "q0", "config": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    traces, bundle = read(tmp_path, deep, record())
    assert [trace.query_id for trace in traces] == ["q1"]
    assert "nested too deeply" in bundle.problems.texts()[0]


def test_a_number_with_too_many_digits_is_set_aside(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, b'{"query_id": ' + b"1" * 5000 + b"}\n", record())
    assert [trace.query_id for trace in traces] == ["q1"]
    assert bundle.problems.counts() == {"not_json": 1}
    assert bundle.problems.texts() == (
        "traces.jsonl:1: holds a whole number of more than 4,300 digits. Write such an id as text, in quotes.",
    )


def test_the_digest_is_that_of_the_bytes_on_disk(tmp_path: Path) -> None:
    path = write(tmp_path / "f", b"abc")
    assert sha256_of(path) == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
