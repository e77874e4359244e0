"""`ragaudit compare`: a candidate against a baseline, query by query."""

from pathlib import Path

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.compare.baselines import FOLDER, load_side
from ragaudit.compare.gating import regressions
from ragaudit.compare.pairing import MIN_QUERIES, compare
from ragaudit.model.comparison import COMPARISON_SCHEMA, Comparison, means
from ragaudit.report.compare_text import SHOWN, compare_text


@click.command("compare")
@click.argument("base")
@click.argument("candidate")
@click.option("--gate", is_flag=True, help="Exit with 1 when a metric is worse, queries newly leak or are missing.")
@click.option("--allow", multiple=True, metavar="VARIABLE", help="Accept this difference too, and say so. Repeatable.")
@click.option("--baselines", type=PATH, default=FOLDER, show_default=True, metavar="DIR", help="Where names are found.")
@click.option("--max-rows", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="Rows of each list.")
@click.option(
    "--min-queries", type=click.IntRange(min=1), default=MIN_QUERIES, show_default=True, help="Fewer are too few."
)
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    base: str,
    candidate: str,
    gate: bool,
    allow: tuple[str, ...],
    baselines: Path,
    max_rows: int,
    min_queries: int,
    as_json: bool,
) -> None:
    """Compare two runs of the same queries, and say whether the one thing that changed helped.

    BASE is an audit file, a baseline file, or the name of a frozen baseline. Exits with 3, and says why, when more
    than one pipeline variable changed, or K, the ACL rule, the gold or the judge differ.
    """
    streams: Streams = ctx.obj
    before, frozen = load_side(base, baselines)
    after, _ = load_side(candidate, baselines)
    found = compare(before, after, allow=allow, frozen=frozen, min_queries=min_queries)
    idle(streams, allow, found)
    failed = regressions(found) if gate else ()
    if as_json:
        verdict = {"gate": {"fired": bool(failed), "reasons": list(failed)}} if gate else {}
        streams.json({"schema": COMPARISON_SCHEMA, **found.model_dump(mode="json"), **verdict})
    else:
        streams.text(compare_text(found, shown=max_rows))
    for reason in failed:
        streams.complain(f"gate: {reason}")
    if failed:
        ctx.exit(ExitCode.FIRED)


def idle(streams: Streams, allow: tuple[str, ...], found: Comparison) -> None:
    """Say which names of --allow meant nothing: a misspelt one would look like an exception that is not there."""
    differing = [each.name for each in (*found.variables, *found.exceptions)]
    for name in allow:
        if not any(means(name, variable) for variable in differing):
            streams.say(f"--allow {name}: nothing of that name differs.")
