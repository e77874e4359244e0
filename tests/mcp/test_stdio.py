"""The real server in a process of its own, driven by the official client over stdin and stdout."""

import json
import os
import signal
import subprocess
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_builders import DEMO

from ragaudit.cli.main import execute
from ragaudit.cli.streams import ExitCode

SERVE = ["-m", "ragaudit.cli.main", "mcp"]


def _environment(repository, tmp_path):
    return {"PYTHONPATH": str(repository), "TMPDIR": str(tmp_path)}


def _parameters(repository, tmp_path, *arguments):
    return StdioServerParameters(
        command=sys.executable, args=[*SERVE, *arguments], env=_environment(repository, tmp_path), cwd=tmp_path
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_of_either_protocol_works_through_a_whole_audit(repository, tmp_path, mode):
    progress = []

    async def seen(done, total, message):
        progress.append(done)

    async def session():
        async with Client(_parameters(repository, tmp_path, "--quiet", str(DEMO)), mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("check", {"bundle": "demo"})
            audit = await client.call_tool("audit", {"bundle": "demo", "limit": 1}, progress_callback=seen)
            handle = audit.structured_content["audit"]
            query = audit.structured_content["queries"][0]["query_id"]
            rest = [
                await client.call_tool("show", {"audit": handle, "query_id": query}),
                await client.call_tool("next", {"audit": handle, "limit": 1}),
                await client.call_tool("compare", {"base": handle, "candidate": handle}),
                await client.call_tool("report", {"audit": handle}),
            ]
            outside = await client.call_tool("check", {"bundle": str(tmp_path)})
            kept = list(tmp_path.glob("ragaudit-mcp-*/demo.audit"))
            return names, audit.structured_content, rest, outside, kept

    names, audit, rest, outside, kept = anyio.run(session)
    assert names == ["check", "audit", "show", "next", "compare", "report"]
    assert (audit["outcomes"]["fail"], audit["stages"]["rerank"]) == (55, 8)
    assert progress == [90, 180]
    assert [found.is_error for found in rest] == [False] * 4
    assert rest[0].structured_content["query"]["query_id"] == "q-013"
    assert rest[3].structured_content["markdown"].startswith("# RAG audit: demo")
    assert outside.is_error
    assert "Nothing there is read" in outside.content[0].text
    assert len(kept) == 1
    assert list(tmp_path.glob("ragaudit-mcp-*")) == []  # gone with the session


def test_stdout_carries_the_protocol_alone(repository, tmp_path):
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _hello()},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "audit", "arguments": {"bundle": "x"}}},
    ]
    with subprocess.Popen(
        [sys.executable, *SERVE, str(DEMO)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **_environment(repository, tmp_path)},
    ) as server:
        answers = []
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if "id" in message:
                answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        rest, said = server.stdout.read(), server.stderr.read()
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[1]["result"]["isError"] is True
    assert rest == ""
    assert said == f"Serving {DEMO} on stdin and stdout.\n"
    assert server.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_the_agent_is_silent_and_leaves_no_audit_behind(repository, tmp_path, number):
    with subprocess.Popen(
        [sys.executable, *SERVE, str(DEMO)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **_environment(repository, tmp_path)},
    ) as server:
        assert server.stderr.readline().startswith("Serving")
        assert len(list(tmp_path.glob("ragaudit-mcp-*"))) == 1
        server.send_signal(number)
        assert server.wait(60) == 128 + number
    assert list(tmp_path.glob("ragaudit-mcp-*")) == []


def test_without_the_package_the_error_names_the_extra(monkeypatch, capsys):
    monkeypatch.setattr("ragaudit.cli.commands.mcp.find_spec", lambda name: None)
    assert execute(["mcp", str(DEMO)]) == ExitCode.USAGE
    assert capsys.readouterr().err == (
        "ragaudit: ragaudit mcp: needs the mcp package. Install it: pip install 'ragaudit[mcp]'.\n"
    )


def test_without_a_folder_it_does_not_start(capsys):
    assert execute(["mcp"]) == ExitCode.USAGE
    assert "Missing argument 'FOLDER" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_an_error_at_start(tmp_path, capsys):
    assert execute(["mcp", str(tmp_path / "absent")]) == ExitCode.USAGE
    assert "no such folder" in capsys.readouterr().err


def test_its_help_and_the_other_commands_do_not_load_the_package(repository):
    probe = (
        "import sys; from ragaudit.cli.main import execute; execute(['mcp', '--help']); execute(['--help']); "
        "print(sorted({'mcp', 'pydantic', 'starlette', 'anyio'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=repository)
    assert done.stdout.splitlines()[-1] == "[]"


def _hello():
    return {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
