"""`ragaudit mcp`: a server that coding agents drive, over folders that the user names."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.errors import MissingExtraError


@click.command("mcp")
@click.argument("folders", nargs=-1, required=True, type=PATH, metavar="FOLDER...")
@click.option(
    "--with-text", is_flag=True, help="`show` gives query texts, and chunk texts that the query's user may read."
)
@click.option("--write", type=PATH, metavar="DIR", help="Keep audit files there; without it they go with the session.")
@quiet_option
@click.pass_obj
def command(streams: Streams, folders: tuple[Path, ...], with_text: bool, write: Path | None) -> None:
    """Serve check, audit, show, next, compare and report to a coding agent, on stdin and stdout (MCP).

    The agent reads bundles and audit files inside the FOLDERs, and nothing else. No model is called: `audit` runs
    with the judge off. An agent starts this command; docs/agents.md says how to add it. An agent that runs commands
    itself gets the same from them with --json.
    """
    if find_spec("mcp") is None:
        raise MissingExtraError("ragaudit mcp: needs the mcp package. Install it: pip install 'ragaudit[mcp]'.")
    from ragaudit.mcp.answers import Desk
    from ragaudit.mcp.folders import Folders
    from ragaudit.mcp.server import server

    with _scratch() as scratch:
        desk = Desk(Folders.of(folders, write=write, scratch=scratch), os.environ, with_text)
        streams.say(f"Serving {', '.join(map(str, desk.folders.named))} on stdin and stdout.")
        server(desk).run("stdio")


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the audits of one session, which hold texts: it goes when the session ends, by a signal too.

    A signal ends the process at once. The thread that waits for the agent's next line cannot be stopped, and an audit
    file that is being written survives a crash.
    """
    with TemporaryDirectory(prefix="ragaudit-mcp-", ignore_cleanup_errors=True) as name:

        def end(number: int, _: object) -> None:
            shutil.rmtree(name, ignore_errors=True)
            os._exit(128 + number)

        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield Path(name)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
