"""Promises that a review found broken: nothing is raised, and no text passes a mode or a hook."""

import pytest

from ragaudit.record import Recorder
from ragaudit.record.privacy import _each_text


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name_raises_nothing_and_records_nothing(path):
    recorder = Recorder(path)
    with recorder.query("refund?") as query:
        query.answer("14 days")
    recorder.close()


def test_notes_of_gold_and_values_of_probes_are_texts():
    row = {
        "query_text": "q",
        "gold": [{"id": "c1", "note": "secret"}],
        "probes": [{"probe": "literals_lost", "value": ["secret"], "note": "secret"}, {"probe": "x", "value": 3}],
    }
    _each_text(row, lambda text: None if text == "secret" else text)
    assert "secret" not in str(row)
    assert row["probes"][1] == {"probe": "x", "value": 3}
