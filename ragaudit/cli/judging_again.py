"""The same queries judged in several ways: with several seeds, or in both modes."""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from ragaudit.audit.judging import samples
from ragaudit.cli.bundle_options import find, opened
from ragaudit.cli.judging import NO_MODEL, judge_of
from ragaudit.cli.streams import Streams
from ragaudit.errors import ConfigError
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.runner import run as run_judge
from ragaudit.judge.score import NOT_ASKED
from ragaudit.model.judgement import Judgement

T = TypeVar("T")


def several_seeds(how: HowToJudge, times: int) -> list[tuple[str, HowToJudge]]:
    """The same, each with a seed of its own."""
    first = how.parameters.get("seed", 1)
    start = first if isinstance(first, int) else 1
    seeds = range(start, start + times)
    return [(f"seed {n}", how.model_copy(update={"parameters": {**how.parameters, "seed": n}})) for n in seeds]


def both_modes(how: HowToJudge) -> list[tuple[str, HowToJudge]]:
    """All claims in one call, and one claim a call."""
    return [(mode.replace("_", " "), how.model_copy(update={"mode": mode})) for mode in ("matrix", "per_claim")]


def unasked_in(said: list[list[Judgement]]) -> int:
    """How many queries were not asked about to the end."""
    unsent = (
        judgement.query_id
        for one_way in said
        for judgement in one_way
        if any((call.error or "").startswith(NOT_ASKED) for call in judgement.calls)
    )
    return len(set(unsent))


def judged_in(
    streams: Streams,
    folder: Path,
    wanted: Collection[str],
    model: str | None,
    mode: str,
    limit: int | None,
    ways: Callable[[HowToJudge], list[tuple[str, HowToJudge]]],
) -> list[list[Judgement]]:
    """Judge the same samples in several ways, one after the other."""
    bundle = opened(find(folder, {}), {})
    who = judge_of(streams, bundle, model or "auto", mode)
    if who is None:
        raise ConfigError(NO_MODEL)
    said: list[list[Judgement]] = []
    with who.tape:
        for name, how in ways(who.how):
            judged = run_judge(
                (sample for sample in samples(bundle, limit=limit) if sample.query_id in wanted),
                prompts=who.prompts,
                how=how,
                tape=who.tape,
                client=who.client,
                limits=who.limits,
                so_far=who.so_far,
            )
            with streams.progress(f"queries judged ({name})", limit) as progress:
                said.append(list(counted(judged, progress)))
    return said


def counted(items: Iterable[T], progress: Callable[[int], None]) -> Iterator[T]:
    """The items as they come; `progress` is told how many there were."""
    for n, item in enumerate(items, start=1):
        yield item
        progress(n)
