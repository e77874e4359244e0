"""`ragaudit redact`: a bundle or a report without personal data and secrets, to be shared."""

from pathlib import Path

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.redact_text import as_document, summary_text
from ragaudit.cli.streams import Streams
from ragaudit.errors import ConfigError
from ragaudit.redact.fields import Tally, TextMode, Walker
from ragaudit.redact.key import fresh_key, key_from
from ragaudit.redact.names import Finder, listed_names, presidio_names
from ragaudit.redact.pseudonyms import Pseudonyms
from ragaudit.redact.run import redact_file, redact_folder
from ragaudit.redact.text import Redactor


@click.command("redact")
@click.argument("traces", type=PATH)
@click.option("-o", "--output", type=PATH, metavar="OUT", help="A new folder for a bundle, a file for a file.")
@click.option("--key-file", type=PATH, metavar="FILE", help="Your secret key: the same pseudonyms in every run.")
@click.option(
    "--text", "mode", type=click.Choice([m.value for m in TextMode]), default="keep-redacted", show_default=True
)
@click.option("--names-file", type=PATH, metavar="FILE", help="Names to hide, one a line.")
@click.option("--names", type=click.Choice(["presidio"]), help="Look for names of people (extra: ragaudit[presidio]).")
@click.option("--names-language", default="en", show_default=True, metavar="LANG", help="Language of the name model.")
@click.option(
    "--names-model", default="en_core_web_lg", show_default=True, metavar="MODEL", help="An installed spaCy model."
)
@click.option("--ip", is_flag=True, help="Hide IP addresses, too.")
@click.option("--dry-run", is_flag=True, help="Count and write nothing.")
@click.option("--replace", is_flag=True, help="Write over OUT when it is a file.")
@click.option("--json", "as_json", is_flag=True, help="The counts as JSON.")
@quiet_option
@click.pass_obj
def command(
    streams: Streams,
    traces: Path,
    output: Path | None,
    key_file: Path | None,
    mode: str,
    names_file: Path | None,
    names: str | None,
    names_language: str,
    names_model: str,
    ip: bool,
    dry_run: bool,
    replace: bool,
    as_json: bool,
) -> None:
    """Take personal data and secrets out of traces and reports, with pseudonyms that keep every join.

    TRACES is a bundle folder or one file. E-mail addresses, phone, card and account numbers, keys and passwords go.

    The same value gets the same pseudonym everywhere, so that an audit of OUT says the same. Pseudonyms are not
    anonymity, and not everything is found: docs/privacy.md.
    """
    if (output is None) is not dry_run:
        raise click.UsageError("Name the place to write with -o OUT, or pass --dry-run.")
    if names is not None and names_file is not None:
        raise click.UsageError("Pass --names or --names-file, not both.")
    if key_file is not None and output is not None and key_file.resolve().is_relative_to(output.resolve()):
        raise ConfigError(f"{key_file}: the key stands in {output}, which you want to share. Keep it elsewhere.")
    key = fresh_key() if key_file is None else key_from(key_file)
    finder = presidio_names(names_language, names_model) if names else _listed(names_file)
    walker = Walker(Redactor(Pseudonyms(key), with_ips=ip, names=finder), TextMode(mode), Tally())
    with streams.progress("rows") as progress:
        if traces.is_dir():
            if replace:
                raise click.UsageError("--replace is for a file. Name a new folder.")
            outcome = redact_folder(traces, output, walker, progress)
        else:
            outcome = redact_file(traces, output, walker, progress, replace=replace)
    if as_json:
        streams.json(as_document(outcome, walker, fresh=key_file is None))
    else:
        streams.text(summary_text(outcome, walker))
    if key_file is None and not dry_run:
        streams.say(
            "A fresh key made these pseudonyms and is gone: another run gives others. Keep one with --key-file."
        )
    if output is not None:
        streams.say(f"Wrote {output}.")


def _listed(path: Path | None) -> Finder | None:
    if path is None:
        return None
    try:
        names = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path}: cannot be read as UTF-8 text. Check --names-file.") from None
    return listed_names(name for line in names if (name := line.strip()) and not name.startswith("#"))
