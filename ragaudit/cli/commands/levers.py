"""`ragaudit levers`: everything that may be changed, in the order in which it is tried."""

import click

from ragaudit.cli.streams import Streams
from ragaudit.experiments.levers import LEVERS, STEPS, is_retrieval, step_of, takes, where
from ragaudit.model.diagnosis import STAGES
from ragaudit.model.experiment import Lever
from ragaudit.report.layout import heading, wrap

_INDENT = " " * 15


@click.command("levers")
@click.option("--stage", type=click.Choice([stage.value for stage in STAGES]), help="Only those that answer one stage.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with how to do it in each stack.")
@click.pass_obj
def command(streams: Streams, stage: str | None, as_json: bool) -> None:
    """What an experiment may change, one key at a time, the first to try first. No lever widens access."""
    known = [lever for lever in LEVERS if stage is None or stage in lever.stages]
    if as_json:
        rows = [
            {
                **lever.model_dump(mode="json"),
                "takes": takes(lever),
                "step": step_of(lever),
                "retrieval": is_retrieval(lever),
            }
            for lever in known
        ]
        streams.json({"schema": "ragaudit.levers/1", "levers": rows})
        return
    blocks: list[str] = []
    for number, title in enumerate(STEPS, start=1):
        here = [lever for lever in known if step_of(lever) == title]
        if here:
            lines = [heading(f"{number} {title}"), *(line for lever in here for line in _lines(lever))]
            blocks.append("\n".join(lines) + "\n")
    streams.text("\n".join(blocks))


def _lines(lever: Lever) -> list[str]:
    lines = [f"  {lever.name:<20} pipeline.{lever.variable}"]
    lines += wrap(lever.summary, first="      ", rest="      ")
    lines += wrap(takes(lever), first="      takes    ", rest=_INDENT)
    lines += wrap(", ".join(lever.causes), first="      answers  ", rest=_INDENT)
    if where(lever):
        lines += wrap(where(lever), first="      where    ", rest=_INDENT)
    lines += wrap(f"{lever.moves}; watch {', '.join(lever.watch)}", first="      moves    ", rest=_INDENT)
    if lever.authorisation:
        lines += wrap(lever.authorisation, first="      needs    ", rest=_INDENT)
    return lines
