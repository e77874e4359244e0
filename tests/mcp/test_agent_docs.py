"""docs/agents.md and docs/agent-skill.md against the program: every command and every configuration in them is run."""

import json
import re
import shlex
import shutil
import sys
import tomllib

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_builders import DEMO, desk

from ragaudit.cli.main import execute
from ragaudit.config import Settings
from ragaudit.diagnosis.preflight_rules import config_findings
from ragaudit.mcp.answers import USERS_TO_GIVE
from ragaudit.mcp.bounds import MAX_CHARACTERS, MAX_ROWS
from ragaudit.mcp.server import server


@pytest.fixture
def manual(repository):
    return (repository / "docs" / "agents.md").read_text("utf-8")


@pytest.fixture
def skill(repository):
    return (repository / "docs" / "agent-skill.md").read_text("utf-8")


def _blocks(text, language=""):
    return [re.sub(r"^ +", "", body, flags=re.M) for body in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


def _commands(text):
    return [line for block in _blocks(text) for line in block.splitlines() if line.startswith("ragaudit ")]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A run before and one after a change of the packer's token budget."""
    monkeypatch.chdir(tmp_path)
    for name, budget in (("before", 900), ("after", 950)):
        folder = shutil.copytree(DEMO, tmp_path / "runs" / name)
        config = folder / "ragaudit.toml"
        config.write_text(config.read_text().replace("token_budget = 900", f"token_budget = {budget}"))
    return tmp_path


def test_every_command_of_the_skill_runs_in_its_order(skill, project, capsys):
    commands = _commands(skill)
    assert len(commands) == 12
    for line in commands:
        journal = project / "experiments.jsonl"
        planned = json.loads(journal.read_text().splitlines()[0])["id"] if journal.exists() else ""
        named = (
            line.replace("QUERY_ID", "q-006").replace("LEVER", "token_budget --to 950").replace(" ID", f" {planned}")
        )
        assert execute(shlex.split(named)[1:]) == 0, (line, capsys.readouterr().err)
    capsys.readouterr()
    assert (project / "report.md").read_text().startswith("# RAG audit: after")


def test_the_skill_has_the_front_matter_that_agents_read(skill):
    rows = [line.partition(": ") for line in skill.split("---\n")[1].splitlines()]
    front = {key: text for key, _, text in rows}
    assert sorted(front) == ["description", "name"]
    assert not any(": " in text or " #" in text for text in front.values())  # plain YAML scalars
    assert front["name"] == "rag-audit"
    assert len(front["description"]) <= 1024


def test_the_skill_names_each_finding_to_ask_about_and_the_program_knows_it(skill):
    asked = re.findall(r"`(missing_\w+)`", skill)
    assert sorted(asked) == sorted(USERS_TO_GIVE)
    assert {*asked} <= {finding.check for finding in config_findings(Settings())}


def test_every_configuration_of_the_manual_starts_the_server(manual, project, repository):
    configured = [json.loads(block) for block in _blocks(manual, "json")]
    tables = [next(iter(each.values())) for each in configured]
    tables += [tomllib.loads(block)["mcp_servers"] for block in _blocks(manual, "toml")]
    assert [entry["ragaudit"]["command"] for entry in tables] == ["ragaudit"] * 3
    assert {tuple(entry["ragaudit"]["args"]) for entry in tables} == {("mcp", "runs")}
    assert _commands(manual) == ["ragaudit mcp runs"]

    async def started():
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "ragaudit.cli.main", *tables[0]["ragaudit"]["args"], "--quiet"],
            env={"PYTHONPATH": str(repository)},
            cwd=project,
        )
        async with Client(parameters) as client:
            return await client.call_tool("check", {"bundle": "runs/before"})

    assert anyio.run(started).structured_content["run"] == "before"


def test_the_manual_lists_every_tool_with_its_arguments(manual, tmp_path):
    async def listed():
        async with Client(server(desk(tmp_path))) as client:
            return (await client.list_tools()).tools

    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", manual, re.M)
    told = {name: re.findall(r"`(\w+)`", arguments) for name, arguments in rows}
    assert told == {tool.name: list(tool.input_schema["properties"]) for tool in anyio.run(listed)}


def test_the_manual_gives_the_real_bounds(manual):
    assert f"**Answers are bounded**: {MAX_CHARACTERS:,} characters" in manual
    assert f"{MAX_ROWS} rows at most" in manual
