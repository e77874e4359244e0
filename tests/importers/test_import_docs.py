"""docs/import.md against the program: its example comes out, its commands exist."""

import json
import re
import shlex

import pytest

from ragaudit.cli.commands.import_ import command
from ragaudit.cli.main import execute
from ragaudit.importers.registry import MODULES


@pytest.fixture
def manual(repository):
    return (repository / "docs" / "import.md").read_text(encoding="utf-8")


def blocks(manual, kind):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", manual, re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language == kind]


def test_the_example_of_a_home_made_log_comes_out(manual, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(blocks(manual, "csv")[0], encoding="utf-8")
    (line,) = (each for each in blocks(manual, "") if "--map" in each)
    arguments = shlex.split(line)[1:]
    assert execute([*arguments, "--save-mapping", "mapping.json"]) == 0
    first, second = (tmp_path / "bundle" / "traces.jsonl").read_text().splitlines()
    assert json.loads(first) == json.loads(blocks(manual, "json")[0])
    assert execute([*arguments[: arguments.index("--map")], "--replace", "--mapping", "mapping.json"]) == 0
    assert (tmp_path / "bundle" / "traces.jsonl").read_text().splitlines() == [first, second]
    assert execute(["audit", "bundle", "-o", "run.audit", "--json", "-q"]) == 0


def test_every_command_of_the_manual_names_a_format_and_options_that_exist(manual):
    options = {option for parameter in command.params for option in parameter.opts}
    named = re.findall(r"`import ([a-z-]+)([^`]*)`", manual)
    assert {name for name, _ in named} <= set(MODULES)
    assert {each for _, rest in named for each in rest.split() if each.startswith("--")} <= options
    assert set(re.findall(r"(?<![-\w])--[a-z][a-z-]*", manual)) - options == {"--qrels", "--mb"}
