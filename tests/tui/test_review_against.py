"""`ragaudit review`: what its options open, without a terminal."""

import pytest

from ragaudit.cli.commands import review
from ragaudit.cli.main import execute
from ragaudit.tui.app import ReviewApp
from tests.tui.compare_audits import frozen, pair


@pytest.fixture
def opened(monkeypatch):
    """The app as it would run: what it holds, while its files are open."""
    seen = {}

    def run(app):
        other = app.comparing
        seen["against"] = None if other is None else (other.path.name, other.other is not None, tuple(other.allow))
        seen["journal"] = str(app.trials.path)
        return 0

    monkeypatch.setattr(ReviewApp, "run", run)
    monkeypatch.setattr(review, "at_a_terminal", lambda: True)
    return seen


def test_without_options_there_is_nothing_to_compare_with(tmp_path, opened):
    _, b = pair(tmp_path)
    assert execute(["review", str(b)]) == 0
    assert opened == {"against": None, "journal": "experiments.jsonl"}


def test_against_an_audit_with_an_exception_and_another_journal(tmp_path, opened):
    a, b = pair(tmp_path)
    options = ["--against", str(a), "--allow", "rerank.top_n", "--journal", "tried.jsonl"]
    assert execute(["review", str(b), *options]) == 0
    assert opened == {"against": ("a.audit", True, ("rerank.top_n",)), "journal": "tried.jsonl"}


def test_against_a_frozen_baseline(tmp_path, opened):
    a, b = pair(tmp_path)
    assert execute(["review", str(b), "--against", str(frozen(a, tmp_path))]) == 0
    assert opened["against"] == ("frozen.json", False, ())


def test_against_what_is_not_there_ends_before_the_app_starts(tmp_path, opened, capsys):
    _, b = pair(tmp_path)
    assert execute(["review", str(b), "--against", "nope"]) == 3
    assert "nope: no such audit file and no baseline of that name" in capsys.readouterr().err
    assert opened == {}
