"""`report --format junit` and `github`: what a run is held against, and where each part of them goes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from ragaudit.cli.gates_file import CONFIG, gates_file
from ragaudit.cli.options import PATH
from ragaudit.cli.streams import Streams
from ragaudit.compare.bar import NOTHING, Bar, bar
from ragaudit.compare.baselines import FOLDER, load_side
from ragaudit.compare.freeze import freeze
from ragaudit.compare.gates import rules
from ragaudit.config import load_settings
from ragaudit.diagnosis.registry import CAUSES
from ragaudit.report import github, junit
from ragaudit.store import AuditReader
from ragaudit.store.whole_file import whole_file

CI_FORMATS = ("junit", "github")
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"

Command = TypeVar("Command", bound=Callable[..., Any])


def ci_options(command: Command) -> Command:
    """Take what the run is held against, as `gate` does."""
    for option in (
        click.option(
            "--baselines", type=PATH, default=FOLDER, show_default=True, metavar="DIR", help="Where names are found."
        ),
        click.option("--allow", multiple=True, metavar="VARIABLE", help="Accept that this differs from the baseline."),
        click.option("--config", type=PATH, metavar="FILE", help="Where [gates] are, as for `gate`; junit and github."),
        click.option(
            "--baseline",
            metavar="FILE|NAME",
            help="The run before: what changed; junit and github: fail what newly fails.",
        ),
    ):
        command = option(command)
    return command


def write_junit(out: TextIO, reader: AuditReader, against: Bar, *, with_text: bool) -> None:
    """The JUnit report."""
    junit.write(out, reader.summary(), reader.iter_results, CAUSES, against, with_text=with_text)


def write_github(
    streams: Streams, reader: AuditReader, output: Path | None, against: Bar, *, with_text: bool, max_rows: int
) -> None:
    """Annotations to stdout, where GitHub reads them; the step summary to the file, if one is named."""
    summary = reader.summary()
    found = github.standings(reader.iter_results(), against, most=max(max_rows, github.ANNOTATIONS))
    if output is None:
        streams.say(f'No step summary: name its file with -o "${SUMMARY_VARIABLE}".')
    else:
        _put(output, github.step_summary(summary, found, against, with_text=with_text))
    streams.data(github.annotations(found, against))


def held_against(
    streams: Streams,
    reader: AuditReader,
    *,
    baseline: str | None,
    config: Path | None,
    allow: tuple[str, ...],
    baselines: Path,
) -> Bar:
    """The gates that are written and the baseline that is named; NOTHING when there is neither.

    Raises:
        ConfigError: A gate is wrong.
        InputError: The baseline is not there, or cannot be compared with.
    """
    path = gates_file(reader.path, config)
    gates = None if path is None else load_settings(path, env=os.environ, flags={}).gates
    if not gates and baseline is None:
        return NOTHING
    if gates:
        streams.say(f"Gates from {path}.")
    before = None if baseline is None else load_side(baseline, baselines)[0]
    return bar(freeze(reader), rules(gates or {}, CONFIG if path is None else path.name), before, allow=allow)


def _put(path: Path, text: str) -> None:
    """Write a file, or append to the step's own summary: other tools of the same step may have written there."""
    summary = os.environ.get(SUMMARY_VARIABLE)
    before = ""
    if summary and path == Path(summary) and path.is_file():
        before = path.read_text("utf-8", errors="replace")
    with whole_file(path, replace=True) as file:
        file.write(before + text)
