"""Which values of a variable are worth replaying, given the configurations that queries ran under."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.experiments.pool import RRF, on_fused, reads_arm
from ragaudit.experiments.replay import OFF
from ragaudit.experiments.score_fusion import DISTRIBUTION, RELATIVE
from ragaudit.model.pipeline import Pipeline, Threshold

OWN_VALUES = 8
"""Values of queries that depart from the run's which are tried one by one, and named."""

_NO_VALUE = ("filter.", "index.")

Setter = Callable[[Pipeline], Pipeline]


@dataclass(frozen=True)
class Variant:
    """One value of one variable to try. `variable` is the concrete key, `pipeline.` in front.

    `touches` says which configurations it changes; all others stay as they are.
    """

    variable: str
    before: Any
    after: Any
    touches: Callable[[Pipeline], bool]
    set_in: Setter
    is_departure: bool = False
    """It changes queries that depart from the run's value, not the run's value."""

    def change(self, pipeline: Pipeline) -> Pipeline:
        """The configuration under this change."""
        return self.set_in(pipeline) if self.touches(pipeline) else pipeline


def variants(variable: str, run: Pipeline, held: Sequence[Pipeline] = ()) -> Iterator[Variant]:
    """The values of a lever's variable that recorded lists can tell about, small steps first; none for most variables.

    Args:
        variable: Dotted key under `pipeline`, as in the catalogue.
        run: The run's configuration.
        held: What queries ran under, for those that depart from it: they may take the run's value, or one of their own.
    """
    field = variable.removeprefix("thresholds.*.")
    if field in ("on", "value"):
        yield from _floors(field, run, held)
    steps = _STEPS.get(variable)
    if steps is None:
        return
    for now, value in steps(run):
        yield _step(variable, run, now, value)
    yield from conformed(variable, run, held)
    seen = [value_of(run, variable)]
    for own in held:
        now = value_of(own, variable)
        if now in seen or len(seen) > OWN_VALUES:
            continue
        seen.append(now)
        for shown, value in steps(own):
            if value != value_of(run, variable):
                yield _step(variable, own, shown, value, is_departure=True)


def conformed(variable: str, run: Pipeline, held: Sequence[Pipeline]) -> Iterator[Variant]:
    """The run's own value for every query that departs from it; `*` in the variable stands for each arm.

    A filter is given none.
    """
    if variable.startswith(_NO_VALUE):
        return
    for name in _concrete(variable, run):
        value = value_of(run, name)
        own = _distinct(value_of(pipeline, name) for pipeline in held)
        departing = [each for each in own if each is not None and each != value]
        if value is None or not departing:
            continue
        yield Variant(
            f"pipeline.{name}",
            departing[0] if len(departing) == 1 else departing[:OWN_VALUES],
            value,
            lambda pipeline, name=name, departing=departing: value_of(pipeline, name) in departing,  # type: ignore[misc]
            with_value(name, value),
            is_departure=True,
        )


def certain(variable: str, run: Pipeline, held: Sequence[Pipeline]) -> Iterator[Variant]:
    """The changes of a variable whose value needs no guess, and that touch every one of these configurations."""
    field = variable.removeprefix("thresholds.*.")
    found = _floors(field, run, held) if field in ("on", "value") else conformed(variable, run, held)
    yield from (variant for variant in found if all(map(variant.touches, held)))


def with_value(variable: str, value: Any) -> Setter:
    """A change that sets one dotted key under `pipeline` and leaves everything else alone."""
    *tables, key = variable.removeprefix("pipeline.").split(".")

    def change(pipeline: Pipeline) -> Pipeline:
        over: dict[str, Any] = {key: value}
        for table in reversed(tables):
            over = {table: over}
        return pipeline.with_overrides(over)

    return change


def value_of(pipeline: Pipeline, variable: str) -> Any:
    """What a configuration has under a dotted key; None where nothing was said."""
    found: Any = pipeline
    for key in variable.split("."):
        found = found.get(key) if isinstance(found, Mapping) else getattr(found, key, None)
    return list(found) if isinstance(found, tuple) else found


def _step(variable: str, at: Pipeline, shown: Any, value: Any, *, is_departure: bool = False) -> Variant:
    now = value_of(at, variable)
    return Variant(
        f"pipeline.{variable}",
        shown,
        value,
        lambda pipeline: value_of(pipeline, variable) == now,
        with_value(variable, value),
        is_departure,
    )


def _concrete(variable: str, run: Pipeline) -> list[str]:
    table, star, key = variable.partition(".*.")
    if not star:
        return [variable]
    return [f"search.{arm}.{key}" for arm in run.search] if table == "search" else []


def _distinct(values: Iterator[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _floors(field: str, run: Pipeline, held: Sequence[Pipeline]) -> Iterator[Variant]:
    """Each floor off, or off the fused list and on the arm whose score it reads; the other floors stay."""
    for place, floor in _distinct((n, t) for pipeline in (run, *held) for n, t in enumerate(pipeline.thresholds)):
        if floor.on in (None, "none") or floor.value is None:
            continue
        after = None if field == "value" else _arm_read(floor, run)
        if field == "on" and after is None:
            continue

        def touches(pipeline: Pipeline, place: int = place, floor: Threshold = floor) -> bool:
            return pipeline.thresholds[place : place + 1] == (floor,)

        yield Variant(
            f"pipeline.thresholds.{place}.{field}",
            floor.value if field == "value" else floor.on,
            after,
            touches,
            _with_floor(place, field, after),
            is_departure=not touches(run),
        )


def _arm_read(floor: Threshold, run: Pipeline) -> str | None:
    """The arm whose score a floor on the fused list reads."""
    arms = [arm for arm in run.arms or () if floor.score is not None and reads_arm(floor.score, arm)]
    return arms[0] if len(arms) == 1 and on_fused(floor) else None


def _with_floor(place: int, field: str, value: Any) -> Setter:
    def change(pipeline: Pipeline) -> Pipeline:
        rows = [floor.model_dump(exclude_none=True) for floor in pipeline.thresholds]
        rows[place] = {**rows[place], field: value}
        return pipeline.with_overrides({"thresholds": rows})

    return change


def _budget(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.pack.token_budget
    if now:
        yield from ((now, int(now * factor)) for factor in (1.25, 1.5, 2, 4))


def _overflow(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    if pipeline.pack.on_overflow == "stop":
        yield "stop", "drop"


def _k(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.k_final
    if now:
        yield from ((now, value) for value in dict.fromkeys((now + 1, now + 2, now * 2)))


def _top_n(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.rerank.top_n
    if now:
        wider = (value for value in (pipeline.k_final or 0, now * 2, now * 4) if value > now)
        yield from ((now, value) for value in dict.fromkeys(wider))


def _candidates(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.rerank.candidates
    if now:
        yield from ((now, value) for value in (now * 2, now * 4))


def _rerank_off(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    if pipeline.rerank.model is not None and pipeline.rerank.model not in OFF:
        yield pipeline.rerank.model, ""


def _blend(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    if pipeline.rerank.model not in OFF:
        now = (pipeline.rerank.model_extra or {}).get("blend", 1.0)
        yield from ((now, value) for value in (0.75, 0.5, 0.25) if value != now)


def _fusion_k(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.fusion.k or 60
    if pipeline.fusion.method:
        yield from ((now, value) for value in (10, 30, 100) if value != now)


def _method(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.fusion.method
    if now is not None and len(pipeline.arms or ()) > 1:
        by_rank = now.casefold() in RRF
        yield from ((now, value) for value in ((RELATIVE, DISTRIBUTION) if by_rank else ("rrf",)))


def _fetch(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.filter.fetch_k
    if now and pipeline.filter.mode == "post":
        yield from ((now, now * factor) for factor in (2, 4, 10))


def _weights(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    arms = pipeline.arms or ()
    if not pipeline.fusion.method or len(arms) < 2:
        return
    now = {arm: (pipeline.fusion.weights or {}).get(arm, 1.0) for arm in arms}
    for arm in arms:
        for factor in (2.0, 0.5):
            yield now, {**now, arm: now[arm] * factor}


def _arms(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    arms = list(pipeline.arms or ())
    if len(arms) > 1:
        yield from ((arms, [other for other in arms if other != arm]) for arm in arms)


def _dedupe(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.pack.dedupe_by
    if now and "chunk" not in now.casefold():
        yield now, "chunk"


def _per_source(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.pack.max_per_source
    if now:
        yield from ((now, value) for value in (now + 1, 0))


_STEPS: dict[str, Callable[[Pipeline], Iterator[tuple[Any, Any]]]] = {
    "pack.token_budget": _budget,
    "pack.on_overflow": _overflow,
    "k_final": _k,
    "rerank.top_n": _top_n,
    "rerank.candidates": _candidates,
    "rerank.model": _rerank_off,
    "rerank.blend": _blend,
    "fusion.k": _fusion_k,
    "fusion.method": _method,
    "fusion.weights": _weights,
    "filter.fetch_k": _fetch,
    "arms": _arms,
    "pack.dedupe_by": _dedupe,
    "pack.max_per_source": _per_source,
}
