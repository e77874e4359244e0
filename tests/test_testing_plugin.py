"""The pytest plugin as a user's suite sees it: replay, misses, recording, and what loading it costs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

# Imported here, so that pytester, which forgets what its runs imported, does not import it again for each.
from ragaudit.judge import cassette, live, protocol, runner  # noqa: F401
from ragaudit.judge import settings as judge_settings
from ragaudit.model.judgement import Reply

pytest_plugins = "pytester"

# Hypothesis's plugin imports half of hypothesis at the end of every session, a second a run.
LEAN = ("-p", "ragaudit.testing", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")

SUITE = """
def test_the_answer_is_faithful(judge_cassette):
    sample = {
        "query_id": "q1",
        "query": "When do free keys expire?",
        "answer": "After 30 days.",
        "chunks": [{"id": "c1", "text": "Free keys expire after 30 days."}],
    }
    (judged,) = judge_cassette.judge([sample])
    assert judged.metrics["faithfulness"] == 1.0
"""
CONFIG = '[judge]\nmodel = "openai/scripted"\napi_base = "http://127.0.0.1:9/v1"\n'
REPLIES = {
    "claims": {"answer": [{"quote": "After 30 days.", "claim": "Free keys expire after 30 days."}], "abstained": False},
    "matrix": {"verdicts": [{"id": "a1", "supported": [{"text": "c1", "quote": "30 days"}], "contradicted": []}]},
}


class Scripted:
    """A model that says what the script says, and counts."""

    def __init__(self):
        self.asked = []

    async def complete(self, request):
        self.asked.append(request.prompt)
        return Reply(text=json.dumps(REPLIES[request.prompt]), finish_reason="stop")


@pytest.fixture
def model(monkeypatch):
    scripted = Scripted()
    monkeypatch.setattr(judge_settings, "litellm_client", lambda settings: scripted)
    return scripted


@pytest.fixture
def suite(pytester):
    pytester.makefile(".toml", ragaudit=CONFIG)
    pytester.makeini("[pytest]\naddopts = --strict-markers\n")
    pytester.makepyfile(test_answers=SUITE)

    def run(*arguments):
        return pytester.runpytest_inprocess(*LEAN, *arguments)

    run.folder = pytester.path
    return run


def recorded(suite):
    return sorted(path.name for path in (suite.folder / "cassettes").iterdir())


def test_recorded_once_it_replays_without_a_model(suite, model):
    suite("--judge-record=new").assert_outcomes(passed=1)
    assert model.asked == ["claims", "matrix"]
    assert recorded(suite) == ["test_answers.jsonl"]
    suite().assert_outcomes(passed=1)
    assert model.asked == ["claims", "matrix"]


def test_a_miss_fails_the_test_and_says_what_differs(suite, model):
    suite("--judge-record=new")
    changed = SUITE.replace("After 30 days.", "After 90 days.")
    (suite.folder / "test_answers.py").write_text(changed)
    done = suite()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*test_answers.jsonl: no reply for claims@* on *q1*Nearest: claims@*90 days*30 days*"])
    done.stdout.fnmatch_lines(["*Record it: run pytest with --judge-record=new*"])
    done.stdout.no_fnmatch_line("*Traceback*")
    assert "--tape" not in done.stdout.str()


def test_nothing_is_written_and_nobody_is_asked_by_default(suite, model):
    done = suite()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*Nothing is recorded there.*"])
    assert model.asked == []
    assert not (suite.folder / "cassettes").exists()


def test_once_records_a_whole_module_and_then_no_more(suite, model):
    second = SUITE.replace("q1", "q2").replace("faithful(", "faithful_too(").replace("When do", "At which time do")
    (suite.folder / "test_answers.py").write_text(SUITE + second)
    suite("--judge-record=once").assert_outcomes(passed=2)
    assert model.asked == ["claims", "matrix", "claims"]  # the second matrix asks the same, and is not asked twice
    (suite.folder / "test_answers.py").write_text(SUITE + second.replace("At which time do", "At what time do"))
    suite("--judge-record=once").assert_outcomes(passed=1, failed=1)


def test_all_asks_everything_again_but_nothing_twice(suite, model):
    twice = SUITE + SUITE.replace("faithful(", "still_faithful(")
    (suite.folder / "test_answers.py").write_text(twice)
    suite("--judge-record=all").assert_outcomes(passed=2)
    suite("--judge-record=all").assert_outcomes(passed=2)
    assert model.asked == ["claims", "matrix"] * 2


def test_a_marker_names_another_cassette_and_an_ini_value_another_folder(suite, model):
    marked = SUITE.replace("def test", "import pytest\n\n@pytest.mark.judge_cassette('shared')\ndef test")
    (suite.folder / "test_answers.py").write_text(marked)
    (suite.folder / "tox.ini").write_text("[pytest]\naddopts = --strict-markers\njudge_cassettes = tapes/judge\n")
    suite("--judge-record=new").assert_outcomes(passed=1)
    assert [path.name for path in (suite.folder / "tapes" / "judge").iterdir()] == ["shared.jsonl"]


def test_settings_given_in_the_test_win_over_the_file(suite, model):
    (suite.folder / "ragaudit.toml").unlink()
    (suite.folder / "test_answers.py").write_text(SUITE.replace("judge([sample])", "judge([sample], model='m/x')"))
    suite("--judge-record=new").assert_outcomes(passed=1)
    lines = (suite.folder / "cassettes" / "test_answers.jsonl").read_text().splitlines()
    assert [json.loads(line)["request"]["model"] for line in lines[1:]] == ["m/x", "m/x"]


def test_the_tape_itself_is_there_for_suites_that_drive_the_judge_themselves(suite, model):
    text = "def test_tape(judge_cassette):\n    assert judge_cassette.tape.mode == 'none'\n"
    text += "    assert judge_cassette.tape is judge_cassette.tape\n"
    (suite.folder / "test_answers.py").write_text(text)
    suite().assert_outcomes(passed=1)


def test_loading_the_plugin_loads_pytest_and_nothing_else():
    probe = (
        "import pytest, sys\nbefore = set(sys.modules)\nimport ragaudit.testing\nprint(sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "['ragaudit', 'ragaudit.testing']\n"


def test_a_replay_loads_no_provider_and_no_http_client(suite, model, pytester):
    suite("--judge-record=new")
    probe = "\nimport sys\n\ndef test_imports():\n    heavy = {'litellm', 'openai', 'httpx', 'aiohttp', 'diskcache'}\n"
    (suite.folder / "test_answers.py").write_text(SUITE + probe + "    assert heavy.isdisjoint(sys.modules)\n")
    done = pytester.runpytest_subprocess(*LEAN)
    done.assert_outcomes(passed=2)


@pytest.fixture
def example(repository, tmp_path):
    folder = tmp_path / "ci"
    shutil.copytree(repository / "examples" / "ci", folder, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments):
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "ragaudit.testing",
            "-p",
            "no:cacheprovider",
            "--disable-socket",
        ]
        return subprocess.run([*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True)

    run.folder = folder
    return run


def test_the_example_project_replays_without_a_key_or_a_network(example):
    done = example()
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_the_example_project_fails_when_the_bot_says_something_new(example):
    bot = example.folder / "handbook.py"
    bot.write_text(bot.read_text().replace("28 days of paid leave", "30 days of paid leave"))
    done = example()
    assert done.returncode == 1
    assert "test_answers.jsonl: no reply for " in done.stdout
    assert re.search(r"first difference: .*30 days.*recorded .*28 days", done.stdout)


def test_pytest_finds_the_plugin_by_its_entry_point(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"ragaudit.testing": "ragaudit.testing"}
