"""A doctest for shell: runs the `console` blocks of a page in order and compares what is shown with what is printed."""

import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
SECONDS = 120


@dataclass(frozen=True)
class Block:
    """One fenced block: what stands behind the fence, and the text."""

    info: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that the page tells its reader to save, `title="run.py"`."""
        found = _TITLE.search(self.info)
        return found[1] if found else None


@dataclass(frozen=True)
class Shown:
    """One command of a page and the output that the page shows; None when it shows none."""

    command: str
    output: str | None


def blocks(page: str) -> list[Block]:
    """Every fenced block of a page."""
    return [Block(info.strip(), text) for info, text in _FENCE.findall(page)]


def commands(block: Block) -> list[Shown]:
    """The commands of a `console` block: lines that begin with `$ `, each followed by its output."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with a command: {parts[0]!r}"
    shown = []
    for part in parts[1:]:
        command, _, output = part.partition("\n")
        shown.append(Shown(command, output if output.strip() else None))
    return shown


def agrees(shown: str, printed: str) -> bool:
    """Is this what was printed? A line `...` stands for any lines, `...` within a line for any characters."""
    lines = shown.rstrip().splitlines()
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r" *\n" for line in lines
    )
    return re.fullmatch(pattern, printed.rstrip() + "\n") is not None


def run_page(page: str, folder: Path) -> int:
    """Save the files and run the commands of a page in this folder, in order.

    Returns:
        How many commands ran.

    Raises:
        AssertionError: a command failed, or printed something else than the page shows.
    """
    environment = _environment(folder)
    work = folder / "work"
    work.mkdir()
    for name in ("examples", "cassettes"):  # the commands of a page may begin in the checkout
        shutil.copytree(ROOT / name, work / name)
    ran = 0
    for block in blocks(page):
        if block.file:
            path = work / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if block.info.split(" ")[0] != "console":
            continue
        for one in commands(block):
            done = subprocess.run(
                ["bash", "-c", one.command],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, f"$ {one.command}\nexit code {done.returncode}\n{done.stdout}"
            if one.output is not None:
                assert agrees(one.output, done.stdout), f"$ {one.command}\nprints\n{done.stdout}\nshown\n{one.output}"
            ran += 1
    return ran


def _environment(folder: Path) -> dict[str, str]:
    """`ragaudit` and `python` are those of this checkout; keys and settings of the machine are not seen."""
    programs = folder / "bin"
    programs.mkdir()
    for name, arguments in (("ragaudit", " -m ragaudit.cli.main"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # stdout and stderr in the order of a terminal
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
