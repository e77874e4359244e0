"""`ragaudit next`: the experiments of an audit, best first."""

from pathlib import Path

import click

from ragaudit.cli.bundle_options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.experiments.journal import DEFAULT, Journal, is_refuted
from ragaudit.model.experiment import Experiment
from ragaudit.report.next_text import next_text
from ragaudit.store import AuditReader


@click.command("next")
@click.argument("audit", type=PATH)
@click.option("--journal", type=PATH, default=DEFAULT, show_default=True, help="Leaves out what it refuted.")
@click.option("--json", "as_json", is_flag=True, help="Every experiment as JSON.")
@quiet_option
@click.pass_obj
def command(streams: Streams, /, audit: Path, journal: Path, as_json: bool) -> None:
    """The next experiments: one variable each, ranked, with what they would do.

    A number is given only where the recorded lists could be replayed under the change.
    """
    with AuditReader.open(audit) as reader:
        experiments = reader.summary().experiments
    known = Journal.read(journal)
    left = tuple(e for e in experiments if not is_refuted(known.about(e)))
    if len(left) < len(experiments):
        streams.say(f"{len(experiments) - len(left)} left out: {journal} says that they were tried and refuted.")
    if as_json:
        streams.json({"schema": "ragaudit.next/1", "experiments": [_row(e) for e in left]})
    else:
        streams.text(next_text(left))


def _row(experiment: Experiment) -> dict[str, object]:
    return experiment.model_dump(mode="json", by_alias=True)
