"""`ragaudit tape`: the recorded judge replies of this machine (cache) and of a repository (cassettes)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ragaudit.audit.judging import samples
from ragaudit.cli.bundle_options import find, opened
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.cli.tape_paths import folder_of, tape_paths
from ragaudit.config import JudgeSettings, load_settings
from ragaudit.errors import ConfigError
from ragaudit.judge import shelf as shelves_of
from ragaudit.judge.settings import how_to_judge, prompts_of
from ragaudit.judge.shelf import Shelf
from ragaudit.model.counting import counted
from ragaudit.report.clean import for_terminal
from ragaudit.report.tape_text import stats_document, stats_text

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("tape")
def command() -> None:
    """Recorded judge replies: count, verify, prune, export the cache and cassettes.

    Every subcommand takes --json.
    """


def _places(subcommand: Command) -> Command:
    """Add what names the places: a bundle's settings, or the places one by one."""
    for option in (
        click.argument("bundle", required=False, type=PATH),
        click.option(
            "--cassette", "cassettes", type=PATH, multiple=True, metavar="FILE", help="A cassette; repeatable."
        ),
        click.option("--cache", type=PATH, metavar="DIR", help="A cache folder."),
        click.option("--json", "as_json", is_flag=True, help="As JSON."),
    ):
        subcommand = option(subcommand)
    return subcommand


@command.command("stats")
@_places
@quiet_option
@click.pass_obj
def stats(
    streams: Streams, bundle: Path | None, cassettes: tuple[Path, ...], cache: Path | None, as_json: bool
) -> None:
    """Count the replies by prompt version and model, with their tokens and what they cost.

    Without --cassette and --cache, the places that the ragaudit.toml of BUNDLE (default: this folder) names.
    """
    found = [(each, shelves_of.stats(each)) for each in _shelves(bundle, cassettes, cache)]
    if as_json:
        streams.json(stats_document(found))
    else:
        streams.text(stats_text(found))


@command.command("verify")
@_places
@quiet_option
@click.pass_context
def verify(
    ctx: click.Context, bundle: Path | None, cassettes: tuple[Path, ...], cache: Path | None, as_json: bool
) -> None:
    """Check every recording: questions edited by hand, damaged replies, bad order.

    Exits with 3 when something is wrong.
    """
    streams: Streams = ctx.obj
    places = [each for each in _shelves(bundle, cassettes, cache) if cassettes or cache or each.path.exists()]
    problems = [problem for each in places for problem in shelves_of.verify(each)]
    if as_json:
        checked = [{"kind": each.kind, "path": str(each.path)} for each in places]
        streams.json({"schema": "ragaudit.tape_verify/1", "places": checked, "problems": problems})
    else:
        for problem in problems:
            streams.text(f"{for_terminal(problem)}\n")
        streams.text(f"{counted(len(places), 'place')} checked, {counted(len(problems), 'problem')}\n")
    if problems:
        ctx.exit(ExitCode.INPUT)


@command.command("prune")
@_places
@click.option("--unused", is_flag=True, help="From cassettes also what judging BUNDLE does not ask for.")
@click.option("--unusable", is_flag=True, help="Also replies that were cut off or refused, to ask for them again.")
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
@quiet_option
@click.pass_obj
def prune(
    streams: Streams,
    bundle: Path | None,
    cassettes: tuple[Path, ...],
    cache: Path | None,
    as_json: bool,
    unused: bool,
    unusable: bool,
    dry_run: bool,
) -> None:
    """Drop replies that nobody can ask for again: those of prompt versions that are no longer current.

    With --unused, BUNDLE is replayed first and its cassette keeps only what that asked for; the cache, which serves
    every bundle of this machine, keeps it all. Exits with 4 when the replay misses a reply: then nothing is dropped.
    With --unusable, what a model refused or could not finish is asked for again when it is next needed.
    """
    places = _shelves(bundle, cassettes, cache)
    prompts = prompts_of(*_settings(bundle))
    asked = _asked_by(streams, bundle, places) if unused else None
    rows = []
    for each in places:
        if not each.path.exists():
            continue
        keep = shelves_of.current(each, prompts)
        if asked is not None and each.is_cassette:
            keep &= asked
        if unusable:
            keep &= shelves_of.answered(each)
        dropped = shelves_of.droppable(each, keep) if dry_run else shelves_of.prune(each, keep)
        rows.append({"kind": each.kind, "path": str(each.path), "kept": len(keep), "dropped": dropped})
    if as_json:
        streams.json({"schema": "ragaudit.tape_prune/1", "dry_run": dry_run, "places": rows})
        return
    for row in rows:
        verb = "would be dropped" if dry_run else "dropped"
        place = for_terminal(f"{row['kind']} {row['path']}")
        streams.text(f"{place}: {row['dropped']} {verb}, {row['kept']} kept\n")


@command.command("export")
@_places
@click.option("-o", "--output", type=PATH, required=True, metavar="FILE", help="The cassette to add to.")
@quiet_option
@click.pass_obj
def export(
    streams: Streams, bundle: Path | None, cassettes: tuple[Path, ...], cache: Path | None, as_json: bool, output: Path
) -> None:
    """Write replies into one cassette, to be committed: those that judging BUNDLE asks for, or without it all of them.

    What stands in the cassette already stays. Exits with 4 when a reply that BUNDLE asks for is not recorded.
    """
    places = [each for each in _shelves(bundle, cassettes, cache) if each.path.resolve() != output.resolve()]
    keep = None if bundle is None else _asked_by(streams, bundle, places)
    added = shelves_of.export(places, output, keep)
    if as_json:
        streams.json({"schema": "ragaudit.tape_export/1", "path": str(output), "added": added})
    else:
        streams.text(f"{for_terminal(str(output))}: {counted(added, 'reply', 'replies')} added\n")


def _shelves(bundle: Path | None, cassettes: tuple[Path, ...], cache: Path | None) -> list[Shelf]:
    """The places that were named, else those of the settings."""
    for path in cassettes:
        if not path.is_file():
            raise ConfigError(f"{path}: no such file. Check what was passed as --cassette.")
    if cache is not None and not cache.is_dir():
        raise ConfigError(f"{cache}: no such folder. Check what was passed as --cache.")
    if cassettes or cache is not None:
        folder = [Shelf(cache, is_cassette=False)] if cache is not None else []
        return [*(Shelf(path, is_cassette=True) for path in cassettes), *folder]
    settings, base = _settings(bundle)
    places = zip(tape_paths(settings, base), (True, False), strict=True)
    return [Shelf(path, is_cassette=is_cassette) for path, is_cassette in places if path is not None]


def _settings(bundle: Path | None) -> tuple[JudgeSettings, Path]:
    """The [judge] table, and the folder that its paths are relative to."""
    if bundle is not None:
        paths = find(bundle, {})
        config, base = paths.config, folder_of(paths)
    else:
        here = Path("ragaudit.toml")
        config, base = (here if here.is_file() else None), Path()
    return load_settings(config, env=os.environ, flags={}).judge or JudgeSettings(), base


def _asked_by(streams: Streams, bundle: Path | None, places: list[Shelf]) -> frozenset[str]:
    if bundle is None:
        raise click.UsageError("--unused needs a BUNDLE: what it asks for is kept.")
    run = opened(find(bundle, {}), {})
    settings = run.settings.judge or JudgeSettings()
    with streams.progress("samples"):
        prompts = prompts_of(settings, folder_of(run.paths))
        return shelves_of.used(samples(run), places, prompts=prompts, how=how_to_judge(settings))
