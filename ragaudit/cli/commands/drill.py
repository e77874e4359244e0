"""`ragaudit drill`: breaks a healthy run on purpose and checks the diagnosis."""

from pathlib import Path

import click

from ragaudit.cli.bundle_options import bundle_options, find, opened
from ragaudit.cli.drill_text import drill_text, list_text
from ragaudit.cli.options import quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.drill.registry import FAULTS
from ragaudit.drill.run import run

SCHEMA = "ragaudit.drill/1"
LIMIT = 200


@click.command("drill")
@bundle_options
@click.option("--fault", "names", multiple=True, metavar="NAME", help="Only this fault; may be repeated.")
@click.option("--list", "listing", is_flag=True, help="The faults that can be injected; needs no bundle.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, metavar="N", help="Healthy queries broken."
)
@click.option("--seed", type=int, metavar="N", help="Of the choices that a fault makes.")
@click.option(
    "--scope", type=click.Choice(["answer", "retrieval"]), help="retrieval: evidence in the prompt is healthy."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    bundle: Path | None,
    names: tuple[str, ...],
    listing: bool,
    limit: int,
    seed: int | None,
    scope: str | None,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Break healthy queries on purpose and check that the diagnosis names what was broken.

    Nothing is written and nothing is sent. Exits with 1 when a diagnosis excludes the truth: an alarm about ragaudit,
    or about what the bundle logs. A fault that is left open because its evidence was not logged is no alarm.
    """
    streams: Streams = ctx.obj
    if listing:
        _list(streams, as_json)
        return
    opened_bundle = opened(find(bundle, files), {"scope": scope, "seed": seed})
    with streams.progress("faults") as progress:
        report = run(opened_bundle, names=names, seed=opened_bundle.settings.audit.seed, limit=limit, progress=progress)
    if as_json:
        streams.json({"schema": SCHEMA, **report.model_dump(mode="json"), "holds": report.holds})
    else:
        streams.text(drill_text(report))
    if not report.holds:
        ctx.exit(ExitCode.FIRED)


def _list(streams: Streams, as_json: bool) -> None:
    if as_json:
        rows = [
            {"fault": f.name, "stage": f.stage.value, "summary": f.summary, "hides": f.hides or None}
            for f in FAULTS.values()
        ]
        streams.json({"schema": "ragaudit.faults/1", "faults": rows})
    else:
        streams.text(list_text(FAULTS.values()))
