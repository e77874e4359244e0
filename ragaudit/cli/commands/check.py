"""`ragaudit check`: preflight alone."""

from dataclasses import asdict
from pathlib import Path

import click

from ragaudit.audit.run import check
from ragaudit.cli.bundle_options import bundle_options, find, opened
from ragaudit.cli.options import quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.model.result import Level
from ragaudit.readers.problems import KEPT
from ragaudit.report.findings_text import by_weight, findings_text, messages_text


@click.command("check")
@bundle_options
@click.option("--json", "as_json", is_flag=True, help="The findings as JSON.")
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, bundle: Path | None, as_json: bool, **files: Path | None) -> None:
    """Preflight: what the data cannot tell, and how to log it.

    Rows that were left out or repaired are listed with file, line and field: the first 10, with --json the first 100.
    Exits with 3 when a finding blocks an audit.
    """
    streams: Streams = ctx.obj
    run = opened(find(bundle, files), {})
    with streams.progress("traces") as progress:
        findings = by_weight(check(run, progress=progress))
    blocked = any(finding.severity is Level.BLOCK for finding in findings)
    if as_json:
        streams.json(
            {
                "schema": "ragaudit.check/1",
                "run": run.name,
                "blocked": blocked,
                "preflight": [finding.model_dump(mode="json") for finding in findings],
                "messages": [asdict(problem) for problem in run.problems.messages],
            }
        )
    else:
        streams.text(findings_text(run.name, findings))
        if messages := messages_text(run.problems.texts(), KEPT):
            streams.text("\n" + messages)
    if blocked:
        ctx.exit(ExitCode.INPUT)
