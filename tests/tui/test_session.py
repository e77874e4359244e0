"""The queue and the reviews without a screen."""

import pytest

from ragaudit.errors import AuditFileError, ConfigError
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.store import Reviews
from ragaudit.store.filters import Sort
from ragaudit.tui.session import PAGE, PAGES_KEPT, Session
from tests.tui.builders import lost_at_pack, passed, write


@pytest.fixture
def path(tmp_path):
    rows = [lost_at_pack(f"q{n:04}") if n % 2 else passed(f"q{n:04}") for n in range(20)]
    return write(tmp_path / "r.audit", rows)


def test_it_opens_on_the_first_failing_query_and_where_it_was_left(path):
    with Session.open(path) as session:
        assert (session.here, session.count, session.filter.text) == ("q0001", 10, "is:failing")
        session.move(3)
        session.narrow("stage:rerank")
        session.next_sort()
    with Session.open(path) as session:
        assert (session.here, session.filter.text, session.sort) == ("q0007", "stage:rerank", Sort.STAGE)


def test_a_filter_on_the_command_line_wins_and_a_wrong_one_is_an_error(path):
    with Session.open(path, filter_text="is:passing") as session:
        assert session.here == "q0000"
    with pytest.raises(ConfigError, match="'stge' is not a key"):
        Session.open(path, filter_text="stge:x")
    with pytest.raises(ConfigError, match=r"r\.audit: no query 'q9' there"):
        Session.open(path, query_id="q9")


def test_a_wrong_filter_leaves_the_queue_as_it_was(path):
    with Session.open(path) as session:
        with pytest.raises(ConfigError):
            session.narrow("stage:nowhere")
        assert (session.count, session.filter.text) == (10, "is:failing")


def test_narrowing_stays_on_the_query_where_it_still_matches(path):
    with Session.open(path) as session:
        session.move(4)
        here = session.here
        session.narrow("stage:rerank")
        assert session.here == here
        session.narrow("is:passing")
        assert session.here == "q0000"


def test_what_takes_the_current_query_out_of_the_queue_moves_nothing_until_one_moves_on(path):
    with Session.open(path, filter_text="is:unreviewed is:failing") as session, Reviews.open(path) as other:
        session.move(2)
        assert (session.here, session.count) == ("q0005", 10)
        other.apply(["q0003", "q0005"], Patch(verdict=ReviewVerdict.AGREE))
        assert session.refresh()
        assert session.here == "q0005", "a verdict now is still about the query that is shown"
        session.judge(ReviewVerdict.DISAGREE)
        assert (session.here, session.count) == ("q0007", 8)
        other.apply(["q0007"], Patch(verdict=ReviewVerdict.AGREE))
        assert session.refresh() and session.here == "q0007"
        assert session.move(1) and session.here == "q0009"
        other.apply(["q0009"], Patch(verdict=ReviewVerdict.AGREE))
        assert session.refresh() and session.move(-1) and session.here == "q0001"


def test_show_leaves_a_filter_that_hides_the_query(path):
    with Session.open(path) as session:
        assert session.show("q0004") and session.here == "q0004" and session.filter.text == ""
        assert not session.show("nobody") and session.here == "q0004"


def test_marks_are_a_filter_and_are_not_kept(path):
    with Session.open(path) as session:
        session.mark(["q0003", "q0001", "q0002"])
        assert (session.count, session.here) == (3, "q0001")
        session.toggle_mark()
        assert (session.count, session.marks) == (2, {"q0002", "q0003"})
    with Session.open(path) as session:
        assert session.filter.text == "is:failing" and not session.marks


def test_pages_are_forgotten_again(tmp_path):
    rows = [lost_at_pack(f"q{n:05}") for n in range(PAGE * 3)]
    with Session.open(write(tmp_path / "r.audit", rows)) as session:
        for n in range(0, session.count, PAGE):
            assert session.row(n).query_id == f"q{n:05}"
        assert session.row(session.count) is None and session.row(-1) is None
        assert len(session._pages) == 3 <= PAGES_KEPT


def test_another_terminals_review_moves_nothing_under_ones_feet(path):
    with Session.open(path, filter_text="is:failing is:unreviewed") as one, Session.open(path) as two:
        one.move(5)
        here = one.here
        two.judge(ReviewVerdict.AGREE)
        assert one.refresh() and one.here == here and one.count == 9
        assert not one.refresh()


def test_a_file_that_cannot_be_written_is_read_only_and_says_why(path, monkeypatch):
    monkeypatch.setattr("ragaudit.tui.session._reviews", lambda path: (None, "read only"))
    with Session.open(path) as session:
        assert session.view().review is None and session.reviewed == 0
        for act in (
            lambda: session.judge(ReviewVerdict.AGREE),
            lambda: session.annotate(Patch(note="x")),
            session.undo,
        ):
            with pytest.raises(AuditFileError, match="read only"):
                act()
