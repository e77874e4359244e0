"""`ragaudit gate`: a run against the thresholds that its owner wrote."""

import os
from pathlib import Path

import click

from ragaudit.cli.gates_file import CONFIG, gates_file
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.compare.baselines import FOLDER, load_side, name_from
from ragaudit.compare.gates import rules
from ragaudit.compare.gating import hold
from ragaudit.config import load_settings
from ragaudit.errors import ConfigError
from ragaudit.model.comparison import GATE_SCHEMA, Baseline
from ragaudit.report.gate_text import SHOWN, gate_text, measured_text


@click.command("gate")
@click.argument("audit", type=PATH)
@click.option("--baseline", metavar="FILE|NAME", help="What `max_drop` is measured against.")
@click.option("--config", type=PATH, metavar="FILE", help="ragaudit.toml; default: here, else beside the audit file.")
@click.option("--allow", multiple=True, metavar="VARIABLE", help="Accept that this differs from the baseline.")
@click.option("--baselines", type=PATH, default=FOLDER, show_default=True, metavar="DIR", help="Where names are found.")
@click.option("--max-rows", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="Queries of each gate.")
@click.option("--json", "as_json", is_flag=True, help="Every gate as JSON.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    audit: Path,
    baseline: str | None,
    config: Path | None,
    allow: tuple[str, ...],
    baselines: Path,
    max_rows: int,
    as_json: bool,
) -> None:
    """Hold a run against the thresholds under [gates], and exit with 1 when one fires.

    Without [gates] it stops and says how to choose them from a baseline; it invents none.
    """
    streams: Streams = ctx.obj
    path = gates_file(audit, config)
    gates = load_settings(path, env=os.environ, flags={}).gates if path is not None else None
    place = path.name if path is not None else CONFIG
    asked = rules(gates or {}, place)
    run, _ = load_side(str(audit), baselines)
    before = load_side(baseline, baselines)[0] if baseline is not None else None
    if not asked:
        raise ConfigError(_without_gates(audit, place, before or run))
    relative = [rule.gate for rule in asked if rule.relative]
    if relative and before is None:
        raise ConfigError(
            f"{place}: gates.{relative[0]}: is measured against a baseline. Pass --baseline FILE or the name of one."
        )
    report = hold(run, asked, before, allow=allow)
    streams.say(f"Gates from {path}.")
    if as_json:
        document = {"schema": GATE_SCHEMA, "passed": not report.fired, **report.model_dump(mode="json")}
        streams.json(document)
    else:
        streams.text(gate_text(report, shown=max_rows))
    if report.fired:
        ctx.exit(ExitCode.FIRED)


def _without_gates(audit: Path, place: str, measured: Baseline) -> str:
    name = name_from(measured.name)
    return (
        f"{place}: no [gates]. Thresholds are yours to choose; choose them from a baseline:\n"
        f"  1. ragaudit baseline freeze {audit}\n"
        f"  2. ragaudit baseline show {name}     its means and intervals; of {name}:\n"
        f"{measured_text(measured.metrics)}\n"
        "  3. write in ragaudit.toml what must hold, and pass the baseline when a drop is to be limited:\n"
        "     [gates]\n"
        "     leaks = 0\n"
        '     "recall@k" = { min = ..., max_drop = ..., on = "mean" or "low", coverage = ... }\n'
        "A threshold above the lower end of an interval will fire by chance."
    )
