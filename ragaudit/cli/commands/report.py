"""`ragaudit report`: the written report of an audit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.report import as_json
from ragaudit.report.before import Against
from ragaudit.report.collect import MAX_ROWS
from ragaudit.report.written import Wanted, written
from ragaudit.store import AuditReader
from ragaudit.store.whole_file import whole_file

PLANNED = ("junit", "github")
WRITTEN = ("md", "html")
"""The formats that templates print."""


@click.command("report")
@click.argument("audit", type=PATH)
@click.option("--format", "form", type=click.Choice([*WRITTEN, "json", *PLANNED]), default="md", show_default=True)
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Write there instead of stdout.")
@click.option("--one-page", is_flag=True, help="The page for a decision instead of everything.")
@click.option("--with-text", is_flag=True, help="Texts too, as far as each query's user may read them; else ids only.")
@click.option("--templates", type=PATH, metavar="DIR", help="A folder with your own templates.")
@click.option("--baseline", metavar="BASE", help="Metrics before and after: an audit, a baseline file or its name.")
@click.option("--allow", multiple=True, metavar="VARIABLE", help="With --baseline: accept this difference, and say so.")
@click.option(
    "--max-rows", type=click.IntRange(min=1), default=MAX_ROWS, show_default=True, help="Failing queries listed."
)
@click.option("--json", "also_json", is_flag=True, help="The same as --format json.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    audit: Path,
    form: str,
    output: Path | None,
    one_page: bool,
    with_text: bool,
    templates: Path | None,
    baseline: str | None,
    allow: tuple[str, ...],
    max_rows: int,
    also_json: bool,
) -> None:
    """The written report: verdict, what to do next, losses by stage, failing queries, metrics, method.

    With --baseline, a comparison that would prove nothing is refused: the report says why, and the exit code is 3.
    """
    streams: Streams = ctx.obj
    form = "json" if also_json else form
    if form in PLANNED:
        raise click.UsageError(f"--format {form} is not in this version. Use md, html or json.")
    if form not in WRITTEN and (templates is not None or one_page or baseline is not None):
        raise click.UsageError("--templates, --one-page and --baseline are for --format md or html.")
    if allow and baseline is None:
        raise click.UsageError("--allow is for --baseline.")
    with AuditReader.open(audit) as reader:
        against = None if baseline is None else _against(streams, reader, baseline, allow)
        with _destination(output, streams) as out:
            if form == "json":
                as_json.write(out, reader.summary(), reader.iter_results(), with_text=with_text)
            else:
                wanted = Wanted(form, with_text, one_page, templates, max_rows)
                out.write(written(reader, wanted, against))
    if output is not None:
        streams.say(f"Wrote {output}.")
    if against is not None and against.refusal:
        streams.complain(against.refusal)
        ctx.exit(ExitCode.INPUT)


def _against(streams: Streams, reader: AuditReader, baseline: str, allow: tuple[str, ...]) -> Against:
    from ragaudit.cli.against import compared  # brings numpy
    from ragaudit.cli.commands.compare import idle

    against = compared(reader, baseline, allow)
    if against.found is not None:
        idle(streams, allow, against.found)
    return against


@contextmanager
def _destination(path: Path | None, streams: Streams) -> Iterator[TextIO]:
    """Stdout, or a file that is in place only when all of it is written."""
    if path is None:
        yield streams.out
        return
    with whole_file(path, replace=True) as file:
        yield file
