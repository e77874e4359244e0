"""From --judge, --tape and --bundle to who is asked about what."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragaudit.audit.judging import Judge
from ragaudit.cli.bundle_options import opened
from ragaudit.cli.streams import Streams
from ragaudit.cli.tape_paths import folder_of, tape_paths
from ragaudit.config import JudgeSettings
from ragaudit.errors import ConfigError
from ragaudit.model.result import Summary
from ragaudit.readers.bundle import Bundle, locate

if TYPE_CHECKING:
    from ragaudit.judge.plan import Lookup

NO_MODEL = "judge.model: no model is set. Name it in the [judge] table of ragaudit.toml, or pass --judge MODEL."


def judge_of(streams: Streams, bundle: Bundle, judge: str, tape: str | None) -> Judge | None:
    """Who judges this run.

    Args:
        streams: For what is said about it.
        bundle: The open bundle; its settings name model, cassette and cache.
        judge: "off", "auto" (the configured model, if there is one), or a model, which wins over the configured one.
        tape: none, once, new or all; None = new.

    Raises:
        ConfigError: `--tape` without any model, or a setting is wrong.
    """
    settings = bundle.settings.judge or JudgeSettings()
    if judge == "off":
        return None
    if judge != "auto":
        settings = settings.model_copy(update={"model": judge})
    if not settings.model:
        if tape is not None:
            raise ConfigError("--tape: no judge model is set. Write [judge] model in ragaudit.toml, or pass --judge.")
        return None
    from ragaudit.judge.settings import how_to_judge, limits, litellm_client, open_tape, prompts_of

    mode = tape or "new"
    folder = folder_of(bundle.paths)
    return Judge(
        how=how_to_judge(settings),
        prompts=prompts_of(settings, folder),
        tape=open_tape(settings, mode, folder),
        limits=limits(settings),
        client=None if mode == "none" else litellm_client(settings),
        cuts=settings.cuts.model_dump(),
    )


def lookup_of(bundle: Bundle) -> "Lookup":
    """What is on the tape of this run, for a plan. Opens it for reading only."""
    from ragaudit.judge.plan import recorded

    return recorded(*tape_paths(bundle.settings.judge or JudgeSettings(), folder_of(bundle.paths)))


def bundle_of(audit: Path, summary: Summary, folder: Path | None) -> Bundle:
    """The bundle of an audit: the one that is named, else the folder that is called like the run or like the file.

    Raises:
        ConfigError: None is named and none is there.
        InputError: It cannot be read.
    """
    places = [folder] if folder is not None else list(_places(audit, summary.run.name))
    found = next((place for place in places if folder is not None or any(place.glob("traces.*"))), None)
    if found is None:
        looked = " or ".join(str(place) for place in places)
        raise ConfigError(
            f"{audit}: judging needs the bundle that was audited, and it is not at {looked}. Name it with --bundle DIR."
        )
    return opened(locate(found), {})


def judged_into(
    streams: Streams,
    audit: Path,
    folder: Path | None,
    filter_text: str,
    model: str | None,
    tape: str,
    *,
    as_json: bool,
) -> bool:
    """Judge queries of a finished audit into its file, and show it. False = a limit was reached before the last."""
    from ragaudit.audit.rejudge import rejudge
    from ragaudit.audit.reopen import prove, reopen
    from ragaudit.audit.summing import catch_up
    from ragaudit.cli.commands.audit import show
    from ragaudit.model.counting import queries
    from ragaudit.store import AuditReader
    from ragaudit.store.filters import parse_filter

    wanted = parse_filter(filter_text)
    with AuditReader.open(audit) as reader:
        summary, ids = reader.summary(), reader.ids(wanted)
    if summary.behind:
        summary = catch_up(audit)
    bundle = bundle_of(audit, summary, folder)
    prove(audit, summary.run, bundle)
    model = model or _model(bundle)
    judge = judge_of(streams, bundle, model, tape) if model else None
    if judge is None:
        raise ConfigError(NO_MODEL)
    try:
        with judge.tape, streams.progress("queries judged") as progress:
            audited = reopen(audit, summary, bundle)
            found = rejudge(audited, judge, ids, again=tape == "all", progress=lambda moment: progress(moment.done))
    except KeyboardInterrupt:
        streams.say(f"What was done is kept in {audit}; run the same command again to go on.")
        raise
    show(streams, audit, found.summary, as_json=as_json)
    moment = found.moment
    streams.say(f"{moment.done:,} of {queries(moment.total)} judged, {moment.unscored:,} of them unscored.")
    if found.budget_spent:
        streams.complain(f"judge: the budget did not reach {queries(found.left)}. Raise max_cost or overall_timeout.")
    return not found.budget_spent


def reviewing_judge(streams: Streams, bundle: Bundle, tape: str | None, *, to_plan: bool) -> Judge:
    """Who judges from the app; to plan, nothing is opened for writing.

    Raises:
        ConfigError: The bundle's ragaudit.toml names no model.
    """
    judge = judge_of(streams, bundle, "auto", "none" if to_plan else tape) if _model(bundle) else None
    if judge is None:
        config = bundle.paths.config or bundle.paths.traces.parent / "ragaudit.toml"
        said = 'Write [judge] and model = "provider/name" into it, and press J again.'
        raise ConfigError(f"{config}: names no judge. {said}")
    return judge


def _model(bundle: Bundle) -> str | None:
    return (bundle.settings.judge or JudgeSettings()).model


def _places(audit: Path, run: str) -> Iterator[Path]:
    """Beside the audit file and here. A name from a file is a name, never a path."""
    names = dict.fromkeys(name for name in (run, audit.stem) if name == Path(name).name and name not in ("", "..", "."))
    for parent in dict.fromkeys((audit.resolve().parent, Path.cwd())):
        for name in names:
            yield parent / name


def _folder(bundle: Bundle) -> Path:
    """What the paths in ragaudit.toml are relative to."""
    return (bundle.paths.config or bundle.paths.traces).resolve().parent
