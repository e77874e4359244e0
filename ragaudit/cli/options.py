"""What many commands take, and none of what only some of them need: a light module, for `review` opens at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)


def quiet_option(command: Command) -> Command:
    """Take `--quiet` after the command's name, too."""

    def hush(ctx: click.Context, _: click.Parameter, quiet: bool) -> None:
        if quiet:
            ctx.obj.quiet = True

    text = "No narration and no progress on stderr."
    return click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=hush, help=text)(command)
