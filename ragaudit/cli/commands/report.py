"""`ragaudit report`: the written report of an audit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click

from ragaudit.cli.ci_report import CI_FORMATS, ci_options, held_against, write_github, write_junit
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.report import as_json
from ragaudit.report.before import Against
from ragaudit.report.collect import MAX_ROWS
from ragaudit.report.narrative import Narrative
from ragaudit.report.written import Wanted, written
from ragaudit.store import AuditReader
from ragaudit.store.whole_file import whole_file

WRITTEN = ("md", "html")
"""The formats that templates print."""


@click.command("report")
@click.argument("audit", type=PATH)
@click.option("--format", "form", type=click.Choice([*WRITTEN, "json", *CI_FORMATS]), default="md", show_default=True)
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Write there instead of stdout.")
@click.option("--one-page", is_flag=True, help="The page for a decision instead of everything.")
@click.option("--with-text", is_flag=True, help="Texts too, as far as each query's user may read them; else ids only.")
@click.option("--templates", type=PATH, metavar="DIR", help="A folder with your own templates.")
@click.option(
    "--max-rows", type=click.IntRange(min=1), default=MAX_ROWS, show_default=True, help="Failing queries listed."
)
@click.option("--narrative", metavar="MODEL", help="A summary by this model too, from the audit's facts alone.")
@click.option("--tape", type=click.Choice(["none", "once", "new", "all"]), default="new", help="For --narrative.")
@ci_options
@click.option("--json", "also_json", is_flag=True, help="The same as --format json.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    audit: Path,
    form: str,
    output: Path | None,
    one_page: bool,
    with_text: bool,
    templates: Path | None,
    max_rows: int,
    narrative: str | None,
    tape: str,
    also_json: bool,
    **held: Any,
) -> None:
    """The written report: verdict, what to do next, losses by stage, failing queries, metrics, method.

    With --baseline, a comparison that would prove nothing is refused: the report says why, and the exit code is 3.
    """
    streams: Streams = ctx.obj
    form = "json" if also_json else form
    if form not in WRITTEN and (templates is not None or one_page):
        raise click.UsageError("--templates and --one-page are for --format md and html.")
    if narrative is not None and (form not in WRITTEN or one_page):
        raise click.UsageError("--narrative is for the whole report in md or html.")
    if form == "json" and held["baseline"]:
        raise click.UsageError("--baseline is for every format but json: `ragaudit compare --json` has it.")
    if held["config"] and form not in CI_FORMATS and narrative is None:
        raise click.UsageError("--config is for --format junit and github, and for --narrative.")
    if held["allow"] and not held["baseline"]:
        raise click.UsageError("--allow is for --baseline.")
    if form == "github":
        with AuditReader.open(audit) as reader:
            bar = held_against(streams, reader, **held)
            write_github(streams, reader, output, bar, with_text=with_text, max_rows=max_rows)
        return
    with AuditReader.open(audit) as reader:
        against = _against(streams, reader, **held) if form in WRITTEN else None
        refusal = "" if against is None else against.refusal
        with _destination(output, streams) as out:
            if form == "junit":
                write_junit(out, reader, held_against(streams, reader, **held), with_text=with_text)
            elif form == "json":
                as_json.write(out, reader.summary(), reader.iter_results(), with_text=with_text)
            else:
                wanted = Wanted(form, with_text, one_page, templates, max_rows)
                told = None if narrative is None else _told(streams, reader, narrative, tape, held["config"])
                out.write(written(reader, wanted, against, told))
    if output is not None:
        streams.say(f"Wrote {output}.")
    if refusal:
        streams.complain(refusal)
        ctx.exit(ExitCode.INPUT)


def _against(
    streams: Streams, reader: AuditReader, *, baseline: str | None, allow: tuple[str, ...], baselines: Path, **_: Any
) -> Against | None:
    """The run that a written report compares with; None when none is named."""
    if baseline is None:
        return None
    from ragaudit.cli.against import compared  # brings numpy
    from ragaudit.cli.commands.compare import idle

    against = compared(reader, baseline, allow, baselines)
    if against.found is not None:
        idle(streams, allow, against.found)
    return against


def _told(streams: Streams, reader: AuditReader, model: str, tape: str, config: Path | None) -> Narrative:
    from ragaudit.cli.narrating import narrated  # brings the judge

    return narrated(streams, reader.summary(), model, tape, config)


@contextmanager
def _destination(path: Path | None, streams: Streams) -> Iterator[TextIO]:
    """Stdout, or a file that is in place only when all of it is written."""
    if path is None:
        yield streams.out
        return
    with whole_file(path, replace=True) as file:
        yield file
