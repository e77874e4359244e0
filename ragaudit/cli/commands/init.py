"""`ragaudit init`: a commented ragaudit.toml."""

from pathlib import Path

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.config import starter_toml
from ragaudit.errors import ConfigError


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Say what was written as JSON.")
@quiet_option
@click.pass_obj
def command(streams: Streams, folder: Path, as_json: bool) -> None:
    """Write a commented ragaudit.toml into DIR (default: here; made if it is missing). Nothing is overwritten."""
    path = folder / "ragaudit.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder}: no folder can be made there ({error.strerror}). Name another.") from error
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter_toml())
    except FileExistsError:
        raise ConfigError(f"{path}: exists. Edit it, or name another folder.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}). Name another folder.") from error
    if as_json:
        streams.json({"written": str(path)})
    else:
        streams.say(f"Wrote {path}. Say there what you know of your pipeline; then: ragaudit check {folder}")
