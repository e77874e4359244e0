"""`ragaudit review`: the terminal app."""

import sys
from pathlib import Path

import click

from ragaudit.cli.bundle_options import PATH
from ragaudit.cli.streams import Streams
from ragaudit.tui.first_look import first_look


@click.command("review")
@click.argument("audit", type=PATH)
@click.option("--query", "query_id", metavar="ID", help="Start on this query.")
@click.option("--filter", "filter_text", metavar="EXPR", help="Start with this filter, as stage:rerank is:unreviewed.")
@click.option("--theme", default="ragaudit-dark", show_default=True, help="ragaudit-light, or any theme of Textual.")
@click.pass_context
def command(ctx: click.Context, audit: Path, query_id: str | None, filter_text: str | None, theme: str) -> None:
    """Step through the failing queries of an audit; what you say is kept in the audit file."""
    _: Streams = ctx.obj
    with first_look(audit, query_id, sys.stdout):
        from ragaudit.tui.app import run

        code = run(audit, query_id=query_id, filter_text=filter_text, theme=theme, keymap={})
    ctx.exit(code)
