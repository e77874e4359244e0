"""`ragaudit report`: the written report of an audit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click

from ragaudit.cli.ci_report import CI_FORMATS, ci_options, held_against, write_github, write_junit
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.report import as_json
from ragaudit.report.markdown import MAX_ROWS, markdown
from ragaudit.store import AuditReader
from ragaudit.store.whole_file import whole_file

PLANNED = ("html",)


@click.command("report")
@click.argument("audit", type=PATH)
@click.option(
    "--format", "form", type=click.Choice(["md", "json", *CI_FORMATS, *PLANNED]), default="md", show_default=True
)
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Write there instead of stdout.")
@click.option("--with-text", is_flag=True, help="Show query texts; without it ids only.")
@click.option("--templates", type=PATH, metavar="DIR", help="A folder with your own report.md.jinja.")
@click.option(
    "--max-rows", type=click.IntRange(min=1), default=MAX_ROWS, show_default=True, help="Failing queries listed."
)
@ci_options
@click.option("--json", "also_json", is_flag=True, help="The same as --format json.")
@quiet_option
@click.pass_obj
def command(
    streams: Streams,
    /,
    audit: Path,
    form: str,
    output: Path | None,
    with_text: bool,
    templates: Path | None,
    max_rows: int,
    also_json: bool,
    **held: Any,
) -> None:
    """The written report: verdict, losses by stage, failing queries, metrics with intervals, method."""
    if form in PLANNED:
        raise click.UsageError(f"--format {form} is not in this version. Use md or json.")
    if templates is not None and (also_json or form != "md"):
        raise click.UsageError("--templates is for --format md.")
    form = "json" if also_json else form
    if (held["baseline"] or held["config"] or held["allow"]) and form not in CI_FORMATS:
        raise click.UsageError("--baseline, --config and --allow are for --format junit and github.")
    if form == "github":
        with AuditReader.open(audit) as reader:
            against = held_against(streams, reader, **held)
            write_github(streams, reader, output, against, with_text=with_text, max_rows=max_rows)
        return
    with AuditReader.open(audit) as reader, _destination(output, streams) as out:
        if form == "junit":
            write_junit(out, reader, held_against(streams, reader, **held), with_text=with_text)
        elif form == "json":
            as_json.write(out, reader.summary(), reader.iter_results(), with_text=with_text)
        else:
            out.write(written(reader, with_text=with_text, templates=templates, max_rows=max_rows))
    if output is not None:
        streams.say(f"Wrote {output}.")


def written(
    reader: AuditReader, *, with_text: bool = False, templates: Path | None = None, max_rows: int = MAX_ROWS
) -> str:
    """The Markdown report of an open audit."""
    return markdown(
        reader.summary(),
        reader.iter_results(passed=False),
        CAUSES,
        STAGE_NOTES,
        with_text=with_text,
        templates=templates,
        max_rows=max_rows,
    )


@contextmanager
def _destination(path: Path | None, streams: Streams) -> Iterator[TextIO]:
    """Stdout, or a file that is in place only when all of it is written."""
    if path is None:
        yield streams.out
        return
    with whole_file(path, replace=True) as file:
        yield file
