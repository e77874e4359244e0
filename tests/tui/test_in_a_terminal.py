"""The app in a real terminal, with real keys: it starts, reviews, leaves a clean screen and exit code 0."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragaudit.store import Reviews
from tests.conftest import ROOT

TMUX = shutil.which("tmux")
PATIENCE_SECONDS = 30.0

pytestmark = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


class Terminal:
    """A tmux window of its own, with nothing of the user's settings."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        self._socket = str(folder / "tmux")
        self._run("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sh")

    def _run(self, *arguments: str) -> str:
        assert TMUX is not None
        environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "COLUMNS", "LINES")} | {
            "PS1": "ready$ "
        }
        done = subprocess.run(
            [TMUX, "-S", self._socket, *arguments], capture_output=True, text=True, env=environment, check=True
        )
        return done.stdout

    def type(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def wait_for(self, text: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in (shown := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} did not come up:\n{shown}"
            time.sleep(0.05)
        return shown

    def close(self) -> None:
        self._run("kill-server")


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path, (80, 24))
    yield terminal
    terminal.close()


def test_step_through_the_demo_and_leave(demo, terminal):
    terminal.type(f"cd {ROOT} && {sys.executable} -m ragaudit.cli.main review {demo}; echo exit=$?", "Enter")
    terminal.wait_for("q-013 [1 of 55]")
    terminal.type("n")
    terminal.wait_for("[2 of 55]")
    terminal.type("n")
    terminal.wait_for("q-001 [3 of 55]")
    terminal.type("1")
    terminal.wait_for("saved: q-001 agree. 1 reviewed")
    terminal.type("tab")
    terminal.wait_for("[Hits]")
    terminal.type("/")
    terminal.wait_for("find /")
    terminal.type("notice period", "Enter")
    terminal.wait_for("q-013 [1 of 2]")
    terminal.wait_for("2 match")
    terminal.resize(120, 36)
    terminal.wait_for("[Review] Experiments Compare")
    terminal.type("q")
    left = terminal.wait_for("exit=0")
    assert "Diagnosis" not in left and "\x1b" not in left, "the screen is given back as it was"
    with Reviews.open(demo) as reviews:
        assert reviews.of("q-001").verdict == "agree"


def test_ctrl_c_loses_nothing_and_the_next_start_goes_on_where_it_was_left(demo, terminal):
    terminal.type(f"cd {ROOT} && {sys.executable} -m ragaudit.cli.main review {demo}; echo exit=$?", "Enter")
    terminal.wait_for("q-013 [1 of 55]")
    terminal.type("2")
    terminal.wait_for("saved: q-013 disagree. 1 reviewed")
    terminal.type("C-c")
    terminal.type("q")
    terminal.wait_for("exit=0")
    terminal.type(f"clear; {sys.executable} -m ragaudit.cli.main review {demo}; echo exit=$?", "Enter")
    terminal.wait_for("1 reviewed")
    terminal.wait_for("q-056 [2 of 55]")
    terminal.type("q")
    terminal.wait_for("exit=0")


def test_the_demo_opens_the_app_and_e_writes_a_file(tmp_path, terminal):
    run = f"PYTHONPATH={ROOT} {sys.executable} -m ragaudit.cli.main"
    terminal.type(f"cd {tmp_path} && {run} demo; echo exit=$?", "Enter")
    terminal.wait_for("q-013 [1 of 55]")
    terminal.type("e")
    terminal.wait_for("(x) markdown")
    terminal.type("Enter")
    terminal.wait_for("wrote q-013.md: 1 query as markdown")
    terminal.type("q")
    left = terminal.wait_for("exit=0")
    assert "ragaudit review " in left, "it says where the audit is"
    assert (tmp_path / "q-013.md").read_text().startswith("# Diagnosis: demo\n")
