"""`ragaudit next`: the experiments of an audit, best first."""

from pathlib import Path

import click

from ragaudit.audit.proposals import proposed_again
from ragaudit.cli.gates_file import Held, gates_held
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.experiments.journal import DEFAULT, Journal, refuted
from ragaudit.experiments.propose import is_refuted
from ragaudit.model.experiment import Experiment
from ragaudit.report.next_text import next_text
from ragaudit.store import AuditReader
from ragaudit.store.filters import EVERYTHING, parse_filter


@click.command("next")
@click.argument("audit", type=PATH)
@click.option("--filter", "filter_text", metavar="EXPR", help="For these failing queries alone, as stage:rerank.")
@click.option("--journal", type=PATH, default=DEFAULT, show_default=True, help="Leaves out what it refuted.")
@click.option("--json", "as_json", is_flag=True, help="Every experiment as JSON.")
@quiet_option
@click.pass_obj
def command(streams: Streams, /, audit: Path, filter_text: str | None, journal: Path, as_json: bool) -> None:
    """The next experiments: one variable each, ranked, with what they would do.

    A number is given only where the recorded lists of enough queries could be replayed under the change. With
    --filter (the language of `ragaudit review`) the levers are those that these queries need; what a change recovers
    and loses is counted over the whole run all the same. Where [gates] are written, it is said when they all hold.
    """
    known = refuted(Journal.read(journal))
    where = EVERYTHING if filter_text is None else parse_filter(filter_text)
    with AuditReader.open(audit) as reader:
        experiments = reader.summary().experiments
        left_out = sum(is_refuted(each, known) for each in experiments)
        if left_out or where is not EVERYTHING:
            experiments = proposed_again(reader, where=where, refuted=known)
    if left_out:
        streams.say(f"{left_out} left out: {journal} says that they were tried and refuted.")
    gates = gates_held(audit)
    if as_json:
        rows = [_row(experiment) for experiment in experiments]
        streams.json({"schema": "ragaudit.next/1", "gates": gates and _gates(gates), "experiments": rows})
    else:
        streams.text(next_text(experiments, met=gates.held if gates is not None and gates.are_met else ()))


def _gates(gates: Held) -> dict[str, object]:
    return {
        "file": str(gates.path),
        "met": gates.are_met,
        "held": gates.held,
        "fired": gates.fired,
        "unchecked": gates.unchecked,
        "leaking_queries": gates.leaking,
    }


def _row(experiment: Experiment) -> dict[str, object]:
    return experiment.model_dump(mode="json", by_alias=True)
