"""The bundled example through the real audit: what a newcomer runs first."""

import json

import pytest

from ragaudit.cli.commands.demo import example_folder
from ragaudit.cli.main import execute
from ragaudit.model.diagnosis import STAGES


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_demo_audits_every_query_and_loses_something_at_each_stage(capsys):
    assert execute(["demo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    logged = (example_folder() / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    assert [row["query_id"] for row in document["queries"]] != []
    assert len(document["queries"]) == document["run"]["traces"] == len(logged)
    assert all(document["stages"][stage.value] > 0 for stage in STAGES)
    assert sum(document["outcomes"].values()) == len(logged)


def test_what_the_demo_says_to_type_next_works(own_temporary_folder, capsys):
    assert execute(["demo"]) == 0
    said = capsys.readouterr()
    assert max(map(len, said.out.splitlines())) <= 80
    commands = [line.split()[1:] for line in said.err.splitlines() if line.startswith("  ragaudit ")]
    review, show, report, check, _ = commands
    assert execute(review) == 0
    assert capsys.readouterr().out.startswith("1 of ")
    assert execute(show) == 0
    assert capsys.readouterr().out.startswith("X ")
    assert execute([*report[:2], "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("# RAG audit: ")
    assert execute(check) == 0


def test_the_demo_report_shows_no_text_of_a_query(capsys):
    assert execute(["demo", "--report"]) == 0
    report = capsys.readouterr().out
    logged = (example_folder() / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    assert not [row["query_id"] for row in map(json.loads, logged) if row["query_text"] in report]
