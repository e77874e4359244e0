"""`ragaudit review`: the terminal app, the same in plain text or in a browser, and what was said in it as a file."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TextIO

import click

from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import Streams
from ragaudit.tui.first_look import first_look

if TYPE_CHECKING:  # none of these is loaded before the first query is on the screen
    from ragaudit.config import TuiSettings
    from ragaudit.diagnosis.registry import CauseInfo
    from ragaudit.model.diagnosis import Stage
    from ragaudit.tui.judging import Source

FORMATS = ("markdown", "html", "jsonl", "qrels", "labels")
PORT = 8000


@click.command("review")
@click.argument("audit", type=PATH)
@click.option("--query", "query_id", metavar="ID", help="Start on this query.")
@click.option("--filter", "filter_text", metavar="EXPR", help="Start with this filter, as stage:rerank is:unreviewed.")
@click.option(
    "--against", metavar="BASE", help="Compare with this run: an audit file, or a baseline by file or name. Key c."
)
@click.option("--allow", multiple=True, metavar="VARIABLE", help="Accept this difference when comparing. Repeatable.")
@click.option(
    "--journal", type=PATH, show_default="experiments.jsonl", metavar="FILE", help="The journal of experiments."
)
@click.option("--bundle", type=PATH, metavar="DIR", help="To judge: the bundle that was audited; default: beside it.")
@click.option("--tape", type=click.Choice(["none", "once", "new", "all"]), help="To judge: where replies come from.")
@click.option("--plain", is_flag=True, help="Plain text: one query is printed, one line is read. For screen readers.")
@click.option("--serve", is_flag=True, help="In a browser on this machine; needs ragaudit[serve].")
@click.option("--port", type=click.IntRange(1, 65535), default=PORT, show_default=True, help="For --serve.")
@click.option("--export", type=PATH, metavar="FILE", help="Write the queries to a file (- is stdout) and leave.")
@click.option("--as", "form", type=click.Choice(FORMATS), help="For --export; otherwise by the file's end.")
@click.option("--with-text", is_flag=True, help="For --export: texts too, as far as each query's user may read them.")
@click.option("--replace", is_flag=True, help="For --export: write over a file that is there.")
@click.option("--agreement", is_flag=True, help="How far the diagnosis and the person agree, and leave.")
@click.option("--json", "as_json", is_flag=True, help="With --agreement: the figures as JSON.")
@click.option("--theme", help="ragaudit-dark, ragaudit-light, or any theme of Textual.")
@click.option(
    "--config", type=PATH, metavar="FILE", help="Its [tui] table; default: ragaudit.toml here, if there is one."
)
@click.option("--in-browser", is_flag=True, hidden=True, help="Started by --serve: the pipes lead to a browser.")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    audit: Path,
    query_id: str | None,
    filter_text: str | None,
    plain: bool,
    serve: bool,
    port: int,
    export: Path | None,
    form: str | None,
    with_text: bool,
    replace: bool,
    agreement: bool,
    as_json: bool,
    theme: str | None,
    config: Path | None,
    in_browser: bool,
    against: str | None,
    allow: tuple[str, ...],
    journal: Path | None,
    bundle: Path | None,
    tape: str | None,
) -> None:
    """Step through failing queries in the terminal app, and say what you think of them: it is kept in the audit file.

    `J` there judges a query or the queue; for that it needs the bundle that was audited. Where stdin or stdout is no
    terminal, the query is printed and nothing is asked.
    """
    streams: Streams = ctx.obj
    if sum((plain, serve, export is not None, agreement)) > 1:
        raise click.UsageError("--plain, --serve, --export and --agreement are four ways: choose one.")
    if as_json and not agreement:
        raise click.UsageError("--json goes with --agreement. One query as JSON: ragaudit show RUN.audit ID --json.")
    if export is None and (form or with_text or replace):
        raise click.UsageError("--as, --with-text and --replace go with --export FILE.")
    if agreement:
        _agreement(streams, audit, as_json=as_json)
    elif export is not None:
        _export(streams, audit, export, form, query_id, filter_text, with_text=with_text, replace=replace)
    elif plain:
        _plain(streams, audit, query_id, filter_text)
    elif serve:
        given = {"--query": query_id, "--filter": filter_text, "--theme": theme, "--config": config}
        given |= {"--bundle": bundle, "--tape": tape, "--against": against, "--journal": journal}
        allowed = [word for variable in allow for word in ("--allow", variable)]
        _serve(streams, audit, query_id, filter_text, theme, config, port, given, allowed)
    elif in_browser or at_a_terminal():
        source = partial(source_of, streams, audit, bundle, tape)
        ctx.exit(
            run_app(
                audit,
                source,
                query_id,
                filter_text,
                theme=theme,
                config=config,
                against=against,
                allow=allow,
                journal=journal,
            )
        )
    else:
        _once(streams, audit, query_id, filter_text)


def at_a_terminal() -> bool:
    """Is there a person who can use the app?"""
    return sys.stdin.isatty() and sys.stdout.isatty()


def run_app(
    audit: Path,
    source: "Callable[[], Source]",
    query_id: str | None = None,
    filter_text: str | None = None,
    *,
    theme: str | None = None,
    config: Path | None = None,
    against: str | None = None,
    allow: Collection[str] = (),
    journal: Path | None = None,
) -> int:
    """Run the app until it is left; its exit code."""
    with first_look(audit, query_id, sys.stdout):
        settings, place = _settings(theme, config)
        from ragaudit.tui.app import run

        no_color = bool(os.environ.get("NO_COLOR"))
        return run(
            audit,
            query_id=query_id,
            filter_text=filter_text,
            settings=settings,
            place=place,
            no_color=no_color,
            against=against,
            allow=allow,
            journal=journal,
            source=source(),
        )


def source_of(streams: Streams, audit: Path, folder: Path | None, tape: str | None) -> "Source":
    """Where the app gets bundle and judge. What that takes is loaded when somebody wants to judge."""
    from ragaudit.tui.judging import Source

    def judging() -> ModuleType:
        from ragaudit.cli import judging

        return judging

    return Source(
        bundle=lambda summary: judging().bundle_of(audit, summary, folder),
        judge=lambda bundle, to_plan: judging().reviewing_judge(streams, bundle, tape, to_plan=to_plan),
        lookup=lambda bundle: judging().lookup_of(bundle),
    )


def _settings(theme: str | None, config: Path | None) -> "tuple[TuiSettings, str]":
    """The `[tui]` table, with the theme of the command line over it, and where it was said."""
    from ragaudit.config import load_settings

    here = Path("ragaudit.toml")
    path = config if config is not None else here if here.is_file() else None
    settings = load_settings(path, env=os.environ, flags={}).tui
    if theme is not None:
        settings = settings.model_copy(update={"theme": theme})
    return settings, "--theme" if theme is not None else str(path)


def _registered() -> "tuple[Mapping[str, CauseInfo], Mapping[Stage, str]]":
    """The causes and what the stages mean."""
    from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
    from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES

    return CAUSES, STAGE_NOTES


def _agreement(streams: Streams, audit: Path, *, as_json: bool) -> None:
    from ragaudit.metrics.review_agreement import review_agreement
    from ragaudit.report.review_text import agreement_text
    from ragaudit.store import AuditReader, Reviews

    with AuditReader.open(audit) as reader, Reviews.open(audit, writable=False) as reviews:
        run = reader.summary().run
        found = review_agreement(reviews.every(), seed=run.seed, resamples=run.resamples)
    if as_json:
        streams.json(found.model_dump(mode="json"))
    else:
        streams.text(agreement_text(found))


def _export(
    streams: Streams,
    audit: Path,
    path: Path,
    form: str | None,
    query_id: str | None,
    filter_text: str | None,
    *,
    with_text: bool,
    replace: bool,
) -> None:
    from ragaudit.report.export import ExportFormat, Selection, Written, export, format_of, wrote
    from ragaudit.store import AuditReader, Reviews
    from ragaudit.store.filters import exactly, parse_filter
    from ragaudit.store.whole_file import whole_file

    to_stdout = str(path) == "-"
    if to_stdout and form is None:
        raise click.UsageError("--export -: say --as, there is no file name to tell the format from.")
    wanted = ExportFormat(form) if form is not None else format_of(path.name)
    selection = Selection()
    if query_id is not None:
        selection = Selection(exactly(query_id), name=f"query {query_id}")
    elif filter_text is not None:
        selection = Selection(parse_filter(filter_text), name=f"filter {filter_text}")
    with AuditReader.open(audit) as reader, Reviews.open(audit, writable=False) as reviews:
        if query_id is not None and reader.index_of(query_id) is None:
            raise click.UsageError(f"{audit}: no query {query_id!r} there.")

        def write(out: TextIO) -> Written:
            return export(out, reader, wanted, selection, *_registered(), reviews=reviews, with_text=with_text)

        if to_stdout:
            write(streams.out)
            return
        with whole_file(path, replace=replace) as file:
            written = write(file)
    said = wrote(path, wanted, written, with_text=with_text)
    streams.say(f"{said[0].upper()}{said[1:]}.")


def _plain(streams: Streams, audit: Path, query_id: str | None, filter_text: str | None) -> None:
    from ragaudit.tui.plain import Conversation
    from ragaudit.tui.session import Session

    def say(text: str) -> None:
        streams.data(f"{text}\n")
        streams.out.flush()

    with Session.open(audit, query_id=query_id, filter_text=filter_text) as session:
        if sys.stdin.isatty():
            streams.say(
                "1 agree, 2 disagree, 3 gold wrong, 4 unsure, n next, ? help, q end. Each line ends with enter."
            )
        talk = Conversation(session, *_registered(), say)
        talk.run(_lines(sys.stdin), forgiving=sys.stdin.isatty())


def _lines(stream: TextIO) -> Iterable[str]:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a byte that is no text must not end a review
    return stream


def _serve(
    streams: Streams,
    audit: Path,
    query_id: str | None,
    filter_text: str | None,
    theme: str | None,
    config: Path | None,
    port: int,
    given: Mapping[str, object],
    allowed: Sequence[str],
) -> None:
    from ragaudit.tui.preferences import checked_keymap, checked_theme
    from ragaudit.tui.session import Session

    settings, place = _settings(theme, config)
    checked_theme(settings.theme, place, no_color=bool(os.environ.get("NO_COLOR")))
    checked_keymap(settings.keymap, place)
    Session.open(audit, query_id=query_id, filter_text=filter_text).close()  # what is wrong is said here, once
    from ragaudit.tui.serve import serve

    options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    serve([str(audit), *options, *allowed], port=port, say=streams.say)


def _once(streams: Streams, audit: Path, query_id: str | None, filter_text: str | None) -> None:
    """Print the query where the app would open, and say how to go on."""
    from ragaudit.tui.plain import Conversation
    from ragaudit.tui.session import Session

    with Session.open(audit, query_id=query_id, filter_text=filter_text) as session:
        Conversation(session, *_registered(), lambda text: streams.data(f"{text}\n")).show()
    streams.say(
        f"No terminal here, so the app was not started. ragaudit review {audit} --plain steps through the queries; "
        f"ragaudit report {audit} writes the report."
    )
