from pathlib import Path

import pytest
from reader_builders import write

from ragaudit.model.feedback import Feedback
from ragaudit.readers.feedback import read_feedback
from ragaudit.readers.problems import Problems


def events(path: Path) -> tuple[list[Feedback], Problems]:
    problems = Problems()
    return list(read_feedback(path, path.name, problems)), problems


def test_an_event_is_read_with_unknown_keys_kept(tmp_path: Path) -> None:
    value = {
        "session_id": 5,
        "chunk_ids": [1, "c2"],
        "rating": -1,
        "implicit": {"copied": True},
        "ts": "2026-10-01",
        "ui": "v2",
    }
    (event,), problems = events(write(tmp_path / "feedback.jsonl", value))
    assert (event.session_id, event.chunk_ids, event.rating) == ("5", ("1", "c2"), -1)
    assert event.implicit == {"copied": True}
    assert event.model_extra == {"ui": "v2"}
    assert problems.texts() == ()


@pytest.mark.parametrize("rating", [True, 4, 4.5, "down", None])
def test_a_rating_keeps_its_type(tmp_path: Path, rating: object) -> None:
    (event,), _ = events(write(tmp_path / "feedback.jsonl", {"session_id": "s", "rating": rating}))
    assert event.rating == rating
    assert type(event.rating) is type(rating)


def test_bad_lines_are_set_aside_and_good_ones_read(tmp_path: Path) -> None:
    bad = [b"{\n", {"rating": 1}, {"session_id": "s", "chunk_ids": "c1"}, b"3\n"]
    found, problems = events(write(tmp_path / "feedback.jsonl", *bad, {"session_id": "s"}))
    assert [event.session_id for event in found] == ["s"]
    assert [problem.place for problem in problems.messages] == [f"feedback.jsonl:{n}" for n in (1, 2, 3, 4)]
    assert problems.messages[1].message == "session_id, chunk_ids: both missing. Log what the feedback is about."
    assert problems.messages[2].message == (
        "chunk_ids: must be a list, not a text. Log it so, or null when it was not observed."
    )
