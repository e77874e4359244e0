"""docs/review.md against the program: its filter terms, its settings, and every command in it."""

import io
import re
import shlex
import shutil
import tomllib

import click
import pytest

from ragaudit.cli.main import execute, group
from ragaudit.config import load_settings
from ragaudit.report.export import ExportFormat
from ragaudit.store.filters import IS, KEYS, parse_filter
from ragaudit.tui.preferences import checked_keymap, checked_theme
from tests.conftest import ROOT

MANUAL = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
BLOCKS = MANUAL.split("```")[1::2]
COMMANDS = [
    re.split(r" {2,}", line)[0] for block in BLOCKS for line in block.splitlines() if line.startswith("ragaudit ")
]


def test_the_table_of_the_filter_holds_every_term_and_each_is_understood():
    table = MANUAL.split("## The filter")[1].split("\n## ")[0]
    terms = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    for term in terms:
        assert parse_filter(term).text == term
    assert {term.split(":")[0] for term in terms if ":" in term} == set(KEYS)
    listed = re.search(r"`is:failing` \| one of ([^|]+) \|", table)
    assert listed is not None and tuple(listed[1].split(", ")) == IS


def test_every_format_of_an_export_is_described():
    section = MANUAL.split("## Files to send")[1].split("\n## ")[0]
    assert f"--as {'|'.join(form.value for form in ExportFormat)}" in section
    described = {
        name for names in re.findall(r"^- \*\*([^*]+)\*\*:", section, re.MULTILINE) for name in names.split(", ")
    }
    assert described == {form.value for form in ExportFormat}


def test_the_settings_shown_are_valid(tmp_path):
    (text,) = [block.removeprefix("toml\n") for block in BLOCKS if block.startswith("toml\n")]
    assert set(tomllib.loads(text)) == {"tui"}
    (tmp_path / "ragaudit.toml").write_text(text)
    settings = load_settings(tmp_path / "ragaudit.toml", env={}, flags={}).tui
    assert checked_theme(settings.theme, "x", no_color=True) == "ragaudit-light"
    assert checked_keymap(settings.keymap, "x") == settings.keymap


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_runs(line, demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    shutil.copy(demo, tmp_path / "run.audit")
    words = shlex.split(line)[1:]
    if "--serve" in words:  # tests/tui/test_serve.py serves
        command = group.get_command(click.Context(group), words[0])
        assert command is not None
        assert {word for word in words if word.startswith("-")} <= {name for p in command.params for name in p.opts}
        return
    assert execute(words) == 0
    said = capsys.readouterr()
    if "--export" in words and "-" not in words:
        assert said.err.startswith(f"Wrote {words[words.index('--export') + 1]}: ")
    else:
        assert said.out or "labels" in words
