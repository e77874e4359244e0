"""What is shown of an audit before any record is loaded."""

import sqlite3
import subprocess
import sys

import pytest

from ragaudit.errors import AuditFileError
from ragaudit.model.review import Place
from ragaudit.store import Reviews
from ragaudit.store.glimpse import Glimpse, glimpse
from ragaudit.tui.first_look import ENTER, LEAVE, first_look, lines
from tests.tui.builders import bare, lost_at_pack, passed, write


class Screen:
    """A terminal that keeps what it is sent."""

    def __init__(self, *, terminal=True):
        self.terminal, self.sent = terminal, ""

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.sent += text

    def flush(self):
        pass


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "r.audit", [passed("q0"), lost_at_pack("q1"), lost_at_pack("q2", text="second?")])


def test_it_is_the_first_failing_query_the_one_that_was_left_or_the_one_that_is_named(path):
    assert glimpse(path) == Glimpse("q1", "fail", "rerank", "top_n_cut", "refund window?", False)
    with Reviews.open(path) as reviews:
        reviews.keep_place(Place(query_id="q2"))
    assert glimpse(path).query_id == "q2"
    assert glimpse(path, "q0") == Glimpse("q0", "pass", "none", None, "gift cards?", False)
    assert glimpse(path, "no such query").query_id == "q1"


def test_a_leak_comes_first_and_a_run_without_failures_shows_nothing(tmp_path):
    leaky = write(tmp_path / "a.audit", [lost_at_pack("q1"), lost_at_pack("q2", leaks=("c4",))])
    assert (glimpse(leaky).query_id, glimpse(leaky).is_leak) == ("q2", True)
    assert glimpse(write(tmp_path / "b.audit", [passed("q1")])) is None
    assert glimpse(tmp_path / "nowhere.audit") is None


def test_a_place_or_causes_that_do_not_read_are_passed_over(path):
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO meta VALUES ('place', '[1')")
        connection.execute("UPDATE queries SET causes = '{' WHERE query_id = 'q1'")
    assert glimpse(path) == Glimpse("q1", "fail", "rerank", None, "refund window?", False)


def test_another_file_is_an_error(tmp_path):
    other = tmp_path / "x.audit"
    other.write_text("no database, and long enough to be read as one " * 20)
    with pytest.raises(AuditFileError, match="not an audit file"):
        glimpse(other)


def test_the_lines_say_what_was_lost_where_and_act_on_nothing(tmp_path):
    assert lines(glimpse(write(tmp_path / "a.audit", [lost_at_pack("q1", leaks=("c4",))]))) == [
        " q1",
        " refund window?",
        " !! LEAK  FAIL at rerank: top n cut",
    ]
    undecided = glimpse(write(tmp_path / "b.audit", [bare("q\x1b[2J", "what\x1b]0;x\x07?")]), "q\x1b[2J")
    assert lines(undecided) == [
        " q<U+001B>[2J",
        " what<U+001B>]0;x<U+0007>?",
        " UNDETERMINED, stage not decided",
    ]


def test_it_is_on_the_terminal_while_the_app_loads_which_then_has_the_screen(path):
    screen = Screen()
    with first_look(path, None, screen):
        assert screen.sent.startswith(ENTER) and " q1\r\n refund window?\r\n FAIL at rerank" in screen.sent
    assert LEAVE not in screen.sent


def test_an_error_gives_the_terminal_back(path):
    screen = Screen()
    with pytest.raises(KeyError), first_look(path, None, screen):
        raise KeyError
    assert screen.sent.endswith(LEAVE)


def test_nothing_is_written_where_there_is_no_terminal_or_no_audit(path, tmp_path):
    for given, screen in ((path, Screen(terminal=False)), (tmp_path / "no.audit", Screen())):
        with first_look(given, None, screen):
            pass
        assert screen.sent == ""


def test_nothing_heavy_is_loaded_for_it():
    heavy = ("pydantic", "textual", "numpy")
    code = f"import sys, ragaudit.cli.commands.review; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
