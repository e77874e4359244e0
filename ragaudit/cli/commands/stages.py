"""`ragaudit stages`: the nine stages."""

import click

from ragaudit.cli.streams import Streams
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.model.diagnosis import STAGES
from ragaudit.report.layout import wrap


@click.command("stages")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(streams: Streams, as_json: bool) -> None:
    """The nine stages in order, and what each may lose."""
    rows = [
        {
            "stage": stage.value,
            "label": stage.label,
            "note": STAGE_NOTES.get(stage, ""),
            "causes": [name for name, known in CAUSES.items() if known.stage is stage],
        }
        for stage in STAGES
    ]
    if as_json:
        streams.json({"schema": "ragaudit.stages/1", "stages": rows})
        return
    lines: list[str] = []
    for row in rows:
        lines += wrap(str(row["note"]), first=f"{row['stage']:<11} {row['label']:<15} ", rest=" " * 28)
    streams.text("\n".join(line.rstrip() for line in lines) + "\n")
