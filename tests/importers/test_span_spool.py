"""Spans by trace, however they come; the spool gives back what went in."""

import pytest

from ragaudit.errors import InputError
from ragaudit.importers.spans.span import Event, Span
from ragaudit.importers.spans.spool import Spool


def test_spans_come_back_whole_by_trace_in_the_order_of_first_sight():
    one = Span(
        "t2", "a", "x", "p", 1, 2, {"k": [1, 2.5, {"n": None}]}, (Event("e", {"v": True}, 3),), 4, "scope", "bad"
    )
    other, later = Span("t1", "a", "y"), Span("t2", "b", "z")
    with Spool() as spool:
        assert [spool.add(each) for each in (one, other, later)] == [True, True, True]
        assert list(spool.traces()) == [[one, later], [other]]


def test_the_longer_of_two_spans_with_one_id_stays():
    short, longer = Span("t", "a", "x"), Span("t", "a", "x", attributes={"k": "v"})
    for first, second in ((short, longer), (longer, short)):
        with Spool() as spool:
            assert [spool.add(first), spool.add(second)] == [True, False]
            assert list(spool.traces()) == [[longer]]


def test_a_query_id_is_new_once():
    with Spool() as spool:
        assert [spool.is_new("q"), spool.is_new("q"), spool.is_new("r")] == [True, False, True]


def test_a_full_disk_says_where_to_put_temporary_files():
    with Spool() as spool:
        spool._db.execute("PRAGMA max_page_count = 8")
        with pytest.raises(InputError, match=r"^temporary files: .* is full\. Set SQLITE_TMPDIR to a folder"):
            spool.add(Span("t", "a", "x", attributes={"k": "v" * 100_000}))


def test_nothing_is_left_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    with Spool() as spool:
        spool._db.execute("PRAGMA cache_size = 2")
        for number in range(50):
            spool.add(Span("t", str(number), "x", attributes={"k": "v" * 20_000}))
        assert len(next(spool.traces())) == 50
    assert list(tmp_path.iterdir()) == []
