"""The review in plain text: what each line does, what is said, and that a pipe stops at what it cannot do."""

import pytest

from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.errors import AuditFileError, ConfigError
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.store import Reviews
from ragaudit.tui.plain import HELP, Conversation
from ragaudit.tui.session import Session
from tests.tui.builders import inventory, lost_at_pack, passed, write

TEXTS = {"c9": "within 30 days", "c1": "Renewal is yearly.", "c4": "SECRET salary bands"}


@pytest.fixture
def audit(tmp_path):
    acl = {"c9": ("staff",), "c1": ("staff",), "c4": ("board",)}
    rows = [lost_at_pack("q1"), passed("q2"), lost_at_pack("q3", text="second \x1b[2J refund?")]
    return write(tmp_path / "run.audit", rows, inventory(TEXTS, acl))


def talk(path, *lines, forgiving=False, **options):
    said = []
    with Session.open(path, **options) as session:
        Conversation(session, CAUSES, STAGE_NOTES, said.append).run(lines, forgiving=forgiving)
    return said


def reviewed(path, query_id):
    with Reviews.open(path) as reviews:
        return reviews.of(query_id)


def heads(said):
    """Of each printed query its id; of anything else its first line."""
    lines = [text.split("\n") for text in said]
    return [first[2].split()[1] if ", filter " in first[0] else first[0] for first in lines]


def test_a_query_is_printed_with_its_place_its_readable_texts_and_the_verdict(audit):
    (text,) = talk(audit)
    assert text.startswith("1 of 2, filter is:failing, 0 reviewed\n\nX q1   FAIL at Rerank/pack\n")
    for part in ("refund window?", "within 30 days", CAUSES["top_n_cut"].remedy.split(".")[0], "your verdict: none"):
        assert part in text
    assert "salary" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("line", "verdict", "note"),
    [
        ("1", ReviewVerdict.AGREE, ""),
        ("2 the floor cut it\n", ReviewVerdict.DISAGREE, "the floor cut it"),
        ("3", ReviewVerdict.GOLD_WRONG, ""),
        ("  4 who knows ", ReviewVerdict.UNSURE, "who knows"),
    ],
)
def test_a_digit_saves_a_verdict_with_its_note_and_goes_on(audit, line, verdict, note):
    said = talk(audit, line)
    assert heads(said) == ["q1", f"saved: q1 {verdict.value.replace('_', ' ')}. 1 reviewed", "q3"]
    assert (reviewed(audit, "q1").verdict, reviewed(audit, "q1").note) == (verdict, note)


def test_a_verdict_without_a_note_keeps_the_note(audit):
    with Reviews.open(audit) as reviews:
        reviews.apply(["q1"], Patch(note="kept"))
    assert "  note: kept\n" in talk(audit, "1", "g q1")[-1] + "\n"
    assert reviewed(audit, "q1").note == "kept"


def test_moving_filtering_and_going_to_a_query(audit):
    said = talk(audit, "n", "p", "g q2", "f gift", "f", "")
    assert heads(said) == ["q1", "q3", "q1", "q2", "1 match", "q2", "3 match", "q2", "q2"]


def test_undo_returns_to_the_query(audit):
    said = talk(audit, "1", "u", "u", forgiving=True)
    assert heads(said)[2:] == ["q3", "undone: q1", "q1", "nothing to undo: this terminal has said nothing yet", "q1"]
    assert reviewed(audit, "q1") is None


def test_help_and_the_end(audit):
    assert talk(audit, "?", "q", "1")[1:] == [HELP]
    assert reviewed(audit, "q1") is None


def test_a_second_verdict_at_the_end_of_the_queue_is_not_taken_for_another_query(audit):
    said = talk(audit, "1", "2", "3", forgiving=True)
    assert heads(said)[3:] == [
        "saved: q3 disagree. 2 reviewed",
        "That was the last query of the queue.",
        "the queue is at its end: nothing was saved. p goes back, f changes the queue, q ends.",
    ]
    assert reviewed(audit, "q3").verdict is ReviewVerdict.DISAGREE
    assert heads(talk(audit, "1", "p", "3", forgiving=True, query_id="q3"))[-2:] == [
        "saved: q2 gold wrong. 3 reviewed",
        "q3",
    ]


def test_a_filter_that_a_verdict_empties_says_so(audit):
    said = talk(audit, "1", "1", filter_text="is:failing is:unreviewed")
    assert said[-1] == "No query matches the filter. f FILTER changes it, f alone shows all."
    assert heads(said)[:3] == ["q1", "saved: q1 agree. 1 reviewed", "q3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("f stage:nowhere", "filter: 'nowhere' is not a stage"),
        ("g q9", "no query 'q9' in this audit. f WORD looks for one."),
        ("p", "this is the first query of the queue. f changes the queue."),
        ("5", "'5' is not understood. ? lists what is."),
        ("n 3", "'n 3' is not understood. ? lists what is."),
        ("\x1b[A", "'\\x1b[A' is not understood. ? lists what is."),
    ],
)
def test_what_cannot_be_done_stops_a_pipe_and_is_said_to_a_person(audit, line, message):
    with pytest.raises(ConfigError) as caught:
        talk(audit, line, "1")
    assert str(caught.value).startswith(message)
    assert reviewed(audit, "q1") is None, "what follows was written for the query that the line should have led to"
    said = talk(audit, line, forgiving=True)
    assert said[1].startswith(message)


def test_what_cannot_be_saved_is_said(audit):
    with Session.open(audit) as session:
        session.reviews.close()
        session.reviews, session.read_only = None, f"{audit}: cannot be opened. Check the path and its permissions."
        with pytest.raises(AuditFileError, match="cannot be opened"):
            Conversation(session, CAUSES, STAGE_NOTES, lambda text: None).run(["1"], forgiving=False)


def test_hostile_text_is_printed_by_its_code(audit):
    text = talk(audit, query_id="q3")[0]
    assert "second <U+001B>[2J refund?" in text
    assert "\x1b" not in text


def test_plain_text_needs_no_textual():
    import subprocess
    import sys

    code = "import sys, ragaudit.tui.plain; print(sorted({'textual', 'rich', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
