"""`ragaudit import`: the traces of another tool as the files of a bundle, and how each field was come by."""

import json
from collections.abc import Mapping
from pathlib import Path

import click

from ragaudit.audit.run import check
from ragaudit.cli.bundle_options import find, opened
from ragaudit.cli.bundle_rows import Output, write_rows
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.errors import ConfigError, InputError
from ragaudit.importers.formats import Format, Options, Table
from ragaudit.importers.inputs import objects
from ragaudit.importers.matching import Texts
from ragaudit.importers.registry import format_named, guess
from ragaudit.importers.report import ImportReport
from ragaudit.model.result import Finding, Level
from ragaudit.report.findings_text import by_weight
from ragaudit.report.import_text import import_text


def _pairs(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise click.BadParameter(f"{name or value}: write NAME=VALUE.")
    return {name: value for name, _, value in pairs}


@click.command("import")
@click.argument("form", metavar="FORMAT")
@click.argument("inputs", metavar="INPUT...", type=PATH, nargs=-1, required=True)
@click.option(
    "-o", "--output", type=PATH, metavar="OUT", required=True, help="traces.jsonl, or a folder for all files."
)
@click.option(
    "--k", type=click.IntRange(min=1), help="How many chunks your prompt may hold, where the input does not say."
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    callback=_pairs,
    metavar="NAME=LIST",
    help="A span's name and its list: arm, fused, after_rerank, final...",
)
@click.option(
    "--map", "columns", multiple=True, callback=_pairs, metavar="FIELD=COLUMN", help="Which column holds a field."
)
@click.option("--mapping", type=PATH, metavar="FILE", help="The --map pairs of before, as --save-mapping wrote them.")
@click.option("--save-mapping", type=PATH, metavar="FILE", help="Keep the --map pairs for the next time.")
@click.option("--chunks", type=PATH, metavar="FILE", help="chunks.jsonl: ids for hits and gold that are only texts.")
@click.option(
    "--order", type=click.Choice(["score", "rank"]), default="score", show_default=True, help="What orders a TREC run."
)
@click.option("--replace", is_flag=True, help="Write over files that are there.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@quiet_option
@click.pass_obj
def command(
    streams: Streams,
    form: str,
    inputs: tuple[Path, ...],
    output: Path,
    k: int | None,
    stages: dict[str, str],
    columns: dict[str, str],
    mapping: Path | None,
    save_mapping: Path | None,
    chunks: Path | None,
    order: str,
    replace: bool,
    as_json: bool,
) -> None:
    """Read the traces of another tool. FORMAT `auto` looks what INPUT is; `ragaudit formats` lists them all.

    Each field says how it was come by: observed, derived, assumed. What is absent stays absent.
    """
    chosen = _chosen(streams, form, inputs)
    if columns and not chosen.maps:
        what = "knows its own fields; `import table` reads any"
        streams.say(f"--map means nothing to {chosen.name}, which {what}.")
    every = {**_kept(mapping), **columns}
    options = Options(k, stages, every, None if chunks is None else _texts(chunks), order)
    report = ImportReport(format=chosen.name)
    out = Output(output, replace, every if save_mapping is not None else None, save_mapping)
    with streams.progress("rows") as progress:
        write_rows(chosen.rows(inputs, options, report), out, report, progress)
    if not report.rows:
        raise InputError(_nothing(inputs[0], chosen, report))
    findings, stop = _undecided(streams, out, report)
    if as_json:
        said = [finding.model_dump(mode="json") for finding in findings]
        streams.json(report.as_json() | {"preflight": said, "stops": stop})
    else:
        streams.text(import_text(report, chosen, findings, stop))
    blocked = stop or any(finding.severity is Level.BLOCK for finding in findings)
    can = f" Next: ragaudit audit {out.bundle}" if report.rows[Table.TRACES.value] else ""
    streams.say(f"Wrote {output}.{' An audit of it would stop, as said above.' if blocked else can}")


def _chosen(streams: Streams, form: str, inputs: tuple[Path, ...]) -> Format:
    """The format by name; with `auto` the one that the first input that tells it is of."""
    if form != "auto":
        return format_named(form)
    unknown: InputError | None = None
    for path in inputs:
        try:
            found = guess(path)
        except InputError as error:
            unknown = unknown or error
            continue
        also = f" ({', '.join(found.others)} would read it too)" if found.others else ""
        streams.say(f"{path}: {found.format.title}, {found.why}{also}.")
        return found.format
    raise unknown or InputError("No input was given. Name a file.")


def _undecided(streams: Streams, out: Output, report: ImportReport) -> tuple[list[Finding], str]:
    """What preflight says of the bundle as it stands now, and why an audit of it would stop, if it would."""
    if not report.rows[Table.TRACES.value]:
        return [], ""
    try:
        traces = {"traces": out.path} if out.is_file else {}
        bundle = opened(find(None if out.is_file else out.path, traces), {})
        with streams.progress("traces checked") as progress:
            return by_weight(check(bundle, progress=progress)), ""
    except (InputError, ConfigError) as error:
        return [], str(error)


def _nothing(path: Path, chosen: Format, report: ImportReport) -> str:
    why, reason = next(iter(report.skipped.items()), ("it holds no records", None))
    where = f" ({reason.places[0]})" if reason is not None and reason.places[0] else ""
    return f"{path}: nothing usable for {chosen.title}: {why}{where}. Check the file and the format."


def _kept(path: Path | None) -> Mapping[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as a mapping ({error}). Write it with --save-mapping.") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ConfigError(f'{path}: is no mapping. Write {{"FIELD": "COLUMN"}}, as --save-mapping does.')
    return found


def _texts(path: Path) -> Texts:
    """The chunk texts of an inventory file."""
    found = Texts.of(value for _, value in objects(path, ImportReport()))
    if not found:
        raise InputError(f"{path}: no row has a chunk_id and a text. Export chunks.jsonl with texts.")
    return found
