"""Every command that the manual and README show exists, knows its options, and runs; or it says here why it cannot."""

import gzip
import io
import json
import os
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from ragaudit.cli.main import execute
from tests.conftest import ROOT
from tests.docs.docs_console import blocks
from tests.docs.docs_shown import Command, command_of, commands, options_of

FILES = (*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *(ROOT / "examples").rglob("README.md"))
PAGES = {page.relative_to(ROOT).as_posix().removeprefix("docs/"): page.read_text(encoding="utf-8") for page in FILES}
SHOWN = [(page, command) for page, text in sorted(PAGES.items()) for command in commands(text)]

ELSEWHERE = {
    "inventory.md": "its commands need a live store; tests/inventories run each kind of store and read the page",
    "import.md": "tests/importers/test_import_docs.py runs its example, on the log that the page shows",
    "review.md": "tests/tui/test_review_manual.py runs every command of the page",
    "commands.md": "written from the help texts: it quotes, and shows no line to type",
}
NOT_HERE = {
    "ragaudit judge agree run.audit --modes BUNDLE": "asks a model: the cassette holds one mode",
    "ragaudit judge agree run.audit --replicates BUNDLE --times 3": "asks a model: each time with another seed",
    "ragaudit mcp runs": "serves until its client leaves; the tests of ragaudit mcp drive it with a real client",
    "ragaudit drill examples/demo": "a minute long; tests/drill/test_drill_demo.py compares what it prints",
}
CODES = {
    "ragaudit gate candidate.audit --baseline main": 1,
    "ragaudit gate run.audit --baseline eval/baseline.json": 1,  # the demo leaks, and the page's gates say leaks = 0
    "ragaudit gate run.audit": 2,  # the gates of the page hold `max_drop`, which wants a baseline
}
"""Commands that end otherwise than with 0 on the page's own example."""


@pytest.mark.parametrize(("page", "command"), SHOWN, ids=lambda value: getattr(value, "line", value))
def test_a_command_and_its_options_exist(page: str, command: Command) -> None:
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", command.line))
    assert shown <= options_of(command.path) | {"--version"}
    assert command.path or command.is_form
    command_of(command.path)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_commands_of_a_page_run(page: str, prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = {}
    for command in commands(PAGES[page]):
        if not (command.is_form or command.is_mention or command.line in NOT_HERE):
            BEFORE.get(command.line, lambda: None)()
            ended[command.line] = execute(shlex.split(_filled_in(command.line, new=f"new-{len(ended)}"))[1:])
    said = capsys.readouterr()
    assert ended == {line: CODES.get(line, 0) for line in ended}, said.err


def test_what_is_not_run_is_still_shown() -> None:
    lines = {command.line for _, command in SHOWN}
    assert set(NOT_HERE) | set(CODES) <= lines
    assert set(ELSEWHERE) <= set(PAGES)


def test_every_command_of_the_program_is_shown_somewhere() -> None:
    paths = {command.path for _, command in SHOWN}
    consoles = " ".join(block.text for text in PAGES.values() for block in blocks(text) if block.info == "console")
    missing = [path for path in _paths(()) if path not in paths and f"ragaudit {' '.join(path)}" not in consoles]
    assert missing == []


# --- a folder in which the lines of a page can be typed ---------------------------------------------------------------


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout's examples, the audits of both, and one of the demo with another top_n."""
    folder = tmp_path_factory.mktemp("manual")
    for name in ("examples", "cassettes"):
        shutil.copytree(ROOT / name, folder / name)
    changed = folder / "changed"
    shutil.copytree(ROOT / "examples" / "demo", changed)
    settings = changed / "ragaudit.toml"
    text = settings.read_text(encoding="utf-8")
    assert "top_n = 10" in text
    settings.write_text(text.replace("top_n = 10", "top_n = 16"), encoding="utf-8")
    assert execute(["audit", str(folder / "examples" / "demo"), "-q", "-o", str(folder / "demo.audit")]) == 0
    assert execute(["audit", str(changed), "-q", "-o", str(folder / "changed.audit")]) == 0
    judged = ["audit", str(folder / "examples" / "judged"), "--tape", "none", "-q", "-o", str(folder / "judged.audit")]
    assert execute(judged) == 0
    return folder


@pytest.fixture
def prepared(page: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: run.audit, BUNDLE and what else the lines of this page name."""
    work = tmp_path / "work"
    example = "judged" if page == "judge.md" else "demo"
    for name in ("examples", "cassettes"):
        shutil.copytree(made / name, work / name)
    shutil.copytree(made / "cassettes", tmp_path / "cassettes")  # BUNDLE names ../../cassettes
    shutil.copytree(made / "examples" / example, work / "BUNDLE")
    for name, source in (
        ("run", example),
        ("base", "demo"),
        ("cand", "changed"),
        ("candidate", "changed"),
    ):
        shutil.copy(made / f"{source}.audit", work / f"{name}.audit")
    (work / "DIR").mkdir()
    (work / "KEY").write_text("a key of sixteen bytes or more", encoding="utf-8")
    shutil.copytree(made / "examples" / "demo", work / "eval" / "bundle")
    (work / "traces.jsonl.gz").write_bytes(gzip.compress((work / "BUNDLE" / "traces.jsonl").read_bytes()))
    for block in blocks(PAGES[page]):
        if block.info == "toml" and "[gates]" in block.text:
            (work / "ragaudit.toml").write_text(block.text, encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(work / "summary.md"))
    monkeypatch.chdir(work)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    if page == "README.md":
        _write_my_run(work)
    return work


def _write_my_run(work: Path) -> None:
    """The traces as README shows them, and an earlier audit of them."""
    (shown,) = [block for block in blocks(PAGES["README.md"]) if block.file == "my-run/traces.jsonl"]
    (work / "my-run").mkdir()
    (work / "my-run" / "traces.jsonl").write_text(shown.text, encoding="utf-8")
    assert execute(["audit", "my-run", "-q", "-o", "base.audit"]) == 0


def _name_a_model() -> None:
    with Path("my-run/ragaudit.toml").open("a", encoding="utf-8") as settings:
        settings.write('[judge]\nmodel = "openai/gpt-4o-mini"\n')


BEFORE = {"ragaudit judge plan my-run": _name_a_model}
"""What the page says to do before a line."""


def _filled_in(line: str, new: str) -> str:
    """The line with the words in capitals replaced by what this folder holds, and OUT by a new name."""
    words = {
        "BASE": "base.audit",
        "CAND": "candidate.audit",
        "NAME": "main",
        "LABELS": "examples/judged/labels.jsonl",
        "MODEL": "openai/qwen2.5-coder-1.5b",
        "OUT": new,
    }
    journal = Path("experiments.jsonl")
    if journal.exists():
        words["ID"] = json.loads(journal.read_text(encoding="utf-8").splitlines()[0])["id"]
    return os.path.expandvars(re.sub(r"\b[A-Z]{2,}\b", lambda found: words.get(found[0], found[0]), line))


def _paths(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    command = command_of(path)
    if not isinstance(command, click.Group):
        return [path]
    return [inner for name in command.list_commands(click.Context(command)) for inner in _paths((*path, name))]
