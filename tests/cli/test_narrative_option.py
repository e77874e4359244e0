"""`ragaudit report --narrative MODEL`: asked once, kept on the tape, and only what the facts prove is printed."""

import json

import pytest
from cli_builders import write_audit

from ragaudit.cli.main import execute
from tests.judge.loopback import Loopback, Say, Status

REPLY = {
    "sentences": [
        {"text": "2 of 2 queries fail.", "facts": ["f1"]},
        {"text": "99 queries fail.", "facts": ["f1"]},
        {"text": "Switch the access filter off.", "facts": ["f1"]},
        {"text": "All is lost.", "facts": []},
    ]
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_audit(tmp_path / "run.audit")
    return tmp_path


def configured(folder, server):
    config = folder / "ragaudit.toml"
    config.write_text(f'[judge]\napi_base = "{server.url}"\nattempts = 1\n')
    return ["report", "run.audit", "--narrative", "openai/m", "--config", str(config)]


@pytest.mark.parametrize("form", ["md", "html"])
def test_the_report_holds_what_the_facts_prove_and_stderr_says_what_was_dropped(here, form, capsys):
    with Loopback(Say(json.dumps(REPLY))) as server:
        assert execute([*configured(here, server), "--format", form]) == 0
    said = capsys.readouterr()
    assert "2 of 2 queries fail." in said.out
    for left_out in ("99 queries fail", "Switch the access filter off", "All is lost"):
        assert left_out not in said.out
    assert [line for line in said.err.splitlines() if line.startswith("narrative:")] == [
        "narrative: 1 sentence dropped: a number or name that its facts do not hold.",
        "narrative: 1 sentence dropped: refused by the guard.",
        "narrative: 1 sentence dropped: no fact cited.",
    ]


def test_the_second_time_nobody_is_asked(here, capsys):
    with Loopback(Say(json.dumps(REPLY))) as server:
        arguments = configured(here, server)
        assert execute(arguments) == 0
        first = capsys.readouterr().out
        assert execute([*arguments, "--tape", "none"]) == 0
    assert len(server.asked) == 1
    assert capsys.readouterr().out == first


def test_no_text_of_a_query_goes_out(here, capsys):
    with Loopback(Say(json.dumps(REPLY))) as server:
        assert execute([*configured(here, server), "--with-text"]) == 0
    assert "2 of 2 queries fail" in server.asked[0].text
    assert "refund window" not in json.dumps(server.asked[0].body)


def test_a_model_that_fails_ends_with_4_and_writes_nothing(here, capsys):
    with Loopback(Status(500)) as server:
        assert execute([*configured(here, server), "-o", "report.md"]) == 4
    assert "--narrative openai/m: " in capsys.readouterr().err
    assert not (here / "report.md").exists()


def test_a_reply_that_is_not_on_the_tape_is_no_reason_to_ask(here, capsys):
    with Loopback(Say(json.dumps(REPLY))) as server:
        assert execute([*configured(here, server), "--tape", "none"]) == 4
    assert server.asked == []
