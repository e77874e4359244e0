"""`ragaudit review`: the terminal app."""

import sys
from pathlib import Path
from types import ModuleType

import click

from ragaudit.cli.bundle_options import PATH
from ragaudit.cli.streams import Streams
from ragaudit.tui.first_look import first_look
from ragaudit.tui.judging import Source


@click.command("review")
@click.argument("audit", type=PATH)
@click.option("--query", "query_id", metavar="ID", help="Start on this query.")
@click.option("--filter", "filter_text", metavar="EXPR", help="Start with this filter, as stage:rerank is:unreviewed.")
@click.option(
    "--against", metavar="BASE", help="Compare with this run: an audit file, or a baseline by file or name. Key c."
)
@click.option("--allow", multiple=True, metavar="VARIABLE", help="Accept this difference when comparing. Repeatable.")
@click.option(
    "--journal", type=PATH, show_default="experiments.jsonl", metavar="FILE", help="The journal of experiments."
)
@click.option("--bundle", type=PATH, metavar="DIR", help="To judge: the bundle that was audited; default: beside it.")
@click.option("--tape", type=click.Choice(["none", "once", "new", "all"]), help="To judge: where replies come from.")
@click.option("--theme", default="ragaudit-dark", show_default=True, help="ragaudit-light, or any theme of Textual.")
@click.pass_context
def command(
    ctx: click.Context,
    audit: Path,
    query_id: str | None,
    filter_text: str | None,
    against: str | None,
    allow: tuple[str, ...],
    journal: Path | None,
    bundle: Path | None,
    tape: str | None,
    theme: str,
) -> None:
    """Step through failing queries in the terminal app, and say what you think of them: it is kept in the audit file.

    `J` there judges a query or the queue; for that it needs the bundle that was audited.
    """
    streams: Streams = ctx.obj
    with first_look(audit, query_id, sys.stdout):
        from ragaudit.tui.app import run

        source = _source(streams, audit, bundle, tape)
        code = run(
            audit,
            query_id=query_id,
            filter_text=filter_text,
            theme=theme,
            keymap={},
            against=against,
            allow=allow,
            journal=journal,
            source=source,
        )
    ctx.exit(code)


def _source(streams: Streams, audit: Path, folder: Path | None, tape: str | None) -> Source:
    """Where the app gets bundle and judge. What that takes is loaded when somebody wants to judge."""

    def judging() -> ModuleType:
        from ragaudit.cli import judging

        return judging

    return Source(
        bundle=lambda summary: judging().bundle_of(audit, summary, folder),
        judge=lambda bundle, to_plan: judging().reviewing_judge(streams, bundle, tape, to_plan=to_plan),
        lookup=lambda bundle: judging().lookup_of(bundle),
    )
