"""`ragaudit audit`: every query of a bundle, into one audit file."""

from pathlib import Path

import click

from ragaudit.audit.judging import Judge
from ragaudit.audit.run import audit
from ragaudit.cli.bundle_options import bundle_name, bundle_options, find, limit_options, opened
from ragaudit.cli.judging import judge_of
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.model.counting import counted
from ragaudit.model.diagnosis import Outcome
from ragaudit.model.result import JudgeNote, Summary
from ragaudit.readers.bundle import Bundle
from ragaudit.report import as_json as document
from ragaudit.report.failing_text import SHOWN, failing_text
from ragaudit.report.overview_text import summary_text
from ragaudit.store import AuditReader


@click.command("audit")
@bundle_options
@click.option("-o", "--output", type=PATH, metavar="FILE", help="The audit file; default: <bundle>.audit here.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N traces.")
@click.option(
    "--scope", type=click.Choice(["answer", "retrieval"]), help="retrieval: evidence in the prompt is a pass."
)
@click.option(
    "--judge", default="auto", show_default=True, metavar="auto|off|MODEL", help="Who judges what has no labels."
)
@click.option("--tape", type=click.Choice(["none", "once", "new", "all"]), help="Where judge replies come from.")
@limit_options
@click.option("--json", "as_json", is_flag=True, help="The whole audit as JSON instead of the summary.")
@click.option("--with-text", is_flag=True, help="With --json: the query texts too.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    bundle: Path | None,
    output: Path | None,
    limit: int | None,
    scope: str | None,
    judge: str,
    tape: str | None,
    max_cost: float | None,
    rpm: float | None,
    tpm: float | None,
    as_json: bool,
    with_text: bool,
    **files: Path | None,
) -> None:
    """Say for every query which stage lost the evidence, and prove it.

    Writes one audit file, which `show` and `report` read. Interrupted, the same command goes on where it stopped.
    Exits with 3, and writes nothing, when a preflight finding blocks; `ragaudit check` lists all of them. Exits with 4
    when the judge's budget did not reach all that was to be asked: what it did reach is in the audit file.
    """
    streams: Streams = ctx.obj
    paths = find(bundle, files)
    run = opened(paths, {"scope": scope, "max_cost": max_cost, "rpm": rpm, "tpm": tpm})
    who = judge_of(streams, run, judge, tape)
    out = output or Path(f"{bundle_name(bundle, paths)}.audit")
    summary = audited(streams, run, out, limit, who)
    show(streams, out, summary, as_json=as_json, with_text=with_text)
    if not as_json:
        streams.say(f"Wrote {out}. Next: ragaudit report {out}")
    if summary.judge is not None and (unsent := _unsent(summary.judge)):
        streams.complain(
            f"judge: the budget did not reach {counted(unsent, 'call')}. Raise max_cost or overall_timeout, and run "
            "the same command again: nothing is asked twice."
        )
        ctx.exit(ExitCode.JUDGE)


def _unsent(note: JudgeNote) -> int:
    """How many calls there was no budget for."""
    from ragaudit.judge.score import NOT_ASKED  # an audit without a judge loads none of this

    return note.failures.get(NOT_ASKED, 0)


def audited(streams: Streams, bundle: Bundle, out: Path, limit: int | None, judge: Judge | None = None) -> Summary:
    """Audit with progress; say what an interruption leaves behind."""
    try:
        with streams.progress("traces", limit) as progress:
            return audit(bundle, out, limit=limit, judge=judge, progress=progress, saying=streams.say)
    except KeyboardInterrupt:
        streams.say(f"What was done is kept in {out}.partial; run the same command again to resume.")
        raise
    finally:
        if judge is not None:
            judge.tape.close()


def show(
    streams: Streams,
    path: Path,
    summary: Summary,
    *,
    as_json: bool,
    with_text: bool = False,
    shown: int | None = SHOWN,
) -> None:
    """The audit on stdout: the whole of it as JSON, or the summary and the failing queries as text."""
    if not as_json:
        streams.text(summary_text(summary))
        failing = summary.outcomes.get(Outcome.FAIL.value, 0)
        with AuditReader.open(path) as reader:
            table = failing_text(reader.iter_results(passed=False), failing, shown=shown)
        if table:
            streams.text("\n" + table)
        return
    with AuditReader.open(path) as reader:
        document.write(streams.out, reader.summary(), reader.iter_results(), with_text=with_text)
