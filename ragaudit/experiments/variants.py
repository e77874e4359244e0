"""Which values of a variable are worth replaying, given the configuration as it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ragaudit.model.pipeline import Pipeline

Setter = Callable[[Pipeline], Pipeline]


@dataclass(frozen=True)
class Variant:
    """One value of one variable to replay. `variable` is the concrete key, `pipeline.` in front."""

    variable: str
    before: Any
    after: Any
    change: Setter


def variants(variable: str, pipeline: Pipeline) -> Iterator[Variant]:
    """The values of a lever's variable that the recorded lists can replay; none for any other variable."""
    field = variable.removeprefix("thresholds.*.")
    if field in ("on", "value"):
        yield from _thresholds(field, pipeline)
    for now, value in _VARIANTS.get(variable, _none)(pipeline):
        yield Variant(f"pipeline.{variable}", now, value, with_value(variable, value))


def with_value(variable: str, value: Any) -> Setter:
    """A change that sets one dotted key under `pipeline` and leaves everything else alone."""
    *tables, key = variable.removeprefix("pipeline.").split(".")

    def change(pipeline: Pipeline) -> Pipeline:
        over: dict[str, Any] = {key: value}
        for table in reversed(tables):
            over = {table: over}
        return pipeline.with_overrides(over)

    return change


def _none(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    yield from ()


def _thresholds(field: str, pipeline: Pipeline) -> Iterator[Variant]:
    """Each floor off, or off the fused list and on the arm whose score it reads; the other floors stay."""
    for place, floor in enumerate(pipeline.thresholds):
        if floor.on in (None, "none") or floor.value is None:
            continue
        name = f"pipeline.thresholds.{place}.{field}"
        if field == "value":
            yield Variant(name, floor.value, None, _with_floor(place, "value", None))
        elif floor.on.casefold() == "fused" and floor.score in (pipeline.arms or ()):
            yield Variant(name, floor.on, floor.score, _with_floor(place, "on", floor.score))


def _with_floor(place: int, field: str, value: Any) -> Setter:
    def change(pipeline: Pipeline) -> Pipeline:
        rows = [floor.model_dump(exclude_none=True) for floor in pipeline.thresholds]
        if place < len(rows):
            rows[place] = {**rows[place], field: value}
        return pipeline.with_overrides({"thresholds": rows})

    return change


def _budget(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.pack.token_budget
    if now:
        yield from ((now, int(now * factor)) for factor in (1.25, 1.5, 2))


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
    if pipeline.rerank.model:
        yield pipeline.rerank.model, ""


def _blend(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    if pipeline.rerank.model:
        now = (pipeline.rerank.model_extra or {}).get("blend", 1.0)
        yield from ((now, value) for value in (0.75, 0.5) if value != now)


def _fusion_k(pipeline: Pipeline) -> Iterator[tuple[Any, Any]]:
    now = pipeline.fusion.k or 60
    if pipeline.fusion.method:
        yield from ((now, value) for value in (10, 30, 100) if value != now)


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


_VARIANTS: dict[str, Callable[[Pipeline], Iterator[tuple[Any, Any]]]] = {
    "pack.token_budget": _budget,
    "k_final": _k,
    "rerank.top_n": _top_n,
    "rerank.candidates": _candidates,
    "rerank.model": _rerank_off,
    "rerank.blend": _blend,
    "fusion.k": _fusion_k,
    "fusion.weights": _weights,
    "arms": _arms,
    "pack.dedupe_by": _dedupe,
    "pack.max_per_source": _per_source,
}
