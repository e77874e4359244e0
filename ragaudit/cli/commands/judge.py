"""`ragaudit judge`: what judging would take, judging, how far the judge agrees with gold ids and with people."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from ragaudit.audit.judging import samples
from ragaudit.cli.bundle_options import bundle_options, find, limit_options, opened
from ragaudit.cli.judging import judged_into
from ragaudit.cli.judging_again import both_modes, counted, judged_in, several_seeds, unasked_in
from ragaudit.cli.options import PATH, quiet_option
from ragaudit.cli.streams import ExitCode, Streams
from ragaudit.cli.tape_paths import folder_of, tape_paths
from ragaudit.config import JudgeSettings, QuadrantSettings, Settings, load_settings
from ragaudit.errors import ConfigError, InputError
from ragaudit.judge.agree import against_gold, between_modes, replicated_verdicts
from ragaudit.judge.calibrate import compare, described, read_labels
from ragaudit.judge.plan import nothing_recorded, recorded
from ragaudit.judge.plan import plan as worked_out
from ragaudit.judge.settings import how_to_judge, prompts_of
from ragaudit.judge.tape import TapeMode
from ragaudit.metrics.agreement import flip_rate
from ragaudit.metrics.calibration import agreement, calibrated
from ragaudit.model.counting import queries
from ragaudit.model.judgement import Agreement, Calibration, Compared, Judgement
from ragaudit.model.result import QueryResult, Summary
from ragaudit.report.agreement_text import (
    against_gold_text,
    calibration_text,
    modes_text,
    replicates_text,
    sentence,
)
from ragaudit.report.plan_text import plan_document, plan_text
from ragaudit.store import AuditReader
from ragaudit.store.calibration import write_calibration

model_option = click.option("--judge", metavar="MODEL", help="The model, as LiteLLM names it; wins over ragaudit.toml.")
tape_option = click.option(
    "--tape",
    type=click.Choice([mode.value for mode in TapeMode]),
    default=TapeMode.NEW.value,
    show_default=True,
    help="none: replay only; once: record only a new tape; new: record what is missing; all: ask everything again.",
)
limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N traces.")


@click.group("judge")
def command() -> None:
    """Plan, run and check the LLM judge: price first, then verdicts, then how far to trust them.

    Every subcommand takes --json.
    """


@command.command("plan")
@bundle_options
@model_option
@tape_option
@limit_option
@click.option("--json", "as_json", is_flag=True, help="The plan as JSON.")
@quiet_option
@click.pass_obj
def plan(
    streams: Streams,
    /,
    bundle: Path | None,
    judge: str | None,
    tape: str,
    limit: int | None,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Say what judging BUNDLE would take, and send nothing: calls, tokens, price, and what is on tape already."""
    run = opened(find(bundle, files), {"judge": judge})
    settings = _settings(run.settings)
    lookup = nothing_recorded if tape == TapeMode.ALL else recorded(*tape_paths(settings, folder_of(run.paths)))
    with streams.progress("samples", limit) as progress:
        found = worked_out(
            counted(samples(run, limit=limit), progress),
            prompts=prompts_of(settings, folder_of(run.paths)),
            how=how_to_judge(settings),
            lookup=lookup,
        )
    if as_json:
        streams.json(plan_document(found))
    else:
        streams.text(plan_text(found))


@command.command("run")
@bundle_options
@model_option
@tape_option
@limit_option
@limit_options
@click.option("-o", "--output", type=PATH, metavar="FILE", help="The audit file; default: <bundle>.audit here.")
@click.option("--bundle", "of_audit", type=PATH, metavar="DIR", help="With an audit: the bundle that was audited.")
@click.option("--filter", "filter_text", metavar="EXPR", help="With an audit: only these, as stage:rerank is:unjudged.")
@click.option("--json", "as_json", is_flag=True, help="The whole audit as JSON instead of the summary.")
@quiet_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    bundle: Path | None,
    judge: str | None,
    tape: str,
    limit: int | None,
    max_cost: float | None,
    rpm: float | None,
    tpm: float | None,
    output: Path | None,
    of_audit: Path | None,
    filter_text: str | None,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Audit BUNDLE with the judge on: the same as `ragaudit audit --judge MODEL`, and a model must be set.

    With a finished audit in BUNDLE's place, its queries are judged into it: those that leave something open, as far as
    --filter goes. Each is in the file as soon as it is done; the rest stays as it was. `review` does the same with `J`.
    """
    if bundle is not None and bundle.is_file():
        if limit is not None or output is not None or any(files.values()):
            raise click.UsageError("An audit file takes only --bundle, --filter, --judge, --tape and --json.")
        if not judged_into(ctx.obj, bundle, of_audit, filter_text or "", judge, tape, as_json=as_json):
            ctx.exit(ExitCode.JUDGE)
        return
    if of_audit is not None or filter_text is not None:
        raise click.UsageError("--bundle and --filter go with an audit file: ragaudit judge run RUN.audit.")
    config = find(bundle, files).config
    model = judge or _settings(load_settings(config, env=os.environ, flags={})).model
    if not model:
        raise ConfigError(
            "judge.model: no model is set. Name it in the [judge] table of ragaudit.toml, or with --judge."
        )
    from ragaudit.cli.commands.audit import command as audit  # only this subcommand audits

    bounds = {"max_cost": max_cost, "rpm": rpm, "tpm": tpm}
    given = {"judge": model, "tape": tape, "limit": limit, "output": output, "as_json": as_json}
    ctx.invoke(audit, bundle=bundle, **bounds, **given, **files)


@command.command("agree")
@click.argument("audit", type=PATH)
@click.option("--modes", type=PATH, metavar="BUNDLE", help="Judge BUNDLE in both modes, and compare those instead.")
@click.option(
    "--replicates", type=PATH, metavar="BUNDLE", help="Judge BUNDLE several times: how often do verdicts flip?"
)
@click.option("--times", type=click.IntRange(2, 20), default=3, show_default=True, help="How often, for --replicates.")
@model_option
@tape_option
@limit_option
@click.option("--json", "as_json", is_flag=True, help="The figures and every difference as JSON.")
@quiet_option
@click.pass_context
def agree(
    ctx: click.Context,
    audit: Path,
    modes: Path | None,
    replicates: Path | None,
    times: int,
    judge: str | None,
    tape: str,
    limit: int | None,
    as_json: bool,
) -> None:
    """Compare the judge with gold ids, and list what they see differently for review.

    Neither is averaged away: labels are seldom complete, and a judge errs. With --modes BUNDLE, the queries that AUDIT
    judged are judged in matrix mode and one claim at a time, from the tape or by the model, and the two are compared.
    With --replicates BUNDLE they are judged several times, each with a seed of its own, and the flip rate is printed.
    """
    streams: Streams = ctx.obj
    if modes is not None and replicates is not None:
        raise ConfigError("--replicates: cannot be combined with --modes. Ask for one of them.")
    with AuditReader.open(audit) as reader:
        summary = reader.summary()
        _refuse_unjudged(reader)
        if modes is None and replicates is None:
            found = against_gold(_rows(reader))
        else:
            wanted = {judgement.query_id for judgement in reader.iter_judgements()}
    if (folder := modes or replicates) is not None:
        ways = both_modes if modes is not None else partial(several_seeds, times=times)
        said = judged_in(streams, folder, wanted, judge, tape, limit, ways)
        if modes is not None:
            _show_modes(streams, summary, said, as_json)
        else:
            _show_replicates(streams, summary, said, as_json)
        if unasked := unasked_in(said):
            streams.complain(f"judge: the budget did not reach {queries(unasked)}. Raise max_cost or overall_timeout.")
            ctx.exit(ExitCode.JUDGE)
        return
    figures = _agreements((found.chunks, found.recall), {}, summary)
    if as_json:
        streams.json(_document(summary, "gold ids", found.queries, figures, found.differences))
    else:
        streams.text(against_gold_text(found, figures))


@command.command("calibrate")
@click.argument("audit", type=PATH)
@click.argument("labels", type=PATH)
@click.option("--write", is_flag=True, help="Keep the result in the audit file, where the report finds it.")
@click.option("--json", "as_json", is_flag=True, help="The calibration as JSON.")
@quiet_option
@click.pass_obj
def calibrate(streams: Streams, audit: Path, labels: Path, write: bool, as_json: bool) -> None:
    """Measure the judge against people's LABELS, fit the cuts, correct the means.

    LABELS has one JSON object a line: {"query_id": "q-1", "metric": "faithfulness", "label": 1}, or a verdict:
    {"query_id": "q-1", "claim": "r1", "chunk_id": "c4", "label": "supported"}. `annotator` is optional. The labelled
    queries should be a random sample of the run.
    """
    read = read_labels(labels)
    with AuditReader.open(audit) as reader:
        summary = reader.summary()
        _refuse_unjudged(reader)
        prompts: set[str] = set()
        compared, unmatched = compare(read, _judged(reader, prompts))
    found = calibrated(
        described(read, model=_model(summary), prompts=prompts, unmatched=unmatched),
        compared,
        _cuts(summary),
        seed=summary.run.seed,
        resamples=summary.run.resamples,
    )
    if write:
        _keep(audit, summary, found)
    if as_json:
        streams.json({"schema": "ragaudit.calibration/1", **found.model_dump(mode="json")})
    else:
        streams.text(calibration_text(found))
        _advise(streams, audit, labels, found, written=write)


def _rows(reader: AuditReader) -> Iterator[tuple[QueryResult, Judgement | None, frozenset[str]]]:
    """Each query with what the judge said and the ids of what was packed."""
    for result in reader.iter_results():
        query_id = result.diagnosis.query_id
        trace = reader.trace(query_id)
        packed = frozenset((*(trace.final_context_ids or ()), *(trace.prompt_ids or ())) if trace else ())
        yield result, reader.judgement(query_id), packed


def _refuse_unjudged(reader: AuditReader) -> None:
    if next(reader.iter_judgements(), None) is None:
        raise InputError(f"{reader.path}: no query was judged. Run `ragaudit judge run BUNDLE -o {reader.path.name}`.")


def _judged(reader: AuditReader, prompts: set[str]) -> Iterator[tuple[Judgement, frozenset[str]]]:
    """The judgements, noting in passing which prompts asked."""
    for _, judgement, packed in _rows(reader):
        if judgement is not None:
            prompts.update(call.prompt for call in judgement.calls)
            yield judgement, packed


def _agreements(compared: Iterable[Compared], cuts: Mapping[str, float], summary: Summary) -> tuple[Agreement, ...]:
    run = summary.run
    return tuple(
        agreement(each, cut=cuts.get(each.about, 0.5), seed=run.seed, resamples=run.resamples) for each in compared
    )


def _model(summary: Summary) -> str | None:
    return None if summary.judge is None else summary.judge.model


def _cuts(summary: Summary) -> dict[str, float]:
    """The cuts in force when the run was audited."""
    given = {} if summary.judge is None else summary.judge.cuts
    return QuadrantSettings().model_dump() | given


def _keep(audit: Path, summary: Summary, found: Calibration) -> None:
    note = summary.judge
    if note is not None:
        summary = summary.model_copy(update={"judge": note.model_copy(update={"calibration": sentence(found)})})
    write_calibration(audit, found, summary)


def _advise(streams: Streams, audit: Path, labels: Path, found: Calibration, *, written: bool) -> None:
    lines = [
        f"{cut.setting.rpartition('.')[2]} = {cut.fitted:.6g}"
        for cut in found.cuts
        if cut.fitted is not None and "." in cut.setting
    ]
    if lines:
        streams.say("\n".join(["To use these cuts, write in ragaudit.toml and audit again:", "[judge.cuts]", *lines]))
    if written:
        streams.say(f"Wrote it into {audit}. Next: ragaudit report {audit}")
    else:
        streams.say(f"Nothing was written. To keep it: ragaudit judge calibrate {audit} {labels} --write")


def _document(
    summary: Summary, against: str, n: int, figures: Iterable[Agreement], differences: Iterable[Any]
) -> dict[str, Any]:
    return {
        "schema": "ragaudit.judge_agreement/1",
        "model": _model(summary),
        "against": against,
        "queries": n,
        "agreements": [each.model_dump(mode="json") for each in figures],
        "differences": [asdict(each) for each in differences],
    }


def _show_replicates(streams: Streams, summary: Summary, said: list[list[Judgement]], as_json: bool) -> None:
    """How often a verdict differs between replicates."""
    found = flip_rate(replicated_verdicts(said), seed=summary.run.seed, resamples=summary.run.resamples)
    if as_json:
        rate = found.model_dump(mode="json")
        streams.json({"schema": "ragaudit.replicates/1", "times": len(said), "flip_rate": rate})
    else:
        streams.text(replicates_text(found, len(said)))


def _show_modes(streams: Streams, summary: Summary, said: list[list[Judgement]], as_json: bool) -> None:
    """How far the two modes agree, and where they differ."""
    both = between_modes(zip(*said, strict=True))
    figures = _agreements(both.compared, {}, summary)
    if as_json:
        streams.json(_document(summary, "matrix mode", both.queries, figures, both.differing))
    else:
        streams.text(modes_text(both, figures))


def _settings(settings: Settings) -> JudgeSettings:
    return settings.judge or JudgeSettings()
