"""`ragaudit baseline`: runs that are kept to compare with."""

from pathlib import Path

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.compare.baselines import (
    FOLDER,
    load_side,
    name_from,
    place_of,
    read_baseline,
    stored,
    write_baseline,
)
from ragaudit.compare.freeze import freeze
from ragaudit.report.baseline_text import baseline_line, baseline_summary
from ragaudit.store import AuditReader

_FOLDER = click.option(
    "--baselines", type=PATH, default=FOLDER, show_default=True, metavar="DIR", help="Where they are kept."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON.")


@click.group("baseline")
def command() -> None:
    """Freeze a run as a file to compare with, and list or show such files. Each takes --json."""


@command.command("freeze")
@click.argument("audit", type=PATH)
@click.option("--name", help="What it is called; default: the run's name.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Write there instead of the baselines' folder.")
@click.option("--replace", is_flag=True, help="Freeze over a baseline that is there.")
@_FOLDER
@_JSON
@quiet_option
@click.pass_obj
def freeze_command(
    streams: Streams,
    audit: Path,
    name: str | None,
    output: Path | None,
    replace: bool,
    baselines: Path,
    as_json: bool,
) -> None:
    """Keep what a comparison needs of a run: configuration, gold version, judge, values of each query; no text.

    The file is JSON with sorted keys and one query a line, to be committed and read in a diff.
    """
    with AuditReader.open(audit) as reader:
        if name is None:
            name = name_from(reader.summary().run.name)
        path = output or place_of(name, baselines)
        frozen = freeze(reader, name)
    write_baseline(frozen, path, replace=replace)
    if as_json:
        streams.json(
            {
                "schema": "ragaudit.baseline_file/1",
                "name": frozen.name,
                "path": str(path),
                "fingerprint": frozen.fingerprint,
                "gold_version": frozen.gold_version,
                "queries": len(frozen.queries),
            }
        )
    streams.say(f"Wrote {path}. Next: ragaudit compare {output or name} CANDIDATE.audit")


@command.command("list")
@_FOLDER
@_JSON
@quiet_option
@click.pass_obj
def list_command(streams: Streams, baselines: Path, as_json: bool) -> None:
    """The baselines that are kept here."""
    found = [(path, read_baseline(path)) for path in stored(baselines)]
    if as_json:
        rows = [
            {"path": str(path), **frozen.model_dump(mode="json", by_alias=True, exclude={"queries", "pipeline"})}
            for path, frozen in found
        ]
        streams.json({"schema": "ragaudit.baseline_list/1", "baselines": rows})
        return
    for path, frozen in found:
        streams.data(baseline_line(frozen, str(path)))
    if not found:
        streams.say(f"No baseline in {baselines}. Freeze one: ragaudit baseline freeze RUN.audit")


@command.command("show")
@click.argument("baseline")
@_FOLDER
@_JSON
@quiet_option
@click.pass_obj
def show_command(streams: Streams, baseline: str, baselines: Path, as_json: bool) -> None:
    """What one was, how it was measured, and its means with intervals, to choose gates from."""
    frozen, _ = load_side(baseline, baselines)
    if as_json:
        streams.json(frozen.model_dump(mode="json", by_alias=True))
    else:
        streams.text(baseline_summary(frozen))
