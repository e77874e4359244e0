"""`ragaudit import`: the traces of another tool as the files of a bundle, and how each field was come by."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.errors import ConfigError, InputError
from ragaudit.importers.formats import Format, Options, Table
from ragaudit.importers.matching import Texts
from ragaudit.importers.registry import format_named, guess
from ragaudit.importers.report import ImportReport
from ragaudit.readers.fields import Odd, finite
from ragaudit.report.import_text import import_text
from ragaudit.store.whole_file import whole_file


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
    chosen = _chosen(streams, form, inputs[0])
    every = _kept(mapping) | columns
    options = Options(k, stages, every, None if chunks is None else _texts(chunks), order)
    report = ImportReport(format=chosen.name)
    _write(streams, chosen, inputs, output, options, report, replace)
    if save_mapping is not None:
        with whole_file(save_mapping, replace=replace) as file:
            json.dump(every, file, indent=2, ensure_ascii=False)
            file.write("\n")
    if as_json:
        streams.json(report.as_json())
    else:
        streams.text(import_text(report, chosen))
    streams.say(f"Wrote {output}. What an audit of it can decide: ragaudit check {_bundle(output)}")


def _chosen(streams: Streams, form: str, path: Path) -> Format:
    if form != "auto":
        return format_named(form)
    found = guess(path)
    also = f" ({', '.join(found.others)} would read it too)" if found.others else ""
    streams.say(f"{path}: {found.format.title}, {found.why}{also}.")
    return found.format


def _write(
    streams: Streams,
    chosen: Format,
    inputs: tuple[Path, ...],
    output: Path,
    options: Options,
    report: ImportReport,
    replace: bool,
) -> None:
    """Write each row to its file; all files are in place together, or none is."""
    if not _is_file(output):
        output.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack, streams.progress("rows") as progress:
        files: dict[Table, TextIO] = {}
        for done, (table, row) in enumerate(_rows(chosen, inputs, options, report), start=1):
            if table is not Table.TRACES and _is_file(output):
                report.note(f"rows for {table.value}.jsonl: not written, pass a folder as -o to keep them", "")
                continue
            line = _line(row, report)
            if line is None:
                continue
            if table is Table.TRACES:
                report.trace(row)
            report.rows[table.value] += 1
            if table not in files:
                path = output if _is_file(output) else output / f"{table.value}.jsonl"
                files[table] = stack.enter_context(whole_file(path, replace=replace))
            files[table].write(line + "\n")
            progress(done)
        if not report.rows:
            first = next(iter(report.skipped.items()), None)
            why = f"; first: {first[0]} ({first[1].places[0]})" if first else ""
            raise InputError(f"{inputs[0]}: nothing usable for {chosen.title}{why}. Check the format.")


def _line(row: dict[str, Any], report: ImportReport) -> str | None:
    """The row as JSON that every reader takes: NaN, Infinity and halves of characters are left out, and counted.

    None, and counted, when it is nested too deeply to be written.
    """
    place = str(row.get("query_id", ""))
    try:
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        report.skip("a row that is nested too deeply to write", place)
        return None
    except ValueError:
        report.note("numbers that are none (NaN, Infinity): left out", place)
        line = json.dumps(finite(row, "", Odd()), ensure_ascii=False, allow_nan=False)
    return line if line.isascii() else line.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _rows(
    chosen: Format, inputs: tuple[Path, ...], options: Options, report: ImportReport
) -> Iterator[tuple[Table, dict[str, Any]]]:
    for path in inputs:
        yield from chosen.read(path, options, report)


def _bundle(output: Path) -> str:
    return f"--traces {output}" if _is_file(output) else str(output)


def _is_file(output: Path) -> bool:
    return output.suffix == ".jsonl" and not output.is_dir()


def _kept(path: Path | None) -> dict[str, str]:
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
    from ragaudit.importers.inputs import records

    return Texts.of(value for _, value in records(path, ImportReport()) if isinstance(value, dict))
