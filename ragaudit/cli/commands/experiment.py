"""`ragaudit experiment`: the journal of what was tried, what was expected and what came out."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.compare.baselines import load_side
from ragaudit.compare.pairing import compare
from ragaudit.errors import ConfigError, InputError
from ragaudit.experiments.events import Entry, Planned
from ragaudit.experiments.journal import DEFAULT, Journal
from ragaudit.experiments.levers import admits, lever
from ragaudit.experiments.planning import planned_change
from ragaudit.report.compare_text import compare_text
from ragaudit.report.journal_text import entry_lines, journal_text
from ragaudit.store import AuditReader

_JOURNAL = click.option("--journal", type=PATH, default=DEFAULT, show_default=True, metavar="FILE", help="The journal.")
_JSON = click.option("--json", "as_json", is_flag=True, help="The same as JSON.")


@click.group("experiment")
def command() -> None:
    """The journal: plan a change of one variable, start it, finish it with what came out. Each takes --json.

    It is kept in experiments.jsonl, one line an event, to be committed.
    """


@command.command("plan")
@click.argument("audit", type=PATH)
@click.argument("lever_name", metavar="LEVER")
@click.option("--to", metavar="VALUE", help="The value, as JSON or as a word; default: as proposed.")
@click.option(
    "--variable", metavar="KEY", help="Which arm or floor, when the lever fits several: search.dense.fetch_k."
)
@click.option("--hypothesis", metavar="TEXT", help="Why it should help; default: the lever's summary.")
@_JOURNAL
@_JSON
@quiet_option
@click.pass_obj
def plan(
    streams: Streams,
    audit: Path,
    lever_name: str,
    to: str | None,
    variable: str | None,
    hypothesis: str | None,
    journal: Path,
    as_json: bool,
) -> None:
    """Write down a hypothesis: LEVER, its variable and value, and the effect that is expected."""
    known = lever(lever_name)
    value = None if to is None else _value(to)
    if to is not None and not admits(known, value):
        raise ConfigError(f"--to {to}: lever {known.name} cannot be set to that. `ragaudit levers` says what it takes.")
    kept = Journal.read(journal)
    with AuditReader.open(audit) as reader:
        summary = reader.summary()
    run = summary.run
    experiment = planned_change(
        known, summary.experiments, run.pipeline, variable=variable, to=None if to is None else (value,)
    )
    for entry in kept.entries:
        if (entry.plan.variable, entry.plan.after) == (experiment.variable, experiment.after):
            streams.say(f"The same change stands there as {entry.plan.id} ({_standing(entry)}).")
    planned = kept.plan(
        experiment,
        moves=known.moves,
        run=run.name,
        fingerprint=run.fingerprint,
        at=_now(),
        audit=str(audit),
        hypothesis=hypothesis or known.summary,
    )
    _show(streams, Entry(plan=planned), as_json)
    streams.say(f"Wrote {journal}. Next: ragaudit experiment start {planned.id}")


@command.command("start")
@click.argument("experiment_id", metavar="ID")
@_JOURNAL
@_JSON
@quiet_option
@click.pass_obj
def start(streams: Streams, experiment_id: str, journal: Path, as_json: bool) -> None:
    """Note that an experiment runs."""
    kept = Journal.read(journal)
    entry = kept.entry(experiment_id)
    started = kept.start(experiment_id, at=_now())
    _show(streams, entry.model_copy(update={"started": started}), as_json)
    streams.say(
        f"Change only that, run the same queries, audit, then: ragaudit experiment finish {started.id} CAND.audit"
    )


@command.command("finish")
@click.argument("experiment_id", metavar="ID")
@click.argument("candidate", type=PATH)
@click.option("--base", metavar="FILE|NAME", help="The run it was planned on; default: the audit file named then.")
@click.option("--allow", multiple=True, metavar="VARIABLE", help="Accept this difference too, and note it. Repeatable.")
@_JOURNAL
@_JSON
@quiet_option
@click.pass_obj
def finish(
    streams: Streams,
    experiment_id: str,
    candidate: Path,
    base: str | None,
    allow: tuple[str, ...],
    journal: Path,
    as_json: bool,
) -> None:
    """Compare the candidate with the run it was planned on, and note what came out, with the prediction's error."""
    kept = Journal.read(journal)
    entry = kept.entry(experiment_id)
    before, frozen = load_side(_base(entry.plan, base))
    if before.fingerprint != entry.plan.fingerprint:
        raise InputError(
            f"{before.name}: is not the run that {entry.plan.id} was planned on ({entry.plan.run}, "
            f"{entry.plan.fingerprint}). Pass that one with --base."
        )
    after, _ = load_side(str(candidate))
    found = compare(before, after, allow=allow, planned=entry.plan.variable, frozen=frozen)
    finished = kept.finish(experiment_id, found, at=_now())
    if not as_json:
        streams.text(compare_text(found) + "\n")
    _show(streams, entry.model_copy(update={"finished": finished}), as_json)


@command.command("list")
@_JOURNAL
@_JSON
@quiet_option
@click.pass_obj
def list_command(streams: Streams, journal: Path, as_json: bool) -> None:
    """Every experiment: planned, started, confirmed, refuted, open."""
    kept = Journal.read(journal)
    if as_json:
        streams.json({"schema": "ragaudit.journal/1", "experiments": [_row(entry) for entry in kept.entries]})
    else:
        streams.text(journal_text(kept))


def _base(planned: Planned, given: str | None) -> str:
    if given is not None:
        return given
    if planned.audit is None or not Path(planned.audit).is_file():
        raise InputError(
            f"{planned.audit or planned.run}: the audit it was planned on is not there. "
            "Pass it, or its baseline, with --base."
        )
    return planned.audit


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _standing(entry: Entry) -> str:
    return entry.status.value if entry.finished is None else entry.finished.outcome.value


def _row(entry: Entry) -> dict[str, Any]:
    return {"status": entry.status.value, **entry.model_dump(mode="json", by_alias=True)}


def _show(streams: Streams, entry: Entry, as_json: bool) -> None:
    if as_json:
        streams.json({"schema": "ragaudit.experiment/1", **_row(entry)})
    else:
        streams.text("\n".join(entry_lines(entry)) + "\n")
