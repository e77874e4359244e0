"""`ragaudit formats`: what import reads."""

import click

from ragaudit.cli.streams import Streams
from ragaudit.importers.registry import formats
from ragaudit.report.layout import wrap


@click.command("formats")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(streams: Streams, as_json: bool) -> None:
    """The formats that import reads, in the order in which `auto` tries them."""
    every = formats()
    if as_json:
        rows = [{"name": each.name, "title": each.title, "reads": each.reads} for each in every]
        streams.json({"schema": "ragaudit.formats/1", "formats": rows})
        return
    room = max(len(each.name) for each in every) + 2
    lines: list[str] = []
    for each in every:
        lines += wrap(f"{each.title}: {each.reads}", first=f"{each.name:<{room}}", rest=" " * room)
    streams.text("\n".join(lines) + "\n")
