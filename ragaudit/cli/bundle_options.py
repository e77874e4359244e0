"""The options that name a bundle, a folder or its files one by one, and how a command opens it."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from ragaudit.cli.options import PATH, Command
from ragaudit.config import load_settings
from ragaudit.errors import ConfigError
from ragaudit.readers.bundle import Bundle, BundlePaths, locate, open_bundle, why_no_file

_FILES = {
    "traces": "One row a query (jsonl or Parquet).",
    "sources": "One row a source document.",
    "chunks": "One row a chunk of the store.",
    "index": "The index revision (json).",
    "config": "ragaudit.toml.",
    "qrels": "Graded gold (TREC or BEIR).",
}


def bundle_options(command: Command) -> Command:
    """Add BUNDLE and the options for single files."""
    for name, text in reversed(_FILES.items()):
        command = click.option(f"--{name}", type=PATH, metavar="FILE", help=text)(command)
    return click.argument("bundle", required=False, type=PATH)(command)


def limit_options(command: Command) -> Command:
    """Add what bounds the judge; each wins over its key in the [judge] table."""
    for option in (
        click.option("--tpm", type=click.FloatRange(min=0, min_open=True), help="Tokens a minute to the judge."),
        click.option("--rpm", type=click.FloatRange(min=0, min_open=True), help="Requests a minute to the judge."),
        click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What the judge may cost."),
    ):
        command = option(command)
    return command


def find(folder: Path | None, files: Mapping[str, Path | None]) -> BundlePaths:
    """The files of the bundle that was named.

    Raises:
        UsageError: neither a folder nor traces were named.
        ConfigError: what was named as the file of settings is not there, or no file.
        InputError: there are no traces, or another file that was named is not there.
    """
    if folder is None and files.get("traces") is None:
        raise click.UsageError("Name a BUNDLE folder, or at least --traces FILE.")
    config = files.get("config")
    if config is not None and not config.is_file():
        raise ConfigError(f"{config}: {why_no_file(config, 'config')}")
    return locate(folder, **files)


def opened(paths: BundlePaths, flags: Mapping[str, object]) -> Bundle:
    """The bundle with its settings: a flag wins over the environment, the environment over the file."""
    settings = load_settings(paths.config, env=os.environ, flags=flags)
    return open_bundle(paths, settings)


def bundle_name(folder: Path | None, paths: BundlePaths) -> str:
    """What the default audit file is called after: the folder, else the folder of the traces."""
    return (folder or paths.traces.parent).resolve().name or "run"
