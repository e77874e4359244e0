"""`ragaudit causes`: every cause that may be named."""

import click

from ragaudit.cli.streams import Streams
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES
from ragaudit.model.diagnosis import STAGES
from ragaudit.report.layout import heading, wrap


@click.command("causes")
@click.option("--stage", type=click.Choice([stage.value for stage in STAGES]), help="Only those of one stage.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(streams: Streams, stage: str | None, as_json: bool) -> None:
    """Every cause ragaudit can name: its stage, what it says, and the one thing to change."""
    known = [info for info in CAUSES.values() if stage in (None, info.stage.value)]
    if as_json:
        rows = [
            {"cause": info.name, "stage": info.stage.value, "summary": info.summary, "remedy": info.remedy}
            for info in known
        ]
        streams.json({"schema": "ragaudit.causes/1", "causes": rows})
        return
    blocks: list[str] = []
    for each in dict.fromkeys(info.stage for info in known):
        lines = [heading(each.label)]
        for info in known:
            if info.stage is each:
                lines += [f"  {info.name}", *wrap(info.summary, first="      ", rest="      ")]
                lines += wrap(info.remedy, first="    > ", rest="      ")
        blocks.append("\n".join(lines) + "\n")
    streams.text("\n".join(blocks))
