import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from cli_builders import bundle, stand_in, write_audit

from ragaudit.cli import main
from ragaudit.cli.main import COMMANDS, execute, group
from ragaudit.cli.streams import ExitCode
from ragaudit.errors import ConfigError, RagauditError

RUN = "import sys; from ragaudit.cli.main import run; sys.argv[0] = 'ragaudit'; run()"


def python(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        text=True,
        timeout=60,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from ragaudit.cli.main import execute\n"
        "code = execute(['--help'])\n"
        "heavy = {'numpy', 'pydantic', 'litellm', 'textual', 'jinja2', 'msgspec', 'sqlite3', 'pyarrow', 'diskcache'}\n"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = python(code)
    assert done.stderr.strip() == "0 []"
    assert all(name in done.stdout for name in COMMANDS)


def test_importing_the_entry_point_runs_and_prints_nothing():
    done = python("import ragaudit.cli.main")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_exists_and_its_help_agrees_with_the_list(name, monkeypatch, capsys):
    stand_in(monkeypatch)
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.name == name
    assert COMMANDS[name][:10] in " ".join((command.help or "").split())
    assert execute([name, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_help_and_version_are_data(capsys):
    assert execute(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ragaudit 0.")
    assert execute(["-h"]) == 0
    assert "Exit codes: 0 done" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["show"], ["--nonsense"], ["audit"], ["audit", "b", "--limit", "0"]]
)
def test_usage_errors_exit_with_2_and_leave_stdout_empty(arguments, monkeypatch, capsys):
    stand_in(monkeypatch)
    assert execute(arguments) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "Error: " in said.err


class _Judging(RagauditError):
    exit_code = 4


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("ragaudit.toml: wrong. Correct it."), 2, "ragaudit: ragaudit.toml: wrong. Correct it.\n"),
        (_Judging("cassette: a miss. Record it."), 4, "ragaudit: cassette: a miss. Record it.\n"),
        (RagauditError("x\x1b[2J\u202e: bad. Stop."), 3, "ragaudit: x<U+001B>[2J<U+202E>: bad. Stop.\n"),
        (KeyboardInterrupt(), 130, "ragaudit: interrupted.\n"),
    ],
)
def test_errors_become_a_line_on_stderr_and_their_exit_code(error, code, said, tmp_path, monkeypatch, capsys):
    stand_in(monkeypatch, raising=error)
    assert execute(["check", str(bundle(tmp_path / "b"))]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == said


def test_a_mistake_of_ours_is_called_a_bug(tmp_path, monkeypatch, capsys):
    stand_in(monkeypatch, raising=ZeroDivisionError("by \x1b[31m"))
    monkeypatch.delenv("RAGAUDIT_TRACEBACK", raising=False)
    assert execute(["check", str(bundle(tmp_path / "b"))]) == ExitCode.BUG == 70
    said = capsys.readouterr().err
    assert said.startswith("ragaudit: this is a bug in ragaudit: ZeroDivisionError: by <U+001B>[31m (cli_builders.py:")
    assert "RAGAUDIT_TRACEBACK=1" in said
    monkeypatch.setenv("RAGAUDIT_TRACEBACK", "1")
    assert execute(["check", str(bundle(tmp_path / "b"))]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    write_audit(tmp_path / "run.audit")
    code = (
        "import os, sys\n"
        "from ragaudit.cli import main\n"
        "read, write = os.pipe(); os.close(read); os.dup2(write, 1)\n"
        f"sys.argv = ['ragaudit', 'report', {str(tmp_path / 'run.audit')!r}]\n"
        "main.run()\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")


FULL = Path("/dev/full")
UNWRITTEN = "ragaudit: stdout: cannot be written (No space left on device). Free some space, or write elsewhere.\n"


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments", [["stages"], ["--help"], ["show", "RUN", "q1"], ["report", "RUN", "--format", "json"]]
)
def test_a_stdout_on_a_full_disk_is_said_and_is_no_bug(arguments, tmp_path):
    path = str(write_audit(tmp_path / "run.audit"))
    with FULL.open("w") as full:
        done = python(RUN, *(path if word == "RUN" else word for word in arguments), stdout=full)
    assert (done.returncode, done.stderr) == (2, UNWRITTEN)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_stderr_on_a_full_disk_hides_neither_the_result_nor_the_exit_code(tmp_path):
    with FULL.open("w") as full:
        made = python(RUN, "init", str(tmp_path / "b"), "--json", stderr=full)
        missing = python(RUN, "show", str(tmp_path / "absent.audit"), "q1", stderr=full)
    assert (made.returncode, missing.returncode, missing.stdout) == (0, 3, "")
    assert json.loads(made.stdout) == {"written": str(tmp_path / "b" / "ragaudit.toml")}


def test_the_package_runs_as_a_module_under_its_own_name():
    done = subprocess.run([sys.executable, "-m", "ragaudit", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ragaudit 0.")
    assert subprocess.run([sys.executable, "-m", "ragaudit", "show"], capture_output=True).returncode == 2


def test_the_console_script_exits_with_the_code(tmp_path):
    done = python(RUN, "show", str(tmp_path / "absent.audit"), "q1")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("ragaudit: ") and "absent.audit: no such file" in done.stderr


def test_a_stdout_that_cannot_show_a_character_does_not_end_a_command(tmp_path, monkeypatch):
    import os

    path = write_audit(tmp_path / "run.audit", name="返金")
    done = python(RUN, "report", str(path), env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert done.stdout.startswith("# RAG audit: \\u8fd4\\u91d1\n")


def test_every_exit_code_is_explained():
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "FIRED": 1,
        "USAGE": 2,
        "INPUT": 3,
        "JUDGE": 4,
        "BUG": 70,
        "INTERRUPTED": 130,
    }
    assert all(f"{int(code)} " in main.EPILOG for code in ExitCode)
