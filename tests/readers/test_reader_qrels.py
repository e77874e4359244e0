import gzip
from pathlib import Path

import pytest

from ragaudit.errors import InputError
from ragaudit.readers.problems import Problems
from ragaudit.readers.qrels import read_qrels


def qrels(folder: Path, content: bytes, name: str = "qrels.tsv") -> tuple[dict[str, dict[str, float]], Problems]:
    path = folder / name
    path.write_bytes(content)
    problems = Problems()
    return {query: dict(row) for query, row in read_qrels(path, name, problems).items()}, problems


@pytest.mark.parametrize(
    "content",
    [
        b"q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n",
        b"q1   Q0  a\t 1\nq1 0 b 0\r\n\r\nq2 0 c 2",
        b"q1\t0\ta\t1\nq1\t0\tb\t0\nq2\t0\tc\t2\n",
        b"query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t0\nq2\tc\t2\n",
        b"\xef\xbb\xbfquery_id iteration doc_id relevance\nq1 0 a 1\nq1 0 b 0\nq2 0 c 2\n",
        b"q1\ta\t1\nq1\tb\t0\nq2\tc\t2\n",
        b"q1 a 1.0\nq1 b 0\nq2 c 2e0\n",
        gzip.compress(b"q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"),
    ],
    ids=["trec", "trec-mixed-space", "trec-tab", "beir", "trec-header-bom", "tsv", "three-columns", "gzip"],
)
def test_every_layout_gives_the_same_judgements(tmp_path: Path, content: bytes) -> None:
    found, problems = qrels(tmp_path, content)
    assert found == {"q1": {"a": 1.0, "b": 0.0}, "q2": {"c": 2.0}}
    assert problems.texts() == ()
    assert problems.tally("qrels.tsv").rows == 3


def test_ids_may_hold_spaces_when_tabs_separate_the_columns(tmp_path: Path) -> None:
    assert qrels(tmp_path, b"q 1\tdoc a\t1\n")[0] == {"q 1": {"doc a": 1.0}}


def test_numeric_ids_stay_as_written(tmp_path: Path) -> None:
    assert qrels(tmp_path, b"007\t0\t012\t1\n")[0] == {"007": {"012": 1.0}}


def test_a_negative_grade_is_not_judged(tmp_path: Path) -> None:
    found, problems = qrels(tmp_path, b"q1 0 a 1\nq1 0 b -1\nq2 0 c -2\n")
    assert found == {"q1": {"a": 1.0}}
    assert problems.counts() == {"qrels_not_judged": 2}
    assert problems.tally("qrels.tsv").set_aside == 0


def test_a_repeated_judgement_counts_once_and_a_contradiction_is_reported(tmp_path: Path) -> None:
    found, problems = qrels(tmp_path, b"q1 0 a 1\nq1 0 a 1\nq1 0 a 2\n")
    assert found == {"q1": {"a": 1.0}}
    assert problems.texts() == ("qrels.tsv:3: 'q1' 'a' was graded 1 before, which counts. Keep one line.",)


def test_lines_that_do_not_fit_are_set_aside(tmp_path: Path) -> None:
    found, problems = qrels(tmp_path, b"judgements\nq1 0 a 1\nq1 0 b\nq1 0 c high\nq1 0 d nan\nq2 0 e 1\n")
    assert found == {"q1": {"a": 1.0}, "q2": {"e": 1.0}}
    assert problems.texts() == (
        "qrels.tsv:1: has 1 column. Write `query id grade` or `query iter id grade`.",
        "qrels.tsv:3: has 3 columns. Write `query id grade` or `query iter id grade`.",
        "qrels.tsv:4: the last column is no number. Write the grade there.",
        "qrels.tsv:5: the last column is no number. Write the grade there.",
    )


def test_a_file_in_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^qrels\.tsv: nothing usable: 2 of 2 rows were set aside; first: line 1:"):
        qrels(tmp_path, b"q1,a,1\nq2,b,1\n")


def test_columns_cut_by_commas_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        qrels(tmp_path, b"query-id,corpus-id,score\nq1,a,1\n")
    assert str(caught.value) == (
        "qrels.tsv: nothing usable: 2 of 2 rows were set aside; first: line 1: has 1 column, cut by commas:"
        " put tabs in their place. Write `query id grade` or `query iter id grade`."
    )


def test_cr_alone_as_line_end_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1 of 1 row was set aside; first: line 1: lines end in CR alone: save"):
        qrels(tmp_path, b"q1 0 a 1\rq2 0 b 1\r")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"query-id\tcorpus-id\tscore\n"])
def test_a_file_without_a_judgement_is_a_problem(tmp_path: Path, content: bytes) -> None:
    found, problems = qrels(tmp_path, content)
    assert found == {}
    assert problems.texts() == ("qrels.tsv: holds no judgement. Write `query id grade`, or leave the file out.",)
    assert problems.counts() == {"qrels_empty": 1}


def test_ids_in_the_place_of_the_iteration_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        qrels(tmp_path, b"q1 doc7 0 1\nq2 doc9 0 1\n")
    assert str(caught.value) == (
        "qrels.tsv: the third column is '0' on every line, and ids stand in the second."
        " Write `query iter id grade`, as `q1 0 doc7 1`."
    )


@pytest.mark.parametrize("content", [b"q1 0 0 1\n", b"q1 1 0 1\nq2 1 0 1\n", b"q1 Q0 0 1\nq1 Q0 7 1\n"])
def test_an_id_that_is_0_is_an_id(tmp_path: Path, content: bytes) -> None:
    found, problems = qrels(tmp_path, content)
    assert found["q1"]["0"] == 1.0
    assert problems.texts() == ()
