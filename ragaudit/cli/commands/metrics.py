"""`ragaudit metrics`: every metric and its convention."""

from dataclasses import asdict

import click

from ragaudit.cli.streams import Streams
from ragaudit.metrics.registry import REGISTRY
from ragaudit.report.layout import wrap


@click.command("metrics")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(streams: Streams, as_json: bool) -> None:
    """Every metric: the question it answers, its formula and source, and when it is undefined."""
    if as_json:
        streams.json({"schema": "ragaudit.metrics/1", "metrics": [asdict(info) for info in REGISTRY]})
        return
    blocks: list[str] = []
    for info in REGISTRY:
        order = "yes" if info.order_sensitive else "no"
        lines = wrap(info.question, first=f"{info.name:<20} ", rest=" " * 21)
        lines += wrap(info.formula, first="  formula    ", rest=" " * 13)
        lines += wrap(info.source, first="  source     ", rest=" " * 13)
        lines += wrap(info.undefined_when, first="  undefined  when ", rest=" " * 18)
        lines += [f"  order      matters: {order}     needs: {info.needs}"]
        blocks.append("\n".join(lines) + "\n")
    streams.text("\n".join(blocks))
