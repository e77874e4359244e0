"""`ragaudit demo`: the bundled example, audited offline."""

import tempfile
from importlib.resources import files
from pathlib import Path

import click

import ragaudit
from ragaudit.cli.bundle_options import opened
from ragaudit.cli.commands.audit import audited, show
from ragaudit.cli.commands.review import at_a_terminal, run_app, source_of
from ragaudit.cli.options import quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.errors import InputError
from ragaudit.readers.bundle import locate
from ragaudit.report.diagnosis_text import diagnosis_text
from ragaudit.report.example import worked_example
from ragaudit.report.written import written
from ragaudit.store import AuditReader


@click.command("demo")
@click.option("--report", "as_report", is_flag=True, help="The written report instead of the summary.")
@click.option("--no-review", is_flag=True, help="The summary, not the app, on a terminal too.")
@click.option("--json", "as_json", is_flag=True, help="The audit as JSON instead of the summary.")
@quiet_option
@click.pass_context
def command(ctx: click.Context, as_report: bool, no_review: bool, as_json: bool) -> None:
    """Audit the bundled example and show one worked diagnosis. Needs no network and no key.

    On a terminal the app opens on its failing queries; elsewhere the summary is printed.
    """
    streams: Streams = ctx.obj
    folder = example_folder()
    out = Path(tempfile.mkdtemp(prefix="ragaudit-demo-")) / "demo.audit"
    summary = audited(streams, opened(locate(folder), {}), out, None)
    if as_json:
        show(streams, out, summary, as_json=True)
        return
    with AuditReader.open(out) as reader:
        if as_report:
            streams.data(written(reader))
            return
        example = worked_example(summary, reader.iter_results(passed=False))
    query_id = example.diagnosis.query_id if example is not None else "QUERY_ID"
    if not no_review and at_a_terminal():
        code = run_app(out, lambda: source_of(streams, out, folder, None))
        streams.say(_next(out, folder, query_id))
        ctx.exit(code)
    show(streams, out, summary, as_json=False, shown=None)
    if example is not None:
        streams.data("\n")
        streams.text(f"-- One diagnosis, worked {'-' * 55}\n\n{diagnosis_text(example, CAUSES, STAGE_NOTES)}")
    streams.say(_next(out, folder, query_id))


def example_folder() -> Path:
    """The example in the installed package, else in the source tree.

    Raises:
        InputError: it is in neither.
    """
    inside = Path(str(files(ragaudit))) / "examples" / "demo"
    beside = Path(str(files(ragaudit))).parent / "examples" / "demo"
    for folder in (inside, beside):
        if (folder / "traces.jsonl").is_file():
            return folder
    raise InputError(f"{inside}: the bundled example is not there. Reinstall ragaudit.")


def _next(out: Path, folder: Path, query_id: str) -> str:
    return f"""
Next:
  ragaudit review {out}
  ragaudit show {out} {query_id} --with-text
  ragaudit report {out} -o report.md
  ragaudit check {folder}
  ragaudit init     then: ragaudit audit YOUR_BUNDLE"""
